package placement

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// What keeps a cluster of a placement from moving is said in conditions and events. The words are in one file, so that they change on
// purpose.
func TestTheWordsOfWhatKeepsAClusterFromMoving(t *testing.T) {
	var said strings.Builder
	for _, scene := range brakeScenes() {
		s := scene.situation
		s.Verdict.Snapshot = s.Latest.Name
		s.Verdict.Index = s.Latest.Index
		at := now
		if scene.later {
			s.Placement.Status = Project(s.Facts, View{Now: now})
			at = metav1.NewTime(now.Add(wf.StuckAfter))
		}
		status, stuck := project(s.Facts, View{Now: at})
		fmt.Fprintf(&said, "# %s\n", scene.name)
		tell := func(of string, conditions []metav1.Condition) {
			for _, c := range conditions {
				if c.Status != metav1.ConditionTrue || strings.HasSuffix(c.Type, placementv1beta1.ConditionTypeRolloutStarted) || c.Type == "Held" ||
					c.Type == placementv1beta1.ConditionTypeClustersLeaving {
					fmt.Fprintf(&said, "%s: %s=%s %s: %s\n", of, c.Type, c.Status, c.Reason, c.Message)
				}
			}
		}
		tell("placement", status.Conditions)
		for _, cluster := range status.PerClusterPlacementStatuses {
			tell(cluster.ClusterName, cluster.Conditions)
		}
		fmt.Fprintf(&said, "need: %s\n", NeedsWork(s.Facts).Cause)
		recorder := events.NewFakeRecorder(100)
		a := newAnnouncer(recorder)
		a.emitEvents(s.Placement, s.Bindings, status)
		a.emitStuckEvent(s.Placement, stuck)
		a.emitHeldEvents(t.Context(), s.Placement, status)
		a.emitClosedEvents(s.Placement, status)
		a.emitRefusedEvents(s.Placement, status)
		a.emitSchedulingEvents(s.Facts, status)
		close(recorder.Events)
		for event := range recorder.Events {
			said.WriteString(event + "\n")
		}
		said.WriteString("\n")
	}
	path := filepath.Join("testdata", "brakes.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(said.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(string(want), said.String()), "run with -update and look at the difference")
}

type brakeScene struct {
	name string
	situation
	// later looks once more, when the wait has lasted.
	later bool
}

// closing closes clusters for what would begin on them.
func (s situation) closing(closure rollout.Wait, clusters ...string) situation {
	s.Closed = map[string]rollout.Wait{}
	for _, cluster := range clusters {
		s.Closed[s.binding(cluster).Name] = closure
	}
	return s
}

// refusing has the placement tell that the bindings of clusters cannot be written.
func (s situation) refusing(clusters ...string) situation {
	var told rules.RefusedWrites
	for _, cluster := range clusters {
		told.Clusters = append(told.Clusters, rules.RefusedWrite{
			Cluster: cluster, Why: `admission webhook "freeze.example.com" denied the request: not on Saturdays`, Since: now.UTC(),
		})
	}
	if s.Placement.GetAnnotations() == nil {
		s.Placement.SetAnnotations(map[string]string{})
	}
	s.Placement.GetAnnotations()[placementv1beta1.RefusedWritesAnnotation] = told.Encode()
	return s
}

// claiming has the placement claim clusters, with nothing on their bindings that gives the claim back.
func (s situation) claiming(clusters ...string) situation {
	uids := map[string]string{}
	for _, cluster := range clusters {
		uid := string(s.binding(cluster).UID)
		uids[cluster] = uid[:min(8, len(uid))]
	}
	text, _ := json.Marshal(map[string]any{"epoch": 1, "clusters": uids})
	if s.Placement.GetAnnotations() == nil {
		s.Placement.SetAnnotations(map[string]string{})
	}
	s.Placement.GetAnnotations()[placementv1beta1.RolloutClaimAnnotation] = string(text)
	return s
}

// leaving has the placement no longer pick clusters that have resources.
func (s situation) leaving(clusters ...string) situation {
	for _, cluster := range clusters {
		s.binding(cluster).Spec.State = placementv1beta1.BindingStateUnscheduled
		s.Policy.Status.ClusterDecisions = slices.DeleteFunc(s.Policy.Status.ClusterDecisions, func(d placementv1beta1.ClusterDecision) bool {
			return d.ClusterName == cluster
		})
	}
	return s
}

// runsTakeOver leaves the rollout to update runs.
func runsTakeOver(s situation) situation {
	s.Placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	return s
}

func brakeScenes() []brakeScene {
	partition := func(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
	none := placementv1beta1.RollingUpdateConfig{}
	only := func(clusters ...string) placementv1beta1.Suspension {
		return placementv1beta1.Suspension{ClusterNames: clusters}
	}
	hold := rollout.Wait{Kind: rollout.BrakeHold, Object: "incident", Reason: fleetflowv1alpha1.ReasonHoldInForce, Why: "payments down"}
	ends := hold
	ends.Until = now.Add(time.Hour)
	allow := rollout.Wait{Kind: rollout.BrakeWindow, Object: "nights", Reason: fleetflowv1alpha1.ReasonOutsideAllowedWindow, Until: now.Add(2 * time.Hour)}
	deny := rollout.Wait{Kind: rollout.BrakeWindow, Object: "fair", Reason: fleetflowv1alpha1.ReasonWindowClosed, Why: "the fair", Until: now.Add(2 * time.Hour)}
	busy := rollout.Wait{Kind: rollout.BrakeBusy, Object: "d", Reason: fleetflowv1alpha1.ReasonClusterBusy, Why: "month-end", Until: now.Add(2 * time.Hour)}
	immovable := placementv1beta1.RollingUpdateConfig{MaxUnavailable: new(intstr.FromInt32(0))}
	full := newSituation("a", "b", "c").bound(0, up, "a", "b").rolling(placementv1beta1.RollingUpdateConfig{
		MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(0)),
	})
	full.Placement.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(2))}
	lacking := threeOfFive(none)
	lacking.Overrides.Lacking = []string{"ClusterResourceOverride cro"}
	disabled := newSituation("a").bound(0, up, "a")
	disabled.Verdict.Held = []string{"configmaps", "secrets"}
	leaving := threeOfFive(none).leaving("d", "e").suspending(only("e"))
	leavingHooked := hooked(1, placementv1beta1.LifecyclePreparingRemove).leaving("a")
	return []brakeScene{
		{"nothing keeps it", threeOfFive(none), false},
		{"a partition that is reached", threeOfFive(placementv1beta1.RollingUpdateConfig{Partition: partition(3)}), false},
		{"a partition that is not reached", threeOfFive(placementv1beta1.RollingUpdateConfig{Partition: partition(2)}), false},
		{"a pause", threeOfFive(placementv1beta1.RollingUpdateConfig{Paused: true}), true},
		{"a pause and a partition", threeOfFive(placementv1beta1.RollingUpdateConfig{Paused: true, Partition: partition(4)}), false},
		{"some clusters are suspended", threeOfFive(none).suspending(only("c")), false},
		{"all that is outdated is suspended", threeOfFive(none).suspending(only("c", "d", "e")), true},
		{"all is suspended", threeOfFive(none).suspending(placementv1beta1.Suspension{All: true}), false},
		{"suspension and partition", threeOfFive(placementv1beta1.RollingUpdateConfig{Partition: partition(3)}).suspending(only("c")), false},
		{"suspension and pause", threeOfFive(placementv1beta1.RollingUpdateConfig{Paused: true}).suspending(only("c")), false},
		{"maxUnavailable 0", threeOfFive(immovable), false},
		{"maxUnavailable 0 and a pause", threeOfFive(placementv1beta1.RollingUpdateConfig{Paused: true, MaxUnavailable: immovable.MaxUnavailable}), true},
		{"maxUnavailable for too long", threeOfFive(none), true},
		{"maxSurge 0", full, true},
		{"a hook holds an update", hooked(0, placementv1beta1.LifecyclePreparingUpdate), false},
		{"a hook during a pause", hooked(0, placementv1beta1.LifecyclePreparingUpdate).rolling(placementv1beta1.RollingUpdateConfig{Paused: true}), false},
		{"a hold", threeOfFive(none).closing(hold, "c", "d", "e"), true},
		{"a hold on one cluster until a time", threeOfFive(none).closing(ends, "d"), false},
		{"outside of a window", threeOfFive(none).closing(allow, "c", "d", "e"), false},
		{"a window that denies", threeOfFive(none).closing(deny, "c", "d", "e"), false},
		{"a busy cluster", threeOfFive(none).closing(busy, "d"), false},
		{"a hold over a hook", hooked(0, placementv1beta1.LifecyclePreparingUpdate).closing(hold, "a", "b"), false},
		{"a refused write", threeOfFive(none).refusing("d"), false},
		{"refused writes", threeOfFive(none).refusing("c", "d", "e"), true},
		{"a refused write whose claim stays", threeOfFive(placementv1beta1.RollingUpdateConfig{
			MaxUnavailable: new(intstr.FromInt32(1)),
		}).refusing("d").claiming("d"), true},
		{"a refused write before runs took over", runsTakeOver(threeOfFive(none).refusing("d")), false},
		{"a hold over a refused write", threeOfFive(none).closing(hold, "c", "d", "e").refusing("d"), false},
		{"a refused write during a pause", threeOfFive(placementv1beta1.RollingUpdateConfig{Paused: true}).refusing("d"), false},
		{"an override that is required and missing", lacking, false},
		{"a kind whose propagation is disabled", disabled, false},
		{"clusters that are not available", newSituation("a", "b").bound(0, notUp, "a").bound(0, notApplied, "b"), true},
		{"clusters that are to be left", leaving, false},
		{"a hook holds a removal", leavingHooked, false},
	}
}
