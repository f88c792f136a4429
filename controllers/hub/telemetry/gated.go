package telemetry

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// What is collected of what closes clusters, and of what waits for it.
var (
	rolloutHolds = prometheus.NewDesc("fleetflow_rollout_holds",
		"RolloutHolds by whether they are in force.",
		[]string{"effective"}, nil)
	holdCreated = prometheus.NewDesc("fleetflow_rollout_hold_created_timestamp_seconds",
		"When a RolloutHold that is in force was created, and whether it expires by itself.",
		[]string{"hold", "expires"}, nil)
	rolloutWindows = prometheus.NewDesc("fleetflow_rollout_windows",
		"RolloutWindows by type and by the status of their condition Accepted.",
		[]string{"type", "accepted"}, nil)
	heldClusters = prometheus.NewDesc("fleetflow_held_clusters",
		"Clusters that wait for a hold or a window, or because they are busy, as the statuses of placements and update runs say, counted for each of these.",
		[]string{"reason"}, nil)
)

// collectHolds counts the holds; a hub that does not serve them has none.
func (c *Collector) collectHolds(ctx context.Context, metrics chan<- prometheus.Metric) error {
	var holds fleetflowv1alpha1.RolloutHoldList
	if err := c.Cache.List(ctx, &holds, client.UnsafeDisableDeepCopy); err != nil {
		return ignoreNotServed(err)
	}
	now := c.Clock.Now()
	count := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionFalse: 0}
	for i := range holds.Items {
		hold := &holds.Items[i]
		if !hold.IsInForce(now) {
			count[metav1.ConditionFalse]++
			continue
		}
		count[metav1.ConditionTrue]++
		metrics <- newGauge(holdCreated, unixSeconds(hold.CreationTimestamp.Time), hold.Name, yesNo(!hold.Expires().IsZero()))
	}
	for effective, n := range count {
		metrics <- newGauge(rolloutHolds, float64(n), string(effective))
	}
	return nil
}

// collectWindows counts the windows; a hub that does not serve them has none.
func (c *Collector) collectWindows(ctx context.Context, metrics chan<- prometheus.Metric) error {
	var windows fleetflowv1alpha1.RolloutWindowList
	if err := c.Cache.List(ctx, &windows, client.UnsafeDisableDeepCopy); err != nil {
		return ignoreNotServed(err)
	}
	type kind struct {
		of       fleetflowv1alpha1.WindowType
		accepted metav1.ConditionStatus
	}
	count := map[kind]int{}
	for _, of := range []fleetflowv1alpha1.WindowType{fleetflowv1alpha1.WindowAllow, fleetflowv1alpha1.WindowDeny} {
		count[kind{of, metav1.ConditionTrue}], count[kind{of, metav1.ConditionFalse}] = 0, 0
	}
	for i := range windows.Items {
		w := &windows.Items[i]
		count[kind{w.Spec.Type, metav1.ConditionStatus(statusOf(w.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted))}]++
	}
	for k, n := range count {
		metrics <- newGauge(rolloutWindows, float64(n), string(k.of), string(k.accepted))
	}
	return nil
}

// ignoreNotServed takes a kind that the hub does not serve for one of which there are no objects.
func ignoreNotServed(err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// collectHeld counts the clusters that wait for holds and windows.
func (c *Collector) collectHeld(ctx context.Context, metrics chan<- prometheus.Metric) error {
	count := map[string]int{}
	for _, reason := range fleetflowv1alpha1.HeldReasons() {
		count[reason] = 0
	}
	for _, scope := range placementv1beta1.Scopes() {
		placements := scope.NewPlacementList()
		runs := scope.NewUpdateRunList()
		for _, list := range []client.ObjectList{placements, runs} {
			if err := c.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				return err
			}
		}
		for _, p := range placements.Objects() {
			countHeldOfPlacement(p, count)
		}
		for _, run := range runs.Objects() {
			if held := placementv1beta1.FindTrue(run.GetConditions(), fleetflowv1alpha1.ConditionTypeHeld); held != nil {
				count[held.Reason] += heldInRun(run)
			}
		}
	}
	for reason, n := range count {
		metrics <- newGauge(heldClusters, float64(n), reason)
	}
	return nil
}

// countHeldOfPlacement counts the clusters of a placement that wait, by reason. A status that does not have room for all clusters has
// those that wait first.
func countHeldOfPlacement(p placementv1beta1.PlacementObject, count map[string]int) {
	status := p.GetPlacementStatus()
	if !meta.IsStatusConditionTrue(status.Conditions, fleetflowv1alpha1.ConditionTypeHeld) {
		return
	}
	for i := range status.PerClusterPlacementStatuses {
		started := meta.FindStatusCondition(status.PerClusterPlacementStatuses[i].Conditions, placementv1beta1.ConditionTypeRolloutStarted)
		if started != nil && slices.Contains(fleetflowv1alpha1.HeldReasons(), started.Reason) {
			count[started.Reason]++
		}
	}
}

// heldInRun returns how many clusters of the stage that a held run is in have not been started.
func heldInRun(run placementv1beta1.UpdateRunObject) int {
	status := run.GetUpdateRunStatus()
	for i := range status.StagesStatus {
		if stage := &status.StagesStatus[i]; !updaterun.StageOver(stage) {
			return updaterun.CountIn(stage, updaterun.PhasePending)
		}
	}
	if status.DeletionStageStatus != nil {
		return updaterun.CountIn(status.DeletionStageStatus, updaterun.PhasePending)
	}
	return 0
}
