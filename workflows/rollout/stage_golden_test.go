package rollout_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// stageScenario is a file of testdata/stages: a stage, and what happens to it. Beside it is the log
// of what DecideStage makes of it, minute by minute.
type stageScenario struct {
	About          string   `json:"about"`
	MaxConcurrency string   `json:"maxConcurrency"`
	Deadline       int      `json:"deadline,omitempty"`    // in minutes; 5 if there is none
	MaxFailures    string   `json:"maxFailures,omitempty"` // without it the stage has no budget
	OnExceeded     string   `json:"onExceeded,omitempty"`
	Frozen         bool     `json:"frozen,omitempty"`
	SkipHeld       bool     `json:"skipHeld,omitempty"`
	Clusters       []string `json:"clusters"`
	Events         []event  `json:"events,omitempty"`
	Ticks          int      `json:"ticks"`
}

// stageMember is a cluster as the hub has it.
type stageMember struct {
	name            string
	phase           rollout.ClusterPhase // as the status of the run says
	startedAt       time.Time
	owner           rollout.BindingOwner
	available       bool
	availableSince  int // the minute
	broken, refused bool
	stalled         bool
	refusal         *rollout.Wait
	told            rollout.Told
	action          rollout.StageAction
	closed          bool
}

// waits are what brakes the cluster.
func (m *stageMember) waits() (waits []rollout.Wait) {
	if m.refusal != nil {
		waits = append(waits, *m.refusal)
	}
	if m.closed {
		waits = append(waits, hold)
	}
	return waits
}

// waiting returns the clusters of waits, as far as their brake is one of those given.
func waiting(waits []rollout.Wait, kinds ...string) (clusters []string) {
	for _, wait := range waits {
		if slices.Contains(kinds, wait.Kind) {
			clusters = append(clusters, wait.Cluster)
		}
	}
	return clusters
}

// stageSimulation is a stage under way: the hub, and the books of the workflow.
type stageSimulation struct {
	members      []*stageMember
	facts        rollout.StageFacts
	minute       int
	reliableFrom int
	stuck        bool
	ended        string
	// minReady is for how many minutes a cluster has to be available.
	minReady int
	// asleep says that the run stands still: the workflow of the stage has ended.
	asleep bool
	// generation is that of the run's spec. A request that was made for another one writes nothing.
	generation int
	// books are what the workflow knows, next what was proposed to it, and unrecorded what it was told
	// to be done and nobody has recorded.
	books            map[string]rollout.ClusterPhase
	next, unrecorded []string
	problems         []string
	// history is what has happened, for people who read why a test fails.
	history []string
}

// stageRequest is the input of a call.
type stageRequest struct {
	roles      map[string]rollout.StageRole
	generation int
}

func newStageSimulation(facts rollout.StageFacts, clusters []string) *stageSimulation {
	s := &stageSimulation{facts: facts, books: map[string]rollout.ClusterPhase{}}
	for _, name := range clusters {
		s.members = append(s.members, &stageMember{name: name, owner: rollout.OwnerNone})
		s.books[name] = rollout.ClusterWaiting
	}
	s.next = s.decide(stageRequest{}).Next
	return s
}

func (s *stageSimulation) find(name string) *stageMember {
	for _, m := range s.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

func instant(minute int) time.Time {
	return time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
}

// request writes the next request down.
func (s *stageSimulation) request() stageRequest {
	r := stageRequest{roles: map[string]rollout.StageRole{}, generation: s.generation}
	for name, phase := range s.books {
		switch phase {
		case rollout.ClusterUpdating:
			r.roles[name] = rollout.RoleInFlight
		case rollout.ClusterFailed:
			r.roles[name] = rollout.RoleFailed
		case rollout.ClusterSkipped:
			r.roles[name] = rollout.RoleSkipped
		default:
		}
	}
	for _, name := range s.unrecorded {
		r.roles[name] = rollout.RoleDone
	}
	for _, name := range s.next {
		if is := s.find(name).phase; is != rollout.ClusterWaiting && is != rollout.ClusterUpdating {
			s.complain("%s is chosen, and %s", name, is)
		}
		r.roles[name] = rollout.RoleStart
		s.books[name] = rollout.ClusterUpdating
	}
	return r
}

func (s *stageSimulation) complain(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf("minute %d: ", s.minute)+fmt.Sprintf(format, args...))
}

