package convert_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/convert"
)

// field is one of those that a reference of another system lists: what it is called, and manifests with it and without.
type field struct {
	path          string
	with, without string
}

// policy returns a ClusterPropagationPolicy with something in its spec.
func policy(spec string) string {
	return `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: web}, spec: {` + spec + `}}`
}

// ofWeb returns a policy for one Deployment with something else in its spec.
func ofWeb(spec string) string {
	return policy("resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: web, name: web}], " + spec)
}

// affinityFields returns those of a selection of clusters, which around puts where a policy has it.
func affinityFields(path string, around func(fields string) string) []field {
	all := []field{
		{path + ".clusterNames", "clusterNames: [member1]", ""},
		{path + ".exclude", "clusterNames: [member1, member2], exclude: [member2]", "clusterNames: [member1, member2]"},
		{path + ".fieldSelector.matchExpressions", "fieldSelector: {matchExpressions: [{key: region, operator: In, values: [eu]}]}", ""},
		{path + ".labelSelector", "labelSelector: {matchLabels: {a: b}}", ""},
	}
	for i := range all {
		all[i].with, all[i].without = around(all[i].with), around(all[i].without)
	}
	return all
}

// karmadaFields returns all that the reference of ClusterPropagationPolicy lists, below spec.
func karmadaFields() []field {
	selecting := func(fields string) string { return policy("resourceSelectors: [{" + fields + "}]") }
	application := func(fields string) string {
		return ofWeb("propagateDeps: true, placement: {clusterAffinities: [{affinityName: a, clusterNames: [m]}, {affinityName: b}]}, failover: {application: {" + fields + "}}")
	}
	toleration := func(fields string) string { return ofWeb("placement: {clusterTolerations: [{" + fields + "}]}") }
	replicas := func(fields string) string { return ofWeb("placement: {replicaScheduling: {" + fields + "}}") }
	weights := func(fields string) string {
		return replicas("replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {" + fields + "}")
	}
	target := func(fields string) string {
		return weights("staticWeightList: [{targetCluster: {" + fields + "}, weight: 2}]")
	}
	spread := func(fields string) string { return ofWeb("placement: {spreadConstraints: [{" + fields + "}]}") }
	all := []field{
		{"resourceSelectors.apiVersion", selecting("apiVersion: apps/v1beta1, kind: Deployment, namespace: web, name: web"), selecting("apiVersion: apps/v1, kind: Deployment, namespace: web, name: web")},
		{"resourceSelectors.kind", selecting("apiVersion: apps/v1, kind: StatefulSet, namespace: web, name: web"), selecting("apiVersion: apps/v1, kind: Deployment, namespace: web, name: web")},
		{"resourceSelectors.labelSelector", selecting("apiVersion: apps/v1, kind: Deployment, namespace: web, labelSelector: {matchLabels: {a: b}}"), selecting("apiVersion: apps/v1, kind: Deployment, namespace: web")},
		{"resourceSelectors.name", selecting("apiVersion: apps/v1, kind: Deployment, namespace: web, name: web"), selecting("apiVersion: apps/v1, kind: Deployment, namespace: web")},
		{"resourceSelectors.namespace", selecting("apiVersion: apps/v1, kind: Deployment, namespace: web, name: web"), selecting("apiVersion: apps/v1, kind: Deployment, name: web")},
		{"activationPreference", ofWeb("activationPreference: Lazy"), ofWeb("")},
		{"association", ofWeb("association: true"), ofWeb("")},
		{"conflictResolution", ofWeb("conflictResolution: Overwrite"), ofWeb("")},
		{"dependentOverrides", ofWeb("dependentOverrides: [images]"), ofWeb("")},
		{"failover.application.decisionConditions.tolerationSeconds", application("decisionConditions: {tolerationSeconds: 60}"), application("decisionConditions: {}")},
		{"failover.application.gracePeriodSeconds", application("gracePeriodSeconds: 60"), application("purgeMode: Graciously")},
		{"failover.application.purgeMode", application("purgeMode: Immediately"), application("decisionConditions: {}")},
		{"placement.clusterAffinities.affinityName", ofWeb("placement: {clusterAffinities: [{affinityName: a}, {affinityName: b}]}"), ofWeb("placement: {clusterAffinities: [{affinityName: a}, {affinityName: c}]}")},
		{"placement.clusterTolerations.effect", toleration("key: a, operator: Exists, effect: NoExecute"), toleration("key: a, operator: Exists")},
		{"placement.clusterTolerations.key", toleration("key: a, operator: Exists"), toleration("operator: Exists")},
		{"placement.clusterTolerations.operator", toleration("key: a, operator: Exists"), toleration("key: a, operator: Equal")},
		{"placement.clusterTolerations.tolerationSeconds", toleration("key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5"), toleration("key: a, operator: Exists, effect: NoExecute")},
		{"placement.clusterTolerations.value", toleration("key: a, operator: Equal, value: b"), toleration("key: a, operator: Equal")},
		{"placement.replicaScheduling.replicaDivisionPreference", replicas("replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated"), replicas("replicaSchedulingType: Divided, replicaDivisionPreference: Weighted")},
		{"placement.replicaScheduling.replicaSchedulingType", replicas("replicaSchedulingType: Divided"), replicas("replicaSchedulingType: Duplicated")},
		{"placement.replicaScheduling.weightPreference.dynamicWeight", weights("dynamicWeight: AvailableReplicas"), weights("")},
		{"placement.replicaScheduling.weightPreference.staticWeightList.weight", target("clusterNames: [m]"), strings.Replace(target("clusterNames: [m]"), "weight: 2", "weight: 3", 1)},
		{"placement.spreadConstraints.maxGroups", spread("spreadByField: cluster, maxGroups: 2"), spread("spreadByField: cluster")},
		{"placement.spreadConstraints.minGroups", spread("spreadByField: cluster, minGroups: 2, maxGroups: 3"), spread("spreadByField: cluster, maxGroups: 3")},
		{"placement.spreadConstraints.spreadByField", spread("spreadByField: region, maxGroups: 2"), spread("spreadByField: cluster, maxGroups: 2")},
		{"placement.spreadConstraints.spreadByLabel", spread("spreadByLabel: a, maxGroups: 2"), spread("spreadByField: cluster, maxGroups: 2")},
		{"preemption", ofWeb("preemption: Always"), ofWeb("preemption: Never")},
		{"priority", ofWeb("priority: 5"), ofWeb("")},
		{"propagateDeps", ofWeb("propagateDeps: true"), ofWeb("")},
		{"schedulerName", ofWeb("schedulerName: mine"), ofWeb("schedulerName: default-scheduler")},
	}
	all = append(all, affinityFields("placement.clusterAffinity", func(fields string) string { return ofWeb("placement: {clusterAffinity: {" + fields + "}}") })...)
	all = append(all, affinityFields("placement.clusterAffinities", func(fields string) string {
		return ofWeb("placement: {clusterAffinities: [{" + strings.TrimSuffix("affinityName: a, "+fields, ", ") + "}, {affinityName: b}]}")
	})...)
	return append(all, affinityFields("placement.replicaScheduling.weightPreference.staticWeightList.targetCluster", target)...)
}

