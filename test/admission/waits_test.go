//go:build integration

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// waited are objects with the conditions that agents of the fleet add to their kinds, by what these say while there is something to tell.
var waited = []struct {
	manifest string
	told     map[string]metav1.ConditionStatus
}{
	{`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: waited}, spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: waited}]}}`,
		map[string]metav1.ConditionStatus{
			placementv1beta1.ConditionTypeHeld: metav1.ConditionTrue, placementv1beta1.ConditionTypeClustersLeaving: metav1.ConditionTrue,
			placementv1beta1.ConditionTypeRemovalsHeld: metav1.ConditionTrue, placementv1beta1.ConditionTypeChangesHeld: metav1.ConditionTrue,
			placementv1beta1.ConditionTypeKindsHeld: metav1.ConditionTrue, placementv1beta1.ConditionTypeDependenciesMissing: metav1.ConditionTrue,
			placementv1beta1.ConditionTypeResourcesMissing: metav1.ConditionTrue, placementv1beta1.ConditionTypeResourcesLeftOut: metav1.ConditionTrue,
			placementv1beta1.ConditionTypeRemovalPending: metav1.ConditionTrue, placementv1beta1.ConditionTypeUpdateRunHeld: metav1.ConditionTrue,
			placementv1beta1.ConditionTypeEngineReachable: metav1.ConditionFalse,
		}},
	{`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: waited}, spec: {placementName: waited, stagedRolloutStrategyName: waited, state: Initialize}}`,
		map[string]metav1.ConditionStatus{
			placementv1beta1.ConditionTypeHeld: metav1.ConditionTrue, placementv1beta1.ConditionTypeEngineReachable: metav1.ConditionFalse,
		}},
	{`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceBinding, metadata: {name: waited}, spec: {state: Bound, targetCluster: waited, resourceSnapshotName: waited, schedulingPolicySnapshotName: waited, clusterDecision: {clusterName: waited, selected: true, reason: waited}}}`,
		map[string]metav1.ConditionStatus{
			placementv1beta1.ConditionTypeRemovalPending: metav1.ConditionTrue, placementv1beta1.ConditionTypeServing: metav1.ConditionFalse,
		}},
	{`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: Work, metadata: {name: waited, namespace: default}, spec: {workload: {}}}`,
		map[string]metav1.ConditionStatus{
			placementv1beta1.ConditionTypeRemovalPending: metav1.ConditionTrue, placementv1beta1.ConditionTypeStatusTrimmed: metav1.ConditionTrue,
		}},
}

// TestKubectlWaitsForBothStatusesOfEveryAddedCondition has kubectl wait on a real API server until there is something to tell, and until there is
// nothing any more.
func TestKubectlWaitsForBothStatusesOfEveryAddedCondition(t *testing.T) {
	for _, one := range waited {
		stored := admin.create(t, one.manifest)
		opposite := map[string]metav1.ConditionStatus{}
		var told []metav1.Condition
		for name, status := range one.told {
			told = append(told, metav1.Condition{Type: name, Status: status, Reason: "Told", Message: "there is something to tell",
				ObservedGeneration: stored.GetGeneration(), LastTransitionTime: metav1.Now().Rfc3339Copy()})
			opposite[name] = metav1.ConditionFalse
			if status == metav1.ConditionFalse {
				opposite[name] = metav1.ConditionTrue
			}
		}
		awaitBoth(t, stored, one.told, told)
		over := placementv1beta1.WithResolved(told, nil, stored.GetGeneration(), metav1.Now().Rfc3339Copy())
		require.Len(t, over, len(told))
		awaitBoth(t, stored, opposite, over)
	}
}

// awaitBoth writes conditions while kubectl waits for each of them, and asserts that none waits in vain.
func awaitBoth(t *testing.T, stored *unstructured.Unstructured, want map[string]metav1.ConditionStatus, conditions []metav1.Condition) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var waits errgroup.Group
	for name, status := range want {
		waits.Go(func() error {
			command := exec.CommandContext(ctx, hub.Tools["kubectl"], "wait", "--for=condition="+name+"="+string(status), "--timeout=2m",
				stored.GetKind()+"."+stored.GroupVersionKind().Version+"."+stored.GroupVersionKind().Group+"/"+stored.GetName(), "--namespace=default")
			command.Env = administrator()
			if out, err := command.CombinedOutput(); err != nil {
				return fmt.Errorf("waiting for %s=%s of %s: %w: %s", name, status, stored.GetKind(), err, out)
			}
			return nil
		})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	require.NoError(t, err)
	resource, err := admin.resource(stored)
	require.NoError(t, err)
	_, err = resource.Patch(ctx, stored.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	assert.NoError(t, waits.Wait())
}