func (s *stageSimulation) decide(r stageRequest) rollout.StagePlan {
	facts := s.facts
	facts.Now = instant(s.minute)
	facts.ReliableFrom = instant(s.reliableFrom)
	facts.Stuck = s.stuck
	facts.Clusters = nil
	for _, m := range s.members {
		facts.Clusters = append(facts.Clusters, rollout.StageCluster{
			Name: m.name, Role: r.roles[m.name], Phase: m.phase, StartedAt: m.startedAt, Owner: m.owner, Available: m.available,
			Waits: m.waits(), Told: m.told, Action: m.action, ReadyAt: s.readyAt(m), Stalled: s.isStalled(m),
		})
	}
	return rollout.DecideStage(facts)
}

// readyAt is when a cluster that is available counts as available; zero if at once.
func (s *stageSimulation) readyAt(m *stageMember) time.Time {
	if s.minReady == 0 || !m.available {
		return time.Time{}
	}
	return instant(m.availableSince + s.minReady)
}

// isStalled says that a cluster fails at once.
func (s *stageSimulation) isStalled(m *stageMember) bool {
	return m.stalled && m.owner == rollout.OwnerThisRun && !m.available && s.facts.Budget != nil
}

// isReady says that a cluster has been available for long enough.
func (s *stageSimulation) isReady(m *stageMember) bool {
	return m.available && s.minute >= m.availableSince+s.minReady
}

// each calls do for some clusters.
func (s *stageSimulation) each(names []string, do func(*stageMember)) {
	for _, name := range names {
		do(s.find(name))
	}
}

// record writes a plan into the status.
func (s *stageSimulation) record(r stageRequest, plan rollout.StagePlan) {
	for name, role := range r.roles {
		if role == rollout.RoleDone {
			s.find(name).phase = rollout.ClusterDone
		}
	}
	s.each(plan.Skip, func(m *stageMember) {
		m.phase = rollout.ClusterSkipped
		m.action = rollout.ActionNone
	})
	s.each(plan.Requeue, func(m *stageMember) {
		m.phase = rollout.ClusterWaiting
		m.startedAt = time.Time{}
		m.told = rollout.Told{}
		m.action = rollout.ActionNone
	})
	s.each(plan.Restart, func(m *stageMember) {
		m.startedAt = instant(s.minute)
		m.told = rollout.Told{}
		m.action = rollout.ActionNone
	})
	s.each(plan.Noted, func(m *stageMember) { m.action = rollout.ActionNone })
	s.each(plan.Recover, func(m *stageMember) { m.phase = rollout.ClusterDone })
	s.each(plan.GiveUp, func(m *stageMember) {
		if !s.isStalled(m) && (m.startedAt.Add(s.facts.Deadline).After(instant(s.minute)) || s.minute < s.reliableFrom) {
			s.complain("%s is given up too early", m.name)
		}
		m.phase = rollout.ClusterFailed
	})
	s.each(plan.Leave, func(m *stageMember) { m.phase = rollout.ClusterSkipped })
	s.each(plan.TakeBack, func(m *stageMember) {
		m.phase = rollout.ClusterWaiting
		m.startedAt = time.Time{}
		m.told = rollout.Told{}
	})
	s.each(plan.InFlight, func(m *stageMember) {
		if m.phase == rollout.ClusterWaiting {
			m.phase = rollout.ClusterUpdating
			m.startedAt = instant(s.minute)
		}
	})
	for _, wait := range plan.Tell {
		s.find(wait.Cluster).told = wait.Told()
	}
	s.each(plan.Written, func(m *stageMember) {
		m.told = rollout.Told{}
		m.startedAt = instant(s.minute)
	})
	if plan.RecordDone {
		s.each(plan.Done, func(m *stageMember) { m.phase = rollout.ClusterDone })
	}
	s.stuck = plan.Stuck != "" || s.stuck && !plan.Progress
}

