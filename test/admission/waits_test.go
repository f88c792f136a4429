//go:build integration

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// waiting is an object with the conditions that agents of the fleet add to its kind, by what these say while there is something to tell.
type waiting struct {
	manifest string
	told     map[string]metav1.ConditionStatus
}

// waited are objects of KubeFleet's kinds, whose conditions end by being resolved.
var waited = []waiting{
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

// waitedOwn are objects of our own kinds, whose conditions the hub agent sets to one status and to the other.
var waitedOwn = []waiting{
	{`{apiVersion: fleetflow.io/v1alpha1, kind: PropagatedType, metadata: {name: waited.example.com}, spec: {propagation: Disabled}}`, accepts()},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutWindow, metadata: {name: waited}, spec: {type: Deny, scope: Fleet, timeZone: UTC, dates: [{start: "2020-12-18T00:00", end: "2021-01-05T00:00"}]}}`,
		accepts(fleetflowv1alpha1.ConditionTypeReachable)},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {name: waited}, spec: {message: payments down, clusterSelector: {matchLabels: {region: nowhere}}}}`,
		accepts(fleetflowv1alpha1.ConditionTypeEffective, fleetflowv1alpha1.ConditionTypeQuiet)},
	{exemption("waited", "", time.Hour), accepts(fleetflowv1alpha1.ConditionTypeEffective)},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: AuditSink, metadata: {name: waited}, spec: {type: Webhook, webhook: {url: "https://siem.example.com"}}}`,
		map[string]metav1.ConditionStatus{fleetflowv1alpha1.ConditionTypeReady: metav1.ConditionTrue}},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource, metadata: {name: waited}, spec: {type: Prometheus, url: "https://prometheus.example.com"}}`,
		accepts(fleetflowv1alpha1.ConditionTypeReady)},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: NotificationChannel, metadata: {name: waited}, spec: {type: Webhook, webhook: {url: "https://hooks.example.com", signingSecret: {name: hook, key: key}}}}`,
		accepts(fleetflowv1alpha1.ConditionTypeReady)},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: NotificationRule, metadata: {name: waited}, spec: {types: [run.failed], channelRefs: [{name: waited}]}}`,
		accepts(fleetflowv1alpha1.ConditionTypeReady)},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {name: waited}, spec: {metrics: [{name: smoke, job: {namespace: jobs, fromCronJob: smoke}}]}}`, accepts()},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: ClusterStageAnalysisRun, metadata: {name: waited}, spec: {runRef: {name: web-17, uid: "4711"}, stage: canary, position: After, attempt: 1}}`, ends},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysisRun, metadata: {name: waited, namespace: default}, spec: {runRef: {name: web-17, uid: "4711"}, stage: canary, position: After, attempt: 1}}`, ends},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: ClusterRehearsal, metadata: {name: waited}, spec: {placementName: waited}}`, completes},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: Rehearsal, metadata: {name: waited, namespace: default}, spec: {placementName: waited}}`, completes},
	{`{apiVersion: fleetflow.io/v1alpha1, kind: MemberQuestion, metadata: {name: waited, namespace: default}, spec: {type: Rehearse, deadline: "2030-01-01T00:00:00Z", askedFor: {kind: ClusterRehearsal, name: waited, uid: "4711"}, rehearse: {revision: "0"}}}`,
		map[string]metav1.ConditionStatus{fleetflowv1alpha1.ConditionTypeAnswered: metav1.ConditionTrue}},
}

// completes is the condition of rehearsals, which is False before.
var completes = map[string]metav1.ConditionStatus{fleetflowv1alpha1.ConditionTypeCompleted: metav1.ConditionTrue}

// ends is the condition of what comes to an end, which is Unknown before.
var ends = map[string]metav1.ConditionStatus{fleetflowv1alpha1.ConditionTypeAnalysisRunSucceeded: metav1.ConditionTrue}

// accepts returns the condition of kinds that users write, and further ones.
func accepts(further ...string) map[string]metav1.ConditionStatus {
	told := map[string]metav1.ConditionStatus{fleetflowv1alpha1.ConditionTypeAccepted: metav1.ConditionTrue}
	for _, name := range further {
		told[name] = metav1.ConditionTrue
	}
	return told
}

// TestKubectlWaitsForBothStatusesOfOwnConditions has kubectl wait on a real API server for each condition of each kind of ours, in both
// directions.
func TestKubectlWaitsForBothStatusesOfOwnConditions(t *testing.T) {
	var covered []string
	for _, one := range waitedOwn {
		stored := admin.create(t, one.manifest) // of an exemption the name is generated
		covered = append(covered, stored.GetKind())
		opposite := map[string]metav1.ConditionStatus{}
		for name := range one.told {
			opposite[name] = metav1.ConditionFalse
		}
		for _, want := range []map[string]metav1.ConditionStatus{one.told, opposite, one.told} {
			var conditions []metav1.Condition
			for name, status := range want {
				conditions = append(conditions, conditionOf(stored, name, status))
			}
			awaitBoth(t, stored, want, conditions)
		}
	}
	isOther := func(kind string) bool { return groupOf(kind) != ownGroup || kind == "AuditRecord" } // of a record nothing is to be waited for
	assert.ElementsMatch(t, slices.DeleteFunc(slices.Collect(maps.Keys(kinds)), isOther), covered)
}

// conditionOf returns a condition of the spec as it is.
func conditionOf(stored *unstructured.Unstructured, name string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: "Told", Message: "there is something to tell",
		ObservedGeneration: stored.GetGeneration(), LastTransitionTime: metav1.Now().Rfc3339Copy()}
}

// TestKubectlWaitsForBothStatusesOfEveryAddedCondition has kubectl wait on a real API server until there is something to tell, and until there is
// nothing any more.
func TestKubectlWaitsForBothStatusesOfEveryAddedCondition(t *testing.T) {
	for _, one := range waited {
		stored := admin.create(t, one.manifest)
		opposite := map[string]metav1.ConditionStatus{}
		var told []metav1.Condition
		for name, status := range one.told {
			told = append(told, conditionOf(stored, name, status))
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
