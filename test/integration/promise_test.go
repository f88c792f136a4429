//go:build integration

package integration

import (
	"sync"
	"testing"
	"time"

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

// judgement judges every write that the hub makes for any placement while the specs run.
type judgement struct {
	recordings []*recording
	placements map[string]*judge.Checker
	external   map[string]bool
	holds      map[string]*fleetflowv1alpha1.RolloutHold
	labels     map[string]map[string]string
}

// beginJudgement records from now on; the end of the test judges.
func beginJudgement(t *testing.T) {
	t.Helper()
	s := newSpec(t)
	j := &judgement{placements: map[string]*judge.Checker{}, external: map[string]bool{}, holds: map[string]*fleetflowv1alpha1.RolloutHold{}, labels: map[string]map[string]string{}}
	for _, kind := range []client.Object{
		&placementv1beta1.ClusterResourcePlacement{}, &placementv1beta1.ClusterResourceBinding{}, &placementv1beta1.Work{},
		&placementv1beta1.ClusterResourcePlacementEviction{}, &placementv1beta1.ClusterResourcePlacementDisruptionBudget{},
		&fleetflowv1alpha1.RolloutHold{}, &clusterv1beta1.MemberCluster{},
	} {
		j.recordings = append(j.recordings, s.record(s.hub, kind))
	}
	t.Cleanup(func() { j.judge(t) })
}

// judge replays everything in the order in which the hub has stored it.
func (j *judgement) judge(t *testing.T) {
	var all [][]change
	for _, r := range j.recordings {
		r.mu.Lock()
		for _, object := range r.initial {
			j.take(t, change{kind: watch.Added, object: object})
		}
		require.Zero(t, r.gaps, "a watch was interrupted, so that not every write was seen")
		all = append(all, r.changes)
		r.mu.Unlock()
	}
	for _, c := range merge(all...) {
		j.take(t, c)
	}
	judged := 0
	for _, checker := range j.placements {
		judged += checker.Judged
	}
	t.Logf("%d writes of %d placements were judged", judged, len(j.placements))
}

// takeGate shows every checker what closes clusters, and says whether the write was of that.
func (j *judgement) takeGate(c change) bool {
	switch o := c.object.(type) {
	case *fleetflowv1alpha1.RolloutHold:
		gone := c.kind == watch.Deleted || o.Spec.ExpiresAt != nil // when a batch was written that a hold expired before, nothing tells
		for _, checker := range j.placements {
			checker.Hold(o, gone, time.Time{}, 0)
		}
		if j.holds[o.Name] = o; gone {
			delete(j.holds, o.Name)
		}
	case *clusterv1beta1.MemberCluster:
		j.labels[o.Name] = o.Labels
		for _, checker := range j.placements {
			checker.Labels(o.Name, o.Labels)
		}
	default:
		return false
	}
	return true
}

// begin begins to judge a placement.
func (j *judgement) begin(p *placementv1beta1.ClusterResourcePlacement) *judge.Checker {
	checker := judge.New(p)
	for _, hold := range j.holds {
		checker.Hold(hold, false, time.Time{}, 0)
	}
	for cluster, labels := range j.labels {
		checker.Labels(cluster, labels)
	}
	return checker
}

// take shows one write to the checker of its placement. What update runs roll out has other limits.
func (j *judgement) take(t *testing.T, c change) {
	if j.takeGate(c) {
		return
	}
	if p, is := c.object.(*placementv1beta1.ClusterResourcePlacement); is {
		if j.placements[p.Name] == nil {
			j.placements[p.Name] = j.begin(p)
		}
		j.placements[p.Name].Placement(p)
		j.external[p.Name] = p.Spec.Strategy != nil && p.Spec.Strategy.Type == placementv1beta1.ExternalRolloutStrategyType
		return
	}
	name := c.object.GetLabels()[placementv1beta1.ParentPlacementLabel]
	switch o := c.object.(type) {
	case *placementv1beta1.ClusterResourcePlacementEviction:
		name = o.Spec.PlacementName
	case *placementv1beta1.ClusterResourcePlacementDisruptionBudget:
		name = o.Name
	}
	checker, gone := j.placements[name], c.kind == watch.Deleted
	if checker == nil {
		return
	}
	if j.external[name] {
		if o, is := c.object.(*placementv1beta1.ClusterResourceBinding); is {
			if err := checker.BindingOfRun(o, gone); err != nil {
				t.Errorf("placement %s, revision %d: %v", name, c.revision, err)
			}
		}
		return
	}
	switch o := c.object.(type) {
	case *placementv1beta1.ClusterResourceBinding:
		if _, is := byHand.Load(o.UID); is {
			checker.UserDeletes(o.Name)
		}
		if err := checker.Binding(o, gone); err != nil {
			t.Errorf("placement %s, revision %d: %v", name, c.revision, err)
		}
	case *placementv1beta1.Work:
		checker.Work(o, gone)
	case *placementv1beta1.ClusterResourcePlacementEviction:
		checker.Eviction(o)
	case *placementv1beta1.ClusterResourcePlacementDisruptionBudget:
		if gone {
			o = nil
		}
		checker.Budget(o)
	}
}
