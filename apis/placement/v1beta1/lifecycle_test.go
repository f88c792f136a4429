package v1beta1

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var hookTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// hooked is a binding in a state, with some of the marks of the hooks.
func hooked(state LifecycleState, marks ...string) *ClusterResourceBinding {
	b := &ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-a", Labels: map[string]string{}, Annotations: map[string]string{}}}
	b.Spec.ResourceSnapshotName = "web-0-snapshot"
	if state != "" {
		b.Labels[LifecycleStateLabel] = string(state)
		b.Annotations[LifecycleSinceAnnotation] = hookTime.Format(time.RFC3339)
	}
	for _, mark := range marks {
		if mark == "x/drain" {
			b.Finalizers = append(b.Finalizers, mark)
		} else {
			b.Labels[mark] = "yes"
		}
	}
	return b
}

func allHooks() *ClusterLifecycle {
	return &ClusterLifecycle{
		PreUpdate:    &ClusterDrainHook{ClusterHook: ClusterHook{LabelsHandler: map[string]HookLabelValue{"x/in": "yes", "x/on": "yes"}}},
		PreRemove:    &ClusterDrainHook{ClusterHook: ClusterHook{FinalizersHandler: []string{"x/drain"}}},
		PreAvailable: &ClusterHook{LabelsHandler: map[string]HookLabelValue{"x/in": "yes"}},
	}
}

func TestWhatAHookHolds(t *testing.T) {
	without := func(change func(*ClusterLifecycle)) *ClusterLifecycle {
		l := allHooks()
		change(l)
		return l
	}
	wrong := hooked("")
	wrong.Labels["x/in"] = "no"
	for sentence, test := range map[string]struct {
		hooks                      *ClusterLifecycle
		binding                    *ClusterResourceBinding
		update, removal, available string
	}{
		"without hooks nothing is held":   {binding: hooked(LifecyclePreparingUpdate, "x/in", "x/drain")},
		"without marks nothing is held":   {hooks: allHooks(), binding: hooked("")},
		"another value is not the hook's": {hooks: allHooks(), binding: wrong},
		"one of several labels holds updates": {
			hooks: allHooks(), binding: hooked("", "x/on"),
			update: "waits for label x/on=yes to be taken off binding web-a (hook preUpdate)",
		},
		"a finalizer holds removals": {
			hooks: allHooks(), binding: hooked(LifecycleNormal, "x/drain"),
			removal: "waits for finalizer x/drain to be taken off binding web-a (hook preRemove)",
		},
		"a prepared cluster says since when it waits, and is not available": {
			hooks: allHooks(), binding: hooked(LifecyclePreparingRemove, "x/drain"),
			removal:   "waits for finalizer x/drain to be taken off binding web-a since 2026-01-02T03:04:05Z (hook preRemove)",
			available: "waits for finalizer x/drain to be taken off binding web-a since 2026-01-02T03:04:05Z (hook preRemove)",
		},
		"a prepared cluster stays out of service until its turn": {
			hooks: allHooks(), binding: hooked(LifecyclePreparingUpdate), available: "waits for its turn since 2026-01-02T03:04:05Z (hook preUpdate)",
		},
		"a hook that is gone holds nothing": {hooks: without(func(l *ClusterLifecycle) { l.PreUpdate = nil }), binding: hooked(LifecyclePreparingUpdate, "x/in")},
		"all labels are to come back after an update": {
			hooks: allHooks(), binding: hooked(LifecycleUpdated, "x/in"),
			update:    "waits for label x/in=yes to be taken off binding web-a (hook preUpdate)",
			available: "waits for label x/on=yes to be put on binding web-a since 2026-01-02T03:04:05Z (hook preUpdate)",
		},
		"a new cluster waits for its labels": {
			hooks: allHooks(), binding: hooked(LifecyclePreparingAvailable),
			available: "waits for label x/in=yes to be put on binding web-a since 2026-01-02T03:04:05Z (hook preAvailable)",
		},
		"a cluster in which no hook holds anything is available": {hooks: allHooks(), binding: hooked(LifecycleNormal)},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := func(w *HookWait) string {
				if w == nil {
					return ""
				}
				return w.Text()
			}
			assert.Equal(t, test.update, text(test.hooks.HoldsUpdate(test.binding, hookTime)))
			assert.Equal(t, test.removal, text(test.hooks.HoldsRemoval(test.binding, hookTime)))
			assert.Equal(t, test.available, text(test.hooks.HoldsAvailable(test.binding, hookTime)))
		})
	}
}

