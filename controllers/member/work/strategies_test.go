package work

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// workWithStrategy is a Work with one ConfigMap and a strategy.
func workWithStrategy(strategy placementv1beta1.ApplyStrategy) *placementv1beta1.Work {
	w := manifestWork("w", "a")
	w.Spec.ApplyStrategy = &strategy
	return w
}

// foreignConfigMap is a ConfigMap that a user has created on the member.
func foreignConfigMap(x string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "uid-theirs"}, Data: map[string]string{"x": x}}
}

// setConfigMapKey changes the ConfigMap as a user of the member would.
func (a *agent) setConfigMapKey(t *testing.T, key, value string) {
	t.Helper()
	got := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, got, "a"))
	got.Data[key] = value
	require.NoError(t, a.member.Update(t.Context(), got))
}

// setStrategy changes the strategy of the Work as the hub does.
func (a *agent) setStrategy(t *testing.T, strategy placementv1beta1.ApplyStrategy) {
	t.Helper()
	w := a.work(t, "w")
	w.Spec.ApplyStrategy = &strategy
	w.Generation++
	require.NoError(t, a.hub.Update(t.Context(), w))
}

// manifestStatus returns the conditions of the only manifest.
func (a *agent) manifestStatus(t *testing.T) placementv1beta1.ManifestCondition {
	t.Helper()
	all := a.work(t, "w").Status.ManifestConditions
	require.Len(t, all, 1)
	return all[0]
}

func reasonOf(m placementv1beta1.ManifestCondition, kind string) string {
	if c := meta.FindStatusCondition(m.Conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

func appliedReason(m placementv1beta1.ManifestCondition) string {
	return reasonOf(m, placementv1beta1.ConditionTypeApplied)
}

var changed = []placementv1beta1.PatchDetail{{Path: "/data/x", ValueInHub: "1", ValueInMember: "9"}}

func TestADriftIsReportedUntilItIsGone(t *testing.T) {
	a := newAgent(t, []client.Object{workWithStrategy(placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted})}, nil)
	a.mustReconcile(t, "w")
	a.setConfigMapKey(t, "x", "9")
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	m := a.manifestStatus(t)
	assert.Equal(t, "FoundDrifts", appliedReason(m))
	assert.Equal(t, "SomeManifestsAreNotApplied", a.conditionReasons(t, "w")[0])
	require.NotNil(t, m.DriftDetails)
	assert.Nil(t, m.DiffDetails)
	assert.Equal(t, changed, m.DriftDetails.ObservedDrifts)
	first := m.DriftDetails.FirstDriftedObservedTime

	a.clock.SetTime(a.clock.Now().Add(time.Minute))
	writes, result, err := a.reconcileByName(t, "w")
	require.NoError(t, err)
	assert.Empty(t, writes, "it is said once")
	assert.LessOrEqual(t, catchUpDelay, result.RequeueAfter, "and not tried again, as nothing but a change helps")

	a.setConfigMapKey(t, "x", "8")
	a.mustReconcile(t, "w")
	m = a.manifestStatus(t)
	assert.True(t, first.Equal(&m.DriftDetails.FirstDriftedObservedTime), "it has drifted since the first time")
	assert.True(t, first.Before(&m.DriftDetails.ObservationTime))
	assert.Equal(t, "8", m.DriftDetails.ObservedDrifts[0].ValueInMember)

	a.memories = newMemories()
	assert.Empty(t, a.mustReconcile(t, "w"), "another agent says the same")

	a.setConfigMapKey(t, "x", "1")
	a.mustReconcile(t, "w")
	m = a.manifestStatus(t)
	assert.Equal(t, "Applied", appliedReason(m))
	assert.Nil(t, m.DriftDetails)
}

func TestADriftIsOverwrittenByANewRevisionOrByTheStrategy(t *testing.T) {
	drifted := func(t *testing.T) *agent {
		t.Helper()
		a := newAgent(t, []client.Object{workWithStrategy(placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted})}, nil)
		a.mustReconcile(t, "w")
		a.setConfigMapKey(t, "x", "9")
		a.mustReconcile(t, "w")
		require.Equal(t, "FoundDrifts", appliedReason(a.manifestStatus(t)))
		return a
	}
	for name, change := range map[string]func(*testing.T, *agent){
		"the hub has a new revision": func(t *testing.T, a *agent) {
			t.Helper()
			text := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"},"data":{"x":"2"}}`
			a.setManifests(t, "w", []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(text)}}})
		},
		"it is always to be applied": func(t *testing.T, a *agent) { t.Helper(); a.setStrategy(t, placementv1beta1.ApplyStrategy{}) },
		"the object is deleted": func(t *testing.T, a *agent) {
			t.Helper()
			require.NoError(t, a.member.Delete(t.Context(), foreignConfigMap("")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := drifted(t)
			change(t, a)
			a.mustReconcile(t, "w")
			assert.Equal(t, "Applied", appliedReason(a.manifestStatus(t)))
			assert.Nil(t, a.manifestStatus(t).DriftDetails)
		})
	}
}

