//go:build integration

package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterapply "github.com/fleetflow/fleetflow/apis/cluster/applyconfiguration"
	clusterv1beta1apply "github.com/fleetflow/fleetflow/apis/cluster/applyconfiguration/cluster/v1beta1"
	fleetflowapply "github.com/fleetflow/fleetflow/apis/fleetflow/applyconfiguration"
	fleetflowv1alpha1apply "github.com/fleetflow/fleetflow/apis/fleetflow/applyconfiguration/fleetflow/v1alpha1"
	placementapply "github.com/fleetflow/fleetflow/apis/placement/applyconfiguration"
	placementv1beta1apply "github.com/fleetflow/fleetflow/apis/placement/applyconfiguration/placement/v1beta1"
)

// extract returns what a field manager has applied of an object, or of its status.
type extract func(t *testing.T, key client.ObjectKey, manager, subresource string) map[string]any

// by reads an object into its Go type and hands it to the generated function.
func by[T, C any](extracted func(*T, string, string) (*C, error)) extract {
	return func(t *testing.T, key client.ObjectKey, manager, subresource string) map[string]any {
		t.Helper()
		object := new(T)
		require.NoError(t, admin.Get(t.Context(), key, any(object).(client.Object)))
		configuration, err := extracted(object, manager, subresource)
		require.NoError(t, err)
		return encoded(t, configuration)
	}
}

// extracts has the generated function of every kind.
var extracts = map[string]extract{
	"MemberCluster":         by(clusterv1beta1apply.ExtractMemberClusterFrom),
	"InternalMemberCluster": by(clusterv1beta1apply.ExtractInternalMemberClusterFrom),

	"ClusterResourcePlacement":                 by(placementv1beta1apply.ExtractClusterResourcePlacementFrom),
	"ResourcePlacement":                        by(placementv1beta1apply.ExtractResourcePlacementFrom),
	"ClusterResourcePlacementStatus":           by(placementv1beta1apply.ExtractClusterResourcePlacementStatusFrom),
	"ClusterResourceBinding":                   by(placementv1beta1apply.ExtractClusterResourceBindingFrom),
	"ResourceBinding":                          by(placementv1beta1apply.ExtractResourceBindingFrom),
	"ClusterResourceSnapshot":                  by(placementv1beta1apply.ExtractClusterResourceSnapshotFrom),
	"ResourceSnapshot":                         by(placementv1beta1apply.ExtractResourceSnapshotFrom),
	"ClusterSchedulingPolicySnapshot":          by(placementv1beta1apply.ExtractClusterSchedulingPolicySnapshotFrom),
	"SchedulingPolicySnapshot":                 by(placementv1beta1apply.ExtractSchedulingPolicySnapshotFrom),
	"Work":                                     by(placementv1beta1apply.ExtractWorkFrom),
	"AppliedWork":                              by(placementv1beta1apply.ExtractAppliedWorkFrom),
	"ClusterResourceOverride":                  by(placementv1beta1apply.ExtractClusterResourceOverrideFrom),
	"ResourceOverride":                         by(placementv1beta1apply.ExtractResourceOverrideFrom),
	"ClusterResourceOverrideSnapshot":          by(placementv1beta1apply.ExtractClusterResourceOverrideSnapshotFrom),
	"ResourceOverrideSnapshot":                 by(placementv1beta1apply.ExtractResourceOverrideSnapshotFrom),
	"ClusterResourceEnvelope":                  by(placementv1beta1apply.ExtractClusterResourceEnvelopeFrom),
	"ResourceEnvelope":                         by(placementv1beta1apply.ExtractResourceEnvelopeFrom),
	"ClusterStagedUpdateRun":                   by(placementv1beta1apply.ExtractClusterStagedUpdateRunFrom),
	"StagedUpdateRun":                          by(placementv1beta1apply.ExtractStagedUpdateRunFrom),
	"ClusterStagedUpdateStrategy":              by(placementv1beta1apply.ExtractClusterStagedUpdateStrategyFrom),
	"StagedUpdateStrategy":                     by(placementv1beta1apply.ExtractStagedUpdateStrategyFrom),
	"ClusterApprovalRequest":                   by(placementv1beta1apply.ExtractClusterApprovalRequestFrom),
	"ApprovalRequest":                          by(placementv1beta1apply.ExtractApprovalRequestFrom),
	"ClusterResourcePlacementEviction":         by(placementv1beta1apply.ExtractClusterResourcePlacementEvictionFrom),
	"ClusterResourcePlacementDisruptionBudget": by(placementv1beta1apply.ExtractClusterResourcePlacementDisruptionBudgetFrom),

	"PropagatedType":          by(fleetflowv1alpha1apply.ExtractPropagatedTypeFrom),
	"RolloutWindow":           by(fleetflowv1alpha1apply.ExtractRolloutWindowFrom),
	"RolloutHold":             by(fleetflowv1alpha1apply.ExtractRolloutHoldFrom),
	"RolloutExemption":        by(fleetflowv1alpha1apply.ExtractRolloutExemptionFrom),
	"MetricSource":            by(fleetflowv1alpha1apply.ExtractMetricSourceFrom),
	"NotificationChannel":     by(fleetflowv1alpha1apply.ExtractNotificationChannelFrom),
	"NotificationRule":        by(fleetflowv1alpha1apply.ExtractNotificationRuleFrom),
	"StageAnalysis":           by(fleetflowv1alpha1apply.ExtractStageAnalysisFrom),
	"ClusterStageAnalysisRun": by(fleetflowv1alpha1apply.ExtractClusterStageAnalysisRunFrom),
	"StageAnalysisRun":        by(fleetflowv1alpha1apply.ExtractStageAnalysisRunFrom),
	"ClusterRehearsal":        by(fleetflowv1alpha1apply.ExtractClusterRehearsalFrom),
	"Rehearsal":               by(fleetflowv1alpha1apply.ExtractRehearsalFrom),
	"MemberQuestion":          by(fleetflowv1alpha1apply.ExtractMemberQuestionFrom),
	"AuditRecord":             by(fleetflowv1alpha1apply.ExtractAuditRecordFrom),
	"AuditSink":               by(fleetflowv1alpha1apply.ExtractAuditSinkFrom),
}

