package framework_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func clusterWith(gpus string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{Status: clusterv1beta1.MemberClusterStatus{ResourceUsage: clusterv1beta1.ResourceUsage{
		Available: corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse(gpus), "ephemeral-storage": resource.MustParse("5Gi")},
	}}}
}

func TestResourcesAreReadByTheNamesThatAPolicyCanHave(t *testing.T) {
	for name, want := range map[string]string{
		"resources.kubernetes-fleet.io/available-cpu":               "2",
		"resources.kubernetes-fleet.io/available-ephemeral-storage": "5Gi",
		"resources.kubernetes-fleet.io/available-nvidia.com.gpu":    "8",
		"resources.kubernetes-fleet.io/available-nvidia.com.tpu":    "",
		"resources.kubernetes-fleet.io/total-nvidia.com.gpu":        "",
		"resources.kubernetes-fleet.io/spare-cpu":                   "",
	} {
		value, ok := framework.NewPropertyReader(name)(clusterWith("8"))
		assert.Equal(t, want != "", ok, name)
		if ok {
			assert.Equal(t, want, value.String(), name)
		}
	}
}

func TestWhatChangesAboutAResourceHasTheSameName(t *testing.T) {
	assert.Equal(t, []string{"resources.kubernetes-fleet.io/available-nvidia.com.gpu"}, framework.ChangedProperties(clusterWith("8"), clusterWith("7")))
	assert.Empty(t, framework.ChangedProperties(clusterWith("8"), clusterWith("8")))
}

// A test that computes the quantity, which takes hours, ends with its timeout.
func TestWhatAMemberReportsIsNotComputedAtAnyCost(t *testing.T) {
	cluster := &clusterv1beta1.MemberCluster{Status: clusterv1beta1.MemberClusterStatus{Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		"example.com/cost": {Value: "1234567890123456789e1000000000"}, "example.com/long": {Value: strings.Repeat("1", 500_000)}, "example.com/fair": {Value: "3e2"},
	}}}
	for name, want := range map[string]bool{"example.com/cost": false, "example.com/long": false, "example.com/fair": true} {
		_, ok := framework.NewPropertyReader(name)(cluster)
		assert.Equal(t, want, ok, name)
	}
}
