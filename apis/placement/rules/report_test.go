package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestReportBounds(t *testing.T) {
	long := strings.Repeat("x", 100)
	report := placementv1beta1.WorkStatus{
		Conditions: []metav1.Condition{{Type: "a", Message: long}, {Type: "b"}, {Type: "c"}},
		ManifestConditions: []placementv1beta1.ManifestCondition{{
			Conditions:   []metav1.Condition{{Type: "Applied", Message: long}},
			DriftDetails: &placementv1beta1.DriftDetails{ObservedDrifts: []placementv1beta1.PatchDetail{{Path: long, ValueInHub: "short", ValueInMember: long}, {Path: "/b"}, {Path: "/c"}}},
			DiffDetails:  &placementv1beta1.DiffDetails{ObservedDiffs: []placementv1beta1.PatchDetail{{Path: "/a", ValueInHub: long}}},
		}, {}},
	}
	before := report.DeepCopy()
	bounded := ReportBounds{Conditions: 2, Message: 10, Details: 2, Path: 20, Value: 30}.Apply(report)
	assert.Equal(t, *before, report, "the one given is not changed")
	assert.Len(t, bounded.Conditions, 2)
	assert.Len(t, bounded.Conditions[0].Message, 10)
	first := bounded.ManifestConditions[0]
	assert.Len(t, first.Conditions[0].Message, 10)
	assert.Len(t, first.DriftDetails.ObservedDrifts, 2)
	assert.Len(t, first.DriftDetails.ObservedDrifts[0].Path, 20)
	assert.Len(t, first.DriftDetails.ObservedDrifts[0].ValueInMember, 30)
	assert.Equal(t, "short", first.DriftDetails.ObservedDrifts[0].ValueInHub)
	assert.Len(t, first.DiffDetails.ObservedDiffs[0].ValueInHub, 30)
	assert.Equal(t, report, StorableReport.Apply(report), "what fits stays as it is")
}

func TestReportsHaveNoCommandsForATerminal(t *testing.T) {
	const command, shown = "\x1b[2Jfine", `\x1b[2Jfine`
	bounded := StorableReport.Apply(placementv1beta1.WorkStatus{
		Conditions: []metav1.Condition{{Type: "Applied", Message: command}},
		ManifestConditions: []placementv1beta1.ManifestCondition{{
			Conditions:   []metav1.Condition{{Type: "Applied", Message: command}},
			DriftDetails: &placementv1beta1.DriftDetails{ObservedDrifts: []placementv1beta1.PatchDetail{{Path: command, ValueInHub: command, ValueInMember: command}}},
		}},
	})
	assert.Equal(t, shown, bounded.Conditions[0].Message)
	assert.Equal(t, shown, bounded.ManifestConditions[0].Conditions[0].Message)
	assert.Equal(t, placementv1beta1.PatchDetail{Path: shown, ValueInHub: shown, ValueInMember: shown}, bounded.ManifestConditions[0].DriftDetails.ObservedDrifts[0])
}
