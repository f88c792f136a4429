package rules_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func dividingAll() *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{{}}}
}

func TestWhatAnObjectAsksFor(t *testing.T) {
	for sentence, test := range map[string]struct {
		object      string
		replicas    int32
		completions *int32
		obstacle    string
		none        bool
	}{
		"a Deployment":                      {object: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":7}}`, replicas: 7},
		"a Deployment that does not say":    {object: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{}}`, replicas: 1},
		"a Deployment of none":              {object: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":0}}`},
		"a StatefulSet":                     {object: `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},"spec":{"replicas":2}}`, replicas: 2},
		"a ReplicaSet":                      {object: `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"a"},"spec":{"replicas":2}}`, replicas: 2},
		"a CloneSet of an old version":      {object: `{"apiVersion":"apps.kruise.io/v1alpha1","kind":"CloneSet","metadata":{"name":"a"},"spec":{"replicas":2}}`, replicas: 2},
		"a CloneSet":                        {object: `{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"a"},"spec":{"replicas":2}}`, replicas: 2},
		"a Job":                             {object: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"parallelism":3,"completions":10}}`, replicas: 3, completions: ptr.To[int32](10)},
		"a Job with little to do":           {object: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"parallelism":3,"completions":2}}`, replicas: 2, completions: ptr.To[int32](2)},
		"a Job without completions":         {object: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"parallelism":3}}`, replicas: 3},
		"a Job that does not say":           {object: `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a"},"spec":{"template":{}}}`, replicas: 1},
		"what scales itself":                {object: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","annotations":{"fleetflow.io/retain-replicas":"true"}}}`, replicas: 1, obstacle: "its annotation fleetflow.io/retain-replicas leaves the replicas to the clusters"},
		"what does not scale itself":        {object: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","annotations":{"fleetflow.io/retain-replicas":"false"}}}`, replicas: 1},
		"a DaemonSet":                       {object: `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"a"},"spec":{"template":{}}}`, obstacle: "this kind cannot be divided"},
		"a custom resource with replicas":   {object: `{"apiVersion":"example.com/v1","kind":"Database","metadata":{"name":"a"},"spec":{"replicas":3}}`, obstacle: "this kind cannot be divided"},
		"a Deployment of another group":     {object: `{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":3}}`, obstacle: "this kind cannot be divided"},
		"what runs no pods":                 {object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}}`, none: true},
		"an envelope":                       {object: `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ResourceEnvelope","metadata":{"name":"a"},"data":{"a":{"apiVersion":"apps/v1","kind":"Deployment"}}}`, none: true},
		"an object whose spec is no object": {object: `{"apiVersion":"example.com/v1","kind":"Text","metadata":{"name":"a"},"spec":"replicas"}`, none: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			demands, err := rules.ReadReplicaDemands(dividingAll(), [][]byte{[]byte(test.object)})
			require.NoError(t, err)
			if test.none {
				assert.Empty(t, demands)
				return
			}
			require.Len(t, demands, 1)
			assert.Equal(t, []any{test.replicas, test.completions, test.obstacle}, []any{demands[0].Replicas, demands[0].Completions, demands[0].Obstacle})
		})
	}
}

func TestAThousandWorkloadsAreDividedAtMost(t *testing.T) {
	var manifests [][]byte
	for i := range rules.MaxDividedWorkloads + 2 {
		manifests = append(manifests, fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a-%05d"},"spec":{}}`, i))
	}
	demands, err := rules.ReadReplicaDemands(dividingAll(), manifests)
	require.NoError(t, err)
	require.Len(t, demands, rules.MaxDividedWorkloads+2)
	assert.Empty(t, demands[999].Obstacle)
	assert.Equal(t, "a placement divides 1000 workloads at most", demands[1000].Obstacle)
}

func TestOnlyWhatARuleDividesIsRead(t *testing.T) {
	manifests := [][]byte{
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b","namespace":"web"},"spec":{"replicas":2}}`),
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"web"},"spec":{"replicas":2}}`),
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"other"},"spec":{"replicas":2}}`),
	}
	policy := &placementv1beta1.PlacementPolicy{ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{
		{Selector: &placementv1beta1.WorkloadSelector{Namespace: "web", Name: "b"}, Type: placementv1beta1.ReplicasDuplicated},
		{Selector: &placementv1beta1.WorkloadSelector{Group: "apps", Kind: "Deployment", Namespace: "web"}, Type: placementv1beta1.ReplicasDivided},
	}}
	demands, err := rules.ReadReplicaDemands(policy, manifests)
	require.NoError(t, err)
	require.Len(t, demands, 1)
	assert.Equal(t, "apps/Deployment web/a", demands[0].String())

	all, err := rules.ReadReplicaDemands(dividingAll(), manifests)
	require.NoError(t, err)
	assert.Equal(t, []string{"apps/Deployment other/a", "apps/Deployment web/a", "apps/Deployment web/b"}, []string{all[0].String(), all[1].String(), all[2].String()})
	assert.NotEqual(t, rules.HashReplicaDemands(all), rules.HashReplicaDemands(demands))
	nothing, err := rules.ReadReplicaDemands(dividingAll(), nil)
	require.NoError(t, err)
	assert.NotNil(t, nothing)
	assert.NotEmpty(t, rules.HashReplicaDemands(nothing), "that the last workload has gone is a change")

	for _, without := range []*placementv1beta1.PlacementPolicy{nil, {}, {ReplicaScheduling: policy.ReplicaScheduling[:1]}} {
		none, err := rules.ReadReplicaDemands(without, [][]byte{[]byte("not even read")})
		require.NoError(t, err)
		assert.Empty(t, none)
		assert.Empty(t, rules.HashReplicaDemands(none))
	}
}

