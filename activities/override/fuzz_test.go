package override_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// identity is what no override may change.
func identity(t *testing.T, manifest []byte) []any {
	object, ok := semantics(t, manifest).(map[string]any)
	require.True(t, ok, "%s", manifest)
	metadata, ok := object["metadata"].(map[string]any)
	require.True(t, ok, "%s", manifest)
	for _, changeable := range []string{"labels", "annotations"} {
		delete(metadata, changeable)
	}
	return []any{object["apiVersion"], object["kind"], metadata, object["status"]}
}

// FuzzApply patches any object with any two operations.
func FuzzApply(f *testing.F) {
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"app"},"data":{"a":"1","list":[1,{"b":null}]}}`
	for _, seed := range [][]string{ // the object, then two times operator, path and value
		{object, "add", "/metadata/labels", `{"a":"b"}`, "add", "/metadata/labels/c", `"${MEMBER-CLUSTER-NAME}"`},
		{object, "replace", "/data/list/1/b", `[]`, "add", "/data/list/1/b/-", `1e400`},
		{object, "remove", "/data/list/0", ``, "remove", "/data/list", ``},
		{object, "add", "/metadata/labels/new-label", `"new-value"`, "remove", "/status", ``},
		{object, "add", "/kind", `"Secret"`, "replace", "/metadata/name", `"other"`},
		{object, "add", "", `{}`, "add", "/", `{}`},
		{object, "add", "/metadata~1name", `"x"`, "add", "/m~0etadata/~01", `{}`},
		{object, "add", "/data/-", `"x"`, "add", "/data/list/-1", `"x"`},
		{object, "add", "/data/\xff", `"\ud800"`, "add", "/data/\u2028", `{"":{"":null}}`},
		{` {"kind":"X","apiVersion":"a/b","metadata":{"name":"n","name":"m","labels":[]},"kind":"Y"} `, "add", "/metadata/labels/0", `"x"`, "add", "/x", `{"a":1,"a":2}`},
		{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"},"s\u0070ec":{"\u0061":"\\\"]}"}}`, "replace", "/spec/a", `"${MEMBER-CLUSTER-LABEL-KEY-env}"`, "remove", "/spec/a", ``},
		{`[]`, "add", "/0", `1`, "move", "/a", `null`},
	} {
		f.Add([]byte(seed[0]), seed[1], seed[2], []byte(seed[3]), seed[4], seed[5], []byte(seed[6]))
	}
	cluster := override.Cluster{Name: "member-1", Labels: map[string]string{"env": `a"b`}}
	f.Fuzz(func(t *testing.T, manifest []byte, operator1, path1 string, value1 []byte, operator2, path2 string, value2 []byte) {
		operations := []placementv1beta1.JSONPatchOverride{op(operator(operator1), path1, ""), op(operator(operator2), path2, "")}
		operations[0].Value.Raw, operations[1].Value.Raw = value1, value2
		before := bytes.Clone(manifest)
		before1 := bytes.Clone(value1)
		before2 := bytes.Clone(value2)

		got, err := ourselves(t, manifest, cluster, operations)

		assert.Equal(t, before, manifest, "the object was changed")
		assert.Equal(t, before1, value1, "a value was changed")
		assert.Equal(t, before2, value2, "a value was changed")
		if object, broken := override.NewObject(manifest); broken == nil {
			untouched, err := override.Compile(nil).On(cluster).Apply(object)
			require.NoError(t, err)
			assert.Equal(t, before, untouched.Manifest, "no rule, but a change")
		}
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		require.True(t, json.Valid(got), "%s", got)
		assert.Equal(t, identity(t, manifest), identity(t, got))
		again, err := override.NewObject(got)
		require.NoError(t, err, "what was an object is none any more")
		old, err := override.NewObject(manifest)
		require.NoError(t, err)
		assert.Equal(t, old.Identifier(), again.Identifier())
		if bytes.Contains(value1, []byte("MEMBER-CLUSTER")) || bytes.Contains(value2, []byte("MEMBER-CLUSTER")) {
			return
		}
		want, err := byLibrary(manifest, operations)
		require.NoError(t, err, "the library refuses what we made into %s", got)
		assert.Equal(t, semantics(t, want), semantics(t, got))
	})
}

// expandVariable is what is replaced, written in another way than the package does.
var expandVariable = regexp.MustCompile(`\$\{MEMBER-CLUSTER-(?:NAME|LABEL-KEY-([^}]*))\}`)

// FuzzVariables puts any text, with anything for variables in it, into an object.
func FuzzVariables(f *testing.F) {
	for _, seed := range [][]string{ // the text, the cluster's name, the key and value of its label
		{"${MEMBER-CLUSTER-NAME}", "member-1", "env", "prod"},
		{"a ${MEMBER-CLUSTER-LABEL-KEY-env} ${MEMBER-CLUSTER-NAME} b", "member-1", "env", "prod"},
		{"${MEMBER-CLUSTER-LABEL-KEY-environment}", "member-1", "env", "prod"},
		{"${MEMBER-CLUSTER-LABEL-KEY-env", "member-1", "env", "prod"},
		{"${MEMBER-CLUSTER-LABEL-KEY-}", "${MEMBER-CLUSTER-NAME}", "", "${MEMBER-CLUSTER-NAME}"},
		{"${MEMBER-CLUSTER-LABEL-KEY-${MEMBER-CLUSTER-NAME}}", `"}`, "${MEMBER-CLUSTER-NAME", `\`},
		{"${member-cluster-name} ${MEMBER-CLUSTER-ID} ${MEMBER-CLUSTER-", "\xff", "\n", "\u2028"},
		{"$${MEMBER-CLUSTER-NAME}}\x00<>&", "", "a", "b"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, text, name, key, label string) {
		for _, s := range []*string{&text, &name, &key, &label} {
			*s = strings.ToValidUTF8(*s, "?") // as nothing else comes out of JSON
		}
		cluster := override.Cluster{Name: name, Labels: map[string]string{key: label}}
		value, err := json.Marshal(map[string]any{"text": []any{text}})
		require.NoError(t, err)
		o := op("add", "/spec", "")
		o.Value.Raw = value
		got, err := ourselves(t, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`), cluster, []placementv1beta1.JSONPatchOverride{o})

		missing := false
		want := expandVariable.ReplaceAllStringFunc(text, func(found string) string {
			groups := expandVariable.FindStringSubmatch(found)
			switch {
			case found == "${MEMBER-CLUSTER-NAME}":
				return name
			case groups[1] == key:
				return label
			default:
				missing = true
				return ""
			}
		})
		if missing {
			assert.ErrorContains(t, err, "not found on cluster")
			return
		}
		require.NoError(t, err)
		var object struct{ Spec struct{ Text []string } }
		require.NoError(t, json.Unmarshal(got, &object), "%s", got)
		assert.Equal(t, []string{want}, object.Spec.Text)
	})
}
