package work

import (
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

const (
	repairWrite = "member patch ConfigMap a"
	reportWrite = "hub status Work w"
)

// overwrite has another client change the object of a Work.
func (a *agent) overwrite(t *testing.T, value string) {
	t.Helper()
	got := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, got, "a"))
	got.Data["x"] = value
	require.NoError(t, a.member.Update(t.Context(), got))
}

func (a *agent) appliedCondition(t *testing.T) *metav1.Condition {
	t.Helper()
	return meta.FindStatusCondition(a.work(t, "w").Status.ManifestConditions[0].Conditions, placementv1beta1.ConditionTypeApplied)
}

// fight overwrites the object until it counts as contested.
func (a *agent) fight(t *testing.T) {
	t.Helper()
	for count := 1; count < contestedFrom; count++ {
		assert.Equal(t, placementv1beta1.ReasonApplied, a.appliedCondition(t).Reason, "after %d writes", count)
		a.overwrite(t, "theirs")
		a.clock.SetTime(a.clock.Now().Add(maxRetryDelay))
		assert.Contains(t, a.mustReconcile(t, "w"), repairWrite)
	}
}

func TestAnObjectThatAnotherClientKeepsOverwritingIsReportedAsContested(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	a.fight(t)
	applied := a.appliedCondition(t)
	assert.Equal(t, metav1.ConditionTrue, applied.Status)
	assert.Equal(t, placementv1beta1.ReasonAppliedWithDifference, applied.Reason)
	assert.Contains(t, applied.Message, "Another client of the member's API server keeps overwriting the object")
	assert.Contains(t, applied.Message, `/data/x is "theirs" and not "1"`)
	details := a.work(t, "w").Status.ManifestConditions[0].DriftDetails
	require.NotNil(t, details)
	assert.Equal(t, "/data/x", details.ObservedDrifts[0].Path)

	assert.Empty(t, a.mustReconcile(t, "w"), "it is as wanted again, and is not reported as well for that")
	for range 5 {
		a.overwrite(t, "theirs")
		assert.Empty(t, a.mustReconcile(t, "w"), "a repair that is held back is told already")
		a.clock.SetTime(a.clock.Now().Add(maxRetryDelay))
		assert.Equal(t, []string{repairWrite}, a.mustReconcile(t, "w"), "the report does not change with a repair")
	}

	_, result, err := a.reconcileByName(t, "w")
	require.NoError(t, err)
	assert.LessOrEqual(t, result.RequeueAfter, repairResetPeriod+time.Millisecond)
	a.clock.SetTime(a.clock.Now().Add(repairResetPeriod))
	assert.Empty(t, a.mustReconcile(t, "w"))
	a.clock.SetTime(a.clock.Now().Add(time.Second))
	assert.Equal(t, []string{reportWrite}, a.mustReconcile(t, "w"), "it was quiet for long enough")
	assert.Equal(t, placementv1beta1.ReasonApplied, a.appliedCondition(t).Reason)
	assert.Nil(t, a.work(t, "w").Status.ManifestConditions[0].DriftDetails)
	a.overwrite(t, "theirs")
	assert.Equal(t, []string{repairWrite}, a.mustReconcile(t, "w"), "the count has begun anew")
}

func TestAnObjectThatAnotherClientKeepsRemovingIsReportedAsContested(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	remove := func() {
		require.NoError(t, a.member.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}))
	}
	for range contestedFrom - 1 {
		assert.Equal(t, placementv1beta1.ReasonApplied, a.appliedCondition(t).Reason)
		remove()
		a.clock.SetTime(a.clock.Now().Add(maxRetryDelay))
		a.mustReconcile(t, "w")
	}
	applied := a.appliedCondition(t)
	assert.Equal(t, metav1.ConditionTrue, applied.Status, "it is there")
	assert.Equal(t, placementv1beta1.ReasonAppliedWithDifference, applied.Reason)
	assert.Contains(t, applied.Message, "keeps removing the object")
	assert.Contains(t, applied.Message, "end that client")
	details := a.work(t, "w").Status.ManifestConditions[0].DriftDetails
	require.NotNil(t, details, "the placement counts it as drifted, and an event says so")
	assert.Equal(t, compare.Absent().Details, details.ObservedDrifts)

	remove()
	a.mustReconcile(t, "w")
	applied = a.appliedCondition(t)
	assert.Equal(t, metav1.ConditionFalse, applied.Status, "it is gone, and is not created yet")
	assert.Contains(t, applied.Message, "end that client")
}

