package work

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

var (
	morning = metav1.NewTime(time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC))
	noon    = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
)

func appliedOutcome(name string, verdict availability.Status) outcome {
	return outcome{id: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Version: "v1", Name: name}, availability: verdict}
}

func failedOutcome(name, reason string) outcome {
	o := appliedOutcome(name, "")
	o.problem = &apply.Problem{Reason: reason, Message: "no"}
	return o
}

func TestReportSumsUpTheManifests(t *testing.T) {
	type said struct{ status, reason, message string }
	var (
		allApplied   = said{"True", "AllManifestsApplied", "All the specified manifests have been applied"}
		allAvailable = said{"True", "AllManifestsAvailable", "All the manifests are available"}
	)
	tests := map[string]struct {
		outcomes           []outcome
		applied, available said
	}{
		"a Work without manifests is done": {nil, allApplied, allAvailable},
		"all is applied and up": {
			[]outcome{appliedOutcome("a", availability.Available), appliedOutcome("b", availability.Available)}, allApplied, allAvailable,
		},
		"one is not up yet": {
			[]outcome{appliedOutcome("a", availability.Available), appliedOutcome("b", availability.NotYet)}, allApplied,
			said{"False", "SomeManifestsAreNotAvailable", "Some manifests are not available (1 of 2 manifests are available)"},
		},
		"of one it cannot be told": {
			[]outcome{appliedOutcome("a", availability.Available), appliedOutcome("b", availability.NotTrackable)}, allApplied,
			said{"True", "WorkNotTrackable", "The availability of some manifests is not trackable (1 of 2); Fleet assumes that they are available"},
		},
		"one is not up, and of another it cannot be told": {
			[]outcome{appliedOutcome("a", availability.NotYet), appliedOutcome("b", availability.NotTrackable)}, allApplied,
			said{"False", "SomeManifestsAreNotAvailable", "Some manifests are not available (1 of 2 manifests are available)"},
		},
		"one is not applied": {
			[]outcome{appliedOutcome("a", availability.Available), failedOutcome("b", "ManifestApplyFailed")},
			said{"False", "SomeManifestsAreNotApplied", "Failed to apply all manifests (1 of 2 manifests are applied)"},
			said{"False", "SomeManifestsAreNotAvailable", "Some manifests are not available (1 of 2 manifests are available)"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := buildApplyStatus(3, tc.outcomes, placementv1beta1.WorkStatus{}, noon)
			for kind, want := range map[string]said{
				placementv1beta1.ConditionTypeApplied: tc.applied, placementv1beta1.ConditionTypeAvailable: tc.available,
			} {
				c := meta.FindStatusCondition(status.Conditions, kind)
				require.NotNil(t, c)
				assert.Equal(t, want, said{string(c.Status), c.Reason, c.Message})
				assert.EqualValues(t, 3, c.ObservedGeneration)
			}
			assert.Len(t, status.ManifestConditions, len(tc.outcomes))
		})
	}
}

func TestReportOfOneManifest(t *testing.T) {
	broken := appliedOutcome("a", availability.NotYet)
	different := appliedOutcome("a", availability.Available)
	different.differences = apply.Differences{Report: compare.Absent(), Message: "x"}
	failed := appliedOutcome("a", availability.Failed)
	broken.availabilityError = "no such field"
	tests := map[string]struct {
		outcome            outcome
		applied, available string // reasons; empty for no condition
	}{
		"applied as something else":   {different, "AppliedWithDifference", "Available"},
		"failed for good":             {failed, "Applied", "ManifestFailed"},
		"applied and up":              {appliedOutcome("a", availability.Available), "Applied", "Available"},
		"applied and not up":          {appliedOutcome("a", availability.NotYet), "Applied", "ManifestNotAvailableYet"},
		"applied, and no telling":     {appliedOutcome("a", availability.NotTrackable), "Applied", "NotTrackable"},
		"applied, but looking failed": {broken, "Applied", "Failed"},
		"not applied":                 {failedOutcome("a", "Duplicated"), "Duplicated", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			conditions := buildApplyStatus(1, []outcome{tc.outcome}, placementv1beta1.WorkStatus{}, noon).ManifestConditions[0].Conditions
			assert.Equal(t, tc.applied, meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeApplied).Reason)
			available := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeAvailable)
			if tc.available == "" {
				assert.Nil(t, available)
				return
			}
			assert.Equal(t, tc.available, available.Reason)
		})
	}
}

