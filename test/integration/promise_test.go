//go:build integration

package integration

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
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

// byHand has the uids of bindings that specs have deleted themselves.
var byHand sync.Map

// beginJudgement records what the hub stores for any placement from now on; the end of the test judges every write.
func beginJudgement(t *testing.T) {
	t.Helper()
	s := newSpec(t)
	var recordings []*recording
	for _, kind := range []client.Object{
		&placementv1beta1.ClusterResourcePlacement{}, &placementv1beta1.ClusterResourceBinding{}, &placementv1beta1.Work{},
		&placementv1beta1.ClusterResourcePlacementEviction{}, &placementv1beta1.ClusterResourcePlacementDisruptionBudget{},
		&placementv1beta1.ClusterStagedUpdateRun{}, &fleetflowv1alpha1.RolloutHold{}, &fleetflowv1alpha1.RolloutExemption{}, &clusterv1beta1.MemberCluster{},
	} {
		recordings = append(recordings, s.record(s.hub, kind))
	}
	t.Cleanup(func() { judgeWrites(t, recordings) })
}

// judgeWrites replays everything in the order in which the hub has stored it.
func judgeWrites(t *testing.T, recordings []*recording) {
	fleet := judge.NewFleet()
	take := func(c change) {
		if b, is := c.object.(*placementv1beta1.ClusterResourceBinding); is {
			if _, is := byHand.Load(b.UID); is {
				fleet.UserDeletes(b)
			}
		}
		if err := fleet.Take(c.object, c.kind == watch.Deleted); err != nil {
			t.Errorf("%T %s, revision %d: %v", c.object, client.ObjectKeyFromObject(c.object), c.revision, err)
		}
	}
	var all [][]change
	for _, r := range recordings {
		r.mu.Lock()
		for _, object := range r.initial {
			take(change{kind: watch.Added, object: object})
		}
		require.Zero(t, r.gaps, "a watch was interrupted, so that not every write was seen")
		all = append(all, r.changes)
		r.mu.Unlock()
	}
	for _, c := range merge(all...) {
		take(c)
	}
	writes, placements := fleet.Judged()
	t.Logf("%d writes of %d placements were judged", writes, placements)
}
