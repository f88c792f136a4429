package v1beta1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAReportIsMadeToFitItsDefinition(t *testing.T) {
	status := InternalMemberClusterStatus{
		Properties:    map[PropertyName]PropertyValue{"huge": {Value: strings.Repeat("x", MaxReportedValue+1)}},
		ResourceUsage: ResourceUsage{Capacity: corev1.ResourceList{}},
		Conditions:    []metav1.Condition{{Message: strings.Repeat("ä", MaxReportedMessage)}},
		AgentStatus:   []AgentStatus{{Conditions: []metav1.Condition{{Message: strings.Repeat("x", MaxReportedMessage+1)}}}},
	}
	for i := range MaxReportedProperties + 5 {
		status.Properties[PropertyName(fmt.Sprintf("p%05d", i))] = PropertyValue{Value: "1"}
	}
	for i := range MaxReportedResources + 5 {
		status.ResourceUsage.Capacity[corev1.ResourceName(fmt.Sprintf("r%05d", i))] = resource.MustParse("1")
	}
	given := len(status.Properties)
	properties := status.Properties
	FitReport(&status)
	assert.Len(t, status.Properties, MaxReportedProperties)
	assert.NotContains(t, status.Properties, PropertyName("huge"))
	assert.Contains(t, status.Properties, PropertyName("p00000"))
	assert.Len(t, properties, given, "what it was made from is not changed")
	assert.Len(t, status.ResourceUsage.Capacity, MaxReportedResources)
	for _, message := range []string{status.Conditions[0].Message, status.AgentStatus[0].Conditions[0].Message} {
		assert.LessOrEqual(t, len(message), MaxReportedMessage)
		assert.True(t, strings.HasSuffix(message, "…"))
	}
	small := InternalMemberClusterStatus{}
	FitReport(&small)
	assert.Equal(t, InternalMemberClusterStatus{}, small)
}
