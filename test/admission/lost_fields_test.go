//go:build integration

package admission

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
)

// TestAnUpdateByAClientOfKubeFleetWidensNothing reads objects as a client with KubeFleet's Go types does, which drops the fields that
// these have not, changes them, and updates them. Where more would happen without a field, the update is refused, or says so.
func TestAnUpdateByAClientOfKubeFleetWidensNothing(t *testing.T) {
	const selectors = `resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]`
	for sentence, test := range map[string]struct {
		kind, version, spec string
		refused             []string // what the refusal says
		warned              []string // of which fields
	}{
		"groups of clusters": {kind: "ClusterResourcePlacement", version: "v1beta1",
			spec:    selectors + "\n  policy: {placementType: PickAll, affinityGroups: [{name: a, clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {a: b}}}]}}]}",
			refused: []string{"policy.affinityGroups is missing", "set policy.affinityGroups to [] to do without it"}},
		"a spread": {kind: "ClusterResourcePlacement", version: "v1",
			spec:    selectors + "\n  policy: {placementType: PickAll, spreadConstraints: [{spreadBy: Cluster, maxGroups: 2}]}",
			refused: []string{"policy.spreadConstraints is missing"}},
		"another scheduler": {kind: "ClusterResourcePlacement", version: "v1beta1",
			spec: selectors + "\n  policy: {placementType: PickAll, schedulerName: theirs}", refused: []string{"policy.schedulerName is missing"}},
		"kinds that clusters serve": {kind: "ClusterResourcePlacement", version: "v1beta1",
			spec:    selectors + "\n  policy: {placementType: PickAll, unservedKinds: Exclude}",
			refused: []string{"policy.unservedKinds is missing", "set policy.unservedKinds to Ignore to do without it"}},
		"divided replicas": {kind: "ClusterResourcePlacement", version: "v1beta1",
			spec:    selectors + "\n  policy: {placementType: PickAll, replicaScheduling: [{type: Divided, clusters: [{clusterSelector: {clusterSelectorTerms: [{clusterNames: [a]}]}, weight: 1}]}]}",
			refused: []string{"policy.replicaScheduling is missing"}},
		"clusters by name": {kind: "ClusterResourcePlacement", version: "v1beta1",
			spec: selectors + "\n  policy: {placementType: PickAll, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {kubernetes-fleet.io/member-name: a}}}]}}}}"},
		"brakes of a placement": {kind: "ClusterResourcePlacement", version: "v1beta1",
			spec: selectors + "\n  policy: {placementType: PickAll, activation: Lazy}\n  strategy: {suspension: {all: true}, rollingUpdate: {paused: true, partition: 1, minReadySeconds: 30}, deleteStrategy: {removedResources: Abandon, prunePropagationPolicy: Orphan}}",
			warned: []string{"spec.policy.activation", "spec.strategy.suspension", "spec.strategy.rollingUpdate.paused", "spec.strategy.rollingUpdate.partition", "spec.strategy.rollingUpdate.minReadySeconds", "spec.strategy.deleteStrategy.removedResources",
				"spec.strategy.deleteStrategy.prunePropagationPolicy"}},
		"brakes of a strategy": {kind: "ClusterStagedUpdateStrategy", version: "v1beta1",
			spec: `verifyBase: true
  stages: [{name: canary, labelSelector: {}, windows: [night], sample: {percent: 5}, failureBudget: {maxFailures: 1}, clusterDeadlineSeconds: 3600, minReadySeconds: 60,
    beforeStageTasks: [{type: Approval, approval: {excludedApprovers: [Creator]}}], afterStageTasks: [{type: TimedWait, waitTime: 1m}, {type: Approval, approval: {excludedApprovers: [Creator]}, startsAfter: [TimedWait]}]}]`,
			warned: []string{"spec.verifyBase", "spec.stages[].windows", "spec.stages[].sample", "spec.stages[].failureBudget", "spec.stages[].clusterDeadlineSeconds", "spec.stages[].minReadySeconds",
				"spec.stages[].beforeStageTasks[].approval", "spec.stages[].afterStageTasks[].approval", "spec.stages[].afterStageTasks[].startsAfter"}},
		"what happens at the end of a placement": {kind: "ClusterResourcePlacement", version: "v1",
			spec: selectors + "\n  strategy: {deleteStrategy: {propagationPolicy: Abandon}}", warned: []string{"spec.strategy.deleteStrategy.propagationPolicy"}},
		"what a stage asks before it": {kind: "ClusterStagedUpdateStrategy", version: "v1alpha1",
			spec: "stages: [{name: canary, labelSelector: {}, beforeStageTasks: [{type: Approval}]}]", warned: []string{"spec.stages[].beforeStageTasks"}},
		"what a run skips": {kind: "ClusterStagedUpdateRun", version: "v1beta1",
			spec: "placementName: web\n  stagedRolloutStrategyName: three\n  state: Stop\n  clusterActions: [{cluster: a, action: Skip}]", warned: []string{"spec.clusterActions"}},
		"a run that stands still": {kind: "ClusterStagedUpdateRun", version: "v1alpha1",
			spec: "placementName: web\n  stagedRolloutStrategyName: three\n  state: Stop", refused: []string{"state is missing", "set state to Run"}},
		"a run that waits": {kind: "ClusterStagedUpdateRun", version: "v1alpha1",
			spec: "placementName: web\n  stagedRolloutStrategyName: three\n  state: Initialize", refused: []string{"state is missing", "set state to Run"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := parse(t, "apiVersion: placement.kubernetes-fleet.io/"+test.version+"\nkind: "+test.kind+"\nmetadata: {generateName: lost-}\nspec:\n  "+test.spec)
			said := &heard{}
			config := rest.CopyConfig(admin.config)
			config.WarningHandlerWithContext = said
			s, err := newSession(config)
			require.NoError(t, err)
			resource, err := s.resource(object)
			require.NoError(t, err)
			created, err := resource.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, admin.Delete(context.WithoutCancel(t.Context()), created)) })

			update := func() error {
				seen := current(t, created)
				spec, _, err := unstructured.NestedMap(seen.Object, "spec")
				require.NoError(t, err)
				kubefleet.Prune(test.kind, test.version, spec)
				if strings.HasSuffix(test.kind, "Placement") {
					spec["revisionHistoryLimit"] = int64(3)
				}
				seen.Object["spec"] = spec
				seen.SetLabels(map[string]string{"changed": "true"})
				_, err = resource.Update(t.Context(), seen, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			}
			if len(test.refused) > 0 {
				err := update()
				for _, sentence := range test.refused {
					assert.ErrorContains(t, err, sentence)
				}
				return
			}
			// Policies are in force some time after they are stored.
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				said.clear()
				assert.NoError(c, update())
				all := strings.Join(said.all(), "\n")
				for _, field := range test.warned {
					assert.Contains(c, all, "this update has lost "+field+", as")
				}
				assert.Equal(c, len(test.warned), strings.Count(all, "this update has lost"), all)
			}, time.Minute, 100*time.Millisecond)
		})
	}
}