func TestAppliedAndDriftedIfEveryFieldCounts(t *testing.T) {
	a := newAgent(t, []client.Object{workWithStrategy(placementv1beta1.ApplyStrategy{ComparisonOption: placementv1beta1.ComparisonOptionTypeFullComparison})}, nil)
	a.mustReconcile(t, "w")
	a.setConfigMapKey(t, "extra", "9")
	assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
	m := a.manifestStatus(t)
	assert.Equal(t, "Applied", appliedReason(m))
	assert.Equal(t, [2]string{"AllManifestsApplied", "AllManifestsAvailable"}, a.conditionReasons(t, "w"))
	require.NotNil(t, m.DriftDetails)
	assert.Equal(t, []placementv1beta1.PatchDetail{{Path: "/data/extra", ValueInMember: "9"}}, m.DriftDetails.ObservedDrifts)
}

func TestAnObjectIsTakenOverOnceItDoesNotDiffer(t *testing.T) {
	a := newAgent(t, []client.Object{workWithStrategy(placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeIfNoDiff})}, []client.Object{foreignConfigMap("9")})
	assert.NotContains(t, a.mustReconcile(t, "w"), "member patch ConfigMap a")
	m := a.manifestStatus(t)
	assert.Equal(t, "FailedToTakeOver", appliedReason(m))
	assert.Nil(t, m.DriftDetails, "only what is ours can drift")
	require.NotNil(t, m.DiffDetails)
	assert.Equal(t, changed, m.DiffDetails.ObservedDiffs)
	assert.Equal(t, new(int64(0)), m.DiffDetails.ObservedInMemberClusterGeneration)
	assert.Empty(t, a.mustReconcile(t, "w"))

	a.setConfigMapKey(t, "x", "1")
	a.mustReconcile(t, "w")
	m = a.manifestStatus(t)
	assert.Equal(t, "Applied", appliedReason(m))
	assert.Nil(t, m.DiffDetails)
}

func TestOnlyTheObjectConcernedIsNotTakenOver(t *testing.T) {
	w := manifestWork("w", "a", "b")
	w.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever}
	a := newAgent(t, []client.Object{w}, []client.Object{foreignConfigMap("9")})
	a.mustReconcile(t, "w")
	assert.True(t, a.hasConfigMap(t, "b"))
	all := a.work(t, "w").Status.ManifestConditions
	assert.Equal(t, "NotTakenOver", appliedReason(all[0]))
	assert.Equal(t, "Applied", appliedReason(all[1]))

	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	a.mustReconcile(t, "w")
	assert.True(t, a.hasConfigMap(t, "a"), "what was not taken over is not removed")
	assert.False(t, a.hasConfigMap(t, "b"))
}

func TestAReportNamesTheGenerationOfAnObjectThatIsNotApplied(t *testing.T) {
	owned := func(references ...metav1.OwnerReference) *corev1.ConfigMap {
		object := foreignConfigMap("9")
		object.Generation = 7
		object.OwnerReferences = references
		return object
	}
	for sentence, line := range map[string]struct {
		strategy placementv1beta1.ApplyStrategy
		object   *corev1.ConfigMap
		reason   string
	}{
		"it is not to be taken over":        {placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever}, owned(), "NotTakenOver"},
		"it differs":                        {placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeIfNoDiff}, owned(), "FailedToTakeOver"},
		"it has an owner outside the fleet": {placementv1beta1.ApplyStrategy{}, owned(metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"}), "FailedToTakeOver"},
		"another placement has it": {
			placementv1beta1.ApplyStrategy{}, owned(apply.OwnerReference("other", "uid-other")), "ApplyConflictBetweenPlacements",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			other := &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "uid-other"}}
			a := newAgent(t, []client.Object{workWithStrategy(line.strategy)}, []client.Object{line.object, other})
			a.mustReconcile(t, "w")
			applied := meta.FindStatusCondition(a.manifestStatus(t).Conditions, placementv1beta1.ConditionTypeApplied)
			require.NotNil(t, applied)
			assert.Equal(t, line.reason, applied.Reason)
			assert.EqualValues(t, 7, applied.ObservedGeneration)
		})
	}
}

