package kubefleet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
)

func TestWhatClientsOfKubeFleetDrop(t *testing.T) {
	var spec map[string]any
	assert.NoError(t, yaml.Unmarshal([]byte(`
resourceSelectors: [{group: "", version: v1, kind: Namespace, labelSelector: {matchLabels: {suspension: of users}}}]
policy:
  affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{clusterNames: [a]}, {labelSelector: {}, clusterNames: [b]}]}}}
  affinityGroups: [{name: a}]
strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, paused: true}, suspension: {all: true}}
`), &spec))
	assert.Equal(t, []string{
		"spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[].clusterNames",
		"spec.policy.affinityGroups", "spec.strategy.rollingUpdate.paused", "spec.strategy.suspension",
	}, kubefleet.Prune("ClusterResourcePlacement", "v1beta1", spec))
	rest, err := yaml.Marshal(spec)
	assert.NoError(t, err)
	assert.YAMLEq(t, `
resourceSelectors: [{group: "", version: v1, kind: Namespace, labelSelector: {matchLabels: {suspension: of users}}}]
policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{}, {labelSelector: {}}]}}}}
strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
`, string(rest))
	assert.Nil(t, kubefleet.Prune("RolloutHold", "v1alpha1", spec), "no kind of KubeFleet's")
}