func TestReplicaCountsOfASnapshotAreThoseOfItsWorkloads(t *testing.T) {
	job := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"b"},"spec":{"parallelism":%d,"completions":%d}}`
	front := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":%d,"paused":true}}`
	kept := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"c","annotations":{"fleetflow.io/retain-replicas":"true"}},"spec":{"replicas":%d}}`
	read := func(a, b, c, d int) ([][]byte, []rules.ReplicaDemand) {
		manifests := [][]byte{fmt.Appendf(nil, job, b, c), fmt.Appendf(nil, front, a), fmt.Appendf(nil, kept, d)}
		demands, err := rules.ReadReplicaDemands(dividingAll(), manifests)
		require.NoError(t, err)
		return manifests, demands
	}
	before, first := read(4, 3, 6, 1)
	after, second := read(9, 5, 10, 1)
	assert.Equal(t, second, rules.WithReplicaCounts(first, rules.EncodeReplicaCounts(second)))
	_, other := read(4, 3, 6, 2)
	assert.Equal(t, other[2].Replicas, rules.WithReplicaCounts(other, rules.EncodeReplicaCounts(first))[2].Replicas, "what is not divided says it itself")
	assert.Equal(t, first[:1], rules.WithReplicaCounts(first[:1], rules.EncodeReplicaCounts(second)), "counts of other workloads")

	one, err := rules.WithoutReplicas(before, first)
	require.NoError(t, err)
	two, err := rules.WithoutReplicas(after, second)
	require.NoError(t, err)
	assert.Equal(t, one, two)
	assert.Contains(t, string(one[1]), "paused")
	assert.Contains(t, string(one[2]), "replicas", "of what is not divided, the replicas are part of the content")
	assert.Contains(t, string(before[1]), `"replicas":4`, "what is given is not changed")
}

func TestWhatAPodRequestsIsReadAsTheSchedulerCountsIt(t *testing.T) {
	for sentence, test := range map[string]struct {
		spec string
		want map[string]string
	}{
		"nothing":                                              {spec: `{"containers":[{"name":"a"}]}`, want: map[string]string{}},
		"containers are added up":                              {spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"500m","memory":"1Gi"}}},{"name":"b","resources":{"requests":{"cpu":1}}}]}`, want: map[string]string{"cpu": "1500m", "memory": "1Gi"}},
		"init containers count by the largest":                 {spec: `{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"3"}}}],"containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}`, want: map[string]string{"cpu": "3", "memory": "1Gi"}},
		"overhead is added":                                    {spec: `{"overhead":{"cpu":"250m"},"containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]}`, want: map[string]string{"cpu": "1250m"}},
		"a limit alone is a request, too":                      {spec: `{"containers":[{"name":"a","resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"1"}}}]}`, want: map[string]string{"cpu": "1", "memory": "1Gi"}},
		"a request of 0 is none":                               {spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"0"}}}]}`, want: map[string]string{}},
		"what would take hours to compute tells of no request": {spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"1234567890123456789e1000000000"}}}]}`, want: map[string]string{}},
		"what cannot be read tells of no request":              {spec: `{"containers":[{"name":"a","resources":{"requests":{"cpu":"much"}}}]}`, want: map[string]string{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			manifest := []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":` + test.spec + `}}}`)
			demands, err := rules.ReadReplicaDemands(dividingAll(), [][]byte{manifest})
			require.NoError(t, err)
			got := map[string]string{}
			for name, quantity := range demands[0].Requests {
				got[string(name)] = quantity.String()
			}
			assert.Equal(t, test.want, got)
		})
	}
}

func TestRequestsArePartOfTheDemandWhereRoomCounts(t *testing.T) {
	hash := func(rule placementv1beta1.ReplicaSchedulingRule, cpu string) string {
		manifest := []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}}}`)
		demands, err := rules.ReadReplicaDemands(&placementv1beta1.PlacementPolicy{ReplicaScheduling: []placementv1beta1.ReplicaSchedulingRule{rule}}, [][]byte{manifest})
		require.NoError(t, err)
		return rules.HashReplicaDemands(demands)
	}
	weighted := placementv1beta1.ReplicaSchedulingRule{}
	assert.Equal(t, hash(weighted, "1"), hash(weighted, "2"))
	for _, rule := range []placementv1beta1.ReplicaSchedulingRule{
		{Division: placementv1beta1.DivisionAggregated}, {DynamicWeight: placementv1beta1.DynamicWeightAvailableReplicas},
	} {
		assert.NotEqual(t, hash(rule, "1"), hash(rule, "2"))
		assert.Equal(t, hash(rule, "1"), hash(rule, "1000m"), "it is the same amount")
	}
}
