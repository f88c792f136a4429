package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// stageWithRandomLimits is a stage of up to twelve clusters with any limits.
func stageWithRandomLimits(r *rand.Rand) *stageSimulation {
	facts := rollout.StageFacts{
		MaxConcurrency: 1 + r.IntN(4), Deadline: time.Duration(1+r.IntN(6)) * time.Minute, MembershipFrozen: r.IntN(2) == 0, MaxTold: r.IntN(3),
	}
	if r.IntN(3) > 0 {
		actions := []rollout.BudgetAction{rollout.BudgetWait, rollout.BudgetPause, rollout.BudgetAbort, rollout.BudgetRollback}
		facts.Budget = &rollout.FailureBudget{MaxFailures: r.IntN(4), OnExceeded: actions[r.IntN(len(actions))]}
	}
	facts.SkipHeld = r.IntN(2) == 0
	var clusters []string
	for i := range 1 + r.IntN(12) {
		clusters = append(clusters, fmt.Sprintf("c%02d", i))
	}
	s := newStageSimulation(facts, clusters)
	s.minReady = r.IntN(4)
	return s
}

// disturbances are what happens to a stage in the property tests; a cluster is taken or leaves less
// often, as that ends most runs.
var disturbances = []string{"break", "break", "mend", "mend", "stall", "flap", "refuse", "allow", "skip", "retry", "retry", "stop", "resume", "resume", "outage", "hold", "release", "release"}

func (s *stageSimulation) disturb(r *rand.Rand) {
	do := disturbances[r.IntN(len(disturbances))]
	if r.IntN(40) == 0 {
		do = []string{"take", "leave"}[r.IntN(2)]
	}
	do += " " + s.members[r.IntN(len(s.members))].name
	s.history = append(s.history, fmt.Sprintf("    %s", do))
	s.happen(do)
}

// checkPlan holds a plan against what a plan may never do.
func (s *stageSimulation) checkPlan(r stageRequest, plan rollout.StagePlan) {
	seen := map[string]string{}
	for what, list := range map[string][]string{"in flight": plan.InFlight, "concluded": plan.Concluded(), "next": plan.Next} {
		for _, name := range list {
			requeued := slices.Contains(plan.Requeue, name) || slices.Contains(plan.AlreadyRecorded.Requeued, name)
			if other, twice := seen[name]; twice && !requeued {
				s.complain("%s is %s and %s", name, what, other)
			}
			seen[name] = what
		}
	}
	settled := 0
	for _, m := range s.members {
		concluded := slices.Contains(plan.Concluded(), m.name) && !slices.Contains(plan.Requeue, m.name)
		skipped := s.facts.SkipHeld && m.closed && (m.phase == rollout.ClusterWaiting || slices.Contains(plan.TakeBack, m.name) || slices.Contains(plan.NotStarted, m.name))
		if skipped || concluded || r.roles[m.name] == rollout.RoleDone || m.phase != rollout.ClusterWaiting && m.phase != rollout.ClusterUpdating {
			settled++
		}
	}
	for _, name := range plan.Next {
		if p := slices.IndexFunc(s.members, func(m *stageMember) bool { return m.name == name }); p >= settled+s.facts.MaxConcurrency {
			s.complain("%s at position %d is proposed with %d done", name, p, settled)
		}
	}
	if n := len(plan.InFlight) + len(plan.Next); len(plan.Next) > 0 && n > s.facts.MaxConcurrency {
		s.complain("%d clusters would be in flight", n)
	}
	for _, name := range plan.Start {
		if m := s.find(name); m.closed && m.owner == rollout.OwnerNone && r.roles[name] != rollout.RoleNone {
			s.complain("%s is started, and closed", name)
		}
	}
	for _, name := range plan.Next {
		if m := s.find(name); m.closed && m.phase == rollout.ClusterWaiting {
			s.complain("%s is chosen, and closed", name)
		}
	}
	for _, name := range slices.Concat(plan.Done, plan.Recover) {
		if m := s.find(name); m.phase != rollout.ClusterDone && !s.isReady(m) {
			s.complain("%s is done, and has not been available for %d minutes", name, s.minReady)
		}
	}
	if plan.StandsStill && len(plan.InFlight)+len(plan.Next) > 0 {
		s.complain("a stage stands still with %v in flight and %v next", plan.InFlight, plan.Next)
	}
	if len(plan.Next) > 0 && s.facts.Stopping {
		s.complain("a run that stops proposes %v", plan.Next)
	}
	if s.facts.Budget == nil && len(plan.GiveUp) > 0 {
		s.complain("%v are given up without a budget", plan.GiveUp)
	}
}

