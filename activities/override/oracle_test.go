package override_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// semantics is a JSON value decoded, its numbers as they are written.
func semantics(t testing.TB, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value), "%s", text)
	return value
}

// byLibrary applies operations with a library that is known to follow RFC 6902.
func byLibrary(manifest []byte, operations []placementv1beta1.JSONPatchOverride) ([]byte, error) {
	var all []string
	for _, o := range operations {
		path, err := json.Marshal(o.Path)
		if err != nil {
			return nil, err
		}
		written := fmt.Sprintf(`{"op":%q,"path":%s`, o.Operator, path)
		if len(o.Value.Raw) > 0 {
			written += `,"value":` + string(o.Value.Raw)
		}
		all = append(all, written+"}")
	}
	decoded, err := jsonpatch.DecodePatch([]byte("[" + strings.Join(all, ",") + "]"))
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	return decoded.ApplyWithOptions(manifest, options)
}

// ourselves applies operations to the object in a manifest, whatever it is.
func ourselves(t testing.TB, manifest []byte, cluster override.Cluster, operations []placementv1beta1.JSONPatchOverride) ([]byte, error) {
	t.Helper()
	object, err := override.NewObject(manifest)
	if err != nil {
		return nil, err
	}
	is := object.Identifier()
	var o overrides
	if is.Namespace == "" {
		o.clusterWide = append(o.clusterWide, clusterWide("cro-0", []term{{Group: is.Group, Version: is.Version, Kind: is.Kind, Name: is.Name}}, patch(operations...)))
	} else {
		o.namespaced = append(o.namespaced, namespaced(is.Namespace, "ro-0",
			[]placementv1beta1.ResourceSelector{{Group: is.Group, Version: is.Version, Kind: is.Kind, Name: is.Name}}, patch(operations...)))
	}
	result, err := override.Compile(o.all()).On(cluster).Apply(object)
	return result.Manifest, err
}

// Whatever is done to whatever object, the outcome is that of the library.
func TestOperationsLikeTheLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "0", "1", "2", "-", "a~1b", "m~0n"}
	var value func(depth int) any
	value = func(depth int) any {
		switch pick := random.IntN(8); {
		case pick < 3 && depth > 0:
			object := map[string]any{}
			for range random.IntN(4) {
				object[strings.NewReplacer("~1", "/", "~0", "~").Replace(names[random.IntN(len(names))])] = value(depth - 1)
			}
			return object
		case pick < 6 && depth > 0:
			items := make([]any, random.IntN(4))
			for i := range items {
				items[i] = value(depth - 1)
			}
			return items
		case pick == 6:
			return "text"
		default:
			return random.IntN(100)
		}
	}
	encode := func(value any) []byte {
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		return raw
	}
	succeeded := 0
	failed := 0
	for range 20_000 {
		manifest := encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c"}, "doc": value(4)})
		operations := make([]placementv1beta1.JSONPatchOverride, 1+random.IntN(2))
		for i := range operations {
			path := "/doc"
			for range 1 + random.IntN(3) {
				path += "/" + names[random.IntN(len(names))]
			}
			operations[i] = op([]operator{add, remove, replace}[random.IntN(3)], path, "")
			if operations[i].Operator != remove {
				operations[i].Value.Raw = encode(value(2))
			}
		}
		want, wantErr := byLibrary(manifest, operations)
		got, err := ourselves(t, manifest, override.Cluster{}, operations)
		if wantErr != nil {
			failed++
			require.Error(t, err, "%s %v\nthe library: %v", manifest, operations, wantErr)
			continue
		}
		succeeded++
		require.NoError(t, err, "%s %v", manifest, operations)
		require.Equal(t, semantics(t, want), semantics(t, got), "%s %v", manifest, operations)
	}
	assert.Greater(t, succeeded, 1000)
	assert.Greater(t, failed, 2000)
}