// federatedWeb returns a FederatedDeployment with something in its metadata and its spec, and its namespace.
func federatedWeb(metadata, spec string) string {
	return `{apiVersion: types.kubefed.io/v1beta1, kind: FederatedNamespace, metadata: {name: web, namespace: web}, spec: {placement: {clusterSelector: {}}}}
---
{apiVersion: types.kubefed.io/v1beta1, kind: FederatedDeployment, metadata: {name: web, namespace: web` + metadata + `}, spec: {template: {spec: {replicas: 3}}, ` + spec + `}}`
}

// preference returns a ReplicaSchedulingPreference with something in its spec, and its workload.
func preference(spec string) string {
	return federatedWeb("", "placement: {clusterSelector: {matchLabels: {a: b}}}") + `
---
{apiVersion: scheduling.kubefed.io/v1alpha1, kind: ReplicaSchedulingPreference, metadata: {name: web, namespace: web}, spec: {` + spec + `}}`
}

// kubefedFields returns those that the user guide of KubeFed describes, by the kind that has them.
func kubefedFields() []field {
	const even = "targetKind: FederatedDeployment, totalReplicas: 9"
	all := "placement: {clusterSelector: {}}"
	typeConfig := func(spec string) string {
		return `{apiVersion: core.kubefed.io/v1beta1, kind: FederatedTypeConfig, metadata: {name: deployments.apps, namespace: kube-federation-system},
			spec: {targetType: {group: apps, version: v1, kind: Deployment, pluralName: deployments, scope: Namespaced}, ` + spec + `}}`
	}
	overriding := func(operation string) string {
		return federatedWeb("", all+", overrides: [{clusterName: m1, clusterOverrides: [{"+operation+"}]}]")
	}
	return []field{
		{"template", federatedWeb("", all), strings.Replace(federatedWeb("", all), "replicas: 3", "replicas: 4", 1)},
		{"placement.clusters", federatedWeb("", "placement: {clusters: [{name: m1}]}"), federatedWeb("", all)},
		{"placement.clusterSelector", federatedWeb("", "placement: {clusterSelector: {matchLabels: {a: b}}}"), federatedWeb("", all)},
		{"overrides.clusterName", overriding("path: /spec/replicas, value: 5"), strings.Replace(overriding("path: /spec/replicas, value: 5"), "m1", "m2", 1)},
		{"overrides.clusterOverrides.op", overriding("op: add, path: /spec/replicas, value: 5"), overriding("path: /spec/replicas, value: 5")},
		{"overrides.clusterOverrides.path", overriding("path: /spec/replicas, value: 5"), overriding("path: /spec/minReadySeconds, value: 5")},
		{"overrides.clusterOverrides.value", overriding("path: /spec/replicas, value: 5"), overriding("path: /spec/replicas, value: 6")},
		{"retainReplicas", federatedWeb("", all+", retainReplicas: true"), federatedWeb("", all)},
		{"kubefed.io/orphan", federatedWeb(`, annotations: {kubefed.io/orphan: "true"}`, all), federatedWeb("", all)},
		{"propagation", typeConfig("propagation: Disabled"), typeConfig("propagation: Enabled")},
		{"targetKind", preference(even), preference("targetKind: FederatedConfigMap, totalReplicas: 9")},
		{"totalReplicas", preference(even), preference("targetKind: FederatedDeployment, totalReplicas: 8")},
		{"clusters.weight", preference(even + ", clusters: {m1: {weight: 1}}"), preference(even + ", clusters: {m1: {weight: 2}}")},
		{"clusters.minReplicas", preference(even + ", clusters: {m1: {weight: 1, minReplicas: 4}}"), preference(even + ", clusters: {m1: {weight: 1}}")},
		{"clusters.maxReplicas", preference(even + ", clusters: {m1: {weight: 1, maxReplicas: 4}}"), preference(even + ", clusters: {m1: {weight: 1}}")},
		{"rebalance", preference(even + ", rebalance: true"), preference(even)},
		{"intersectWithClusterSelector", preference(even + ", intersectWithClusterSelector: true"), preference(even)},
	}
}

