package rollout_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

var update = flag.Bool("update", false, "write the golden simulations anew")

// scenario is a file of testdata: a fleet, and what happens to it. Beside it is the log of
// what the planner makes of it, step by step.
type scenario struct {
	About    string         `json:"about"`
	Limits   rollout.Limits `json:"limits"`
	Policy   string         `json:"policy,omitempty"` // of evictions; PickN for Target clusters if empty
	Budget   rollout.Budget `json:"budget,omitzero"`
	OrderBy  string         `json:"orderBy,omitempty"` // label whose integer orders the clusters
	Scatter  string         `json:"scatter,omitempty"` // label over whose values they are spread
	Clusters []string       `json:"clusters"`          // a name and a kind each, and labels if they are ordered
	Events   []event        `json:"events,omitempty"`
	Ticks    int            `json:"ticks"`
}

// event happens at the beginning of a tick.
type event struct {
	At int    `json:"at"`
	Do string `json:"do"`
}

// kinds of clusters in a scenario.
var kinds = map[string]func(string) rollout.Cluster{
	"current": current, "outdated": outdated, "picked": fresh, "dropped": deselected,
}

// simulation is a scenario under way.
type simulation struct {
	fleet
	scenario scenario
	broken   map[string]bool
	waiting  []rollout.Eviction
	log      strings.Builder
	members  []rollout.Member
}

// order gives the clusters their places.
func (s *simulation) order() {
	order := rollout.Order{Scatter: s.scenario.Scatter}
	if s.scenario.OrderBy != "" {
		order.Labels = []rollout.OrderLabel{{Key: s.scenario.OrderBy}}
	}
	for place, name := range order.Sort(s.members) {
		s.at(name).Order = place
	}
	for _, member := range s.members {
		s.at(member.Name).Scatter = member.Labels[s.scenario.Scatter]
	}
}

func newSimulation(t *testing.T, s scenario) *simulation {
	t.Helper()
	sim := &simulation{scenario: s, broken: map[string]bool{}}
	sim.limits = s.Limits
	for _, line := range s.Clusters {
		words := strings.Fields(line)
		require.GreaterOrEqual(t, len(words), 2, "cluster %q", line)
		require.Contains(t, kinds, words[1], "cluster %q", line)
		sim.clusters = append(sim.clusters, kinds[words[1]](words[0]))
		member := rollout.Member{Name: words[0], Labels: map[string]string{}}
		for _, label := range words[2:] {
			key, value, _ := strings.Cut(label, "=")
			member.Labels[key] = value
		}
		sim.members = append(sim.members, member)
	}
	sim.order()
	fmt.Fprintf(&sim.log, "%s\ntarget %d, maxUnavailable %d, maxSurge %d", s.About, s.Limits.Target, s.Limits.MaxUnavailable, s.Limits.MaxSurge)
	if s.Limits.Partition > 0 {
		fmt.Fprintf(&sim.log, ", partition %d", s.Limits.Partition)
	}
	if s.Limits.MaxInFlight > 0 {
		fmt.Fprintf(&sim.log, ", maxInFlight %d", s.Limits.MaxInFlight)
	}
	if s.Budget != (rollout.Budget{}) {
		fmt.Fprintf(&sim.log, ", budget %s%s", prefixed("maxUnavailable ", s.Budget.MaxUnavailable), prefixed("minAvailable ", s.Budget.MinAvailable))
	}
	sim.log.WriteString("\n")
	return sim
}

func prefixed(prefix, value string) string {
	if value == "" {
		return ""
	}
	return prefix + value
}

// happen does what somebody else does to the fleet.
func (s *simulation) happen(t *testing.T, do string) {
	t.Helper()
	verb, name, _ := strings.Cut(do, " ")
	c := s.at(name)
	switch verb {
	case "break": // what is written there next does not become available
		s.broken[name] = true
	case "mend":
		s.broken[name] = false
	case "lose":
		c.Available = false
		s.broken[name] = true
	case "fail":
		c.Available = false
		c.Failed = true
	case "change":
		for i := range s.clusters {
			s.clusters[i].Current = false
			s.clusters[i].Old = s.clusters[i].Placed
		}
	case "partition":
		s.limits.Partition, _ = strconv.Atoi(name)
	case "pause":
		s.limits.Paused = true
	case "resume":
		s.limits.Paused = false
	case "ask": // for so many clusters
		s.limits.Target, _ = strconv.Atoi(name)
	case "pick":
		s.clusters = append(s.clusters, fresh(name))
	case "drop":
		c.State = rollout.Unscheduled
	case "hold": // all of the fleet, or one cluster
		s.close(name, closedForAll())
	case "release":
		s.close(name, nil)
	case "evict":
		s.waiting = append(s.waiting, rollout.Eviction{Name: fmt.Sprintf("%s-%d", name, len(s.waiting)), Cluster: name})
	default:
		t.Fatalf("nobody knows what %q is", do)
	}
}