func TestAnObjectWhoseMarksAnotherClientKeepsRemovingIsReportedAsContested(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	for range contestedFrom - 1 {
		assert.Equal(t, placementv1beta1.ReasonApplied, a.appliedCondition(t).Reason)
		got := &corev1.ConfigMap{}
		require.True(t, a.readMember(t, got, "a"))
		got.Annotations = nil
		require.NoError(t, a.member.Update(t.Context(), got))
		a.clock.SetTime(a.clock.Now().Add(maxRetryDelay))
		assert.Contains(t, a.mustReconcile(t, "w"), repairWrite)
	}
	applied := a.appliedCondition(t)
	assert.Equal(t, placementv1beta1.ReasonAppliedWithDifference, applied.Reason)
	assert.Contains(t, applied.Message, "keeps removing what marks the object as placed")
	details := a.work(t, "w").Status.ManifestConditions[0].DriftDetails
	require.NotNil(t, details, "the placement counts it as drifted, and an event says so")
	assert.Equal(t, compare.Unmarked().Details, details.ObservedDrifts)
}

func TestValuesThatChangeAllTheTimeAreToldOnceAMinute(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	a.fight(t)
	reports := 0
	for i := range 60 {
		a.overwrite(t, string(rune('A'+i)))
		a.clock.SetTime(a.clock.Now().Add(3 * time.Second))
		if slices.Contains(a.mustReconcile(t, "w"), reportWrite) {
			reports++
		}
	}
	assert.Equal(t, 3, reports, "in three minutes")
}

func TestAHubThatIsAwayIsAskedEverMoreSeldomWhateverHappensToObjects(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a")}, nil)
	a.mustReconcile(t, "w")
	away := true
	a.fail = func(write string) error {
		if away && write == reportWrite {
			return &url.Error{Op: "Patch", URL: "https://hub", Err: errors.New("refused")}
		}
		return nil
	}
	asked := 0
	repaired := 0
	for range 400 { // 20 s
		a.overwrite(t, "theirs")
		a.clock.SetTime(a.clock.Now().Add(50 * time.Millisecond))
		writes, _, _ := a.reconcileByName(t, "w")
		for _, write := range writes {
			switch write {
			case reportWrite:
				asked++
			case repairWrite:
				repaired++
			}
		}
	}
	assert.Less(t, asked, 10)
	assert.Positive(t, asked)
	assert.Less(t, repaired, 15, "that the hub is away does not make repairs more frequent")
	assert.Greater(t, repaired, contestedFrom)

	away = false
	a.clock.SetTime(a.clock.Now().Add(maxReconnectDelay))
	assert.Contains(t, a.mustReconcile(t, "w"), reportWrite)
	assert.Equal(t, placementv1beta1.ReasonAppliedWithDifference, a.appliedCondition(t).Reason)
}

func TestAReportOnANewGenerationIsNotHeldBack(t *testing.T) {
	now := noon.Time
	u := unsent{}
	assert.False(t, u.mustWait(1, now))
	for range 20 {
		u = u.addFailure(1, now)
	}
	assert.True(t, u.mustWait(1, now.Add(maxReconnectDelay-time.Millisecond)))
	assert.False(t, u.mustWait(1, now.Add(maxReconnectDelay)))
	assert.False(t, u.mustWait(2, now), "it comes from a hub that is back")
	assert.Equal(t, 1, u.addFailure(2, now).tries.failures)
}