// convertText converts manifests in flow style and says what was made and noted.
func convertText(t *testing.T, manifests string) (made string, notes []convert.Note) {
	t.Helper()
	var inputs []convert.Input
	for manifest := range strings.SplitSeq(manifests, "\n---\n") {
		object := &unstructured.Unstructured{}
		manifest = strings.NewReplacer(", }", "}", ", ]", "]").Replace(manifest)
		require.NoError(t, yaml.Unmarshal([]byte(manifest), &object.Object), manifest)
		inputs = append(inputs, convert.Input{Source: "a", Object: object})
	}
	result, err := convert.Convert(inputs, defaults())
	require.NoError(t, err, manifests)
	text := &strings.Builder{}
	require.NoError(t, result.PrintYAML(text))
	return text.String(), result.Notes
}

func TestEveryFieldOfTheReferencesIsConvertedOrSaidByName(t *testing.T) {
	for system, fields := range map[string][]field{"karmada": karmadaFields(), "kubefed": kubefedFields()} {
		for _, f := range fields {
			t.Run(system+"/"+f.path, func(t *testing.T) {
				made, notes := convertText(t, f.with)
				for _, note := range notes {
					assert.NotEqual(t, "there is no counterpart", note.Text, "the converter does not know %s", note.Field)
				}
				without, _ := convertText(t, f.without)
				assert.NotEqual(t, without, made, "the field makes no difference, and nothing is said of it")
			})
		}
	}
}

