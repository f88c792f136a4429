// Package run stands for Google Cloud Run, where Temporal can start workers (see ../../README.md).
package run

import (
	"context"
	"errors"

	"google.golang.org/api/option"

	"cloud.google.com/go/run/apiv2/runpb"
)

var errAbsent = errors.New("this Temporal server is built without Google Cloud Run")

type (
	// WorkerPoolsClient is never made.
	WorkerPoolsClient struct{}
	// UpdateWorkerPoolOperation is never made.
	UpdateWorkerPoolOperation struct{}
)

// NewWorkerPoolsClient returns an error: there is no client.
func NewWorkerPoolsClient(context.Context, ...option.ClientOption) (*WorkerPoolsClient, error) {
	return nil, errAbsent
}

// Close is never called.
func (*WorkerPoolsClient) Close() error { return errAbsent }

// GetWorkerPool is never called.
func (*WorkerPoolsClient) GetWorkerPool(context.Context, *runpb.GetWorkerPoolRequest) (*runpb.WorkerPool, error) {
	return nil, errAbsent
}

// UpdateWorkerPool is never called.
func (*WorkerPoolsClient) UpdateWorkerPool(context.Context, *runpb.UpdateWorkerPoolRequest) (*UpdateWorkerPoolOperation, error) {
	return nil, errAbsent
}

// Wait is never called.
func (*UpdateWorkerPoolOperation) Wait(context.Context) (*runpb.WorkerPool, error) {
	return nil, errAbsent
}
