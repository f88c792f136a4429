package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestAReportIsMadeToFitItsDefinition(t *testing.T) {
	status := clusterv1beta1.InternalMemberClusterStatus{
		Properties:    map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"huge": {Value: strings.Repeat("x", clusterv1beta1.MaxReportedValue+1)}},
		ResourceUsage: clusterv1beta1.ResourceUsage{Capacity: corev1.ResourceList{}},
		Conditions:    []metav1.Condition{{Message: strings.Repeat("ä", clusterv1beta1.MaxReportedMessage)}},
		AgentStatus:   []clusterv1beta1.AgentStatus{{Conditions: []metav1.Condition{{Message: strings.Repeat("x", clusterv1beta1.MaxReportedMessage+1)}}}},
	}
	for i := range clusterv1beta1.MaxReportedProperties + 5 {
		status.Properties[clusterv1beta1.PropertyName(fmt.Sprintf("p%05d", i))] = clusterv1beta1.PropertyValue{Value: "1"}
	}
	for i := range clusterv1beta1.MaxReportedResources + 5 {
		status.ResourceUsage.Capacity[corev1.ResourceName(fmt.Sprintf("r%05d", i))] = resource.MustParse("1")
	}
	given := len(status.Properties)
	properties := status.Properties
	FitReport(&status)
	assert.Len(t, status.Properties, clusterv1beta1.MaxReportedProperties)
	assert.NotContains(t, status.Properties, clusterv1beta1.PropertyName("huge"))
	assert.Contains(t, status.Properties, clusterv1beta1.PropertyName("p00000"))
	assert.Len(t, properties, given, "what it was made from is not changed")
	assert.Len(t, status.ResourceUsage.Capacity, clusterv1beta1.MaxReportedResources)
	for _, message := range []string{status.Conditions[0].Message, status.AgentStatus[0].Conditions[0].Message} {
		assert.LessOrEqual(t, len(message), clusterv1beta1.MaxReportedMessage)
		assert.True(t, strings.HasSuffix(message, "…"))
	}
	small := clusterv1beta1.InternalMemberClusterStatus{}
	FitReport(&small)
	assert.Equal(t, clusterv1beta1.InternalMemberClusterStatus{}, small)
}
