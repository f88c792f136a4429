//go:build integration

package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	recording "github.com/fleetflow/fleetflow/test/kubefleet"
)

// typedSpecs are specs with fields that fleetflow adds, which are all in at least one of them, and of kinds to which it adds none.
var typedSpecs = map[string]struct{ kinds, spec string }{
	"a rolling update with all that bears on it": {"ClusterResourcePlacement ResourcePlacement", `{resourceSelectors: [SELECTOR], priority: 1, preemption: Always,
    propagateDeps: true, requiredOverrides: [{name: a}], policy: {placementType: PickN, numberOfClusters: 2, activation: Lazy, queuePriorityClassName: high,
      tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 60}]},
    strategy: {type: RollingUpdate, rollingUpdate: {paused: true, partition: 1, minReadySeconds: 30, order: {priority: {labels: [{key: wave}]}}}, suspension: {all: true},
      lifecycle: {preUpdate: {labelsHandler: {example.com/drained: "true"}}}, failover: {cluster: {notReadySeconds: 60}},
      applyStrategy: {type: ServerSideApply, serverSideApplyConfig: {force: false}}, deleteStrategy: {propagationPolicy: Abandon, removedResources: Abandon, prunePropagationPolicy: Orphan,
        reconcileTimeoutSeconds: 60, pruneTimeoutSeconds: 60},
      reportBackStrategy: {type: Mirror, destination: WorkAPI}}}`},
	"limits of staged runs": {"ClusterResourcePlacement ResourcePlacement",
		`{resourceSelectors: [SELECTOR], policy: {placementType: PickAll}, strategy: {type: External, external: {trigger: Manual}}}`},
	"a placement without strategy": {"ClusterResourcePlacement ResourcePlacement", `{resourceSelectors: [SELECTOR], priority: 1}`},
	"groups of clusters": {"ClusterResourcePlacement ResourcePlacement", `{resourceSelectors: [SELECTOR], policy: {placementType: PickAll, affinityGroupMode: Fallback,
    failback: Automatic, failbackAfterSeconds: 60, affinityGroups: [{name: a, clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {a: b}}}]}}]}}`},
	"a spread": {"ClusterResourcePlacement ResourcePlacement",
		`{resourceSelectors: [SELECTOR], policy: {placementType: PickAll, spreadConstraints: [{spreadBy: Cluster, maxGroups: 2}]}}`},
	"only clusters that serve all kinds": {"ClusterResourcePlacement ResourcePlacement",
		`{resourceSelectors: [SELECTOR], policy: {placementType: PickAll, unservedKinds: Exclude}}`},
	"another scheduler": {"ClusterResourcePlacement ResourcePlacement",
		`{resourceSelectors: [SELECTOR], policy: {placementType: PickAll, schedulerName: theirs}}`},
	"divided replicas": {"ClusterResourcePlacement ResourcePlacement", `{resourceSelectors: [SELECTOR], policy: {placementType: PickAll,
    replicaScheduling: [{type: Divided, clusters: [{clusterSelector: {clusterSelectorTerms: [{clusterNames: [a]}]}, weight: 1}]}]}}`},
	"clusters by name and by property": {"ClusterResourcePlacement ResourcePlacement", `{resourceSelectors: [SELECTOR], policy: {placementType: PickN, numberOfClusters: 1,
    topologySpreadConstraints: [{topologyKey: region}], scaleDownOrder: Spread, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [
      {labelSelector: {matchLabels: {kubernetes-fleet.io/member-name: a}}, propertySelector: {matchExpressions: [{name: resources.kubernetes-fleet.io/total-cpu, operator: Ge, values: ["4"]}]}}]}}}}}`},

	"stages with all that bears on them": {"ClusterStagedUpdateStrategy StagedUpdateStrategy", `{onMembershipChange: Continue, unassignedClusters: Last, rollbackApprovals: Skip, heldClusters: Skip, verifyBase: true,
    stages: [{name: canary, labelSelector: {}, windows: [night], sample: {percent: 5, seed: a}, failureBudget: {maxFailures: 1}, clusterDeadlineSeconds: 3600, minReadySeconds: 60, order: {priority: {labels: [{key: wave}]}},
      duringStageTasks: [{type: Analysis, analysis: {templates: [{name: errors}]}}],
      beforeStageTasks: [{type: Approval, approval: {excludedApprovers: [Creator], planHash: Required}}],
      afterStageTasks: [{type: TimedWait, waitTime: 1m0s}, {type: Approval, approval: {excludedApprovers: [Creator]}, startsAfter: [TimedWait]}]}]}`},
	"an analysis before a stage": {"ClusterStagedUpdateStrategy StagedUpdateStrategy",
		`{stages: [{name: canary, labelSelector: {}, beforeStageTasks: [{type: Analysis, analysis: {templates: [{name: errors}]}}, {type: Approval, startsAfter: [Analysis]}]}]}`},
	"a rehearsal before a stage": {"ClusterStagedUpdateStrategy StagedUpdateStrategy",
		`{stages: [{name: canary, labelSelector: {}, beforeStageTasks: [{type: Rehearsal, rehearsal: {maxRefused: 1}}]}]}`},
	"an analysis after a stage": {"ClusterStagedUpdateStrategy StagedUpdateStrategy",
		`{stages: [{name: canary, labelSelector: {}, afterStageTasks: [{type: Analysis, analysis: {templates: [{name: errors}]}}]}]}`},

	"a run that stands still": {"ClusterStagedUpdateRun StagedUpdateRun", `{placementName: web, stagedRolloutStrategyName: three, state: Stop, clusterActions: [{cluster: a, action: Skip}]}`},
	"a run that waits":        {"ClusterStagedUpdateRun StagedUpdateRun", `{placementName: web, stagedRolloutStrategyName: three, state: Initialize}`},
	"a run of one snapshot":   {"ClusterStagedUpdateRun StagedUpdateRun", `{placementName: web, stagedRolloutStrategyName: three, resourceSnapshotIndex: "1"}`},
	"a run by a plan": {"ClusterStagedUpdateRun StagedUpdateRun",
		`{placementName: web, stagedRolloutStrategyName: three, expectedPlanHash: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}`},
	"a run back": {"ClusterStagedUpdateRun StagedUpdateRun", `{placementName: web, stagedRolloutStrategyName: three, rollbackOf: other}`},

	"a cluster": {"MemberCluster", `{identity: {kind: User, name: member-a, apiGroup: rbac.authorization.k8s.io}, deleteOptions: {validationMode: Skip},
    agent: {requestTime: "2026-01-01T00:00:00Z", image: "registry.example.com/member-agent:v1", hubURL: "https://hub.example.com:6443", renewToken: true},
    taints: [{key: a, value: b, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}]}`},

	"an override of what is in no namespace": {"ClusterResourceOverride", `{clusterResourceSelectors: [SELECTOR], policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []},
    jsonPatchOverrides: [{op: add, path: /metadata/labels/a, value: b}, {op: remove, path: /metadata/labels/c}]}]}}`},
	"an override of what is in a namespace": {"ResourceOverride", `{resourceSelectors: [SELECTOR], policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []},
    jsonPatchOverrides: [{op: add, path: /metadata/labels/a, value: b}, {op: remove, path: /metadata/labels/c}]}]}}`},
	"an approval to give": {"ClusterApprovalRequest ApprovalRequest", `{parentStageRollout: run, targetStage: canary}`},
	"a budget":            {"ClusterResourcePlacementDisruptionBudget", `{maxUnavailable: 1}`},
	"an eviction":         {"ClusterResourcePlacementEviction", `{placementName: web, clusterName: member-1}`},
}

