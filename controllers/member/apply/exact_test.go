package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

func manifestOf(apiVersion, kind, spec string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":"n"},"spec":%s}`, apiVersion, kind, spec)
}

// TestObjectsBecomeWhatTheirManifestSays applies one manifest after another to an object, and looks at what the merge makes of it.
func TestObjectsBecomeWhatTheirManifestSays(t *testing.T) {
	service := func(ports string) string { return manifestOf("v1", "Service", `{"ports":[`+ports+`]}`) }
	deployment := func(container string) string {
		return manifestOf("apps/v1", "Deployment", `{"template":{"spec":{"containers":[{"name":"c",`+container+`}]}}}`)
	}
	gauge := func(spec string) string { return manifestOf("example.com/v1", "Gauge", spec) }
	const (
		tcp, udp       = `{"name":"tcp","port":53,"protocol":"TCP","targetPort":5300}`, `{"name":"udp","port":53,"protocol":"UDP","targetPort":5300}`
		tcp1, udp2     = `{"name":"tcp","port":53,"targetPort":5301}`, `{"name":"udp","port":53,"protocol":"UDP","targetPort":5302}`
		withNodePort   = `{"name":"tcp","port":53,"protocol":"TCP","targetPort":5300,"nodePort":30053}`
		slow, fast     = `{"name":"MODE","value":"slow"}`, `{"name":"MODE","value":"fast"}`
		faster, number = `{"name":"MODE","value":"faster"}`, `{"name":"PORT","value":"1"}`
	)
	for name, tc := range map[string]struct {
		before, now string
		change      func(object map[string]any)
		field, want string
	}{
		"a Service gets a second protocol on a port":  {service(tcp), service(tcp + "," + udp), nil, "ports", `[` + tcp + `,` + udp + `]`},
		"both ports of a Service change":              {service(tcp + "," + udp), service(`{"name":"tcp","port":53,"protocol":"TCP","targetPort":5301},` + udp2), nil, "ports", `[{"name":"tcp","port":53,"protocol":"TCP","targetPort":5301},` + udp2 + `]`},
		"a Service loses one protocol of a port":      {service(tcp + "," + udp), service(udp), nil, "ports", `[` + udp + `]`},
		"a Service loses the other protocol":          {service(tcp + "," + udp), service(tcp), nil, "ports", `[` + tcp + `]`},
		"the node port of a port that stays is kept":  {service(tcp + "," + udp), service(udp + "," + tcp), setPorts(withNodePort + "," + udp), "ports", `[` + udp + `,` + withNodePort + `]`},
		"what others have added to the ports stays":   {service(tcp + "," + udp), service(tcp + "," + udp), setPorts(tcp + "," + udp + `,{"port":9,"protocol":"TCP"}`), "ports", `[` + tcp + `,` + udp + `,{"port":9,"protocol":"TCP"}]`},
		"a port without protocol is one of TCP":       {service(tcp + "," + udp), service(tcp1 + "," + udp2), nil, "ports", `[` + tcp1 + `,` + udp2 + `]`},
		"a variable that is set twice changes":        {deployment(`"env":[` + slow + `,` + number + `,` + fast + `]`), deployment(`"env":[` + slow + `,` + number + `,` + faster + `]`), nil, "env", `[` + slow + `,` + number + `,` + faster + `]`},
		"a variable is set once and was set twice":    {deployment(`"env":[` + slow + `,` + number + `,` + fast + `]`), deployment(`"env":[` + number + `,` + fast + `]`), nil, "env", `[` + number + `,` + fast + `]`},
		"a mount without a merge key":                 {deployment(`"image":"i"`), deployment(`"volumeMounts":[{"name":"v"}]`), nil, "volumeMounts", `[{"name":"v"}]`},
		"a whole number changes by one":               {gauge(`{"id":9007199254740993}`), gauge(`{"id":9007199254740992}`), nil, "id", `9007199254740992`},
		"a whole number has more digits than a float": {gauge(`{"id":1,"list":[1]}`), gauge(`{"id":1,"list":[9007199254740995]}`), nil, "list", `[9007199254740995]`},
		"a number becomes null":                       {gauge(`{"id":1,"b":1}`), gauge(`{"id":null,"b":1}`), nil, "id", `null`},
		"a null is inside of a list":                  {gauge(`{"list":[]}`), gauge(`{"list":[{"a":null}]}`), nil, "list", `[{"a":null}]`},
		"a list becomes empty":                        {gauge(`{"list":[1]}`), gauge(`{"list":[]}`), nil, "list", `[]`},
		"a map becomes empty":                         {gauge(`{"map":{"a":1}}`), gauge(`{"map":{}}`), nil, "map", `{}`},
		"a map becomes a number":                      {gauge(`{"map":{"a":1}}`), gauge(`{"map":1}`), nil, "map", `1`},
	} {
		t.Run(name, func(t *testing.T) {
			there := live(t, tc.before, tc.change)
			patch, err := ThreeWay(there, desired(t, tc.now))
			require.NoError(t, err)
			result := patched(t, there, patch)
			var want any
			require.NoError(t, utiljson.Unmarshal([]byte(tc.want), &want))
			assert.True(t, compare.Same(want, find(t, result.Object["spec"], tc.field)), "it became %v", result.Object["spec"])

			again, err := ThreeWay(result, desired(t, tc.now))
			require.NoError(t, err)
			assert.True(t, again.Empty(), "nothing is left to write: %s", again.Data)
		})
	}
}

func setPorts(ports string) func(map[string]any) {
	return func(object map[string]any) {
		var list []any
		if err := json.Unmarshal([]byte("["+ports+"]"), &list); err != nil {
			panic(err)
		}
		object["spec"] = map[string]any{"ports": list}
	}
}

// patched is an object after a patch, as an API server makes it where the patch is one of JSON.
func patched(t *testing.T, object *unstructured.Unstructured, patch Patch) *unstructured.Unstructured {
	t.Helper()
	if patch.Empty() || patch.Type == types.StrategicMergePatchType {
		return patch.Result
	}
	data, err := object.MarshalJSON()
	require.NoError(t, err)
	if patch.Type == types.JSONPatchType {
		operations, err := jsonpatch.DecodePatch(patch.Data)
		require.NoError(t, err)
		data, err = operations.Apply(data)
		require.NoError(t, err)
	} else {
		data, err = jsonpatch.MergePatch(data, patch.Data)
		require.NoError(t, err)
	}
	out := &unstructured.Unstructured{}
	require.NoError(t, out.UnmarshalJSON(data))
	assert.True(t, compare.Same(patch.Result.Object, out.Object), "the result is foreseen")
	return out
}

// find is the first field of a name in a value.
func find(t *testing.T, value any, field string) any {
	t.Helper()
	var search func(value any) (any, bool)
	search = func(value any) (any, bool) {
		switch v := value.(type) {
		case map[string]any:
			if found, ok := v[field]; ok {
				return found, true
			}
			return search(slices.Collect(maps.Values(v)))
		case []any:
			for _, item := range v {
				if found, ok := search(item); ok {
					return found, true
				}
			}
		}
		return nil, false
	}
	found, ok := search(value)
	require.True(t, ok, "there is no %s", field)
	return found
}
