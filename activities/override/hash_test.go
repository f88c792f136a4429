package override_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/kubefleet"
)

func TestHash(t *testing.T) {
	value := func(raw string) placementv1beta1.JSONPatchOverride {
		o := op("add", "/spec", "")
		o.Value.Raw = []byte(raw)
		return o
	}
	hash := func(rules ...rule) string {
		sum, err := override.Hash(&placementv1beta1.ClusterResourceOverride{Spec: clusterWide("cro-0", role(), rules...).Spec.OverrideSpec})
		require.NoError(t, err)
		return string(sum)
	}
	one := hash(patch(value(`{"a": 1, "b": 9007199254740993}`)))
	assert.Regexp(t, "^[0-9a-f]{64}$", one)

	cases := map[string]struct {
		other string
		same  bool
	}{
		"the same again":                 {hash(patch(value(`{"a": 1, "b": 9007199254740993}`))), true},
		"a value written in another way": {hash(patch(value(`{"a":1,"b":9007199254740993}`))), true},
		"another value":                  {hash(patch(value(`{"a": 2, "b": 9007199254740993}`))), false},
		"a number that is off by one":    {hash(patch(value(`{"a": 1, "b": 9007199254740992}`))), false},
		"another path":                   {hash(patch(op("add", "/spec2", `{"a": 1, "b": 9007199254740993}`))), false},
		"a rule more":                    {hash(patch(value(`{"a": 1, "b": 9007199254740993}`)), deleteOn(nil)), false},
		"no cluster instead of all":      {hash(patchOn(nil, value(`{"a": 1, "b": 9007199254740993}`))), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.same, one == tc.other) })
	}

	ro, err := override.Hash(&placementv1beta1.ResourceOverride{Spec: namespaced("app", "ro-0", configMap("c"), patch(value("1"))).Spec.OverrideSpec})
	require.NoError(t, err)
	assert.Len(t, ro, 64)
	_, err = override.Hash(&placementv1beta1.ResourceOverride{Spec: namespaced("app", "ro-0", configMap("c"), patch(value("{"))).Spec.OverrideSpec})
	assert.ErrorContains(t, err, "hashing an override")
}

// On the way back KubeFleet takes another snapshot, and rolls it out, where the hash is not the one that it would state.
func TestTheHashOfAnOverrideIsTheOneThatKubeFleetStates(t *testing.T) {
	hub, err := kubefleet.Hub()
	require.NoError(t, err)
	compared := 0
	for _, snapshot := range []placementv1beta1.OverrideSnapshotObject{&placementv1beta1.ClusterResourceOverrideSnapshot{}, &placementv1beta1.ResourceOverrideSnapshot{}} {
		kind := reflect.TypeOf(snapshot).Elem().Name()
		for _, recorded := range kubefleet.OfKinds(hub, kind) {
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(recorded.Object, snapshot))
			hash, err := override.Hash(snapshot)
			require.NoError(t, err)
			assert.Equal(t, string(snapshot.GetOverrideHash()), string(hash), "%s %s", kind, recorded.GetName())
			compared++
		}
	}
	assert.GreaterOrEqual(t, compared, 2)
}