// unused are the added fields that no object can have: the API refuses tasks of type Rehearsal after a stage.
var unused = []string{"spec.stages[].afterStageTasks[].rehearsal"}

// selected take the place of SELECTOR, by whether the kind is in a namespace.
var selected = map[bool]string{
	false: `{group: "", version: v1, kind: Namespace, name: web}`,
	true:  `{group: "", version: v1, kind: ConfigMap, name: web}`,
}

// lost tells a field of which the hub warns that an update has lost it.
var lost = regexp.MustCompile(`this update has lost (\S+), as`)

// TestKubeFleetsTypesWidenNothing has every kind created with all fields that fleetflow adds, read into KubeFleet's Go type, changed and
// updated from there, as its clients do. What becomes of each lost field is what the guide says: the update is refused, or warned
// of, or passes as less happens without the field. All else is as it was.
func TestKubeFleetsTypesWidenNothing(t *testing.T) {
	promised := lossesInTheGuide(t)
	definitions := definitionsOfKubeFleetsKinds(t)
	covered := map[string]map[string]bool{}
	for _, sentence := range slices.Sorted(maps.Keys(typedSpecs)) {
		for kind := range strings.FieldsSeq(typedSpecs[sentence].kinds) {
			require.Contains(t, definitions, kind)
			for _, version := range definitions[kind].Spec.Versions {
				if recording.NewTyped(kind, version.Name) == nil {
					continue
				}
				key := kind + " " + version.Name
				if covered[key] == nil {
					covered[key] = map[string]bool{}
				}
				t.Run(sentence+" "+key, func(t *testing.T) {
					stored := createTyped(t, definitions[kind], version.Name, typedSpecs[sentence].spec)
					for _, field := range updateByType(t, stored, promised[kind]) {
						covered[key][field] = true
					}
				})
			}
		}
	}
	for kind, definition := range definitions {
		for _, version := range definition.Spec.Versions {
			if key := kind + " " + version.Name; recording.NewTyped(kind, version.Name) != nil && kubefleet.KnowsSpec(kind, version.Name) {
				added := slices.DeleteFunc(recording.AddedFields(definition, version), func(field string) bool { return slices.Contains(unused, field) })
				assert.Equal(t, added, slices.Sorted(maps.Keys(covered[key])), "added fields of %s in the specs above", key)
			}
		}
	}
}

