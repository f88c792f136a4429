package stagedupdate

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

func TestOwnerOf(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: "example-run", UID: "uid-m", CreationTimestamp: metav1.NewTime(created)},
		Spec:       placementv1beta1.UpdateRunSpec{PlacementName: "example-placement"},
		Status:     placementv1beta1.UpdateRunStatus{ResourceSnapshotIndexUsed: "0"},
	}
	const ours, theirs = "example-placement-0-snapshot", "example-placement-1-snapshot"
	binding := func(state placementv1beta1.BindingState, snapshot, holder, uid string, at time.Time) *placementv1beta1.ClusterResourceBinding {
		b := &placementv1beta1.ClusterResourceBinding{Spec: placementv1beta1.ResourceBindingSpec{State: state, ResourceSnapshotName: snapshot}}
		if holder != "" {
			b.Annotations = map[string]string{
				placementv1beta1.UpdateRunAnnotation: holder, placementv1beta1.UpdateRunUIDAnnotation: uid,
				placementv1beta1.UpdateRunCreatedAnnotation: at.Format(time.RFC3339),
			}
		}
		return b
	}
	deleting := binding(placementv1beta1.BindingStateBound, ours, "", "", created)
	deleting.DeletionTimestamp = &metav1.Time{Time: created}
	const preempted = "Cannot go on: the later run `example-run-1` has taken cluster `member1` of stage `staging`: kubectl fleet status example-run-1 shows it " +
		"(cannot continue the ClusterStagedUpdateRun: unexpected behavior which cannot be handled by the controller: " +
		"the clusterResourceBinding of the updating cluster `member1` in the stage `staging` does not have expected status: " +
		"binding spec diff: binding has different resourceSnapshotName, want: example-placement-0-snapshot, got: example-placement-1-snapshot; " +
		"binding state (want Bound): Bound; binding RolloutStarted (want true): true, please check if there is concurrent clusterStagedUpdateRun `example-run-1`)"
	const deselected = "Cannot go on: " +
		"the clusters selected for clusterResourcePlacement `example-placement` have changed: cluster `member1` in the stage `staging` is no longer selected" +
		" (cannot continue the ClusterStagedUpdateRun: failed to initialize the clusterStagedUpdateRun: failed to process the request due to a client error)"
	bound := placementv1beta1.BindingStateBound
	for sentence, test := range map[string]struct {
		binding placementv1beta1.BindingObject
		want    rollout.BindingOwner
		endText string
	}{
		"a cluster that was just picked is free": {binding: binding(placementv1beta1.BindingStateScheduled, "", "", "", created), want: rollout.OwnerNone},
		"a cluster at another snapshot is free":  {binding: binding(bound, theirs, "", "", created), want: rollout.OwnerNone},
		"a cluster of an earlier run is free":    {binding: binding(bound, theirs, "example-run-1", "uid-z", created.Add(-time.Second)), want: rollout.OwnerNone},
		"a cluster of a run created who knows when is free": {binding: func() *placementv1beta1.ClusterResourceBinding {
			b := binding(bound, theirs, "x", "uid-z", created)
			b.Annotations[placementv1beta1.UpdateRunCreatedAnnotation] = "soon"
			return b
		}(), want: rollout.OwnerNone},
		"a cluster we have taken is ours":                      {binding: binding(bound, ours, "example-run", "uid-m", created), want: rollout.OwnerThisRun},
		"a cluster that was pulled away by hand is free again": {binding: binding(bound, theirs, "example-run", "uid-m", created), want: rollout.OwnerNone},
		"a cluster at our snapshot by another run is not ours": {binding: binding(bound, ours, "example-run-1", "uid-z", created.Add(-time.Second)), want: rollout.OwnerNone},
		"a later run has taken the cluster":                    {binding: binding(bound, theirs, "example-run-1", "uid-a", created.Add(time.Second)), want: rollout.OwnerLaterRun, endText: preempted},
		"a later run has brought the cluster to the same snapshot": {binding: binding(bound, ours, "example-run-1", "uid-a", created.Add(time.Second)), want: rollout.OwnerLaterRun, endText: strings.NewReplacer(
			"binding has different resourceSnapshotName", "binding was taken by a later clusterStagedUpdateRun of the same resourceSnapshotName", "1-snapshot", "0-snapshot").Replace(preempted)},
		"of two runs of the same second the greater uid wins": {binding: binding(bound, theirs, "example-run-1", "uid-z", created), want: rollout.OwnerLaterRun, endText: preempted},
		"and the smaller uid gives way":                       {binding: binding(bound, theirs, "example-run-1", "uid-a", created), want: rollout.OwnerNone},
		"a binding that is gone":                              {want: rollout.OwnerGone, endText: deselected},
		"a binding on its way out":                            {binding: deleting, want: rollout.OwnerGone, endText: deselected},
		"a cluster that is no longer picked":                  {binding: binding(placementv1beta1.BindingStateUnscheduled, ours, "", "", created), want: rollout.OwnerGone, endText: deselected},
	} {
		t.Run(sentence, func(t *testing.T) {
			owner, endText := ownerOf(run, "staging", "member1", test.binding)
			assert.Equal(t, test.want, owner)
			assert.Equal(t, test.endText, endText)
		})
	}
}