// close closes a cluster, or all of them without a name.
func (s *simulation) close(name string, waits []rollout.Wait) {
	for i := range s.clusters {
		if name == "" || s.clusters[i].Name == name {
			s.clusters[i].Waits = waits
		}
	}
}

func (s *simulation) facts() rollout.Facts {
	facts := rollout.Facts{Clusters: s.clusters, Limits: s.limits, Evictions: s.waiting}
	facts.Policy = rollout.EvictionPolicy{Type: s.scenario.Policy}
	if facts.Policy.Type == "" {
		facts.Policy.Type = "PickN"
	}
	if facts.Policy.Type == "PickN" {
		facts.Policy.Clusters = s.limits.Target
	}
	if budget := s.scenario.Budget; budget != (rollout.Budget{}) {
		facts.Policy.Budget = &budget
	}
	return facts
}

// write does what a plan says, evictions first, and returns what it did in words.
func (s *simulation) write(plan rollout.Plan) []string {
	var written []string
	for _, step := range plan.Evictions {
		s.waiting = slices.DeleteFunc(s.waiting, func(e rollout.Eviction) bool { return e.Name == step.Eviction })
		note := "do not evict " + step.Cluster
		if step.Verdict.Executed() {
			note = "evict " + step.Cluster
		}
		if step.Op == rollout.Evict {
			s.at(step.Cluster).Deleting = true
		}
		written = append(written, fmt.Sprintf("%s (%s)", note, step.Verdict.Message()))
	}
	for _, step := range plan.Steps {
		note := string(step.Op) + " " + step.Cluster
		if err := s.fleet.write(step); err != nil {
			note += " BREAKS THE LIMITS: " + err.Error()
		}
		written = append(written, note)
	}
	return written
}

// run rolls out tick by tick: what was written in one tick is available (or gone) at the end
// of it, unless it is broken.
func (s *simulation) run(t *testing.T) string {
	t.Helper()
	last := 0
	for _, e := range s.scenario.Events {
		last = max(last, e.At)
	}
	for tick := 1; tick <= s.scenario.Ticks; tick++ {
		for _, e := range s.scenario.Events {
			if e.At == tick {
				s.happen(t, e.Do)
				fmt.Fprintf(&s.log, "    %s\n", e.Do)
			}
		}
		plan := rollout.Decide(s.facts())
		written := s.write(plan)
		fmt.Fprintf(&s.log, "%2d: available %d, placed %d, blocked %d: %s\n", tick, s.available(), s.placed(), plan.Blocked(), strings.Join(written, ", "))
		if plan.HeldBack() > 0 {
			fmt.Fprintf(&s.log, "    held back: %d\n", plan.HeldBack())
		}
		if closed := stepsOf(plan.Closed()); len(closed) > 0 {
			fmt.Fprintf(&s.log, "    closed: %v\n", closed)
		}
		if plan.Stuck() != "" {
			fmt.Fprintf(&s.log, "    held: %s\n", plan.Stuck())
		}
		if plan.Settled && tick >= last {
			s.log.WriteString("settled\n")
			break
		}
		for _, c := range slices.Clone(s.clusters) {
			if !s.broken[c.Name] || c.Deleting {
				s.settle(c.Name)
			}
		}
	}
	for _, c := range s.clusters {
		fmt.Fprintf(&s.log, "    %s %s current=%t available=%t deleting=%t\n", c.Name, c.State, c.Current, c.Available, c.Deleting)
	}
	return s.log.String()
}

func TestGoldenSimulations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			s := scenario{}
			require.NoError(t, yaml.UnmarshalStrict(content, &s))
			got := newSimulation(t, s).run(t)
			require.NotContains(t, got, "BREAKS THE LIMITS")
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