// createTyped creates an object with a spec, all fields of which have to be known.
func createTyped(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition, version, spec string) *unstructured.Unstructured {
	t.Helper()
	namespaced := definition.Spec.Scope == apiextensionsv1.NamespaceScoped
	metadata := "{generateName: typed-}"
	if namespaced {
		metadata = "{generateName: typed-, namespace: default}"
	}
	return admin.create(t, fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: %s\nspec: %s",
		definition.Spec.Group, version, definition.Spec.Names.Kind, metadata, strings.ReplaceAll(spec, "SELECTOR", selected[namespaced])))
}

// updateByType labels an object as a client with KubeFleet's Go type does, and returns the added fields that it loses.
func updateByType(t *testing.T, stored *unstructured.Unstructured, promised map[string]string) []string {
	t.Helper()
	kind := stored.GetKind()
	version := stored.GroupVersionKind().Version
	left, _, err := unstructured.NestedMap(stored.Object, "spec")
	require.NoError(t, err)
	dropped := kubefleet.Prune(kind, version, left)

	said := &heard{}
	config := rest.CopyConfig(admin.config)
	config.WarningHandlerWithContext = said
	s, err := newSession(config)
	require.NoError(t, err)
	resource, err := s.resource(stored)
	require.NoError(t, err)

	var warned, refused []string
	for _, field := range dropped {
		switch what := promised[field]; {
		case strings.Contains(what, "refused"):
			refused = append(refused, field)
		case strings.Contains(what, "warned"):
			warned = append(warned, field)
		default:
			assert.Equal(t, "passes", what, "the guide says of %s", field)
		}
	}
	update := func(dryRun ...string) (*unstructured.Unstructured, error) {
		return resource.Update(t.Context(), labelledThroughType(t, current(t, stored)), metav1.UpdateOptions{DryRun: dryRun})
	}
	if len(refused) > 0 {
		_, err := update()
		require.Error(t, err, "loses %s", refused)
		for _, field := range refused {
			assert.ErrorContains(t, err, field[strings.LastIndex(field, ".")+1:])
		}
		assert.Equal(t, stored.Object["spec"], current(t, stored).Object["spec"], "what is refused changes nothing")
		return dropped
	}
	// Policies are in force some time after they are stored.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		said.clear()
		_, err := update(metav1.DryRunAll)
		assert.NoError(c, err)
		told := lost.FindAllStringSubmatch(strings.Join(said.all(), "\n"), -1)
		for _, field := range warned {
			assert.True(c, slices.ContainsFunc(told, func(found []string) bool { return isWithin(found[1], field) }), "no warning of %s in %s", field, said.all())
		}
		for _, found := range told {
			assert.True(c, slices.ContainsFunc(warned, func(field string) bool { return isWithin(found[1], field) }), "a warning of %s", found[1])
		}
	}, time.Minute, 100*time.Millisecond)
	updated, err := update()
	require.NoError(t, err)
	assert.Equal(t, "true", updated.GetLabels()["changed"])
	assert.Equal(t, meaningOf(left), meaningOf(updated.Object["spec"].(map[string]any)), "what KubeFleet's types have stays as it was")
	return dropped
}

