package crds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const clusterRole = "{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: secret-reader}"

// clusterOverride is a spec with fields before selectors and policy, and one rule.
func clusterOverride(fields, selectors, rule string) string {
	return "{" + fields + "clusterResourceSelectors: [" + selectors + "], policy: {overrideRules: [" + rule + "]}}"
}

const everyCluster = "clusterSelector: {clusterSelectorTerms: []}, "

// patch is a rule for every cluster with one operation.
func patch(operation string) string {
	return "{" + everyCluster + "jsonPatchOverrides: [" + operation + "]}"
}

func TestRulesOfSelectorsInOverrides(t *testing.T) {
	const remove = "{op: remove, path: /rules/0}"
	selecting := func(selectors string) string { return clusterOverride("", selectors, patch(remove)) }
	named := func(kind, name string) string {
		return "{group: '', version: v1, kind: " + kind + ", name: " + name + "}"
	}
	run(t, "ClusterResourceOverride", map[string]ruleCase{
		"may select an object by name":      {spec: selecting(clusterRole)},
		"may select several objects":        {spec: selecting(named("Namespace", "a") + "," + named("Namespace", "b"))},
		"may select one name in two kinds":  {spec: selecting(named("Namespace", "a") + "," + named("PersistentVolume", "a"))},
		"selects something":                 {spec: selecting(""), refusal: "spec.clusterResourceSelectors"},
		"selects nothing by an empty label": {spec: selecting("{group: '', version: v1, kind: Namespace, name: a, labelSelector: {}}"), refusal: "label selector is not supported for resource selection"},
		"selects no object in two scopes":   {spec: selecting(named("Namespace", "a") + "," + named("Namespace", "a, selectionScope: NamespaceOnly")), refusal: "resource selector already exists, and must be unique"},
		"selects by a name that is one":     {spec: selecting("{group: '', version: v1, kind: Namespace, name: ''}"), refusal: "resource name is required for resource selection"},
	})

	namespaced := func(selectors string) string {
		return "{resourceSelectors: [" + selectors + "], policy: {overrideRules: [" + patch(remove) + "]}}"
	}
	run(t, "ResourceOverride", map[string]ruleCase{
		"may select an object by name": {spec: namespaced(named("Service", "a"))},
		"may select several objects":   {spec: namespaced(named("Service", "a") + "," + named("Service", "b") + "," + named("ConfigMap", "a"))},
		"selects something":            {spec: namespaced(""), refusal: "spec.resourceSelectors"},
		"selects a kind":               {spec: namespaced(named("''", "a")), refusal: "spec.resourceSelectors[0].kind"},
	})
}

func TestRulesOfPlacementInOverrides(t *testing.T) {
	cluster := func(fields string) string {
		return clusterOverride(fields, clusterRole, patch("{op: remove, path: /rules/0}"))
	}
	namespaced := func(fields string) string {
		return "{" + fields + "resourceSelectors: [{group: '', version: v1, kind: Service, name: a}], policy: {overrideRules: [" +
			patch("{op: remove, path: /spec/x}") + "]}}"
	}
	for kindName, spec := range map[string]func(string) string{"ClusterResourceOverride": cluster, "ResourceOverride": namespaced} {
		one := spec("placement: {name: crp-example}, ")
		none := spec("")
		t.Run(kindName, func(t *testing.T) {
			run(t, kindName, map[string]ruleCase{
				"may be for every placement":            {spec: none},
				"may be for a placement":                {spec: one},
				"may be for a ClusterResourcePlacement": {spec: spec("placement: {name: web, scope: Cluster}, ")},
				"needs the placement's name":            {spec: spec("placement: {}, "), refusal: "spec.placement.name: Required value"},
				"needs a name that is one":              {spec: spec("placement: {name: ''}, "), refusal: "spec.placement.name"},
				"has one of two scopes":                 {spec: spec("placement: {name: web, scope: Fleet}, "), refusal: `supported values: "Cluster", "Namespaced"`},
				"may keep its placement":                {old: one, spec: one},
				"may keep it with its scope spelled":    {old: one, spec: spec("placement: {name: crp-example, scope: Cluster}, ")},
				"may keep having none":                  {old: none, spec: none},
			})
		})
	}
	run(t, "ResourceOverride", map[string]ruleCase{
		"may be for a ResourcePlacement": {spec: namespaced("placement: {name: web, scope: Namespaced}, ")},
	})
}