// write writes to clusters, as the fences allow.
func (s *stageSimulation) write(r stageRequest, plan rollout.StagePlan) {
	for _, name := range plan.Start {
		m := s.find(name)
		if role := r.roles[name]; role != rollout.RoleStart && role != rollout.RoleInFlight {
			s.complain("%s is started, and not in the request", name)
		}
		switch {
		case r.generation != s.generation || m.owner == rollout.OwnerLaterRun || m.owner == rollout.OwnerGone:
		case m.refused:
			wait := refusal("a policy forbids it", instant(s.minute+1))
			m.refusal = &wait
		case m.closed: // read again right before the write
		case m.owner != rollout.OwnerThisRun:
			m.owner = rollout.OwnerThisRun
			m.available = false
			m.refusal = nil
		}
	}
	if n := s.inFlight(); n > s.facts.MaxConcurrency {
		s.complain("%d clusters are in flight", n)
	}
}

// inFlight is how many clusters have been written to and are neither done nor given up. One that is
// to be retried, and waits for its turn, has been written to long ago.
func (s *stageSimulation) inFlight() (n int) {
	for _, m := range s.members {
		if m.owner == rollout.OwnerThisRun && !s.isReady(m) && m.phase == rollout.ClusterUpdating {
			n++
		}
	}
	return n
}

// learn gives the workflow the answer to its request.
func (s *stageSimulation) learn(plan rollout.StagePlan) {
	mark := func(phase rollout.ClusterPhase, lists ...[]string) {
		for _, name := range slices.Concat(lists...) {
			s.books[name] = phase
		}
	}
	recorded := plan.AlreadyRecorded
	mark(rollout.ClusterWaiting, plan.NotStarted, plan.Requeue, recorded.Requeued)
	mark(rollout.ClusterFailed, plan.GiveUp, recorded.Failed)
	mark(rollout.ClusterSkipped, plan.Skip, plan.Leave, recorded.Skipped)
	mark(rollout.ClusterDone, plan.Done, plan.Recover, recorded.Done)
	s.next = plan.Next
	s.unrecorded = nil
	if !plan.RecordDone {
		s.unrecorded = plan.Done
	}
	s.asleep = s.facts.Stopping || plan.StandsStill
	for _, phase := range s.books {
		s.asleep = s.asleep && phase != rollout.ClusterUpdating
	}
}

// call is one call of the activity. Should it die at its end, the workflow learns nothing of it.
func (s *stageSimulation) call(r stageRequest, dies bool) rollout.StagePlan {
	plan := s.decide(r)
	s.record(r, plan)
	switch {
	case plan.Exceeded == rollout.BudgetPause:
		s.facts.Stopping = true
		s.generation++
	case plan.Exceeded == rollout.BudgetAbort, plan.Exceeded == rollout.BudgetRollback:
		s.ended = string(plan.Exceeded)
	case plan.EndedBy != "":
		s.ended = "because of " + plan.EndedBy
	default:
		s.write(r, plan)
	}
	if !dies {
		s.learn(plan)
	}
	return plan
}

// report lets members report what has become of what was written to them.
func (s *stageSimulation) report() {
	for _, m := range s.members {
		if m.owner == rollout.OwnerThisRun && !m.broken && !m.stalled && !m.available {
			m.available = true
			m.availableSince = s.minute
		}
	}
}

// finished says that nothing is left to do.
func (s *stageSimulation) finished() bool {
	for _, phase := range s.books {
		if phase == rollout.ClusterWaiting || phase == rollout.ClusterUpdating {
			return false
		}
	}
	return len(s.unrecorded) == 0 && len(s.next) == 0
}