// isWithin tells whether a field is another one, or in it.
func isWithin(field, other string) bool {
	return field == other || strings.HasPrefix(field, other+".")
}

// labelledThroughType returns what a client sends that reads an object into KubeFleet's Go type and gives it a label.
func labelledThroughType(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	received, err := object.MarshalJSON()
	require.NoError(t, err)
	typed := recording.NewTyped(object.GetKind(), object.GroupVersionKind().Version)
	require.NoError(t, json.Unmarshal(received, typed))
	typed.SetLabels(map[string]string{"changed": "true"})
	sent, err := json.Marshal(typed)
	require.NoError(t, err)
	changed := &unstructured.Unstructured{}
	require.NoError(t, changed.UnmarshalJSON(sent))
	return changed
}

// meaningOf returns a spec without what means the same as nothing: KubeFleet's types send empty strings and structs where there was
// no field, and an empty strategy gets its default type.
func meaningOf(spec map[string]any) map[string]any {
	said := maps.Clone(spec)
	maps.DeleteFunc(said, func(name string, value any) bool {
		inner, isStruct := value.(map[string]any)
		return value == "" || isStruct && len(inner) == 0 || name == "strategy" && len(inner) == 1 && inner["type"] == "RollingUpdate"
	})
	return said
}

// lossesInTheGuide returns what the guide says of updates that lose a field, by kind and field.
func lossesInTheGuide(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "docs", "migration.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| kinds | fields | an update that loses them |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	losses := map[string]map[string]string{}
	kinds := ""
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
		require.Len(t, cells, 3, row)
		if named := strings.TrimSpace(cells[0]); named != "" {
			kinds = named
		}
		for kind := range strings.SplitSeq(kinds, ", ") {
			if losses[kind] == nil {
				losses[kind] = map[string]string{}
			}
			for _, field := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				losses[kind][field[1]] = strings.TrimSpace(cells[2])
			}
		}
	}
	return losses
}

// definitionsOfKubeFleetsKinds returns the definitions that the hub has of kinds that KubeFleet has, too, by kind.
func definitionsOfKubeFleetsKinds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	listed, err := admin.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
		List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	definitions := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, item := range listed.Items {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, definition))
		if strings.HasSuffix(definition.Spec.Group, ".kubernetes-fleet.io") {
			definitions[definition.Spec.Names.Kind] = definition
		}
	}
	return definitions
}

// TestKubeFleetsTypesKeepWhoApproved has a client with KubeFleet's Go types update the status of a request that was approved: it drops
// the record of who has approved, so the update is refused.
func TestKubeFleetsTypesKeepWhoApproved(t *testing.T) {
	for kind, manifest := range map[string]string{"ClusterApprovalRequest": approvalRequest, "ApprovalRequest": namespacedApprovalRequest} {
		for _, version := range []string{"v1", "v1beta1"} {
			t.Run(kind+" "+version, func(t *testing.T) {
				request := admin.create(t, strings.Replace(manifest, "/v1beta1", "/"+version, 1))
				as(t, "jane").approve(t, request)
				require.Equal(t, "jane", approverOf(t, request))

				ada := as(t, "ada")
				resource, err := ada.resource(request)
				require.NoError(t, err)
				changed := labelledThroughType(t, current(t, request))
				require.NotContains(t, changed.Object["status"], "approval", "KubeFleet's type has it, and this test proves nothing")
				require.NoError(t, unstructured.SetNestedSlice(changed.Object, []any{parsePatch(t, strings.Replace(approved, "looks good", "me too", 1))}, "status", "conditions"))
				_, err = resource.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
				requireRefusal(t, err, "leave status.approval as it is")
				assert.Equal(t, "jane", approverOf(t, request))
			})
		}
	}
}
