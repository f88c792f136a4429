package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// manyOutcomes are of manifests; the first few have failed with a long message.
func manyOutcomes(all, failing, message int) []outcome {
	out := make([]outcome, 0, all)
	for i := range all {
		o := outcome{id: placementv1beta1.WorkResourceIdentifier{Ordinal: i, Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: fmt.Sprintf("m%05d", i)}}
		if i < failing {
			o.problem = &apply.Problem{Reason: placementv1beta1.ReasonManifestApplyFailed, Message: strings.Repeat("x", message)}
		} else {
			o.availability = availability.Available
		}
		out = append(out, o)
	}
	return out
}

func TestAStatusIsTrimmedToFit(t *testing.T) {
	tests := map[string]struct {
		all, failing, message int
		room                  int
		listed                int // manifests in the status
		detailed              int // of which have conditions
		messages              int // length of their messages
		trimmed               bool
	}{
		"what fits is left as it is":                          {20, 2, 300, 1 << 20, 20, 20, 300, false},
		"what is well loses its conditions first":             {20, 2, 300, 6000, 20, 2, 300, true},
		"then it is left out":                                 {20, 2, 300, 2000, 2, 2, 300, true},
		"then the messages of what failed are shortened":      {20, 2, 3000, 2400, 2, 2, maxMessageBytes, true},
		"then only as many as fit are listed, in their order": {20, 10, 300, 2400, 3, 3, maxMessageBytes, true},
		"and in the end the summary has to do":                {20, 2, 300, 100, 0, 0, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := buildApplyStatus(3, manyOutcomes(tc.all, tc.failing, tc.message), placementv1beta1.WorkStatus{}, noon)
			got := trimStatus(status, placementv1beta1.WorkStatus{}, tc.room, 3, noon)
			assert.Len(t, got.ManifestConditions, tc.listed)
			detailed := 0
			for i, m := range got.ManifestConditions {
				if len(m.Conditions) > 0 {
					detailed++
				}
				if i < tc.failing {
					require.Len(t, m.Conditions, 1, "what failed keeps its conditions")
					assert.Len(t, m.Conditions[0].Message, tc.messages)
				}
			}
			assert.Equal(t, tc.detailed, detailed)
			assert.Equal(t, tc.trimmed, meta.IsStatusConditionTrue(got.Conditions, placementv1beta1.ConditionTypeStatusTrimmed))
			assert.NotNil(t, meta.FindStatusCondition(got.Conditions, placementv1beta1.ConditionTypeApplied), "the summary stays")
			if tc.listed > 0 {
				data, err := json.Marshal(got)
				require.NoError(t, err)
				assert.LessOrEqual(t, len(data), tc.room)
			}
			later := metav1.NewTime(noon.Add(1e10))
			again := trimStatus(buildApplyStatus(3, manyOutcomes(tc.all, tc.failing, tc.message), got, later), got, tc.room, 3, later)
			assert.Equal(t, got, again, "another look at the same changes nothing")
		})
	}
}

func TestTheRoomForAStatusIsWhatTheWorkLeaves(t *testing.T) {
	w := manifestWork("w", "a")
	before, err := maxStatusSize(w)
	require.NoError(t, err)
	w.Status.Conditions = []metav1.Condition{{Type: "Applied", Message: strings.Repeat("x", 1000)}}
	same, err := maxStatusSize(w)
	require.NoError(t, err)
	assert.Equal(t, before, same, "the status as it stands takes none of it")
	w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, mapManifests(strings.Repeat("y", 1000))...)
	after, err := maxStatusSize(w)
	require.NoError(t, err)
	assert.Greater(t, before-after, 1000)
}

func TestAReportThatIsTooLargeIsTrimmedOnItsWayToTheHub(t *testing.T) {
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	a := newAgent(t, []client.Object{manifestWork("w", append(names, "fine")...)}, nil)
	a.fail = func(write string) error {
		if strings.HasPrefix(write, "member create ConfigMap m") {
			return errors.New(strings.Repeat("x", 30_000))
		}
		return nil
	}
	a.mustReconcile(t, "w")
	w := a.work(t, "w")
	assert.True(t, meta.IsStatusConditionTrue(w.Status.Conditions, placementv1beta1.ConditionTypeStatusTrimmed))
	assert.Len(t, w.Status.ManifestConditions, 60, "all that failed, with shorter messages")
	assert.Equal(t, "SomeManifestsAreNotApplied", a.conditionReasons(t, "w")[0])

	a.fail = func(string) error { return nil }
	a.afterRetryDelay().mustReconcile(t, "w")
	w = a.work(t, "w")
	assert.True(t, meta.IsStatusConditionFalse(w.Status.Conditions, placementv1beta1.ConditionTypeStatusTrimmed))
	assert.Len(t, w.Status.ManifestConditions, 61)
}