// appliedContents are what is applied of kinds that typedSpecs has nothing of, without metadata. HOUR is the time in an hour.
var appliedContents = map[string]string{
	"InternalMemberCluster":          `{spec: {state: Join, heartbeatPeriodSeconds: 30}}`,
	"ClusterResourcePlacementStatus": `{sourceStatus: {observedResourceIndex: "0"}, lastUpdatedTime: "2026-01-01T00:00:00Z"}`,
	"ClusterResourceBinding ResourceBinding": `{spec: {state: Bound, resourceSnapshotName: web-0-snapshot, schedulingPolicySnapshotName: web-0,
    targetCluster: member-1, clusterDecision: {clusterName: member-1, selected: true, reason: picked}}}`,
	"ClusterResourceSnapshot ResourceSnapshot":                 `{spec: {selectedResources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: web}, data: {a: b}}]}}`,
	"ClusterSchedulingPolicySnapshot SchedulingPolicySnapshot": `{spec: {policyHash: aGFzaA==, policy: {placementType: PickN, numberOfClusters: 1}}}`,
	"Work":        `{spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}]}, applyStrategy: {type: ServerSideApply}}}`,
	"AppliedWork": `{spec: {workName: web, workNamespace: fleet-member-a}}`,
	"ClusterResourceOverrideSnapshot": `{spec: {overrideHash: aGFzaA==, overrideSpec: {policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: nowhere}}}]}, overrideType: Delete}]},
    clusterResourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: reader}]}}}`,
	"ResourceOverrideSnapshot": `{spec: {overrideHash: aGFzaA==, overrideSpec: {policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: nowhere}}}]}, overrideType: Delete}]},
    resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: web}]}}}`,
	"ClusterResourceEnvelope": `{data: {role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}}}`,
	"ResourceEnvelope":        `{data: {settings: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}, data: {a: b}}}}`,

	"PropagatedType": `{spec: {propagation: Disabled}}`,
	"RolloutWindow": `{spec: {type: Allow, scope: Placement, placementSelector: {matchLabels: {team: shop}}, timeZone: Europe/Berlin, message: agreed on,
    weekly: [{days: [Mon], start: "22:00", end: "06:00"}], cron: [{expression: "0 2 * * *", duration: 1h30m}], dates: [{start: "2026-01-15T20:00", end: "2026-01-15T23:00"}]}}`,
	"RolloutHold": `{spec: {message: storm, clusterSelector: {matchLabels: {region: nowhere}}, namespaceSelector: {matchLabels: {team: payments}}, starts: [Updates, Evictions],
    rollbacks: Exempt, expirationTime: HOUR}}`,
	"RolloutExemption": `{spec: {targetRef: {kind: ClusterStagedUpdateRun, name: web-17}, exemptFrom: [{kind: RolloutHold, name: incident}, {kind: StageAnalysis, stage: canary}],
    message: CVE, ticket: INC-9, expirationTime: HOUR}}`,
	"MetricSource": `{spec: {type: Prometheus, url: "https://prometheus.example.com", limits: {maxConcurrent: 2}}}`,
	"AuditSink":    `{spec: {type: Webhook, webhook: {url: "https://siem.example.com", batch: 20}, filter: {types: ["approval.*"]}}}`,
	"NotificationChannel": `{spec: {type: Email, email: {server: "smtp.example.com:587", from: fleet@example.com, to: [ops@example.com], usernameSecret: {name: mail, key: username},
    passwordSecret: {name: mail, key: password}}, dashboardURL: "https://fleet.example.com"}}`,
	"NotificationRule": `{spec: {types: [run.failed, "approval.*"], placementSelector: {matchLabels: {tier: prod}}, when: record.stageName == "prod",
    channelRefs: [{name: ops}], group: {by: Record, window: 1m, maxMessages: 5}, template: "{{ .message }}"}}`,
	"StageAnalysis": `{spec: {args: [{name: service, default: web}], metrics: [{name: errors, interval: 1m, count: 3, failureLimit: 1, success: result < 0.01,
    prometheus: {sourceRef: {name: central}, query: "errors{service='{{args.service}}'}"}}]}}`,
	"ClusterStageAnalysisRun StageAnalysisRun": `{spec: {runRef: {name: web-17, uid: "4711"}, stage: canary, position: After, attempt: 1, templates: [{name: errors, generation: 1}],
    metrics: [{name: errors, interval: 1m, count: 3, success: result < 0.01, args: {service: web}, prometheus: {sourceRef: {name: central}, query: errors}}]}}`,
	"ClusterRehearsal Rehearsal": `{spec: {placementName: web, resourceSnapshotIndex: "3", clusters: [member-1], timeout: 30s}}`,
	"MemberQuestion": `{spec: {type: Rehearse, deadline: HOUR, askedFor: {kind: ClusterRehearsal, name: web, uid: "4711"},
    rehearse: {revision: "3", works: [{name: web-work, manifests: 1}], manifests: aGFzaA==}}}`,
	"AuditRecord": `{spec: {id: "` + strings.Repeat("0", 64) + `", type: approval.given, time: "2026-01-01T00:00:00Z", subjectRef: {apiVersion: placement.kubernetes-fleet.io/v1beta1,
    kind: ClusterStagedUpdateRun, name: web-2, uid: "4711"}, placementName: web, updateRunName: web-2, stageName: canary, actor: {username: jane, verified: true, channel: Kubectl},
    comment: CAB-17, data: {position: Before}, sequence: 1}}`,
}

