package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// deletionShown is how long a deletion may take before the status shows it.
	deletionShown = 3 * time.Second
	// deletionPause is the interval at which the silence of members is checked.
	deletionPause = 30 * time.Second
	// namedLeaving is how many clusters the condition names.
	namedLeaving = 10
)

// projectDeletion writes how far a deletion is and which clusters it waits for. A quick deletion is not shown.
func (r *Reconciler) projectDeletion(ctx context.Context, placement placementv1beta1.PlacementObject,
	bindings []placementv1beta1.BindingObject) (time.Duration, error) {
	now := r.clock.Now()
	if wait := placement.GetDeletionTimestamp().Add(deletionShown).Sub(now); wait > 0 {
		return wait, nil
	}
	if wait := r.limiter.waitBeforeWrite(keyOf(placement), false, now); wait > 0 {
		return wait, nil
	}
	silent, err := r.findSilentClusters(ctx, bindings)
	if err != nil {
		return 0, err
	}
	status := Deleting(&Facts{Placement: placement, Bindings: bindings}, silent, metav1.NewTime(now))
	if apiequality.Semantic.DeepEqual(*placement.GetPlacementStatus(), status) {
		return deletionPause, nil
	}
	if err := fence.ReplaceStatus(ctx, r.client, placement, status); err != nil {
		return 0, err
	}
	r.limiter.recordWrite(keyOf(placement), now, pauseAfter(len(bindings), false, r.clock.Since(now)))
	r.events.emitRemoval(placement, status)
	before := meta.FindStatusCondition(placement.GetPlacementStatus().Conditions, placementv1beta1.ConditionTypeDeleting)
	after := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeDeleting)
	if after.Reason == placementv1beta1.ReasonWaitingForSilentClusters && (before == nil || before.Reason != after.Reason) {
		r.events.Eventf(placement, nil, "Warning", "PlacementDeletionWaiting", "Delete", "%s", workmodel.CutMessage(after.Message, maxNote))
	}
	return deletionPause, nil
}

// findSilentClusters returns which clusters of some bindings are silent.
func (r *Reconciler) findSilentClusters(ctx context.Context, bindings []placementv1beta1.BindingObject) (map[string]bool, error) {
	silent := map[string]bool{}
	for _, binding := range bindings {
		cluster := binding.GetBindingSpec().TargetCluster
		member := &clusterv1beta1.MemberCluster{}
		err := r.client.Get(ctx, types.NamespacedName{Name: cluster}, member)
		if apierrors.IsNotFound(err) {
			continue // the deletion does not wait for a member that is gone
		}
		if err != nil {
			return nil, fmt.Errorf("reading member cluster %s: %w", cluster, err)
		}
		if clusterrules.IsSilent(member) {
			silent[cluster] = true
		}
	}
	return silent, nil
}

// Deleting computes the status of a placement whose deletion waits for its clusters. It is pure.
func Deleting(facts *Facts, silent map[string]bool, now metav1.Time) placementv1beta1.PlacementStatus {
	status := placementv1beta1.PlacementStatus{
		SelectedResources:     facts.Placement.GetPlacementStatus().SelectedResources,
		ObservedResourceIndex: facts.Placement.GetPlacementStatus().ObservedResourceIndex,
		ResourceSnapshots:     facts.Placement.GetPlacementStatus().ResourceSnapshots,
	}
	var waiting, quiet []string
	for _, binding := range facts.Bindings {
		cluster := binding.GetBindingSpec().TargetCluster
		waiting = append(waiting, cluster)
		if silent[cluster] {
			quiet = append(quiet, cluster)
		}
	}
	said := metav1.Condition{
		Type: placementv1beta1.ConditionTypeDeleting, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonCleaningUp,
		Message: fmt.Sprintf("Waiting until what was placed is removed from %d cluster(s): %s", len(waiting), joinLimited(waiting)),
	}
	if len(quiet) > 0 {
		said.Reason = placementv1beta1.ReasonWaitingForSilentClusters
		said.Message += fmt.Sprintf(". Of them, %d have not reported and are waited for only for a limited time: %s", len(quiet),
			joinLimited(quiet))
	}
	conditions := append([]metav1.Condition{said}, removalConditions(facts)...)
	for i := range conditions {
		conditions[i].ObservedGeneration = facts.Placement.GetGeneration()
	}
	if len(conditions) > 1 {
		conditions[0].Message = workmodel.CutMessage(said.Message+". "+conditions[1].Message, maxNote)
	}
	before := facts.Placement.GetPlacementStatus().Conditions
	status.Conditions = placementv1beta1.WithResolved(before, placementv1beta1.KeepTransitionTimes(before, conditions, now),
		facts.Placement.GetGeneration(), now)
	return fitStatus(status)
}

// joinLimited names some clusters and counts the rest.
func joinLimited(clusters []string) string {
	slices.Sort(clusters)
	if len(clusters) <= namedLeaving {
		return strings.Join(clusters, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(clusters[:namedLeaving], ", "), len(clusters)-namedLeaving)
}
