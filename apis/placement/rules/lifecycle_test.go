package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var hookTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// hooked is a binding in a state, with some of the marks of the hooks.
func hooked(state placementv1beta1.LifecycleState, marks ...string) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-a", Labels: map[string]string{}, Annotations: map[string]string{}}}
	b.Spec.ResourceSnapshotName = "web-0-snapshot"
	if state != "" {
		b.Labels[placementv1beta1.LifecycleStateLabel] = string(state)
		b.Annotations[placementv1beta1.LifecycleSinceAnnotation] = hookTime.Format(time.RFC3339)
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

func allHooks() *placementv1beta1.ClusterLifecycle {
	return &placementv1beta1.ClusterLifecycle{
		PreUpdate:    &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{"x/in": "yes", "x/on": "yes"}}},
		PreRemove:    &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{FinalizersHandler: []string{"x/drain"}}},
		PreAvailable: &placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{"x/in": "yes"}},
	}
}

func TestWhatAHookHolds(t *testing.T) {
	without := func(change func(*placementv1beta1.ClusterLifecycle)) *placementv1beta1.ClusterLifecycle {
		l := allHooks()
		change(l)
		return l
	}
	wrong := hooked("")
	wrong.Labels["x/in"] = "no"
	for sentence, test := range map[string]struct {
		hooks                      *placementv1beta1.ClusterLifecycle
		binding                    *placementv1beta1.ClusterResourceBinding
		update, removal, available string
	}{
		"without hooks nothing is held":   {binding: hooked(placementv1beta1.LifecyclePreparingUpdate, "x/in", "x/drain")},
		"without marks nothing is held":   {hooks: allHooks(), binding: hooked("")},
		"another value is not the hook's": {hooks: allHooks(), binding: wrong},
		"one of several labels holds updates": {
			hooks: allHooks(), binding: hooked("", "x/on"),
			update: "waits for label x/on=yes to be taken off binding web-a (hook preUpdate)",
		},
		"a finalizer holds removals": {
			hooks: allHooks(), binding: hooked(placementv1beta1.LifecycleNormal, "x/drain"),
			removal: "waits for finalizer x/drain to be taken off binding web-a (hook preRemove)",
		},
		"a prepared cluster says since when it waits, and is not available": {
			hooks: allHooks(), binding: hooked(placementv1beta1.LifecyclePreparingRemove, "x/drain"),
			removal:   "waits for finalizer x/drain to be taken off binding web-a since 2026-01-02T03:04:05Z (hook preRemove)",
			available: "waits for finalizer x/drain to be taken off binding web-a since 2026-01-02T03:04:05Z (hook preRemove)",
		},
		"a prepared cluster stays out of service until its turn": {
			hooks: allHooks(), binding: hooked(placementv1beta1.LifecyclePreparingUpdate), available: "waits for its turn since 2026-01-02T03:04:05Z (hook preUpdate)",
		},
		"a hook that is gone holds nothing": {hooks: without(func(l *placementv1beta1.ClusterLifecycle) { l.PreUpdate = nil }), binding: hooked(placementv1beta1.LifecyclePreparingUpdate, "x/in")},
		"all labels are to come back after an update": {
			hooks: allHooks(), binding: hooked(placementv1beta1.LifecycleUpdated, "x/in"),
			update:    "waits for label x/in=yes to be taken off binding web-a (hook preUpdate)",
			available: "waits for label x/on=yes to be put on binding web-a since 2026-01-02T03:04:05Z (hook preUpdate)",
		},
		"a new cluster waits for its labels": {
			hooks: allHooks(), binding: hooked(placementv1beta1.LifecyclePreparingAvailable),
			available: "waits for label x/in=yes to be put on binding web-a since 2026-01-02T03:04:05Z (hook preAvailable)",
		},
		"a cluster in which no hook holds anything is available": {hooks: allHooks(), binding: hooked(placementv1beta1.LifecycleNormal)},
	} {
		t.Run(sentence, func(t *testing.T) {
			text := func(w *HookWait) string {
				if w == nil {
					return ""
				}
				since := ""
				if !w.Since.IsZero() {
					since = " since " + w.Since.Format(time.RFC3339)
				}
				return fmt.Sprintf("waits for %s%s (hook %s)", w.Need(), since, w.Hook)
			}
			assert.Equal(t, test.update, text(HoldsUpdate(test.hooks, test.binding, hookTime)))
			assert.Equal(t, test.removal, text(HoldsRemoval(test.hooks, test.binding, hookTime)))
			assert.Equal(t, test.available, text(HoldsAvailable(test.hooks, test.binding, hookTime)))
		})
	}
}