// happen does what others do to the stage.
func (s *stageSimulation) happen(do string) (known bool) {
	verb, name, _ := strings.Cut(do, " ")
	m := s.find(name)
	switch verb {
	case "break": // what is written there does not become available
		m.broken = true
	case "stall": // what is written there says itself that it makes no progress
		m.stalled = true
	case "mend":
		m.broken = false
		m.stalled = false
	case "flap": // it becomes unavailable, and may become available again
		m.available = false
	case "refuse":
		m.refused = true
	case "allow":
		m.refused = false
	case "take": // a later run takes the cluster
		m.owner = rollout.OwnerLaterRun
		m.available = false
	case "leave":
		m.owner = rollout.OwnerGone
		m.available = false
	case "skip":
		m.action = rollout.ActionSkip
		s.generation++
	case "retry":
		m.action = rollout.ActionRetry
		s.generation++
	case "stop", "resume":
		s.facts.Stopping = verb == "stop"
		s.generation++
		if verb == "resume" && s.asleep {
			s.load()
		}
	case "hold", "release": // one cluster, or all of them
		for _, m := range s.members {
			if name == "" || m.name == name {
				m.closed = verb == "hold"
			}
		}
		if s.asleep && !s.facts.Stopping {
			s.load()
		}
	case "outage": // what is seen of clusters is reliable again in three minutes
		s.reliableFrom = s.minute + 3
	case "die", "restart":
	default:
		return false
	}
	return true
}

// load begins a new execution of the workflow, which reads its books from the status. What the user
// asks for is carried out by the call that follows.
func (s *stageSimulation) load() {
	r := stageRequest{roles: map[string]rollout.StageRole{}}
	s.unrecorded = nil
	s.asleep = false
	actions := map[string]rollout.StageAction{}
	for _, m := range s.members {
		s.books[m.name] = m.phase
		actions[m.name], m.action = m.action, rollout.ActionNone
		switch m.phase {
		case rollout.ClusterUpdating:
			r.roles[m.name] = rollout.RoleInFlight
		case rollout.ClusterFailed:
			r.roles[m.name] = rollout.RoleFailed
		case rollout.ClusterSkipped:
			r.roles[m.name] = rollout.RoleSkipped
		default:
		}
	}
	s.next = s.decide(r).Next
	for _, m := range s.members {
		m.action = actions[m.name]
	}
}

// describePlan tells a plan in words; was says that the run was called stuck.
func describePlan(plan rollout.StagePlan, was bool) string {
	var words []string
	tell := func(what string, names []string) {
		if len(names) > 0 {
			words = append(words, what+" "+strings.Join(names, " "))
		}
	}
	tell("an earlier attempt recorded as done", plan.AlreadyRecorded.Done)
	tell("an earlier attempt recorded as failed", plan.AlreadyRecorded.Failed)
	tell("an earlier attempt recorded as skipped", plan.AlreadyRecorded.Skipped)
	tell("an earlier attempt recorded as requeued", plan.AlreadyRecorded.Requeued)
	tell("skip", plan.Skip)
	tell("requeue", plan.Requeue)
	tell("restart", plan.Restart)
	tell("nothing to retry for", plan.Noted)
	tell("recovered", plan.Recover)
	tell("done", plan.Done)
	if plan.RecordDone {
		words = append(words, "record them now")
	}
	tell("give up", plan.GiveUp)
	if plan.Exceeded != rollout.BudgetKept {
		words = append(words, "budget exceeded: "+string(plan.Exceeded))
	}
	tell("no longer selected", plan.Leave)
	if plan.EndedBy != "" {
		words = append(words, "the run ends because of "+plan.EndedBy)
	}
	tell("start", plan.Start)
	tell("not started", plan.NotStarted)
	tell("refused", waiting(plan.Tell, rollout.BrakeRefusal))
	tell("written at last", plan.Written)
	if plan.Stuck != "" {
		words = append(words, "stuck because of "+plan.Stuck)
	}
	if plan.Progress && was {
		words = append(words, "no longer stuck")
	}
	tell("in flight", plan.InFlight)
	tell("closed", waiting(plan.Waits, rollout.BrakeHold))
	if plan.StandsStill {
		words = append(words, "stands still")
	}
	tell("next", plan.Next)
	if !plan.LookAt.IsZero() {
		words = append(words, fmt.Sprintf("look at %d", int(plan.LookAt.Sub(instant(0))/time.Minute)))
	}
	return strings.Join(words, "; ")
}