// No plan starts a cluster that is not in the recorded request, has more than maxConcurrency in
// flight, or gives a cluster up too early, whatever happens, and though attempts die, or write
// once more what they were asked for by then.
func TestNoStagePlanBreaksTheLimits(t *testing.T) {
	started := 0
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 4))
		s := stageWithRandomLimits(r)
		var requests []stageRequest
		var repeat *stageRequest
		for s.minute = 1; s.minute < 40 && s.ended == ""; s.minute++ {
			for range r.IntN(3) {
				s.disturb(r)
			}
			if s.asleep {
				repeat = nil
				s.report()
				continue
			}
			request := stageRequest{}
			if repeat != nil {
				request = *repeat
				request.generation = s.generation
			} else {
				request = s.request()
			}
			dies := r.IntN(5) == 0
			repeat = nil
			if dies {
				repeat = &request
			}
			plan := s.decide(request)
			s.checkPlan(request, plan)
			s.history = append(s.history, fmt.Sprintf("%2d: dies %t: %s", s.minute, dies, describePlan(plan, s.stuck)))
			started += len(s.call(request, dies).Start)
			requests = append(requests, request)
			if r.IntN(3) == 0 && s.ended == "" {
				s.overlap(requests[r.IntN(len(requests))])
			}
			if r.IntN(2) == 0 {
				s.report()
			}
			require.Empty(t, s.problems, "seed %d: %+v\n%s", seed, s.facts, strings.Join(s.history, "\n"))
		}
	}
	require.Greater(t, started, 3000, "the simulation must exercise the decision")
}

// overlap is an attempt that was left over from an earlier request. It records and writes as far as
// the fence lets it: one that was made for another spec of the run does nothing.
func (s *stageSimulation) overlap(r stageRequest) {
	if r.generation != s.generation {
		return
	}
	plan := s.decide(r)
	s.history = append(s.history, "    left over: "+describePlan(plan, s.stuck))
	if plan.Exceeded == rollout.BudgetKept && plan.EndedBy == "" {
		s.record(r, plan)
		s.write(r, plan)
	}
}

// A stage left alone ends.
func TestAStageLeftAloneEnds(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := stageWithRandomLimits(r)
		for range r.IntN(4) {
			s.happen("skip " + s.members[r.IntN(len(s.members))].name)
		}
		var repeat *stageRequest
		for s.minute = 1; !s.finished(); s.minute++ {
			require.Less(t, s.minute, 100, "seed %d does not end: %v", seed, s.books)
			request := stageRequest{}
			if repeat != nil {
				request = *repeat
			} else {
				request = s.request()
			}
			dies := r.IntN(4) == 0
			repeat = nil
			if dies {
				repeat = &request
			}
			s.call(request, dies)
			s.report()
		}
		require.Empty(t, s.problems, "seed %d", seed)
	}
}

// inRequest is a cluster of a request.
func inRequest(name string, role rollout.StageRole, change func(*rollout.StageCluster)) rollout.StageCluster {
	c := rollout.StageCluster{Name: name, Role: role}
	if change != nil {
		change(&c)
	}
	return c
}

// because is what a status says of a refusal for a reason; none if the reason is empty.
func because(why string) rollout.Told {
	if why == "" {
		return rollout.Told{}
	}
	return rollout.Told{Reason: "Refused", Text: why}
}

// refusal has the write to a cluster refused, freeze suspends it, and hold closes it for its turn.
func refusal(why string, until time.Time) rollout.Wait {
	return rollout.Wait{Kind: rollout.BrakeRefusal, Reason: "Refused", Why: why, Until: until}
}

var (
	freeze = rollout.Wait{Kind: rollout.BrakeSuspension, Reason: "Suspended", Why: "frozen"}
	hold   = rollout.Wait{Kind: rollout.BrakeHold, Reason: "HoldInForce", Object: "incident"}
)

