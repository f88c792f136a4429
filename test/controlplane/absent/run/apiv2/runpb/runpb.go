// Package runpb stands for the messages of Google Cloud Run (see ../../../README.md).
package runpb

import "google.golang.org/protobuf/types/known/fieldmaskpb"

type (
	// GetWorkerPoolRequest asks for a pool.
	GetWorkerPoolRequest struct{ Name string }
	// UpdateWorkerPoolRequest changes a pool.
	UpdateWorkerPoolRequest struct {
		WorkerPool *WorkerPool
		UpdateMask *fieldmaskpb.FieldMask
	}
	// WorkerPool is a pool.
	WorkerPool struct {
		Name    string
		Scaling *WorkerPoolScaling
	}
	// WorkerPoolScaling says how large a pool is.
	WorkerPoolScaling struct{ ManualInstanceCount *int32 }
)