func TestWhereAClusterStandsNext(t *testing.T) {
	for sentence, test := range map[string]struct {
		binding                *ClusterResourceBinding
		available              bool
		next, written, givenUp LifecycleState
	}{
		"no hook has held it":                           {binding: hooked("", "x/in"), available: true, givenUp: LifecycleNormal},
		"it is prepared, and stays so":                  {binding: hooked(LifecyclePreparingUpdate), available: true, next: LifecyclePreparingUpdate, written: LifecycleUpdating, givenUp: LifecycleUpdated},
		"it is prepared to be left":                     {binding: hooked(LifecyclePreparingRemove), next: LifecyclePreparingRemove, written: LifecycleUpdating, givenUp: LifecyclePreparingAvailable},
		"its update is not available yet":               {binding: hooked(LifecycleUpdating), next: LifecycleUpdating, written: LifecycleUpdating, givenUp: LifecycleNormal},
		"its update is available":                       {binding: hooked(LifecycleUpdating, "x/in"), available: true, next: LifecycleUpdated, written: LifecycleUpdating, givenUp: LifecycleNormal},
		"its update is available, and it is in service": {binding: hooked(LifecycleUpdating, "x/in", "x/on"), available: true, next: LifecycleNormal, written: LifecycleUpdating, givenUp: LifecycleNormal},
		"it is back in service":                         {binding: hooked(LifecycleUpdated, "x/in", "x/on"), next: LifecycleNormal, written: LifecycleUpdating, givenUp: LifecycleNormal},
		"it is new and not available":                   {binding: hooked(LifecyclePreparingAvailable, "x/in"), next: LifecyclePreparingAvailable, givenUp: LifecycleNormal},
		"it is new and in service":                      {binding: hooked(LifecyclePreparingAvailable, "x/in"), available: true, next: LifecycleNormal, givenUp: LifecycleNormal},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.next, allHooks().NextState(test.binding, test.available))
			assert.Equal(t, test.written, allHooks().StateWhenWritten(test.binding))
			assert.Equal(t, test.givenUp, allHooks().StateWhenGivenUp(test.binding))
			var none *ClusterLifecycle
			assert.Empty(t, none.NextState(test.binding, test.available))
			assert.Empty(t, none.StateWhenWritten(test.binding))
		})
	}
	first := hooked("")
	first.Spec.ResourceSnapshotName = ""
	assert.Equal(t, LifecyclePreparingAvailable, allHooks().StateWhenWritten(first), "its first resources")
}

func TestServingAndTheGracePeriod(t *testing.T) {
	hooks := allHooks()
	assert.Nil(t, hooks.ServingCondition(hooked("")))
	hooks.PreUpdate.MarkNotServing = true
	hooks.PreUpdate.GracePeriodSeconds = 30
	for state, want := range map[LifecycleState]metav1.ConditionStatus{
		"": metav1.ConditionTrue, LifecycleNormal: metav1.ConditionTrue, LifecyclePreparingUpdate: metav1.ConditionFalse,
		LifecycleUpdating: metav1.ConditionFalse, LifecycleUpdated: metav1.ConditionTrue, LifecyclePreparingRemove: metav1.ConditionTrue,
	} {
		assert.Equal(t, want, hooks.ServingCondition(hooked(state)).Status, state)
	}
	b := hooked(LifecyclePreparingUpdate)
	assert.Equal(t, "its turn", hooks.HoldsUpdate(b, hookTime).Need(), "the condition is not stored yet")
	serving := *hooks.ServingCondition(b)
	serving.LastTransitionTime = metav1.NewTime(hookTime)
	b.Status.Conditions = []metav1.Condition{serving}
	assert.Equal(t, "the end of the grace period at 2026-01-02T03:04:35Z", hooks.HoldsUpdate(b, hookTime.Add(29*time.Second)).Need())
	assert.Nil(t, hooks.HoldsUpdate(b, hookTime.Add(30*time.Second)))
	assert.Nil(t, hooks.HoldsUpdate(hooked(""), hookTime), "a cluster without marks is not held")
	assert.Equal(t, []string{"x/drain"}, hooks.HookFinalizers())
}