var backticked = regexp.MustCompile("`[^`]+`")

// rowsOf returns the rows of the tables of a guide below a heading.
func rowsOf(t *testing.T, guide, heading string) []string {
	t.Helper()
	content, err := os.ReadFile("../../../deploy/docs/" + guide)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(content), "\n"+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, line)
		}
	}
	return rows
}

// namesField reports whether the first cell of a row names a field: by its path, or by its last word after one that shares the rest.
func namesField(row, path string) bool {
	first := ""
	for _, code := range backticked.FindAllString(strings.Split(row, "|")[1], -1) {
		entry, _, _ := strings.Cut(strings.Trim(code, "`"), ":")
		if first == "" {
			first = entry
		}
		if slices.Contains([]string{entry, first + "." + entry, first[:strings.LastIndex(first, ".")+1] + entry}, path) {
			return true
		}
	}
	return false
}

func TestTheGuidesSayWhatBecomesOfEveryField(t *testing.T) {
	for guide, of := range map[string]struct {
		heading string
		fields  []field
	}{
		"from-karmada.md": {"## What becomes of each field", karmadaFields()},
		"from-kubefed.md": {"## What each kind becomes", kubefedFields()},
	} {
		rows := rowsOf(t, guide, of.heading)
		for _, f := range of.fields {
			assert.True(t, slices.ContainsFunc(rows, func(row string) bool { return namesField(row, f.path) }), "%s has no row that names %s", guide, f.path)
		}
	}
}

// What KubeFed says in a status, and what it leaves to clusters, is told in the guides, word by word.
func TestTheGuidesKnowWhatKubeFedSaysAndRetains(t *testing.T) {
	rows := strings.Join(append(rowsOf(t, "kubefed-reasons.md", "## Reasons of the Propagation condition"), rowsOf(t, "kubefed-reasons.md", "## Status per cluster")...), "")
	for _, word := range []string{
		"CheckClusters", "ClusterRetrievalFailed", "ComputePlacementFailed", "NamespaceNotFederated",
		"AlreadyExists", "ApplyOverridesFailed", "CachedRetrievalFailed", "ClientRetrievalFailed", "ClusterNotReady", "ComputeResourceFailed", "CreationFailed",
		"CreationTimedOut", "DeletionFailed", "DeletionTimedOut", "FieldRetentionFailed", "LabelRemovalFailed", "LabelRemovalTimedOut", "ManagedLabelFalse",
		"RetrievalFailed", "UpdateFailed", "UpdateTimedOut", "VersionRetrievalFailed", "WaitingForRemoval",
	} {
		assert.Contains(t, rows, "`"+word+"`")
	}
	rows = strings.Join(rowsOf(t, "from-kubefed.md", "## What each kind becomes"), "")
	for _, word := range []string{"metadata.annotations", "metadata.finalizers", "metadata.resourceVersion", "spec.replicas", "spec.clusterIP", "spec.ports", "secrets"} {
		assert.Contains(t, rows, "`"+word+"`", "what KubeFed retains")
	}
}
