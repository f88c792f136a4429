package brakes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub"
	"github.com/fleetflow/fleetflow/controllers/hub/brakes"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var noon = time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)

// looker looks at one exemption again and again.
type looker struct {
	*testing.T
	client.Client
	clk  *clocktesting.FakePassiveClock
	rule hubread.ExemptionRule
}

func newLooker(t *testing.T, change func(*fleetflowv1alpha1.RolloutExemption)) *looker {
	t.Helper()
	exemption := &fleetflowv1alpha1.RolloutExemption{
		ObjectMeta: metav1.ObjectMeta{
			Name: "hotfix", UID: "hotfix", Generation: 1, CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane"},
		},
		Spec: fleetflowv1alpha1.RolloutExemptionSpec{
			TargetRef: fleetflowv1alpha1.ExemptRun("", "web-17"), ExemptFrom: []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "incident"}, {Kind: fleetflowv1alpha1.ExemptFromWindow}},
			Message: "CVE-2026-1", Ticket: "INC-9", ExpirationTime: metav1.NewTime(noon.Add(2 * time.Hour)),
		},
	}
	if change != nil {
		change(exemption)
	}
	c := fixture.NewClientBuilder(hub.Scheme()).WithStatusSubresource(exemption).WithObjects(exemption).Build()
	return &looker{t, c, clocktesting.NewFakePassiveClock(noon), hubread.ExemptionRule{}}
}

// look returns the condition Effective, what was told, and after how long to look again.
func (l *looker) look() (effective string, told []string, again time.Duration) {
	l.Helper()
	recorder := events.NewFakeRecorder(10)
	result, err := brakes.NewExemptionReconciler(l, recorder, l.clk, l.rule).Reconcile(l.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "hotfix"}})
	require.NoError(l, err)
	for len(recorder.Events) > 0 {
		told = append(told, <-recorder.Events)
	}
	said := meta.FindStatusCondition(l.stored().Status.Conditions, fleetflowv1alpha1.ConditionTypeEffective)
	require.NotNil(l, said)
	return string(said.Status) + " " + said.Reason, told, result.RequeueAfter
}

func (l *looker) stored() *fleetflowv1alpha1.RolloutExemption {
	l.Helper()
	stored := &fleetflowv1alpha1.RolloutExemption{}
	require.NoError(l, l.Get(l.Context(), client.ObjectKey{Name: "hotfix"}, stored))
	return stored
}

func TestAnExemptionSaysWhetherItCountsAndUntilWhen(t *testing.T) {
	l := newLooker(t, nil)
	effective, told, again := l.look()
	assert.Equal(t, "False NoSuchTarget", effective)
	assert.Equal(t, []string{"Warning ExemptionNotEffective There is no run/web-17 that was there when the exemption was made, and one that gets its name later is not exempt: " +
		"create another exemption once it is there"}, told)
	assert.Equal(t, 2*time.Hour, again)

	later := runAt(noon.Add(time.Second), "another")
	require.NoError(t, l.Create(t.Context(), later))
	effective, _, _ = l.look()
	assert.Equal(t, "False NoSuchTarget", effective, "it was made for another")
	require.NoError(t, l.Delete(t.Context(), later))
	require.NoError(t, l.Create(t.Context(), runAt(noon.Add(-time.Minute), "web-17")))
	effective, told, _ = l.look()
	assert.Equal(t, "True ExemptionInForce", effective)
	const record = "Warning RolloutExempted exemption hotfix: jane exempts run/web-17 from hold/incident, window until 2026-11-23T14:00:00Z: CVE-2026-1 (INC-9)"
	assert.Equal(t, []string{record, record}, told, "on the exemption, and on the run")
	assert.Equal(t, &fleetflowv1alpha1.ExemptionCreator{Username: "jane", Verified: true}, l.stored().Status.CreatedBy)
	assert.True(t, meta.IsStatusConditionTrue(l.stored().Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted))
	version := l.stored().ResourceVersion
	_, told, _ = l.look()
	assert.Empty(t, told, "nothing is told twice")
	assert.Equal(t, version, l.stored().ResourceVersion)

	l.clk.SetTime(noon.Add(2 * time.Hour))
	effective, told, again = l.look()
	assert.Equal(t, "False ExemptionExpired", effective)
	assert.Equal(t, []string{"Normal ExemptionExpired The exemption has expired and is kept for the record"}, told)
	assert.Zero(t, again)
	require.NoError(t, l.Delete(t.Context(), l.stored()))
}

// runAt is the run that is exempt, created at an instant.
func runAt(created time.Time, uid types.UID) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-17", UID: uid, CreationTimestamp: metav1.NewTime(created)}}
}

func TestAnExemptionWithAUIDIsForThatRun(t *testing.T) {
	l := newLooker(t, func(e *fleetflowv1alpha1.RolloutExemption) { e.Spec.TargetRef.UID = "mine" })
	other := runAt(noon.Add(-time.Minute), "another")
	require.NoError(t, l.Create(t.Context(), other))
	effective, _, _ := l.look()
	assert.Equal(t, "False NoSuchTarget", effective)
	require.NoError(t, l.Delete(t.Context(), other))
	require.NoError(t, l.Create(t.Context(), runAt(noon.Add(time.Minute), "mine")))
	effective, _, _ = l.look()
	assert.Equal(t, "True ExemptionInForce", effective)
}

func TestWhyAnExemptionDoesNotCount(t *testing.T) {
	l := newLooker(t, func(e *fleetflowv1alpha1.RolloutExemption) { e.Annotations = nil })
	effective, told, _ := l.look()
	assert.Equal(t, "False ExemptionUnverified", effective)
	assert.Len(t, told, 1)
	assert.Equal(t, &fleetflowv1alpha1.ExemptionCreator{}, l.stored().Status.CreatedBy)
	l.rule.Unverified = true
	effective, _, _ = l.look()
	assert.Equal(t, "False NoSuchTarget", effective, "it counts where the chart says that it may")

	l = newLooker(t, func(e *fleetflowv1alpha1.RolloutExemption) {
		e.Spec.ExpirationTime = metav1.NewTime(noon.Add(25 * time.Hour))
	})
	effective, _, _ = l.look()
	assert.Equal(t, "False ExemptionTooLong", effective)
}