// appliedManifests returns what is applied of every kind: some manifests each, without name.
func appliedManifests() map[string][]string {
	manifests := map[string][]string{}
	add := func(names, content string) {
		for kind := range strings.FieldsSeq(names) {
			// An apply configuration leaves an empty list out.
			content := strings.ReplaceAll(content, "clusterSelectorTerms: []", "clusterSelectorTerms: [{labelSelector: {matchLabels: {region: nowhere}}}]")
			content = strings.ReplaceAll(content, "SELECTOR", selected[kinds[kind].namespaced])
			content = strings.ReplaceAll(content, "HOUR", `"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"`)
			manifests[kind] = append(manifests[kind], content)
		}
	}
	for _, sentence := range slices.Sorted(maps.Keys(typedSpecs)) {
		add(typedSpecs[sentence].kinds, "{spec: "+typedSpecs[sentence].spec+"}")
	}
	for names, content := range appliedContents {
		add(names, content)
	}
	return manifests
}

// TestEveryKindIsAppliedByTwo has two field managers apply every kind by its apply configuration. What one of them has applied is extracted
// as it was, neither takes what the other one has, and what one leaves out goes.
func TestEveryKindIsAppliedByTwo(t *testing.T) {
	manifests := appliedManifests()
	require.ElementsMatch(t, slices.Collect(maps.Keys(kinds)), slices.Collect(maps.Keys(extracts)))
	require.ElementsMatch(t, slices.Collect(maps.Keys(kinds)), slices.Collect(maps.Keys(manifests)))
	var withoutConditions []string
	for _, kind := range slices.Sorted(maps.Keys(manifests)) {
		for i, manifest := range manifests[kind] {
			t.Run(fmt.Sprintf("%s %d", kind, i), func(t *testing.T) {
				stored := applyByTwo(t, kind, manifest)
				switch {
				case i > 0:
				case hasConditions(t, stored):
					applyConditionsByTwo(t, stored)
				default:
					withoutConditions = append(withoutConditions, kind)
				}
			})
		}
	}
	assert.Equal(t, []string{"AppliedWork", "AuditRecord", "ClusterResourceEnvelope", "ClusterResourceOverrideSnapshot", "ClusterResourcePlacementDisruptionBudget", "ClusterResourcePlacementStatus",
		"ClusterStagedUpdateStrategy", "ResourceEnvelope", "ResourceOverrideSnapshot", "StagedUpdateStrategy"}, withoutConditions)
}