func TestAnObjectThatMakesNoProgressIsReportedAsStalled(t *testing.T) {
	const text = "The object says that it makes no progress: ProgressDeadlineExceeded: timed out"
	late := func(status availability.Status) outcome {
		o := appliedOutcome("a", status)
		o.failing.why = "ProgressDeadlineExceeded: timed out"
		return o
	}
	unknown := late(availability.NotYet)
	unknown.availabilityError = "no such field"
	refused := failedOutcome("a", "ManifestApplyFailed")
	refused.failing.why = "ProgressDeadlineExceeded: timed out"
	for name, tc := range map[string]struct {
		outcome outcome
		stalled bool
	}{
		"one that is not up":                      {late(availability.NotYet), true},
		"one that is up makes no progress":        {late(availability.Available), false},
		"of one nothing is known":                 {unknown, false},
		"one is not applied as it is to be":       {refused, false},
		"one that is not up does not say so":      {appliedOutcome("a", availability.NotYet), false},
		"one that has failed for good is no news": {late(availability.Failed), false},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := buildApplyStatus(1, []outcome{tc.outcome}, placementv1beta1.WorkStatus{}, noon).ManifestConditions[0].Conditions
			said := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeStalled)
			if !tc.stalled {
				assert.Nil(t, said)
				return
			}
			require.NotNil(t, said)
			assert.Equal(t, []any{metav1.ConditionTrue, "Stalled", text}, []any{said.Status, said.Reason, said.Message})
			available := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeAvailable)
			assert.Equal(t, "ManifestNotAvailableYet", available.Reason, "KubeFleet's reason stays")
			assert.Equal(t, "Manifest is not yet available; Fleet will check again later. "+text, available.Message)
		})
	}
}

func TestReportIsTheSameAsLongAsNothingChanges(t *testing.T) {
	unreadable := outcome{problem: &apply.Problem{Reason: "DecodingErred", Message: "no"}}
	outcomes := []outcome{
		appliedOutcome("a", availability.Available), failedOutcome("a", "Duplicated"), unreadable, unreadable, appliedOutcome("b", availability.NotYet),
	}
	first := buildApplyStatus(1, outcomes, placementv1beta1.WorkStatus{}, morning)
	assert.Empty(t, cmp.Diff(first, buildApplyStatus(1, outcomes, first, noon)))
	compared := buildDiffStatus(1, outcomes, first, morning)
	assert.Empty(t, cmp.Diff(compared, buildDiffStatus(1, outcomes, compared, noon)))
}

func TestReportDatesTransitionsByObjectAndNotByPosition(t *testing.T) {
	first := buildApplyStatus(1, []outcome{appliedOutcome("a", availability.Available), appliedOutcome("b", availability.NotYet)}, placementv1beta1.WorkStatus{}, morning)
	second := buildApplyStatus(2, []outcome{appliedOutcome("b", availability.Available), appliedOutcome("a", availability.Available)}, first, noon)
	at := func(i int, kind string) metav1.Time {
		return meta.FindStatusCondition(second.ManifestConditions[i].Conditions, kind).LastTransitionTime
	}
	assert.Equal(t, morning, at(0, placementv1beta1.ConditionTypeApplied))
	assert.Equal(t, noon, at(0, placementv1beta1.ConditionTypeAvailable), "b came up")
	assert.Equal(t, morning, at(1, placementv1beta1.ConditionTypeAvailable), "a was up all the time")
}