func TestRulesOfOverrideRules(t *testing.T) {
	const operation = "jsonPatchOverrides: [{op: remove, path: /rules/0}]"
	rule := func(fields string) string { return clusterOverride("", clusterRole, "{"+fields+"}") }
	term := func(fields string) string {
		return rule("clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {env: prod}}}, {" + fields + "}]}, " + operation)
	}
	run(t, "ClusterResourceOverride", map[string]ruleCase{
		"may be for every cluster":          {spec: rule(everyCluster + operation)},
		"may be for no cluster":             {spec: rule(operation)},
		"may pick clusters by label":        {spec: term("labelSelector: {matchExpressions: [{key: env, operator: In, values: [prod]}]}")},
		"may pick clusters by name":         {spec: term("labelSelector: {matchExpressions: [{key: kubernetes-fleet.io/member-name, operator: In, values: [member-1]}]}")},
		"may patch":                         {spec: rule("overrideType: JSONPatch, " + operation)},
		"may delete":                        {spec: rule(everyCluster + "overrideType: Delete")},
		"does one of both":                  {spec: rule("overrideType: Patch, " + operation), refusal: `supported values: "JSONPatch", "Delete"`},
		"patches with a patch of something": {spec: rule("jsonPatchOverrides: []"), refusal: "jsonPatchOverrides"},
	})
}

func TestRulesOfPathsInOverrides(t *testing.T) {
	removing := func(path string) string {
		return clusterOverride("", clusterRole, patch("{op: remove, path: '"+path+"'}"))
	}
	cases := map[string]ruleCase{}
	for _, path := range []string{
		"/metadata/labels", "/metadata/annotations", "/metadata/labels/new-label", "/metadata/annotations/new-annotation",
		"/metadata/labels/app.kubernetes.io~1name", "/metadata/annotations/a~0b~01", "/rules/0/verbs/2", "/rules/0/verbs/-",
		"/spec/template/spec/containers/0/resources/limits/cpu", "/spec/template/metadata/name", "/spec/status", "/spec/kind/x",
		"/data/a b", "/data/ä", "/statuses", "/kinds", "/apiVersions", "/metadataX/name", "/spec/x~1y", "/spec/metadata~1name",
		"/" + strings.Repeat("a", 1023),
	} {
		cases["may be "+path] = ruleCase{spec: removing(path)}
	}
	refusals := map[string][]string{
		"path cannot be empty: name the field":                                          {""},
		"path must start with /: write a slash before every name":                       {"spec", "spec/replicas", " /spec", "~1spec"},
		"path cannot contain empty string: write one slash between names":               {"/", "//", "///", "/spec//replicas", "/spec/", "//spec", "/metadata/labels/"},
		"path has a ~ that is followed by neither 0 nor 1":                              {"/spec/a~b", "/spec/a~", "/spec/~2", "/spec/a~~1", "/spec/a~/b"},
		"path starts with a name that has a slash or tilde inside":                      {"/metadata~1name", "/metadata~1labels~1a", "/status~0", "/~1metadata/name", "/a~01/b"},
		"cannot override typeMeta fields: take /apiVersion and /kind out":               {"/kind", "/apiVersion", "/kind/x", "/apiVersion/0"},
		"cannot override metadata fields except annotations and labels: use a path":     {"/metadata", "/metadata/name", "/metadata/namespace", "/metadata/finalizers/0", "/metadata/label", "/metadata/labelsX/a", "/metadata/annotations~1x", "/metadata/ownerReferences"},
		"path goes on after the key of a label or annotation: write a slash inside":     {"/metadata/labels/app.kubernetes.io/name", "/metadata/annotations/a/b/c"},
		"cannot override status fields: the cluster sets them":                          {"/status", "/status/replicas", "/status/conditions/0"},
		"spec.policy.overrideRules[0].jsonPatchOverrides[0].path: Too long: may not be": {"/" + strings.Repeat("a", 1024)},
	}
	for refusal, paths := range refusals {
		for _, path := range paths {
			cases[fmt.Sprintf("is not %q", path)] = ruleCase{spec: removing(path), refusal: refusal}
		}
	}
	run(t, "ClusterResourceOverride", cases)
}