func TestDifferencesAreReportedAndNothingIsWritten(t *testing.T) {
	report := placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
	says := func(t *testing.T, a *agent) (string, string) {
		t.Helper()
		conditions := a.work(t, "w").Status.Conditions
		require.Len(t, conditions, 1)
		return conditions[0].Reason, reasonOf(a.manifestStatus(t), placementv1beta1.ConditionTypeDiffReported)
	}
	t.Run("an object that is absent differs as a whole", func(t *testing.T) {
		a := newAgent(t, []client.Object{workWithStrategy(report)}, nil)
		assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
		sum, one := says(t, a)
		assert.Equal(t, [2]string{"AllManifestsDiffReported", "FoundDiff"}, [2]string{sum, one})
		m := a.manifestStatus(t)
		require.NotNil(t, m.DiffDetails)
		assert.Equal(t, compare.Absent().Details, m.DiffDetails.ObservedDiffs)
		assert.Nil(t, m.DiffDetails.ObservedInMemberClusterGeneration)
		assert.Empty(t, a.mustReconcile(t, "w"), "it is said once")
	})
	t.Run("of a kind that the cluster does not serve, nothing can be said", func(t *testing.T) {
		w := workWithStrategy(report)
		w.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Unserved","metadata":{"name":"a","namespace":"n"}}`),
		}}}
		a := newAgent(t, []client.Object{w}, nil)
		assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
		sum, one := says(t, a)
		assert.Equal(t, [2]string{"SomeManifestsHaveNotReportedDiff", "FailedToReportDiff"}, [2]string{sum, one})
		m := a.manifestStatus(t)
		assert.Nil(t, m.DiffDetails)
		assert.Contains(t, m.Conditions[0].Message, "The cluster has no kind Unserved in example.com/v1")
		assert.Empty(t, a.mustReconcile(t, "w"), "it is said once")
	})
	t.Run("differences come and go", func(t *testing.T) {
		a := newAgent(t, []client.Object{workWithStrategy(report)}, []client.Object{foreignConfigMap("1")})
		a.mustReconcile(t, "w")
		sum, one := says(t, a)
		assert.Equal(t, [2]string{"AllManifestsDiffReported", "NoDiffFound"}, [2]string{sum, one})
		a.setConfigMapKey(t, "x", "9")
		assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
		m := a.manifestStatus(t)
		assert.Equal(t, changed, m.DiffDetails.ObservedDiffs)
		a.setConfigMapKey(t, "x", "1")
		a.mustReconcile(t, "w")
		assert.Nil(t, a.manifestStatus(t).DiffDetails)
	})
	t.Run("what was applied before stays as it is, and is applied again when asked to", func(t *testing.T) {
		a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
		a.mustReconcile(t, "w")
		a.setStrategy(t, report)
		a.setManifests(t, "w", mapManifests("a"))
		a.setConfigMapKey(t, "x", "9")
		assert.Equal(t, []string{"hub status Work w"}, a.mustReconcile(t, "w"))
		sum, one := says(t, a)
		assert.Equal(t, [2]string{"AllManifestsDiffReported", "FoundDiff"}, [2]string{sum, one})
		assert.True(t, a.hasConfigMap(t, "b"), "what left the Work is not removed")

		a.setStrategy(t, placementv1beta1.ApplyStrategy{})
		a.mustReconcile(t, "w")
		assert.Equal(t, "Applied", appliedReason(a.manifestStatus(t)))
		assert.False(t, a.hasConfigMap(t, "b"), "until it is applied again")
	})
	t.Run("what was applied before is removed with the Work", func(t *testing.T) {
		a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
		a.mustReconcile(t, "w")
		a.setStrategy(t, report)
		a.mustReconcile(t, "w")
		require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
		a.mustReconcile(t, "w")
		assert.False(t, a.hasConfigMap(t, "a"))
	})
	t.Run("what was never taken over stays without the Work", func(t *testing.T) {
		a := newAgent(t, []client.Object{workWithStrategy(report)}, []client.Object{foreignConfigMap("9")})
		a.mustReconcile(t, "w")
		require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
		assert.Equal(t, []string{"hub patch Work w"}, a.mustReconcile(t, "w"))
		assert.True(t, a.hasConfigMap(t, "a"))
	})
}

