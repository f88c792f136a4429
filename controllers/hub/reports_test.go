package hub

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func failed(ordinal int, message string) placementv1beta1.ManifestCondition {
	return placementv1beta1.ManifestCondition{
		Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: ordinal, Kind: "ConfigMap", Name: fmt.Sprintf("c%d", ordinal)},
		Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Message: message}},
	}
}

func sizeInMemory(t *testing.T, value any) int {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return len(data)
}

func TestTheCacheKeepsOfAReportWhatTheHubReads(t *testing.T) {
	well := failed(1, "")
	well.Conditions[0].Status = metav1.ConditionTrue
	drifted := well
	drifted.DriftDetails = &placementv1beta1.DriftDetails{ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/a", ValueInMember: "1"}}}
	report := placementv1beta1.WorkStatus{
		Conditions:         []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Message: "Failed"}},
		ManifestConditions: []placementv1beta1.ManifestCondition{well, failed(2, "why"), drifted},
	}
	summary := summarizeReport(report)
	assert.Equal(t, report.Conditions, summary.Conditions)
	assert.Equal(t, []placementv1beta1.ManifestCondition{failed(2, "why"), drifted}, summary.ManifestConditions)
}

func TestAMemberDecidesNotHowMuchMemoryItsReportsTake(t *testing.T) {
	huge := strings.Repeat("x", 1_300_000)
	attacks := map[string]placementv1beta1.WorkStatus{
		"one huge value": {ManifestConditions: []placementv1beta1.ManifestCondition{{
			DriftDetails: &placementv1beta1.DriftDetails{ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/a", ValueInMember: huge}}},
		}}},
		"one huge path": {ManifestConditions: []placementv1beta1.ManifestCondition{{
			DiffDetails: &placementv1beta1.DiffDetails{ObservedDiffs: []placementv1beta1.PatchDetail{{Path: huge}}},
		}}},
		"huge messages": {Conditions: []metav1.Condition{{Type: "a", Message: huge}, {Type: "b", Message: huge}}},
		"a huge name": {ManifestConditions: []placementv1beta1.ManifestCondition{{
			Identifier: placementv1beta1.WorkResourceIdentifier{Name: huge}, Conditions: []metav1.Condition{{Status: metav1.ConditionFalse}},
		}}},
		"a huge status of an object": {ManifestConditions: []placementv1beta1.ManifestCondition{{
			BackReportedStatus: &placementv1beta1.BackReportedStatus{ObservedStatus: runtime.RawExtension{Raw: []byte(`"` + huge + `"`)}},
		}}},
	}
	var many, details placementv1beta1.WorkStatus
	for i := range 20_000 {
		many.ManifestConditions = append(many.ManifestConditions, failed(i, "why"))
	}
	drift := &placementv1beta1.DriftDetails{}
	for i := range 30_000 {
		drift.ObservedDrifts = append(drift.ObservedDrifts, placementv1beta1.PatchDetail{Path: fmt.Sprintf("/%d", i)})
	}
	details.ManifestConditions = []placementv1beta1.ManifestCondition{{DriftDetails: drift}}
	attacks["many objects"], attacks["many fields"] = many, details
	for name, report := range attacks {
		t.Run(name, func(t *testing.T) {
			assert.Less(t, sizeInMemory(t, summarizeReport(report)), keptReport+10_000)
		})
	}
}

func TestAChangedStatusOfAnObjectIsNoticed(t *testing.T) {
	report := func(status string) placementv1beta1.WorkStatus {
		return placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
			BackReportedStatus: &placementv1beta1.BackReportedStatus{ObservedStatus: runtime.RawExtension{Raw: []byte(status)}},
		}}}
	}
	one := summarizeReport(report(`{"status":{"replicas":1}}`))
	assert.Equal(t, one, summarizeReport(report(`{"status":{"replicas":1}}`)))
	assert.NotEqual(t, one, summarizeReport(report(`{"status":{"replicas":2}}`)))
	assert.NotContains(t, string(one.ManifestConditions[0].BackReportedStatus.ObservedStatus.Raw), "replicas")
}

func TestAMemberDecidesNotHowMuchMemoryItsMailboxTakes(t *testing.T) {
	huge := strings.Repeat("x", 500_000)
	status := clusterv1beta1.InternalMemberClusterStatus{
		Properties:    map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"a": {Value: "1"}, "b": {Value: huge}, "c": {Value: huge}},
		Namespaces:    map[string]string{"a": huge},
		ResourceUsage: clusterv1beta1.ResourceUsage{Capacity: corev1.ResourceList{}},
		Conditions:    []metav1.Condition{{Message: huge}},
		AgentStatus:   make([]clusterv1beta1.AgentStatus, 1000),
	}
	for i := range 10_000 {
		status.ResourceUsage.Capacity[corev1.ResourceName(fmt.Sprintf("r%d", i))] = resource.MustParse("1")
	}
	box := &clusterv1beta1.InternalMemberCluster{Status: status}
	_, err := stripMailbox(func(object any) (any, error) { return object, nil })(box)
	require.NoError(t, err)
	assert.Less(t, sizeInMemory(t, box), 3*keptMailbox)
	assert.Equal(t, map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"a": {Value: "1"}}, box.Status.Properties)
	assert.Len(t, box.Status.AgentStatus, maxAgents)

	honest := clusterv1beta1.InternalMemberClusterStatus{
		Properties:  map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"a": {Value: "1"}},
		AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}},
	}
	kept := honest.DeepCopy()
	boundMailbox(kept)
	assert.Equal(t, honest, *kept)
}

func TestNoTerminalActsOnWhatAMemberReportsAboutItself(t *testing.T) {
	const text, shown = "\x1b[2Jgone\u202e", `\x1b[2Jgone\u202e`
	said := func() []metav1.Condition { return []metav1.Condition{{Type: "a", Message: text}} }
	status := clusterv1beta1.InternalMemberClusterStatus{
		Conditions: said(), AgentStatus: []clusterv1beta1.AgentStatus{{Conditions: said()}},
		Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"a": {Value: text}, "b": {Value: "two\nlines"}},
		Namespaces: map[string]string{"a": text},
	}
	boundMailbox(&status)
	assert.Equal(t, shown, status.Conditions[0].Message)
	assert.Equal(t, shown, status.AgentStatus[0].Conditions[0].Message)
	assert.Equal(t, shown, status.Properties["a"].Value)
	assert.Equal(t, "two\nlines", status.Properties["b"].Value)
	assert.Equal(t, shown, status.Namespaces["a"])
}
