package stagedupdate_test

import (
	"flag"
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

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

var updateBrakes = flag.Bool("update", false, "write the words of the brakes anew")

// What keeps a cluster of a run from moving is said in conditions, events and to the workflow. The words are in one file, so that they
// change on purpose.
func TestTheWordsOfWhatKeepsAClusterOfARunFromMoving(t *testing.T) {
	var said strings.Builder
	for _, scene := range brakeScenes() {
		t.Run(scene.name, func(t *testing.T) {
			h := initialized(t)
			if scene.deletes {
				h = howTo(t, bindingObject("member4", placementv1beta1.BindingStateUnscheduled, oldSnapshot), clusterObject("member4"))
				initialize(h, "example-run-2")
			}
			h.events = nil
			fmt.Fprintf(&said, "# %s\n", scene.name)
			if waits := scene.play(h); waits != nil {
				fmt.Fprintf(&said, "workflow: %+v\n", waits)
			}
			for _, line := range h.saysOfBrakes() {
				said.WriteString(line + "\n")
			}
			said.WriteString("\n")
		})
	}
	path := filepath.Join("testdata", "brakes.txt")
	if *updateBrakes {
		require.NoError(t, os.WriteFile(path, []byte(said.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(string(want), said.String()), "run with -update and look at the difference")
}

// brakeScene has a brake keep clusters of a run from moving.
type brakeScene struct {
	name    string
	deletes bool
	// play returns what the workflow waits for, if the call has ended.
	play func(h *hub) []wf.TaskWait
}

func brakeScenes() []brakeScene {
	update := func(brake func(h *hub)) func(h *hub) []wf.TaskWait {
		return func(h *hub) []wf.TaskWait {
			brake(h)
			h.advancing(canaryAdvance(names("member3", "member1"), nil, nil))
			return nil
		}
	}
	standing := func(brake func(h *hub)) func(h *hub) []wf.TaskWait {
		return func(h *hub) []wf.TaskWait {
			brake(h)
			return must(h, h.acts.AdvanceStage, canaryAdvance(names("member3", "member1"), nil, nil)).Held
		}
	}
	removal := func(brake func(h *hub)) func(h *hub) []wf.TaskWait {
		return func(h *hub) []wf.TaskWait {
			brake(h)
			background(h, func() wf.DeletionResult { return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")) })
			h.untilItWaits()
			return nil
		}
	}
	refuse := func(clusters ...string) func(h *hub) {
		return func(h *hub) {
			for _, name := range clusters {
				h.refuse(name, answers(403, metav1.StatusReasonForbidden, denial))
			}
		}
	}
	hook := func(clusters ...string) func(h *hub) {
		return func(h *hub) {
			h.hooked()
			for _, name := range clusters {
				h.mark(name, true)
			}
		}
	}
	until := func(h *hub) *metav1.Time { return &metav1.Time{Time: h.clock.Now().Add(time.Hour)} }
	hold := func(h *hub) { h.hold(nil) }
	holdUntil := func(h *hub) {
		h.hold(func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ExpirationTime = until(h) })
	}
	window := func(change func(*fleetflowv1alpha1.RolloutWindowSpec)) func(h *hub) {
		return func(h *hub) {
			h.window(func(s *fleetflowv1alpha1.RolloutWindowSpec) {
				s.Scope = fleetflowv1alpha1.WindowFleet
				change(s)
			})
		}
	}
	all := func(brakes ...func(h *hub)) func(h *hub) {
		return func(h *hub) {
			for _, brake := range brakes {
				brake(h)
			}
		}
	}
	busy := func(clusters ...string) func(h *hub) {
		return func(h *hub) {
			for _, name := range clusters {
				h.makeBusy(name, *until(h))
			}
		}
	}
	otherBase := func(clusters ...string) func(h *hub) {
		return func(h *hub) {
			editStatus(h, h.run("example-run-2"), func(r *placementv1beta1.ClusterStagedUpdateRun) {
				r.Status.UpdateStrategySnapshot.VerifyBase = true
				for i := range r.Status.StagesStatus[1].Clusters {
					if c := &r.Status.StagesStatus[1].Clusters[i]; slices.Contains(clusters, c.ClusterName) {
						c.Base = "example-placement-6-snapshot@0123456789ab"
					}
				}
			})
		}
	}
	suspend := func(clusters ...string) func(h *hub) { return func(h *hub) { h.suspend(clusters...) } }
	return []brakeScene{
		{"writes are refused", false, update(refuse("member3", "member1"))},
		{"a write is refused for too long", false, func(h *hub) []wf.TaskWait {
			refuse("member3", "member1")(h)
			delta := h.advancing(canaryAdvance(names("member3", "member1"), nil, nil))
			h.clock.Step(5 * time.Minute)
			<-delta
			return nil
		}},
		{"clusters are suspended", false, update(suspend("member3", "member1"))},
		{"hooks hold updates", false, update(hook("member3", "member1"))},
		{"a suspended cluster has a hook", false, update(all(hook("member3"), suspend("member3")))},
		{"a hold without an end", false, standing(hold)},
		{"a hold until a time", false, standing(holdUntil)},
		{"a window of no further opening", false, standing(window(func(s *fleetflowv1alpha1.RolloutWindowSpec) { s.Message = "nights only" }))},
		{"a window that opens later", false, standing(window(func(s *fleetflowv1alpha1.RolloutWindowSpec) {
			s.Dates = []fleetflowv1alpha1.DatedOpening{{Start: "2026-03-01T00:00", End: "2026-03-02T00:00"}}
		}))},
		{"a window that denies", false, standing(window(func(s *fleetflowv1alpha1.RolloutWindowSpec) {
			s.Type = fleetflowv1alpha1.WindowDeny
			s.Dates = []fleetflowv1alpha1.DatedOpening{{Start: "2026-01-01T00:00", End: "2026-03-02T00:00"}}
		}))},
		{"busy clusters", false, standing(busy("member3", "member1"))},
		{"clusters have something else than planned", false, standing(otherBase("member3", "member1"))},
		{"a hold over a cluster that has something else: the hold is named", false, standing(all(hold, otherBase("member3")))},
		{"a hold over a busy cluster: the hold is named", false, standing(all(hold, busy("member3")))},
		{"a hold and a window: the hold is named", false, standing(all(window(func(*fleetflowv1alpha1.RolloutWindowSpec) {}), hold))},
		{"a hold over suspended clusters", false, standing(all(hold, suspend("member3", "member1")))},
		{"a refused removal", true, removal(refuse("member4"))},
		{"a removal from a suspended cluster", true, removal(suspend("member4"))},
		{"a hook holds a removal", true, removal(hook("member4"))},
		{"a hold over a removal", true, func(h *hub) []wf.TaskWait {
			hold(h)
			return must(h, h.acts.AdvanceDeletion, refOf("example-run-2")).Held
		}},
	}
}

// saysOfBrakes returns what the run says of what it waits for.
func (h *hub) saysOfBrakes() (lines []string) {
	h.t.Helper()
	tell := func(of string, conditions []metav1.Condition) {
		for i := range conditions {
			lines = append(lines, of+": "+conditionOf(conditions, conditions[i].Type))
		}
	}
	status := h.run("example-run-2").Status
	tell("run", status.Conditions)
	stages := status.StagesStatus[1:2]
	if status.DeletionStageStatus != nil {
		stages = append(stages, *status.DeletionStageStatus)
	}
	for _, stage := range stages {
		for _, cluster := range stage.Clusters {
			tell(stage.StageName+" "+cluster.ClusterName, cluster.Conditions)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(lines, h.events...)
}
