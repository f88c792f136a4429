package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// planChecks are when a live read has last found the plan of each run valid.
type planChecks struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// isRecentlyValid reports whether it was no longer ago than an attempt relies on what it has read live.
func (p *planChecks) isRecentlyValid(run types.UID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, known := p.at[run]
	return known && now.Sub(at) < maxReadAge
}

// noteValid notes that a live read has found the plan of a run valid, and forgets what is too long ago.
func (p *planChecks) noteValid(run types.UID, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(p.at, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= maxReadAge })
	p.at[run] = now
}

// checkPlanStillValid returns why a run cannot go on with its plan. A *userError ends the run.
func (p *planner) checkPlanStillValid(ctx context.Context, run placementv1beta1.UpdateRunObject, f *facts) error {
	if err := checkEnding(run); err != nil {
		return err
	}
	err := outdated(run, f.placement, f.policy)
	if err == nil && !frozen(run) && decided(f.placement, f.policy) {
		if _, complete := decisions(f.policy); !complete {
			err = p.compareBindings(ctx, run)
		}
	}
	if refused, ok := errors.AsType[*userError](err); ok {
		return refuse("%s", planOutdated(refused.text))
	}
	return err
}

// compareBindings looks at the bindings where there are more clusters than a policy snapshot
// names. A cache that lags behind ends no run: what is live decides.
func (p *planner) compareBindings(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	var verdict error
	name := run.GetUpdateRunSpec().PlacementName
	for _, from := range []struct {
		reader client.Reader
		mine   client.ListOption
	}{
		{p.acts.Client, client.MatchingFields{hubread.ByPlacement: name}},
		{p.acts.Live, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name}},
	} {
		list := p.scope.NewBindingList()
		if err := from.reader.List(ctx, list, client.InNamespace(p.scope.Namespace), from.mine, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the bindings of placement %s: %w", name, err)
		}
		selected, _ := planning.SplitClusters(list.Objects())
		if verdict = compareClusters(run, selected); verdict == nil {
			return nil
		}
	}
	return verdict
}

// outdated returns why a run can no longer continue: the placement or what its policy selects is not what was frozen (KubeFleet
// abandons such a run, and fleetflow does the same unless the run says otherwise). It is pure.
func outdated(run placementv1beta1.UpdateRunObject, placement placementv1beta1.PlacementObject,
	policy placementv1beta1.PolicySnapshotObject) error {
	if err := checkPlacement(placement); err != nil {
		return err
	}
	if frozen := meta.FindStatusCondition(run.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeInitialized); frozen != nil &&
		frozen.LastTransitionTime.Time.Before(placement.GetCreationTimestamp().Time) && !isRestored(run, frozen) {
		return refuse("parent clusterResourcePlacement `%s` was deleted and created again after the clusterStagedUpdateRun was initialized",
			placement.GetName())
	}
	if frozen(run) {
		return nil // with whichever clusters there were
	}
	if policy == nil {
		return refuse("no latest policy snapshot found for clusterResourcePlacement `%s`", placement.GetName())
	}
	if index := policy.GetLabels()[placementv1beta1.PolicyIndexLabel]; index != run.GetUpdateRunStatus().PolicySnapshotIndexUsed {
		return refuse("the policy snapshot index used in the clusterStagedUpdateRun is outdated, latest: %s, recorded: %s", index,
			run.GetUpdateRunStatus().PolicySnapshotIndexUsed)
	}
	if !decided(placement, policy) {
		return nil // the scheduler is at it; its verdict will wake us
	}
	if selected, complete := decisions(policy); complete {
		return compareClusters(run, selected)
	}
	return nil
}

// isRestored reports whether a run was initialized before it was created: the hub was restored from a backup, and the placement
// was created again with it.
func isRestored(run placementv1beta1.UpdateRunObject, initialized *metav1.Condition) bool {
	return initialized.LastTransitionTime.Time.Before(run.GetCreationTimestamp().Time)
}

// decisions returns the clusters that a policy snapshot names as selected, and whether these are
// all.
func decisions(policy placementv1beta1.PolicySnapshotObject) (selected []string, complete bool) {
	for _, d := range policy.GetPolicySnapshotStatus().ClusterDecisions {
		if d.Selected {
			selected = append(selected, d.ClusterName)
		}
	}
	return selected, len(policy.GetPolicySnapshotStatus().ClusterDecisions) < rules.MaxClusterDecisions
}

// compareClusters says whether the selected clusters are those that were frozen.
func compareClusters(run placementv1beta1.UpdateRunObject, now []string) error {
	if len(now) != run.GetUpdateRunStatus().PolicyObservedClusterCount {
		return refuse("the cluster count initialized in the clusterStagedUpdateRun is outdated, latest: %d, recorded: %d", len(now),
			run.GetUpdateRunStatus().PolicyObservedClusterCount)
	}
	planned := map[string]bool{}
	for _, s := range run.GetUpdateRunStatus().StagesStatus {
		for _, c := range s.Clusters {
			planned[c.ClusterName] = true
		}
	}
	if ignores(run) {
		return compareStaged(run, planned, now)
	}
	for _, name := range now {
		if !planned[name] {
			return refuse("the clusters selected for clusterResourcePlacement `%s` have changed: `%s` is in no stage of the clusterStagedUpdateRun",
				run.GetUpdateRunSpec().PlacementName, name)
		}
	}
	return nil
}

// compareStaged says whether the clusters that are in a stage are still selected, where others
// may be in none.
func compareStaged(run placementv1beta1.UpdateRunObject, planned map[string]bool, now []string) error {
	for _, name := range now {
		delete(planned, name)
	}
	for name := range planned {
		return refuse("the clusters selected for clusterResourcePlacement `%s` have changed: `%s` is no longer one of them",
			run.GetUpdateRunSpec().PlacementName, name)
	}
	return nil
}

// decided reports whether the scheduler has seen this generation of the placement.
func decided(placement placementv1beta1.PlacementObject, policy placementv1beta1.PolicySnapshotObject) bool {
	return policy.GetPolicySnapshotStatus().ObservedCRPGeneration >= placement.GetGeneration()
}