func TestReportDiffs(t *testing.T) {
	found := outcome{id: appliedOutcome("a", "").id, observed: true, version: objectVersion{uid: "u"}, findings: apply.Findings{Report: compare.Report{Details: changed}}}
	degraded := found
	huge := found
	none := found
	degraded.findings.Degraded, huge.findings.Omitted, none.findings = true, 7, apply.Findings{}
	failed := failedOutcome("a", "FailedToReportDiff")
	failed.problem.Message = apierrors.NewInternalError(errors.New("too busy")).Error()
	tests := map[string]struct {
		outcome              outcome
		sum, reason, message string
		details              bool
	}{
		"no difference":                        {none, "AllManifestsDiffReported", "NoDiffFound", "No configuration differences", false},
		"a difference is no failure":           {found, "AllManifestsDiffReported", "FoundDiff", "differences have been found", true},
		"one that the API server cannot tell":  {degraded, "AllManifestsDiffReported", "FoundDiffInDegradedMode", "would refuse", true},
		"more differences than are listed":     {huge, "AllManifestsDiffReported", "FoundDiff", "7 more fields differ", true},
		"a comparison that failed says why":    {failed, "SomeManifestsHaveNotReportedDiff", "FailedToReportDiff", "too busy", false},
		"so does a manifest that is no object": {failedOutcome("a", "DecodingErred"), "SomeManifestsHaveNotReportedDiff", "FailedToReportDiff", "no", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			status := buildDiffStatus(4, []outcome{tc.outcome}, placementv1beta1.WorkStatus{}, noon)
			require.Len(t, status.Conditions, 1)
			assert.Equal(t, tc.sum, status.Conditions[0].Reason)
			assert.EqualValues(t, 4, status.Conditions[0].ObservedGeneration)
			m := status.ManifestConditions[0]
			require.Len(t, m.Conditions, 1)
			assert.Equal(t, tc.reason, m.Conditions[0].Reason)
			assert.Contains(t, m.Conditions[0].Message, tc.message)
			assert.Equal(t, tc.details, m.DiffDetails != nil)
			assert.Empty(t, cmp.Diff(status, buildDiffStatus(4, []outcome{tc.outcome}, status, morning)))
		})
	}
}

func TestLongListsOfFieldsAreCutFirstOfAll(t *testing.T) {
	outcomes := manyOutcomes(3, 0, 0)
	var many []placementv1beta1.PatchDetail
	for range compare.MaxDetails {
		many = append(many, changed[0])
	}
	for i := range outcomes[:2] {
		outcomes[i].findings.Details = many
	}
	status := buildApplyStatus(1, outcomes, placementv1beta1.WorkStatus{}, noon)
	room := encodedSize(status) / 2
	cut := trimStatus(status, placementv1beta1.WorkStatus{}, room, 1, noon)
	assert.LessOrEqual(t, encodedSize(cut), room)
	require.Len(t, cut.ManifestConditions, 2, "what is well goes first")
	assert.Len(t, cut.ManifestConditions[0].DriftDetails.ObservedDrifts, maxKeptDetails)
	assert.Len(t, status.ManifestConditions[0].DriftDetails.ObservedDrifts, compare.MaxDetails, "the status itself is left as it is")

	again := trimStatus(buildApplyStatus(1, outcomes, cut, morning), cut, room, 1, morning)
	assert.Empty(t, cmp.Diff(cut, again), "what is cut off is nothing new")
}

// dryRun makes a dry run, which the fake client does not support: it patches a copy of the object.
func dryRun(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options client.PatchOptions) error {
	current := o.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), current); err != nil {
		return err
	}
	aside := fake.NewClientBuilder().WithScheme(c.Scheme()).WithReturnManagedFields().WithObjects(current).Build()
	options.DryRun = nil
	return aside.Patch(ctx, o, p, &options)
}
