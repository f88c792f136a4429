package override_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const reader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: secret-reader
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, watch, list]
`

const config = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: app-config-1
  namespace: application-1
data:
  data: test
`

func role() []term {
	return []term{{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "secret-reader"}}
}

func forRole(rules ...rule) overrides {
	return overrides{clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{clusterWide("example-cro-0", role(), rules...)}}
}

// The examples of KubeFleet's documentation.
func TestExamplesOfTheDocumentation(t *testing.T) {
	deployment := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: my-deployment, namespace: test-namespace}
spec: {template: {spec: {containers: [{name: nginx, image: "nginx:1.14.2"}]}}}
`
	forDeployment := func(rules ...rule) overrides {
		selector := []placementv1beta1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "my-deployment"}}
		return overrides{namespaced: []placementv1beta1.ResourceOverrideSnapshot{namespaced("test-namespace", "example-ro-0", selector, rules...)}}
	}
	images := []rule{
		patchOn(labelled(env("prod")), op(replace, "/spec/template/spec/containers/0/image", "nginx:1.20.0")),
		patchOn(labelled(env("test")), op(replace, "/spec/template/spec/containers/0/image", "nginx:latest")),
	}
	cases := map[string]struct {
		overrides overrides
		env       string
		manifest  string
		want      string // a part of the manifest; none if the object is removed
	}{
		"a label with the name of the cluster":         {forRole(patchOn(labelled(env("prod")), op(add, "/metadata/labels", `{"cluster-name":"${MEMBER-CLUSTER-NAME}"}`))), "prod", reader, "  labels:\n    cluster-name: member-50\n"},
		"a verb less":                                  {forRole(patch(op(remove, "/rules/0/verbs/2", ""))), "prod", reader, "  verbs:\n  - get\n  - watch\n"},
		"two verbs less, the positions count anew":     {forRole(patch(op(remove, "/rules/0/verbs/2", ""), op(remove, "/rules/0/verbs/1", ""))), "prod", reader, "  verbs:\n  - get\n"},
		"removed where it is not wanted":               {forRole(deleteOn(labelled(env("test")))), "test", reader, ""},
		"there where it is wanted":                     {forRole(deleteOn(labelled(env("test")))), "prod", reader, "name: secret-reader"},
		"the image for production":                     {forDeployment(images...), "prod", deployment, "image: nginx:1.20.0"},
		"the image for tests":                          {forDeployment(images...), "test", deployment, "image: nginx:latest"},
		"the image elsewhere":                          {forDeployment(images...), "canary", deployment, "image: nginx:1.14.2"},
		"the deployment removed":                       {forDeployment(deleteOn(labelled(env("test")))), "test", deployment, ""},
		"an annotation, by an override of a Namespace": {overrides{clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{clusterWide("cro-1-0", namespace("application-1"), patch(op(add, "/metadata/annotations", "cro-test-annotation: cro-test-annotation-val")))}}, "", config, "  annotations:\n    cro-test-annotation: cro-test-annotation-val\n"},
		"an annotation, by an override in a Namespace": {overrides{namespaced: []placementv1beta1.ResourceOverrideSnapshot{namespaced("application-1", "ro-1-0", configMap("app-config-1"), patch(op(add, "/metadata/annotations", "ro-test-annotation: ro-test-annotation-val")))}}, "", config, "  annotations:\n    ro-test-annotation: ro-test-annotation-val\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := tc.overrides.apply(t, override.Cluster{Name: "member-50", Labels: env(tc.env)}, tc.manifest)
			require.NoError(t, err)
			assert.Equal(t, tc.want == "", result.Removed)
			if tc.want != "" {
				assert.Contains(t, inYAML(t, result.Manifest), tc.want)
			}
		})
	}
}

// The case study of KubeFleet's troubleshooting guide: a label is added where there are none.
func TestLabelWithoutLabels(t *testing.T) {
	cro := []placementv1beta1.ClusterResourceOverrideSnapshot{clusterWide("cro-1-0", role(),
		patchOn(labelled(env("canary")), op(add, "/metadata/labels/new-label", "new-value")))}
	canary := override.Cluster{Name: "kind-cluster-1", Labels: env("canary")}
	_, err := overrides{clusterWide: cro}.apply(t, canary, reader)
	require.Error(t, err)
	condition := "Failed to apply the override rules on the resources: " + err.Error()
	assert.True(t, strings.HasPrefix(condition, `Failed to apply the override rules on the resources: add operation does not apply: `+
		`doc is missing path: "/metadata/labels/new-label": missing value`), condition)
	assert.Equal(t, `add operation does not apply: doc is missing path: "/metadata/labels/new-label": missing value `+
		`(overrideRules[0].jsonPatchOverrides[0] of ClusterResourceOverrideSnapshot cro-1-0 on ClusterRole secret-reader): `+
		`the object has no /metadata/labels: add that first, or as a whole`, err.Error())

	var details *override.Error
	require.ErrorAs(t, err, &details)
	assert.Equal(t, override.Source{Kind: "ClusterResourceOverrideSnapshot", Name: "cro-1-0"}, details.Override)
	assert.Equal(t, "/metadata/labels/new-label", details.Path)
	assert.Equal(t, id{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "secret-reader"}, details.Object)

	result, err := overrides{clusterWide: cro}.apply(t, override.Cluster{Name: "kind-cluster-2", Labels: env("prod")}, reader)
	require.NoError(t, err, "other clusters are not affected")
	assert.NotContains(t, string(result.Manifest), "labels")

	_, err = overrides{clusterWide: cro}.apply(t, canary, config)
	require.NoError(t, err, "other objects are not affected")

	result, err = forRole(patch(op(add, "/metadata/labels", "newlabel: new-value"))).apply(t, canary, reader)
	require.NoError(t, err, "the correction that the guide gives")
	assert.Contains(t, inYAML(t, result.Manifest), "  labels:\n    newlabel: new-value\n")
}

func TestWhoHasTheLastWord(t *testing.T) {
	set := func(value string) placementv1beta1.JSONPatchOverride { return op(replace, "/data/data", value) }
	broken := op(replace, "/data/missing", "x")
	namespaceWide := func(name string, rules ...rule) placementv1beta1.ClusterResourceOverrideSnapshot {
		return clusterWide(name, namespace("application-1"), rules...)
	}
	own := func(name string, rules ...rule) placementv1beta1.ResourceOverrideSnapshot {
		return namespaced("application-1", name, configMap("app-config-1"), rules...)
	}
	cases := map[string]struct {
		overrides overrides
		want      string // of data; none if the object is removed
	}{
		"the later operation":            {overrides{namespaced: []placementv1beta1.ResourceOverrideSnapshot{own("ro-0", patch(set("one"), set("two")))}}, "two"},
		"the later rule":                 {overrides{namespaced: []placementv1beta1.ResourceOverrideSnapshot{own("ro-0", patch(set("one")), patch(set("two")))}}, "two"},
		"the later rule for the cluster": {overrides{namespaced: []placementv1beta1.ResourceOverrideSnapshot{own("ro-0", patch(set("one")), patchOn(nil, set("two")))}}, "one"},
		"a ResourceOverride": {overrides{
			clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{namespaceWide("z-0", patch(set("cluster")))},
			namespaced:  []placementv1beta1.ResourceOverrideSnapshot{own("a-0", patch(set("namespace")))},
		}, "namespace"},
		"the later name, whatever the order of the list": {overrides{clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{
			namespaceWide("b-0", patch(set("b"))), namespaceWide("a-0", patch(set("a"))),
		}}, "b"},
		"a rule that deletes, over earlier and later ones": {overrides{namespaced: []placementv1beta1.ResourceOverrideSnapshot{own("ro-0", patch(broken), deleteOn(everywhere()), patch(set("two")))}}, ""},
		"a ClusterResourceOverride that deletes": {overrides{
			clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{namespaceWide("z-0", deleteOn(everywhere()))},
			namespaced:  []placementv1beta1.ResourceOverrideSnapshot{own("a-0", patch(set("namespace")))},
		}, ""},
		"not a rule that deletes elsewhere": {overrides{namespaced: []placementv1beta1.ResourceOverrideSnapshot{own("ro-0", deleteOn(labelled(env("test"))), deleteOn(nil), patch(set("two")))}}, "two"},
		"nobody, if the override selects nothing": {overrides{
			clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{clusterWide("z-0", namespace("other"), patch(broken))},
			namespaced:  []placementv1beta1.ResourceOverrideSnapshot{namespaced("other", "a-0", configMap("app-config-1"), deleteOn(everywhere()))},
		}, "test"},
		"nobody, without overrides": {overrides{}, "test"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := tc.overrides.apply(t, override.Cluster{Name: "member-1"}, config)
			require.NoError(t, err)
			assert.Equal(t, tc.want == "", result.Removed)
			if tc.want != "" {
				assert.Contains(t, inYAML(t, result.Manifest), "data: "+tc.want+"\n")
			}
		})
	}
}

func TestAnObjectSelectedTwiceIsPatchedOnce(t *testing.T) {
	selectors := append(namespace("application-1"), namespace("application-1")...)
	o := overrides{clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{clusterWide("cro-0", selectors,
		patch(op(add, "/finalizers", "[]"), op(add, "/finalizers/-", "a")))}}
	result, err := o.apply(t, override.Cluster{}, config)
	require.NoError(t, err)
	assert.Contains(t, inYAML(t, result.Manifest), "finalizers:\n- a\n")
}

func TestRulesThatCannotBeCarriedOut(t *testing.T) {
	unreadable := &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
		{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "NotExists"}}}},
	}}
	raw := func(operator operator, path, value string) placementv1beta1.JSONPatchOverride {
		o := op(operator, path, "")
		o.Value.Raw = []byte(value)
		return o
	}
	cases := map[string]struct {
		rule rule
		want []string
	}{
		"a field to replace that is missing":     {patch(op(replace, "/spec", "x")), []string{`replace operation does not apply: doc is missing path: "/spec": missing value`, "the object has no /spec", "overrideRules[0].jsonPatchOverrides[0]"}},
		"a field to remove that is missing":      {patch(op(remove, "/metadata/labels/x", "")), []string{`remove operation does not apply: doc is missing path: "/metadata/labels/x": missing value`, "the object has no /metadata/labels"}},
		"an element to remove that is missing":   {patch(op(remove, "/rules/0/verbs/3", "")), []string{`doc is missing path: "/rules/0/verbs/3"`, `/rules/0/verbs is a list of 3 and has no element "3"`}},
		"an element to pass that is missing":     {patch(op(remove, "/rules/1/verbs", "")), []string{`/rules is a list of 1 and has no element "1"`}},
		"an element beyond the end":              {patch(op(add, "/rules/2", "{}")), []string{`/rules is a list of 1 and has no element "2"`}},
		"no element to remove behind the last":   {patch(op(remove, "/rules/-", "")), []string{`has no element "-"`, "only add can use -"}},
		"a position with a zero in front":        {patch(op(replace, "/rules/00", "{}")), []string{`has no element "00"`}},
		"a position with a sign":                 {patch(op(replace, "/rules/+0", "{}")), []string{`has no element "+0"`}},
		"a name in a list":                       {patch(op(add, "/rules/verbs", "{}")), []string{`has no element "verbs"`}},
		"a place inside a string":                {patch(op(add, "/rules/0/verbs/0/x", "y")), []string{"/rules/0/verbs/0 is neither an object nor a list"}},
		"the path is written as in the override": {patch(op(remove, "/metadata/annotations/example.com~1a", "")), []string{`"/metadata/annotations/example.com~1a"`, "has no /metadata/annotations:"}},
		"the second operation":                   {patch(op(add, "/metadata/labels", "{}"), op(remove, "/metadata/labels/x", "")), []string{"overrideRules[0].jsonPatchOverrides[1]", "no /metadata/labels/x"}},

		"no path":                             {patch(op(add, "", "{}")), []string{"path cannot be empty"}},
		"a path without a slash":              {patch(op(add, "spec", "{}")), []string{`path must start with /: "spec"`}},
		"a path with a gap":                   {patch(op(add, "/spec//x", "{}")), []string{`path cannot contain empty string: "/spec//x"`}},
		"a path that ends in a slash":         {patch(op(add, "/spec/", "{}")), []string{"path cannot contain empty string"}},
		"a tilde that escapes nothing":        {patch(op(add, "/spec~2", "{}")), []string{"a ~ that is followed by neither 0 nor 1"}},
		"a tilde at the end":                  {patch(op(add, "/spec~", "{}")), []string{"a ~ that is followed by neither 0 nor 1"}},
		"apiVersion":                          {patch(op(replace, "/apiVersion", "v2")), []string{`cannot override typeMeta fields: "/apiVersion"`}},
		"kind":                                {patch(op(remove, "/kind", "")), []string{"cannot override typeMeta fields"}},
		"below kind":                          {patch(op(add, "/kind/x", "y")), []string{"cannot override typeMeta fields"}},
		"metadata as a whole":                 {patch(op(replace, "/metadata", "{}")), []string{"cannot override metadata fields except annotations and labels"}},
		"the name":                            {patch(op(replace, "/metadata/name", "x")), []string{"cannot override metadata fields"}},
		"the namespace":                       {patch(op(add, "/metadata/namespace", "x")), []string{"cannot override metadata fields"}},
		"the finalizers":                      {patch(op(add, "/metadata/finalizers/-", "x")), []string{"cannot override metadata fields"}},
		"a field that begins like labels":     {patch(op(add, "/metadata/labels2", "x")), []string{"cannot override metadata fields"}},
		"the status":                          {patch(op(add, "/status", "{}")), []string{`cannot override status fields: "/status"`}},
		"below the status":                    {patch(op(replace, "/status/phase", "x")), []string{"cannot override status fields"}},
		"below a label":                       {patch(op(add, "/metadata/labels/a/b", "x")), []string{"path goes on after the key"}},
		"nothing to add":                      {patch(op(add, "/spec", "")), []string{`add operation needs a value: "/spec"`}},
		"null to replace with":                {patch(op(replace, "/rules", "null")), []string{"replace operation needs a value"}},
		"a value to remove":                   {patch(op(remove, "/rules", "x")), []string{"remove operation cannot have value"}},
		"a value that is no JSON":             {patch(raw(add, "/spec", "{")), []string{`value for "/spec" is no valid JSON`}},
		"a value with something behind":       {patch(raw(add, "/spec", "{} {}")), []string{"no valid JSON"}},
		"an operation that is not for us":     {patch(op("move", "/spec", "x")), []string{`operation "move" is unknown`, "use add, remove or replace"}},
		"an unknown type":                     {rule{ClusterSelector: everywhere(), OverrideType: "Merge"}, []string{`override type "Merge" is unknown (overrideRules[0] of`, "use JSONPatch or Delete"}},
		"a cluster selector nobody can read":  {rule{ClusterSelector: unreadable, OverrideType: placementv1beta1.DeleteOverrideType}, []string{"clusterSelector.clusterSelectorTerms[0].labelSelector cannot be read", "NotExists"}},
		"labels that are text":                {patch(op(add, "/metadata/labels", "x")), []string{"metadata.labels must be an object of strings, not a string"}},
		"labels that are a list":              {patch(op(add, "/metadata/labels", "[]")), []string{"not a list"}},
		"a label that is a number":            {patch(op(add, "/metadata/labels", "{a: 1}")), []string{`the value of label "a" must be a string, not a number`}},
		"a label that is null":                {patch(op(add, "/metadata/labels", "{a: null}")), []string{"not null"}},
		"an annotation that is a truth":       {patch(op(add, "/metadata/annotations/a", "true")), []string{`the value of annotation "a" must be a string, not a boolean`}},
		"an annotation that is an object":     {patch(op(add, "/metadata/annotations/a", "{}")), []string{"not an object"}},
		"a label value with a space":          {patch(op(add, "/metadata/labels", "{a: b c}")), []string{`"b c" cannot be the value of label "a"`}},
		"a label key with a space":            {patch(op(add, "/metadata/labels/b c", "a")), []string{`"b c" cannot be the key of a label`}},
		"a label appended":                    {patch(op(add, "/metadata/labels/-", "a")), []string{`"-" cannot be the key of a label`}},
		"a cluster's label as a label, wrong": {patch(op(add, "/metadata/labels", `{a: "not ${MEMBER-CLUSTER-NAME}"}`)), []string{`"not member-1" cannot be the value of label "a"`, "correct the value for /metadata/labels"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := forRole(tc.rule).apply(t, override.Cluster{Name: "member-1"}, reader)
			require.Error(t, err)
			for _, want := range append(tc.want, "ClusterResourceOverrideSnapshot example-cro-0", "ClusterRole secret-reader") {
				assert.Contains(t, err.Error(), want)
			}
		})
	}
}

// The operations as in RFC 6902, including those of its appendix A that overrides have.
func TestOperations(t *testing.T) {
	cases := map[string]struct {
		before, after string // of the field doc
		operations    []placementv1beta1.JSONPatchOverride
	}{
		"A.1 adding a member":               {`{foo: bar}`, `{"baz":"qux","foo":"bar"}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/baz", "qux")}},
		"A.2 adding an element":             {`{foo: [bar, baz]}`, `{"foo":["bar","qux","baz"]}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/foo/1", "qux")}},
		"A.3 removing a member":             {`{baz: qux, foo: bar}`, `{"foo":"bar"}`, []placementv1beta1.JSONPatchOverride{op(remove, "/doc/baz", "")}},
		"A.4 removing an element":           {`{foo: [bar, qux, baz]}`, `{"foo":["bar","baz"]}`, []placementv1beta1.JSONPatchOverride{op(remove, "/doc/foo/1", "")}},
		"A.5 replacing a value":             {`{baz: qux, foo: bar}`, `{"baz":"boo","foo":"bar"}`, []placementv1beta1.JSONPatchOverride{op(replace, "/doc/baz", "boo")}},
		"A.10 adding a nested object":       {`{foo: bar}`, `{"child":{"grandchild":{}},"foo":"bar"}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/child", "{grandchild: {}}")}},
		"A.14 escapes":                      {`{/: 9, ~1: 10}`, `{"/":"slash","~1":"tilde"}`, []placementv1beta1.JSONPatchOverride{op(replace, "/doc/~01", "tilde"), op(replace, "/doc/~1", "slash")}},
		"A.16 adding a list":                {`{foo: [bar]}`, `{"foo":["bar",["abc","def"]]}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/foo/-", "[abc, def]")}},
		"adding what is there replaces it":  {`{foo: bar}`, `{"foo":{}}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/foo", "{}")}},
		"adding at the end by its position": {`[a]`, `["a","b"]`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/1", "b")}},
		"adding to an empty list":           {`[]`, `["a"]`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/0", "a")}},
		"adding in front":                   {`[b]`, `["a","b"]`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/0", "a")}},
		"replacing an element":              {`[a, b]`, `["c","b"]`, []placementv1beta1.JSONPatchOverride{op(replace, "/doc/0", "c")}},
		"a field called -":                  {`{}`, `{"-":1}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/-", "1")}},
		"a field called 0":                  {`{}`, `{"0":1}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/0", "1")}},
		"a field that needs quotes":         {`{}`, `{"\"\n":1}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/\"\n", "1")}},
		"later operations see earlier ones": {`{}`, `{"a":{"b":[1,2]}}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/a", "{b: [1]}"), op(add, "/doc/a/b/-", "2")}},
		"the value of an operation is not used up": {`{}`, `{"a":[1],"b":[]}`, []placementv1beta1.JSONPatchOverride{
			op(add, "/doc/a", "[]"), op(add, "/doc/b", "[]"), op(add, "/doc/a/0", "1"),
		}},
		"a null inside a value stays":            {`{}`, `{"a":{"b":null}}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/a", "{b: null}")}},
		"a null in the object can be replaced":   {`{a: null}`, `{"a":1}`, []placementv1beta1.JSONPatchOverride{op(replace, "/doc/a", "1")}},
		"numbers stay as they are written":       {`{a: 9007199254740993}`, `{"a":9007199254740993,"b":9007199254740993}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/b", "9007199254740993")}},
		"status is a field like others below":    {`{}`, `{"status":1}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/status", "1")}},
		"metadata is a field like others below":  {`{}`, `{"metadata":{"name":1}}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/metadata", "{}"), op(add, "/doc/metadata/name", "1")}},
		"case matters":                           {`{Foo: 1}`, `{"Foo":1,"foo":2}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/foo", "2")}},
		"a removed field can be added":           {`{a: 1}`, `{"a":2}`, []placementv1beta1.JSONPatchOverride{op(remove, "/doc/a", ""), op(add, "/doc/a", "2")}},
		"fields come in order, whatever is done": {`{b: 1, d: 1}`, `{"a":1,"b":1,"c":1,"e":1}`, []placementv1beta1.JSONPatchOverride{op(add, "/doc/e", "1"), op(add, "/doc/c", "1"), op(add, "/doc/a", "1"), op(remove, "/doc/d", "")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, err := forRole(patch(tc.operations...)).apply(t, override.Cluster{}, strings.TrimSpace(reader)+"\ndoc: "+tc.before)
			require.NoError(t, err)
			assert.True(t, strings.HasPrefix(string(result.Manifest), `{"apiVersion":"rbac.authorization.k8s.io/v1","doc":`+tc.after+`,"kind":`), "%s", result.Manifest)
		})
	}
}

func TestLabelsAndAnnotationsThatAreValid(t *testing.T) {
	result, err := forRole(patch(
		op(add, "/metadata/labels", "{example.com/team: '', env: prod}"),
		op(add, "/metadata/labels/example.com~1zone", "${MEMBER-CLUSTER-LABEL-KEY-topology.kubernetes.io/zone}"),
		op(add, "/metadata/annotations", "{Example.com/Note: any text at all}"),
		op(remove, "/metadata/labels/env", ""),
	)).apply(t, override.Cluster{Labels: map[string]string{"topology.kubernetes.io/zone": "east-1"}}, reader)
	require.NoError(t, err)
	assert.Contains(t, inYAML(t, result.Manifest),
		"  annotations:\n    Example.com/Note: any text at all\n  labels:\n    example.com/team: \"\"\n    example.com/zone: east-1\n")
}

func TestManifestsThatAreNoObjects(t *testing.T) {
	cases := map[string]struct{ manifest, want string }{
		"nothing":             {"", "no valid JSON"},
		"half an object":      {"{", "no valid JSON"},
		"two objects":         {"{}{}", "no valid JSON"},
		"a list":              {"[]", "no JSON object"},
		"null":                {"null", "no JSON object"},
		"no kind":             {`{"apiVersion":"v1","metadata":{"name":"a"}}`, `kind ""`},
		"no metadata":         {`{"apiVersion":"v1","kind":"ConfigMap"}`, `metadata.name ""`},
		"metadata of no use":  {`{"apiVersion":"v1","kind":"ConfigMap","metadata":["name"]}`, `metadata.name ""`},
		"a name of no use":    {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":1}}`, `metadata.name ""`},
		"only generateName":   {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`, `metadata.name ""`},
		"a version of no use": {`{"apiVersion":"a/b/c","kind":"ConfigMap","metadata":{"name":"a"}}`, "the apiVersion of ConfigMap a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := override.NewObject([]byte(tc.manifest))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestAnObjectIsReadAsAClusterReadsIt(t *testing.T) {
	object, err := override.NewObject([]byte(" {\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\": {\"name\":\"first\", \"na\\u006de\" :\"l\\u0061st\",\"namespace\":\"app\"} }\n"))
	require.NoError(t, err)
	assert.Equal(t, id{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "app", Name: "last"}, object.Identifier())
}

func TestObjectsThatGrowTooLarge(t *testing.T) {
	fill := func(letters int) overrides {
		return forRole(patch(op(add, "/doc", strings.Repeat("x", letters))), patchOn(nil), patch())
	}
	_, err := fill(1_570_000).apply(t, override.Cluster{}, reader)
	require.NoError(t, err)
	_, err = fill(1_580_000).apply(t, override.Cluster{}, reader)
	assert.ErrorContains(t, err, "no cluster takes more than 1572864 (overrideRules[0] of ClusterResourceOverrideSnapshot example-cro-0 on ClusterRole secret-reader)")
}

// Objects and patches are shared between workers.
func TestManyClustersAtATime(t *testing.T) {
	set := override.Compile(forRole(patch(op(add, "/metadata/labels", "{}"), op(add, "/metadata/labels/cluster", "${MEMBER-CLUSTER-NAME}"), op(add, "/rules/0/verbs/-", "patch"))).all())
	manifest := []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"secret-reader"},"rules":[{"verbs":["get"]}]}`)
	before := string(manifest)
	object, err := override.NewObject(manifest)
	require.NoError(t, err)
	var wait sync.WaitGroup
	for _, cluster := range []string{"a", "b", "c", "d"} {
		wait.Go(func() {
			for range 100 {
				result, err := set.On(override.Cluster{Name: cluster}).Apply(object)
				if assert.NoError(t, err) {
					assert.Equal(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"labels":{"cluster":"`+cluster+`"},"name":"secret-reader"},"rules":[{"verbs":["get","patch"]}]}`, string(result.Manifest))
				}
			}
		})
	}
	wait.Wait()
	assert.Equal(t, before, string(manifest))
}