// play plays a scenario minute by minute: what was written in one minute is available at the end of
// it, unless it is broken.
func (s *stageSimulation) play(t *testing.T, scenario stageScenario) string {
	t.Helper()
	var log strings.Builder
	fmt.Fprintf(&log, "%s\n", scenario.About)
	last := 0
	for _, e := range scenario.Events {
		last = max(last, e.At)
	}
	var repeat *stageRequest
	for s.minute = 1; s.minute <= scenario.Ticks && s.ended == ""; s.minute++ {
		dies := false
		for _, e := range scenario.Events {
			if e.At == s.minute {
				require.True(t, s.happen(e.Do), "unknown event %q", e.Do)
				fmt.Fprintf(&log, "    %s\n", e.Do)
				dies = dies || e.Do == "die"
				if e.Do == "restart" { // another process knows nothing of refusals
					s.each(scenario.Clusters, func(m *stageMember) { m.refusal = nil })
				}
			}
		}
		if s.asleep {
			fmt.Fprintf(&log, "%2d: stands still\n", s.minute)
			s.report()
			continue
		}
		var request stageRequest
		if repeat != nil {
			request = *repeat
		} else {
			request = s.request()
		}
		wasStuck := s.stuck
		plan := s.call(request, dies)
		repeat = nil
		if dies {
			request.generation = s.generation
			repeat = &request
		}
		fmt.Fprintf(&log, "%2d: %s\n", s.minute, describePlan(plan, wasStuck))
		s.report()
		if s.finished() && s.minute >= last {
			log.WriteString("finished\n")
			break
		}
	}
	if s.ended != "" {
		fmt.Fprintf(&log, "the run ends: %s\n", s.ended)
	}
	for _, m := range s.members {
		fmt.Fprintf(&log, "    %s %s\n", m.name, m.phase)
	}
	return log.String()
}

func TestGoldenStages(t *testing.T) {
	files, err := filepath.Glob("testdata/stages/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			scenario := stageScenario{}
			require.NoError(t, yaml.UnmarshalStrict(content, &scenario))
			s := newStageSimulation(factsOf(t, scenario), scenario.Clusters)
			got := s.play(t, scenario)
			require.Empty(t, s.problems)
			path := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "run with -update to write it")
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", path, diff)
			}
		})
	}
}

func factsOf(t *testing.T, scenario stageScenario) rollout.StageFacts {
	t.Helper()
	facts := rollout.StageFacts{Deadline: 5 * time.Minute, MembershipFrozen: scenario.Frozen, SkipHeld: scenario.SkipHeld}
	if scenario.Deadline > 0 {
		facts.Deadline = time.Duration(scenario.Deadline) * time.Minute
	}
	var err error
	facts.MaxConcurrency, err = rollout.Concurrency(scenario.MaxConcurrency, len(scenario.Clusters))
	require.NoError(t, err)
	if scenario.MaxFailures != "" {
		percent, isPercent := strings.CutSuffix(scenario.MaxFailures, "%")
		most, err := strconv.Atoi(percent)
		require.NoError(t, err)
		if isPercent {
			most = most * len(scenario.Clusters) / 100
		}
		facts.Budget = &rollout.FailureBudget{MaxFailures: most, OnExceeded: rollout.BudgetAction(scenario.OnExceeded)}
	}
	return facts
}