func TestRulesOfOperationsInOverrides(t *testing.T) {
	spec := func(operation string) string { return clusterOverride("", clusterRole, patch(operation)) }
	cases := map[string]ruleCase{
		"may remove":                 {spec: spec("{op: remove, path: /rules/0}")},
		"is one of three":            {spec: spec("{op: move, path: /rules/0}"), refusal: `supported values: "add", "remove", "replace"`},
		"removes without an empty":   {spec: spec("{op: remove, path: /rules/0, value: ''}"), refusal: "remove operation cannot have value"},
		"may remove with no value":   {spec: spec("{op: remove, path: /rules/0, value: null}")},
		"replaces with no null":      {spec: spec("{op: replace, path: /rules/0, value: null}"), refusal: "replace operation needs a value, and null is none"},
		"may have a null further in": {spec: spec("{op: add, path: /rules/0, value: {a: null, b: [null]}}")},
	}
	for _, value := range []string{"''", "a", "0", "1.5", "false", "[]", "{}", "{a: [1, {b: c}]}", "'${MEMBER-CLUSTER-NAME}'"} {
		for _, op := range []string{"add", "replace"} {
			cases[op+" may have the value "+value] = ruleCase{spec: spec("{op: " + op + ", path: /rules/0, value: " + value + "}")}
		}
	}
	run(t, "ClusterResourceOverride", cases)
}

func TestOverridesAreKeptAsTheyAre(t *testing.T) {
	k := loadKind(t, "ResourceOverride")
	obj, errs := k.admit(t, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: a, namespace: b}
spec:
  placement: {name: web}
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: a}]
  policy:
    overrideRules:
    - clusterSelector: {clusterSelectorTerms: []}
      jsonPatchOverrides: [{op: add, path: /data, value: {a: {b: [1, null, "x"]}}}]
    - {clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}
