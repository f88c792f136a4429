package stagedupdate

import (
	"fmt"
	"time"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// ownerOf returns whose the binding of a cluster is; for one that the run cannot have, endText is the
// sentence that the run ends with because of it. A run never takes a cluster from a later run.
func ownerOf(run placementv1beta1.UpdateRunObject, stage, cluster string,
	b placementv1beta1.BindingObject) (owner rollout.BindingOwner, endText string) {
	if b == nil || !rules.IsLiveBinding(b) {
		return rollout.OwnerGone, planOutdated(fmt.Sprintf("the clusters selected for clusterResourcePlacement `%s` have changed: cluster `%s` in the stage `%s` is no longer selected", run.GetUpdateRunSpec().PlacementName, cluster, stage))
	}
	want := updaterun.SnapshotFor(run, cluster)
	holder := b.GetAnnotations()[placementv1beta1.UpdateRunUIDAnnotation]
	if holder == string(run.GetUID()) && b.GetBindingSpec().ResourceSnapshotName == want &&
		b.GetBindingSpec().State == placementv1beta1.BindingStateBound {
		return rollout.OwnerThisRun, ""
	}
	if holder != "" && holder != string(run.GetUID()) && createdLater(b, run) {
		return rollout.OwnerLaterRun, preempted(run, stage, cluster, b)
	}
	return rollout.OwnerNone, ""
}

// outdatedBase returns what keeps a cluster from its start that has something else than when the plan was made, and whether anything does.
// What the run has written itself is what the plan wants.
func outdatedBase(run placementv1beta1.UpdateRunObject, stage string, cluster *placementv1beta1.ClusterUpdatingStatus,
	binding placementv1beta1.BindingObject) (rollout.Wait, bool) {
	if cluster.Base == "" && !verifiesBase(run) {
		return rollout.Wait{}, false
	}
	if owner, _ := ownerOf(run, stage, cluster.ClusterName, binding); owner != rollout.OwnerNone {
		return rollout.Wait{}, false
	}
	return brake.Base(cluster.ClusterName, cluster.Base, planning.BaseOf(binding), binding)
}

// verifiesBase reports whether clusters are updated only while they have what they had when the plan was made.
func verifiesBase(run placementv1beta1.UpdateRunObject) bool {
	strategy := run.GetUpdateRunStatus().UpdateStrategySnapshot
	return strategy != nil && strategy.VerifyBase
}

// createdLater reports whether the run that holds a binding is later than another.
// The API keeps seconds only; of two runs of the same second the one with the
// greater uid counts as later: one of them must, or they would take the cluster
// from each other for ever.
func createdLater(b placementv1beta1.BindingObject, run placementv1beta1.UpdateRunObject) bool {
	at, err := time.Parse(time.RFC3339, b.GetAnnotations()[placementv1beta1.UpdateRunCreatedAnnotation])
	if err != nil {
		return false
	}
	return at.After(created(run)) || at.Equal(created(run)) && b.GetAnnotations()[placementv1beta1.UpdateRunUIDAnnotation] > string(
		run.GetUID())
}

// sameSecond reports whether another run, created in the same second, holds a
// binding.
func sameSecond(b placementv1beta1.BindingObject, run placementv1beta1.UpdateRunObject) bool {
	at, err := time.Parse(time.RFC3339, b.GetAnnotations()[placementv1beta1.UpdateRunCreatedAnnotation])
	return err == nil && at.Equal(created(run)) && b.GetAnnotations()[placementv1beta1.UpdateRunUIDAnnotation] != string(run.GetUID())
}

// heldBefore reports whether no run later than another holds a binding.
func heldBefore(b placementv1beta1.BindingObject, run placementv1beta1.UpdateRunObject) bool {
	at, err := time.Parse(time.RFC3339, b.GetAnnotations()[placementv1beta1.UpdateRunCreatedAnnotation])
	return b.GetAnnotations()[placementv1beta1.UpdateRunAnnotation] == "" || err == nil && at.Before(created(run))
}

func created(run placementv1beta1.UpdateRunObject) time.Time {
	return run.GetCreationTimestamp().Time.Truncate(time.Second)
}

// preempted returns the message of a run from which a later one has taken a cluster. What stands in parentheses is KubeFleet's.
func preempted(run placementv1beta1.UpdateRunObject, stage, cluster string, b placementv1beta1.BindingObject) string {
	want := updaterun.SnapshotFor(run, cluster)
	diff := "binding has different resourceSnapshotName"
	if want == b.GetBindingSpec().ResourceSnapshotName {
		diff = "binding was taken by a later clusterStagedUpdateRun of the same resourceSnapshotName"
	}
	by := b.GetAnnotations()[placementv1beta1.UpdateRunAnnotation]
	shown := by
	if namespace := run.GetNamespace(); namespace != "" {
		shown = "-n " + namespace + " " + by
	}
	return fmt.Sprintf("Cannot go on: the later run `%s` has taken cluster `%s` of stage `%s`: kubectl fleet status %s shows it "+
		"("+kubeFleetCannotContinue+": unexpected behavior which cannot be handled by the controller: "+
		"the clusterResourceBinding of the updating cluster `%s` in the stage `%s` does not have expected status: "+
		"binding spec diff: %s, want: %s, got: %s; "+
		"binding state (want Bound): %s; binding RolloutStarted (want true): %t, "+
		"please check if there is concurrent clusterStagedUpdateRun `%s`)",
		by, cluster, stage, shown, cluster, stage, diff, want, b.GetBindingSpec().ResourceSnapshotName, b.GetBindingSpec().State,
		b.GetBindingSpec().State == placementv1beta1.BindingStateBound, by)
}

// targetOf returns what a cluster's binding should say during and after the run.
func targetOf(run placementv1beta1.UpdateRunObject, stage int, cluster string, from placementv1beta1.BindingObject) bind.Target {
	to := bind.TargetInRun(run, &run.GetUpdateRunStatus().StagesStatus[stage], cluster)
	to.Annotations = map[string]string{
		placementv1beta1.UpdateRunAnnotation:        run.GetName(),
		placementv1beta1.UpdateRunUIDAnnotation:     string(run.GetUID()),
		placementv1beta1.UpdateRunCreatedAnnotation: run.GetCreationTimestamp().UTC().Format(time.RFC3339),
	}
	// What another run has brought to the same snapshot has that to go back to.
	again := from.GetBindingSpec().ResourceSnapshotName == to.Snapshot &&
		from.GetAnnotations()[placementv1beta1.UpdateRunUIDAnnotation] == string(run.GetUID())
	if from.GetBindingSpec().ResourceSnapshotName != "" && !again {
		to.Annotations[placementv1beta1.PreviousResourceSnapshotAnnotation] = from.GetBindingSpec().ResourceSnapshotName
	}
	return to
}
