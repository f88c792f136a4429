//go:build integration

package integration

import (
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	judge "github.com/fleetflow/fleetflow/test/promise"
)

// requirePromise replays what the hub has written of a placement's bindings and Works, and judges every write.
func requirePromise(s *spec, placement *placementv1beta1.ClusterResourcePlacement, changes []change, recordings ...*recording) {
	s.Helper()
	checker := judge.New(placement)
	for _, r := range recordings {
		for _, object := range r.initial {
			switch o := object.(type) {
			case *placementv1beta1.ClusterResourceBinding:
				checker.Seed(o)
			case *placementv1beta1.Work:
				checker.Work(o, false)
			}
		}
	}
	for _, c := range changes {
		switch o := c.object.(type) {
		case *placementv1beta1.ClusterResourceBinding:
			require.NoError(s, checker.Binding(o, c.kind == watch.Deleted), "at revision %d", c.revision)
		case *placementv1beta1.Work:
			checker.Work(o, c.kind == watch.Deleted)
		case *placementv1beta1.ClusterResourcePlacementEviction:
			checker.Eviction(o)
		}
	}
	require.Positive(s, checker.Judged, "there was something to judge")
}
