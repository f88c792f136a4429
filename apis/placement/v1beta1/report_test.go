package v1beta1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReportBounds(t *testing.T) {
	long := strings.Repeat("x", 100)
	report := WorkStatus{
		Conditions: []metav1.Condition{{Type: "a", Message: long}, {Type: "b"}, {Type: "c"}},
		ManifestConditions: []ManifestCondition{{
			Conditions:   []metav1.Condition{{Type: "Applied", Message: long}},
			DriftDetails: &DriftDetails{ObservedDrifts: []PatchDetail{{Path: long, ValueInHub: "short", ValueInMember: long}, {Path: "/b"}, {Path: "/c"}}},
			DiffDetails:  &DiffDetails{ObservedDiffs: []PatchDetail{{Path: "/a", ValueInHub: long}}},
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
	bounded := StorableReport.Apply(WorkStatus{
		Conditions: []metav1.Condition{{Type: "Applied", Message: command}},
		ManifestConditions: []ManifestCondition{{
			Conditions:   []metav1.Condition{{Type: "Applied", Message: command}},
			DriftDetails: &DriftDetails{ObservedDrifts: []PatchDetail{{Path: command, ValueInHub: command, ValueInMember: command}}},
		}},
	})
	assert.Equal(t, shown, bounded.Conditions[0].Message)
	assert.Equal(t, shown, bounded.ManifestConditions[0].Conditions[0].Message)
	assert.Equal(t, PatchDetail{Path: shown, ValueInHub: shown, ValueInMember: shown}, bounded.ManifestConditions[0].DriftDetails.ObservedDrifts[0])
}