func TestWhereAClusterStandsNext(t *testing.T) {
	for sentence, test := range map[string]struct {
		binding                *placementv1beta1.ClusterResourceBinding
		available              bool
		next, written, givenUp placementv1beta1.LifecycleState
	}{
		"no hook has held it":                           {binding: hooked("", "x/in"), available: true, givenUp: placementv1beta1.LifecycleNormal},
		"it is prepared, and stays so":                  {binding: hooked(placementv1beta1.LifecyclePreparingUpdate), available: true, next: placementv1beta1.LifecyclePreparingUpdate, written: placementv1beta1.LifecycleUpdating, givenUp: placementv1beta1.LifecycleUpdated},
		"it is prepared to be left":                     {binding: hooked(placementv1beta1.LifecyclePreparingRemove), next: placementv1beta1.LifecyclePreparingRemove, written: placementv1beta1.LifecycleUpdating, givenUp: placementv1beta1.LifecyclePreparingAvailable},
		"its update is not available yet":               {binding: hooked(placementv1beta1.LifecycleUpdating), next: placementv1beta1.LifecycleUpdating, written: placementv1beta1.LifecycleUpdating, givenUp: placementv1beta1.LifecycleNormal},
		"its update is available":                       {binding: hooked(placementv1beta1.LifecycleUpdating, "x/in"), available: true, next: placementv1beta1.LifecycleUpdated, written: placementv1beta1.LifecycleUpdating, givenUp: placementv1beta1.LifecycleNormal},
		"its update is available, and it is in service": {binding: hooked(placementv1beta1.LifecycleUpdating, "x/in", "x/on"), available: true, next: placementv1beta1.LifecycleNormal, written: placementv1beta1.LifecycleUpdating, givenUp: placementv1beta1.LifecycleNormal},
		"it is back in service":                         {binding: hooked(placementv1beta1.LifecycleUpdated, "x/in", "x/on"), next: placementv1beta1.LifecycleNormal, written: placementv1beta1.LifecycleUpdating, givenUp: placementv1beta1.LifecycleNormal},
		"it is new and not available":                   {binding: hooked(placementv1beta1.LifecyclePreparingAvailable, "x/in"), next: placementv1beta1.LifecyclePreparingAvailable, givenUp: placementv1beta1.LifecycleNormal},
		"it is new and in service":                      {binding: hooked(placementv1beta1.LifecyclePreparingAvailable, "x/in"), available: true, next: placementv1beta1.LifecycleNormal, givenUp: placementv1beta1.LifecycleNormal},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.next, NextState(allHooks(), test.binding, test.available))
			assert.Equal(t, test.written, StateWhenWritten(allHooks(), test.binding))
			assert.Equal(t, test.givenUp, StateWhenGivenUp(allHooks(), test.binding))
			var none *placementv1beta1.ClusterLifecycle
			assert.Empty(t, NextState(none, test.binding, test.available))
			assert.Empty(t, StateWhenWritten(none, test.binding))
		})
	}
	first := hooked("")
	first.Spec.ResourceSnapshotName = ""
	assert.Equal(t, placementv1beta1.LifecyclePreparingAvailable, StateWhenWritten(allHooks(), first), "its first resources")
}

func TestServingAndTheGracePeriod(t *testing.T) {
	hooks := allHooks()
	assert.Nil(t, ServingCondition(hooks, hooked("")))
	hooks.PreUpdate.MarkNotServing = true
	hooks.PreUpdate.GracePeriodSeconds = 30
	for state, want := range map[placementv1beta1.LifecycleState]metav1.ConditionStatus{
		"": metav1.ConditionTrue, placementv1beta1.LifecycleNormal: metav1.ConditionTrue, placementv1beta1.LifecyclePreparingUpdate: metav1.ConditionFalse,
		placementv1beta1.LifecycleUpdating: metav1.ConditionFalse, placementv1beta1.LifecycleUpdated: metav1.ConditionTrue, placementv1beta1.LifecyclePreparingRemove: metav1.ConditionTrue,
	} {
		assert.Equal(t, want, ServingCondition(hooks, hooked(state)).Status, state)
	}
	b := hooked(placementv1beta1.LifecyclePreparingUpdate)
	assert.Equal(t, "its turn", HoldsUpdate(hooks, b, hookTime).Need(), "the condition is not stored yet")
	serving := *ServingCondition(hooks, b)
	serving.LastTransitionTime = metav1.NewTime(hookTime)
	b.Status.Conditions = []metav1.Condition{serving}
	assert.Equal(t, "the end of the grace period at 2026-01-02T03:04:35Z", HoldsUpdate(hooks, b, hookTime.Add(29*time.Second)).Need())
	assert.Nil(t, HoldsUpdate(hooks, b, hookTime.Add(30*time.Second)))
	assert.Nil(t, HoldsUpdate(hooks, hooked(""), hookTime), "a cluster without marks is not held")
	assert.Equal(t, []string{"x/drain"}, HookFinalizers(hooks))
}