// waitsOf are those of clusters with one cause.
func waitsOf(wait rollout.Wait, clusters ...string) (waits []rollout.Wait) {
	for _, name := range clusters {
		wait.Cluster = name
		waits = append(waits, wait)
	}
	return waits
}

func TestDecideStage(t *testing.T) {
	updating := func(c *rollout.StageCluster) {
		c.Phase = rollout.ClusterUpdating
		c.StartedAt = instant(0)
	}
	ours := func(c *rollout.StageCluster) { updating(c); c.Owner = rollout.OwnerThisRun }
	closed := func(c *rollout.StageCluster) { c.Waits = append(c.Waits, hold) }
	stalled := func(c *rollout.StageCluster) { ours(c); c.Stalled = true }
	refusedFor := func(why, recorded string) func(*rollout.StageCluster) {
		return func(c *rollout.StageCluster) {
			updating(c)
			c.Owner = rollout.OwnerNone
			c.Waits = append(c.Waits, refusal(why, instant(9)))
			c.Told = because(recorded)
		}
	}
	for sentence, test := range map[string]struct {
		clusters []rollout.StageCluster
		change   func(*rollout.StageFacts)
		want     rollout.StagePlan
	}{
		"a cluster that nobody has looked at is not given up": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, updating)},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(6)
				f.Budget = &rollout.FailureBudget{}
			},
			want: rollout.StagePlan{InFlight: []string{"a"}, LookAt: instant(5), Progress: true},
		},
		"a cluster in flight that no request names is proposed before those that wait": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleNone, nil), inRequest("b", rollout.RoleNone, updating), inRequest("c", rollout.RoleNone, nil)},
			change:   func(f *rollout.StageFacts) { f.MaxConcurrency = 2 },
			want:     rollout.StagePlan{Next: []string{"b", "a"}, Progress: true},
		},
		"the status of a large stage has room for the first refusals only": {
			clusters: []rollout.StageCluster{
				inRequest("a", rollout.RoleInFlight, refusedFor("no", "no")), inRequest("b", rollout.RoleInFlight, refusedFor("no", "")), inRequest("c", rollout.RoleInFlight, refusedFor("no", "")),
			},
			change: func(f *rollout.StageFacts) { f.MaxTold = 2 },
			want: rollout.StagePlan{Waits: waitsOf(refusal("no", instant(9)), "a", "b", "c"), Tell: waitsOf(refusal("no", instant(9)), "b"),
				InFlight: []string{"a", "b", "c"}, LookAt: instant(5), Progress: true},
		},
		"a frozen cluster waits, and is neither written to nor given up": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleStart, func(c *rollout.StageCluster) {
				updating(c)
				c.Owner = rollout.OwnerNone
				c.Waits = append(c.Waits, freeze)
				c.Action = rollout.ActionRetry
			})},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(60)
				f.Budget = &rollout.FailureBudget{}
			},
			want: rollout.StagePlan{Restart: []string{"a"}, Waits: waitsOf(freeze, "a"), Tell: waitsOf(freeze, "a"), InFlight: []string{"a"}, Progress: true},
		},
		"one that was written to before it was frozen is not given up either": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) { ours(c); c.Waits = append(c.Waits, freeze) })},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(60)
				f.Budget = &rollout.FailureBudget{}
			},
			want: rollout.StagePlan{InFlight: []string{"a"}, Progress: true},
		},
		"one that is no longer frozen is written to, and its time counts from then": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) {
				updating(c)
				c.Owner = rollout.OwnerNone
				c.Told = freeze.Told()
			})},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(60)
				f.Budget = &rollout.FailureBudget{}
			},
			want: rollout.StagePlan{Start: []string{"a"}, InFlight: []string{"a"}, LookAt: instant(5), Progress: true},
		},
		"a cluster that has not been available for long enough is in flight, and is looked at when it will have been": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) {
				ours(c)
				c.Available = true
				c.ReadyAt = instant(3)
			}), inRequest("b", rollout.RoleNone, nil)},
			change: func(f *rollout.StageFacts) { f.Now = instant(2) },
			want:   rollout.StagePlan{InFlight: []string{"a"}, LookAt: instant(3), Progress: true},
		},
		"a cluster that has been available for long enough is done": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) {
				ours(c)
				c.Available = true
				c.ReadyAt = instant(3)
			}), inRequest("b", rollout.RoleNone, nil)},
			change: func(f *rollout.StageFacts) { f.Now = instant(3) },
			want:   rollout.StagePlan{Done: []string{"a"}, Next: []string{"b"}, Progress: true},
		},
		"a cluster that becomes unavailable again and again ends by its deadline": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) {
				ours(c)
				c.Available = true
				c.ReadyAt = instant(9)
			})},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(5)
				f.Budget = &rollout.FailureBudget{MaxFailures: 1}
			},
			want: rollout.StagePlan{GiveUp: []string{"a"}, Progress: true},
		},
		"a cluster that stalls fails before its deadline": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, stalled), inRequest("b", rollout.RoleNone, nil)},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(1)
				f.Budget = &rollout.FailureBudget{MaxFailures: 1}
			},
			want: rollout.StagePlan{GiveUp: []string{"a"}, Next: []string{"b"}, Progress: true},
		},
		"beyond the budget, the run is called stuck before the deadline": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, stalled), inRequest("b", rollout.RoleNone, nil)},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(1)
				f.Budget = &rollout.FailureBudget{OnExceeded: rollout.BudgetWait}
			},
			want: rollout.StagePlan{Exceeded: rollout.BudgetWait, InFlight: []string{"a"}, Stuck: "a", LookAt: instant(5)},
		},
		"one that stalls and is frozen waits": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) {
				stalled(c)
				c.Waits = append(c.Waits, freeze)
			})},
			change: func(f *rollout.StageFacts) { f.Budget = &rollout.FailureBudget{MaxFailures: 1} },
			want:   rollout.StagePlan{InFlight: []string{"a"}, Progress: true},
		},
		"one that was given up and is available recovers after the same time": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleFailed, func(c *rollout.StageCluster) {
				ours(c)
				c.Phase = rollout.ClusterFailed
				c.Available = true
				c.ReadyAt = instant(9)
			})},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(6)
				f.Budget = &rollout.FailureBudget{MaxFailures: 1}
			},
			want: rollout.StagePlan{LookAt: instant(9), Progress: true},
		},
		"a closed cluster keeps its turn, and those after it wait": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, ours), inRequest("b", rollout.RoleNone, closed), inRequest("c", rollout.RoleNone, nil)},
			change:   func(f *rollout.StageFacts) { f.MaxConcurrency = 3 },
			want:     rollout.StagePlan{InFlight: []string{"a"}, Waits: waitsOf(hold, "b"), LookAt: instant(5), Progress: true},
		},
		"with heldClusters Skip, those after it take its turn": {
			clusters: []rollout.StageCluster{
				inRequest("a", rollout.RoleInFlight, ours), inRequest("b", rollout.RoleNone, closed), inRequest("c", rollout.RoleNone, nil), inRequest("d", rollout.RoleNone, nil),
			},
			change: func(f *rollout.StageFacts) {
				f.MaxConcurrency = 2
				f.SkipHeld = true
			},
			want: rollout.StagePlan{InFlight: []string{"a"}, Next: []string{"c"}, Waits: waitsOf(hold, "b"), LookAt: instant(5), Progress: true},
		},
		"with heldClusters Skip, one that was chosen and is closed by now gives its turn away": {
			clusters: []rollout.StageCluster{
				inRequest("a", rollout.RoleStart, func(c *rollout.StageCluster) { closed(c); c.Owner = rollout.OwnerNone }), inRequest("b", rollout.RoleNone, nil),
			},
			change: func(f *rollout.StageFacts) { f.SkipHeld = true },
			want:   rollout.StagePlan{NotStarted: []string{"a"}, TakeBack: []string{"a"}, Next: []string{"b"}, Waits: waitsOf(hold, "a"), Progress: true},
		},
		"with heldClusters Skip, a stage stands still when all that is left is closed": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleDone, nil), inRequest("b", rollout.RoleNone, closed)},
			change:   func(f *rollout.StageFacts) { f.SkipHeld = true },
			want:     rollout.StagePlan{Waits: waitsOf(hold, "b"), StandsStill: true},
		},
		"a cluster that was chosen and is closed by now is not started": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleStart, func(c *rollout.StageCluster) { closed(c); c.Owner = rollout.OwnerNone })},
			want:     rollout.StagePlan{NotStarted: []string{"a"}, TakeBack: []string{"a"}, Waits: waitsOf(hold, "a"), StandsStill: true},
		},
		"one that was written to ends, closed or not, and is late if it is": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) { ours(c); closed(c) })},
			change:   func(f *rollout.StageFacts) { f.Now = instant(6) },
			want:     rollout.StagePlan{InFlight: []string{"a"}, Stuck: "a"},
		},
		"one that waits because it is closed is neither late nor given up": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) { updating(c); closed(c); c.Owner = rollout.OwnerNone })},
			change: func(f *rollout.StageFacts) {
				f.Now = instant(60)
				f.Budget = &rollout.FailureBudget{}
			},
			want: rollout.StagePlan{NotStarted: []string{"a"}, TakeBack: []string{"a"}, Waits: waitsOf(hold, "a"), StandsStill: true},
		},
		"a run that stands still has its last done recorded": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) { ours(c); c.Available = true }), inRequest("b", rollout.RoleNone, closed)},
			want:     rollout.StagePlan{Done: []string{"a"}, RecordDone: true, Waits: waitsOf(hold, "b"), StandsStill: true},
		},
		"a run that stops waits for nothing to open": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleNone, closed)},
			change:   func(f *rollout.StageFacts) { f.Stopping = true },
		},
		"a refusal for another reason is said anew": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, refusedFor("a quota", "a policy"))},
			want:     rollout.StagePlan{Waits: waitsOf(refusal("a quota", instant(9)), "a"), Tell: waitsOf(refusal("a quota", instant(9)), "a"), InFlight: []string{"a"}, LookAt: instant(5), Progress: true},
		},
		"a run that is stuck stays so while it only waits": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, ours)},
			change:   func(f *rollout.StageFacts) { f.Stuck = true },
			want:     rollout.StagePlan{InFlight: []string{"a"}},
		},
		"a run that is stuck moves on once a cluster starts": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleStart, nil)},
			change:   func(f *rollout.StageFacts) { f.Stuck = true },
			want:     rollout.StagePlan{Start: []string{"a"}, InFlight: []string{"a"}, Progress: true},
		},
		"a run that stops writes again to a cluster that is its own only": {
			clusters: []rollout.StageCluster{
				inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) { ours(c); c.Action = rollout.ActionRetry }),
				inRequest("b", rollout.RoleInFlight, func(c *rollout.StageCluster) {
					updating(c)
					c.Owner = rollout.OwnerNone
					c.Action = rollout.ActionRetry
				}),
			},
			change: func(f *rollout.StageFacts) { f.Stopping = true },
			want: rollout.StagePlan{
				Restart: []string{"a", "b"}, Start: []string{"a"}, InFlight: []string{"a"}, NotStarted: []string{"b"}, TakeBack: []string{"b"},
			},
		},
		"nothing can be asked for of a cluster that is done": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleNone, func(c *rollout.StageCluster) {
				c.Phase = rollout.ClusterDone
				c.Action = rollout.ActionSkip
			})},
			want: rollout.StagePlan{Progress: true},
		},
		"a skip overrules what an earlier attempt has recorded": {
			clusters: []rollout.StageCluster{inRequest("a", rollout.RoleInFlight, func(c *rollout.StageCluster) {
				c.Phase = rollout.ClusterFailed
				c.Action = rollout.ActionSkip
			})},
			want: rollout.StagePlan{Skip: []string{"a"}, Progress: true},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := rollout.StageFacts{Clusters: test.clusters, MaxConcurrency: 1, Deadline: 5 * time.Minute, Now: instant(1)}
			if test.change != nil {
				test.change(&facts)
			}
			before := slices.Clone(facts.Clusters)
			assert.Equal(t, test.want, rollout.DecideStage(facts))
			assert.Equal(t, before, facts.Clusters, "facts stay as they are")
		})
	}
}