`, "")
	require.Empty(t, texts(errs))
	every := map[string]any{"clusterSelectorTerms": []any{}}
	assert.Equal(t, map[string]any{
		"placement":         map[string]any{"name": "web", "scope": "Cluster"},
		"resourceSelectors": []any{map[string]any{"group": "", "version": "v1", "kind": "ConfigMap", "name": "a"}},
		"policy": map[string]any{"overrideRules": []any{
			map[string]any{"clusterSelector": every, "overrideType": "JSONPatch", "jsonPatchOverrides": []any{map[string]any{
				"op": "add", "path": "/data", "value": map[string]any{"a": map[string]any{"b": []any{int64(1), nil, "x"}}}}}},
			map[string]any{"clusterSelector": every, "overrideType": "Delete"},
		}},
	}, obj["spec"])
}

func TestOverrideSnapshotsNeverChange(t *testing.T) {
	cluster := func(path string) string {
		return "{overrideHash: YQ==, overrideSpec: " + clusterOverride("", clusterRole, patch("{op: remove, path: "+path+"}")) + "}"
	}
	namespaced := func(path string) string {
		return strings.NewReplacer("clusterResourceSelectors", "resourceSelectors").Replace(cluster(path))
	}
	for kindName, spec := range map[string]func(string) string{
		"ClusterResourceOverrideSnapshot": cluster, "ResourceOverrideSnapshot": namespaced,
	} {
		t.Run(kindName, func(t *testing.T) {
			run(t, kindName, map[string]ruleCase{
				"may be created":    {spec: spec("/rules/0")},
				"may stay":          {old: spec("/rules/0"), spec: spec("/rules/0")},
				"needs an override": {spec: "{overrideHash: YQ==}", refusal: "spec.overrideSpec: Required value"},
				"needs a hash":      {spec: strings.Replace(spec("/rules/0"), "overrideHash: YQ==, ", "", 1), refusal: "spec.overrideHash: Required value"},
			})
		})
	}
}

// envelope is an envelope with data written as a YAML flow mapping.
func envelope(kindName, data string) string {
	return "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: " + kindName + "\nmetadata: {name: example}\ndata: " + data + "\n"
}

func TestRulesOfEnvelopes(t *testing.T) {
	const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: app}, data: {foo: bar}}"
	many := func(count int) string {
		var data strings.Builder
		for i := range count {
			fmt.Fprintf(&data, "o%d.yaml: %s, ", i, configMap)
		}
		return "{" + data.String() + "}"
	}
	tests := map[string]ruleCase{
		"may have an object":                 {spec: "{cm.yaml: " + configMap + "}"},
		"may have 50 objects":                {spec: many(50)},
		"has 50 objects at most":             {spec: many(51), refusal: "must have at most 50 items"},
		"may have any key":                   {spec: "{'a/b:c ü': " + configMap + "}"},
		"may have any object":                {spec: "{a: {apiVersion: x.io/v1, kind: X, metadata: {name: 'system:x'}, anything: [1, {a: null}]}}"},
		"is not empty":                       {spec: "{}", refusal: "data cannot be empty: put at least one object into it"},
		"has data":                           {spec: "null", refusal: "data: Required value"},
		"has objects, not text":              {spec: "{a: 'kind: ConfigMap'}", refusal: "must be of type object"},
		"has objects that say what they are": {spec: "{a: {metadata: {name: a}}}", refusal: "apiVersion: Required value"},
		"has objects with names":             {spec: "{b: " + configMap + ", a: {apiVersion: v1, kind: ConfigMap}}", refusal: "the object under a has no name: set its metadata.name"},
		"has no objects with parts of names": {spec: "{a: {apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}}", refusal: "the object under a has no name"},
	}
	for _, kindName := range []string{"ClusterResourceEnvelope", "ResourceEnvelope"} {
		k := loadKind(t, kindName)
		for name, tc := range tests {
			t.Run(kindName+" "+name, func(t *testing.T) {
				_, errs := k.admit(t, envelope(kindName, tc.spec), "")
				if tc.refusal == "" {
					assert.Empty(t, texts(errs))
					return
				}
				assert.Contains(t, texts(errs), tc.refusal)
			})
		}
	}
}

func TestEnvelopesKeepWhatIsInThem(t *testing.T) {
	obj, errs := loadKind(t, "ClusterResourceEnvelope").admit(t, envelope("ClusterResourceEnvelope", `
  webhook.yaml:
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingWebhookConfiguration
    metadata: {name: guard, labels: {a: b}, annotations: {c: d}}
    webhooks: [{name: guard.example.com, timeoutSeconds: 10, clientConfig: {service: {name: guard, namespace: ops}}}]
`), "")
	require.Empty(t, texts(errs))
	assert.Equal(t, map[string]any{"webhook.yaml": map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "guard", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"}},
		"webhooks": []any{map[string]any{"name": "guard.example.com", "timeoutSeconds": int64(10),
			"clientConfig": map[string]any{"service": map[string]any{"name": "guard", "namespace": "ops"}}}},
	}}, obj["data"])
}

// TestTheLargestOverrideIsAffordable checks that the API server does not give up on it.
func TestTheLargestOverrideIsAffordable(t *testing.T) {
	var selectors strings.Builder
	for i := range 20 {
		fmt.Fprintf(&selectors, "{group: %s, version: v1, kind: %s, name: %s%02d}, ",
			strings.Repeat("g", 253), strings.Repeat("K", 63), strings.Repeat("n", 251), i)
	}
	operation := "{op: add, path: /metadata/labels/" + strings.Repeat("~1", 500) + ", value: x}, "
	rule := patch(strings.Repeat(operation, 20)) + ", "
	run(t, "ClusterResourceOverride", map[string]ruleCase{
		"may be as large as it gets": {spec: clusterOverride("", selectors.String(), strings.Repeat(rule, 20))},
	})
}
