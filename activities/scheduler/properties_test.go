package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestPropertyComparisons(t *testing.T) {
	withUsage := func(c *clusterv1beta1.MemberCluster) {
		c.Status.ResourceUsage.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}
	}
	term := func(name, operator, value string) placementv1beta1.ClusterSelectorTerm {
		return placementv1beta1.ClusterSelectorTerm{PropertySelector: &placementv1beta1.PropertySelector{
			MatchExpressions: []placementv1beta1.PropertySelectorRequirement{{Name: name, Operator: placementv1beta1.PropertySelectorOperator(operator), Values: []string{value}}},
		}}
	}
	cases := map[string]struct {
		term placementv1beta1.ClusterSelectorTerm
		want bool
	}{
		"a quantity is compared by value":   {term("resources.kubernetes-fleet.io/allocatable-cpu", "Eq", "1.5"), true},
		"greater":                           {term("resources.kubernetes-fleet.io/allocatable-cpu", "Gt", "1"), true},
		"not greater":                       {term("resources.kubernetes-fleet.io/allocatable-cpu", "Gt", "1500m"), false},
		"less or equal":                     {term("resources.kubernetes-fleet.io/allocatable-cpu", "Le", "1500m"), true},
		"not equal":                         {term("resources.kubernetes-fleet.io/allocatable-cpu", "Ne", "1500m"), false},
		"less":                              {term("resources.kubernetes-fleet.io/allocatable-cpu", "Lt", "2"), true},
		"a resource the cluster lacks":      {term("resources.kubernetes-fleet.io/total-cpu", "Gt", "0"), false},
		"a property the cluster lacks":      {term("other", "Ne", "0"), false},
		"a property that is not a number":   {term("text", "Ne", "0"), false},
		"a property with a name of its own": {term("nodes", "Ge", "3"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := cluster("a", property("3"), withUsage)
			c.Status.Properties["text"] = clusterv1beta1.PropertyValue{Value: "v1.30.0"}
			d := scheduler.Decide(scheduler.Facts{Policy: requiring(pickAll(), tc.term), Now: now, Clusters: []clusterv1beta1.MemberCluster{c}})
			assert.Equal(t, tc.want, len(d.Create) == 1)
		})
	}
}