// TestAnApprovalThatIsAppliedSaysWhoApproved has a program approve as the sample for programs does: who has approved is noted, and a
// second approver takes nothing.
func TestAnApprovalThatIsAppliedSaysWhoApproved(t *testing.T) {
	for _, manifest := range []string{approvalRequest, namespacedApprovalRequest} {
		request := admin.create(t, manifest)
		condition := parsePatch(t, approved)
		said := withCondition(inVersion(request, onlyBeta), "Approved")
		said.SetUID(request.GetUID())
		require.NoError(t, unstructured.SetNestedSlice(said.Object, []any{condition}, "status", "conditions"))
		require.NoError(t, as(t, "jane").Status().Apply(t.Context(), configurationOf(t, said), client.FieldOwner("go-client")))
		assert.Equal(t, "jane", approverOf(t, request))
		condition["message"] = "me too"
		require.NoError(t, unstructured.SetNestedSlice(said.Object, []any{condition}, "status", "conditions"))
		assert.Error(t, as(t, "ada").Status().Apply(t.Context(), configurationOf(t, said), client.FieldOwner("another")))
		assert.Equal(t, "jane", approverOf(t, request))
	}
}

// applyByTwo applies an object and labels of it, and returns what is stored.
func applyByTwo(t *testing.T, kind, manifest string) *unstructured.Unstructured {
	t.Helper()
	ctx := t.Context()
	version := onlyBeta
	if groupOf(kind) == ownGroup {
		version = onlyAlpha
	}
	object := parse(t, manifest)
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: groupOf(kind), Version: version, Kind: kind})
	object.SetName("configmaps")
	if kinds[kind].namespaced {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	bare := &unstructured.Unstructured{}
	bare.SetGroupVersionKind(object.GroupVersionKind())
	bare.SetName(object.GetName())
	bare.SetNamespace(object.GetNamespace())
	labelled := func(o *unstructured.Unstructured, labels map[string]string) *unstructured.Unstructured {
		changed := o.DeepCopy()
		changed.SetLabels(labels)
		return changed
	}
	t.Cleanup(func() { remove(t, bare) })

	byFirst := labelled(object, map[string]string{"first": "kept", "left-out": "soon"})
	require.NoError(t, admin.Apply(ctx, configurationOf(t, byFirst), client.FieldOwner("first")))
	assert.Empty(t, missing(byFirst.Object, current(t, bare).Object, ""), "applied and not stored")
	assertExtracted(t, byFirst, "first", "")

	bySecond := labelled(bare, map[string]string{"second": "kept"})
	require.NoError(t, admin.Apply(ctx, configurationOf(t, bySecond), client.FieldOwner("second")))
	assertExtracted(t, bySecond, "second", "")
	assertExtracted(t, byFirst, "first", "")
	err := admin.Apply(ctx, configurationOf(t, labelled(bare, map[string]string{"second": "kept", "first": "taken"})), client.FieldOwner("second"))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	assert.ErrorContains(t, err, `conflict with "first"`)

	require.NoError(t, admin.Apply(ctx, configurationOf(t, labelled(object, map[string]string{"first": "kept"})), client.FieldOwner("first")))
	stored := current(t, bare)
	assert.Subset(t, stored.GetLabels(), map[string]string{"first": "kept", "second": "kept"})
	assert.NotContains(t, stored.GetLabels(), "left-out")
	return stored
}

// applyConditionsByTwo has each field manager apply a condition to the status, which keeps both.
func applyConditionsByTwo(t *testing.T, stored *unstructured.Unstructured) {
	t.Helper()
	for _, manager := range []string{"first", "second"} {
		require.NoError(t, admin.Status().Apply(t.Context(), configurationOf(t, withCondition(stored, manager)), client.FieldOwner(manager)))
	}
	assertExtracted(t, withCondition(stored, "first"), "first", "status")
	assertExtracted(t, withCondition(stored, "second"), "second", "status")
	conditions, _, err := unstructured.NestedSlice(current(t, stored).Object, "status", "conditions")
	require.NoError(t, err)
	var types []any
	for _, condition := range conditions {
		types = append(types, condition.(map[string]any)["type"])
	}
	assert.Subset(t, types, []any{"first", "second"})
}

// withCondition returns a manifest of nothing but a condition, which has the name of its field manager.
func withCondition(stored *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": manager, "status": "True", "reason": "Applied", "message": "applied by " + manager, "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}}}
	object.SetGroupVersionKind(stored.GroupVersionKind())
	object.SetNamespace(stored.GetNamespace())
	object.SetName(stored.GetName())
	return object
}

// hasConditions reports whether the status of a kind has conditions.
func hasConditions(t *testing.T, stored *unstructured.Unstructured) bool {
	t.Helper()
	return hasStatus(t, stored.GroupVersionKind()) && decodeStrictly(t, withCondition(stored, "first"), emptyConfiguration(stored.GroupVersionKind())) == nil
}

// assertExtracted asserts that what a field manager has applied is extracted from the object as it was.
func assertExtracted(t *testing.T, applied *unstructured.Unstructured, manager, subresource string) {
	t.Helper()
	extracted := extracts[applied.GetKind()](t, client.ObjectKeyFromObject(applied), manager, subresource)
	assert.Empty(t, missing(applied.Object, extracted, ""), "applied by %s and not extracted", manager)
	// An item of a list that is replaced as a whole is extracted with its defaults, so the metadata alone has to be the same.
	assert.Empty(t, missing(extracted["metadata"], applied.Object["metadata"], ""), "extracted and not applied by %s", manager)
}

// configurationOf returns the apply configuration that a manifest is. It has to have all fields of the manifest.
func configurationOf(t *testing.T, manifest *unstructured.Unstructured) runtime.ApplyConfiguration {
	t.Helper()
	configuration := emptyConfiguration(manifest.GroupVersionKind())
	require.NoError(t, decodeStrictly(t, manifest, configuration))
	return configuration.(runtime.ApplyConfiguration)
}

func emptyConfiguration(gvk schema.GroupVersionKind) any {
	for _, forKind := range []func(schema.GroupVersionKind) any{clusterapply.ForKind, fleetflowapply.ForKind, placementapply.ForKind} {
		if found := forKind(gvk); found != nil {
			return found
		}
	}
	return nil
}

func decodeStrictly(t *testing.T, manifest *unstructured.Unstructured, into any) error {
	t.Helper()
	text, err := json.Marshal(manifest.Object)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func encoded(t *testing.T, configuration any) map[string]any {
	t.Helper()
	text, err := json.Marshal(configuration)
	require.NoError(t, err)
	return parsePatch(t, string(text))
}
