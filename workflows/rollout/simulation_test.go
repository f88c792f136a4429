package rollout_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

var update = flag.Bool("update", false, "write the golden simulations anew")

// fleet is a simulated fleet: what the hub has stored of one placement.
type fleet struct {
	clusters []rollout.Cluster
	limits   rollout.Limits
}

func (f *fleet) at(name string) *rollout.Cluster {
	for i := range f.clusters {
		if f.clusters[i].Name == name {
			return &f.clusters[i]
		}
	}
	return nil
}

func (f *fleet) available() (n int) {
	for _, c := range f.clusters {
		if c.Available && !c.Deleting {
			n++
		}
	}
	return n
}

func (f *fleet) placed() (n int) {
	for _, c := range f.clusters {
		if c.Placed || c.Deleting {
			n++
		}
	}
	return n
}

// write does to the fleet what a step does, and says which limit it breaks by
// the state stored at that write.
func (f *fleet) write(step rollout.Step) error {
	c := f.at(step.Cluster)
	if c == nil || c.Deleting {
		return fmt.Errorf("%s of a cluster that is gone or going", step.Op)
	}
	if taken := c.Available; taken && step.Op != rollout.Add {
		if least := f.limits.Target - f.limits.MaxUnavailable; f.available()-1 < least {
			return fmt.Errorf("%s leaves %d available, at least %d must remain", step.Op, f.available()-1, least)
		}
	}
	switch step.Op {
	case rollout.Add:
		if c.State != rollout.Scheduled {
			return fmt.Errorf("add of a cluster that is %s", c.State)
		}
		if most := f.limits.Target + f.limits.MaxSurge; f.placed()+1 > most {
			return fmt.Errorf("add makes %d placed, at most %d may be", f.placed()+1, most)
		}
		c.State, c.Placed, c.Current, c.Available = rollout.Bound, true, true, false
	case rollout.Update:
		if c.State != rollout.Bound || c.Current {
			return fmt.Errorf("update of a cluster that is %s, current %t", c.State, c.Current)
		}
		c.Current, c.Available, c.Failed = true, false, false
	case rollout.Remove:
		if c.State != rollout.Unscheduled {
			return fmt.Errorf("removal of a cluster that is %s", c.State)
		}
		c.Deleting = true
	}
	return nil
}

// settle lets a cluster that was written become what it should be.
func (f *fleet) settle(name string) {
	c := f.at(name)
	switch {
	case c.Deleting:
		f.clusters = slices.DeleteFunc(f.clusters, func(o rollout.Cluster) bool { return o.Name == name })
	case c.Placed:
		c.Available, c.Failed = true, false
	}
}

// disturb does something to the fleet that nobody asked the planner about.
func (f *fleet) disturb(r *rand.Rand) {
	if len(f.clusters) == 0 {
		return
	}
	c := &f.clusters[r.IntN(len(f.clusters))]
	switch r.IntN(8) {
	case 0, 1, 2:
		f.settle(c.Name)
	case 3: // lost by itself
		c.Available = false
	case 4:
		if c.Placed && !c.Deleting {
			c.Available, c.Failed = false, true
		}
	case 5: // the resources change
		for i := range f.clusters {
			f.clusters[i].Current = false
		}
	case 6: // the policy changes
		f.reschedule(c, r)
	case 7:
		f.limits = rollout.Limits{Target: r.IntN(len(f.clusters) + 3), MaxUnavailable: r.IntN(3), MaxSurge: r.IntN(3)}
	}
}

// reschedule drops a cluster from the policy, or picks it again.
func (f *fleet) reschedule(c *rollout.Cluster, r *rand.Rand) {
	switch {
	case c.Deleting:
	case c.State == rollout.Unscheduled:
		c.State = rollout.Bound
	case c.State == rollout.Bound:
		c.State = rollout.Unscheduled
	case r.IntN(2) == 0: // dropped before it had anything
		f.clusters = slices.DeleteFunc(f.clusters, func(o rollout.Cluster) bool { return o.Name == c.Name })
	}
}

func randomFleet(r *rand.Rand) *fleet {
	f := &fleet{}
	for i := range 1 + r.IntN(12) {
		c := rollout.Cluster{Name: fmt.Sprintf("c%02d", i)}
		switch r.IntN(6) {
		case 0, 1:
			c.State = rollout.Scheduled
		case 2:
			c.State, c.Placed = rollout.Unscheduled, true
		default:
			c.State, c.Placed, c.Current = rollout.Bound, true, r.IntN(3) == 0
		}
		if c.Placed {
			c.Available = r.IntN(4) > 0
			c.Failed = !c.Available && r.IntN(2) == 0
			c.Deleting = r.IntN(8) == 0
		}
		f.clusters = append(f.clusters, c)
	}
	f.limits = rollout.Limits{Target: r.IntN(len(f.clusters) + 3), MaxUnavailable: r.IntN(4), MaxSurge: r.IntN(4)}
	return f
}

// No write takes an available cluster away beyond maxUnavailable or adds one
// beyond maxSurge, whatever the fleet, whatever happens between two batches and
// in whatever order the writes of a batch are made.
func TestNoStepBreaksTheLimits(t *testing.T) {
	steps := 0
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		f := randomFleet(r)
		for range 30 {
			plan := rollout.Next(f.clusters, f.limits)
			r.Shuffle(len(plan.Steps), func(i, j int) { plan.Steps[i], plan.Steps[j] = plan.Steps[j], plan.Steps[i] })
			for _, step := range plan.Steps {
				require.NoError(t, f.write(step), "seed %d, step %v", seed, step)
				steps++
			}
			for range r.IntN(4) {
				f.disturb(r)
			}
		}
	}
	require.Greater(t, steps, 10000, "the simulation must exercise the planner")
}

// A rollout left alone ends: all that is picked is current, the rest is gone.
func TestARolloutLeftAloneEnds(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 3))
		f := randomFleet(r)
		f.limits.Target = 0
		for i := range f.clusters {
			if c := &f.clusters[i]; !c.Deleting && c.State != rollout.Unscheduled {
				f.limits.Target++
			}
		}
		f.limits.MaxUnavailable = max(1, f.limits.MaxUnavailable)
		rounds := 0
		for ; ; rounds++ {
			require.Less(t, rounds, 200, "seed %d does not end", seed)
			plan := rollout.Next(f.clusters, f.limits)
			if plan.Settled {
				break
			}
			for _, step := range plan.Steps {
				require.NoError(t, f.write(step), "seed %d", seed)
			}
			f.settle(f.clusters[r.IntN(len(f.clusters))].Name)
		}
		for _, c := range f.clusters {
			require.True(t, c.Deleting || c.State == rollout.Bound && c.Current, "seed %d: %+v", seed, c)
		}
	}
}

// simulate rolls out tick by tick: what was written in one tick is available
// (or gone) at the end of the next, unless it is named broken.
func simulate(f *fleet, ticks int, broken ...string) string {
	var log strings.Builder
	fmt.Fprintf(&log, "target %d, maxUnavailable %d, maxSurge %d\n", f.limits.Target, f.limits.MaxUnavailable, f.limits.MaxSurge)
	for tick := 1; tick <= ticks; tick++ {
		plan := rollout.Next(f.clusters, f.limits)
		var written []string
		for _, step := range plan.Steps {
			note := string(step.Op) + " " + step.Cluster
			if err := f.write(step); err != nil {
				note += " BREAKS THE LIMITS: " + err.Error()
			}
			written = append(written, note)
		}
		fmt.Fprintf(&log, "%2d: available %d, placed %d, blocked %d: %s\n", tick, f.available(), f.placed(), plan.Blocked, strings.Join(written, ", "))
		if plan.Settled {
			log.WriteString("settled\n")
			break
		}
		for _, c := range slices.Clone(f.clusters) {
			if !slices.Contains(broken, c.Name) {
				f.settle(c.Name)
			}
		}
	}
	for _, c := range f.clusters {
		fmt.Fprintf(&log, "    %s %s current=%t available=%t deleting=%t\n", c.Name, c.State, c.Current, c.Available, c.Deleting)
	}
	return log.String()
}

func TestGoldenSimulations(t *testing.T) {
	for name, run := range map[string]func() string{
		"change-reaches-five-clusters": func() string {
			return simulate(&fleet{limits: limits(5, 2, 2), clusters: []rollout.Cluster{
				outdated("a"), outdated("b"), outdated("c"), outdated("d"), outdated("e"),
			}}, 10)
		},
		"default-limits-on-three-clusters": func() string {
			return simulate(&fleet{limits: limits(3, 1, 1), clusters: []rollout.Cluster{
				outdated("member-1"), outdated("member-2"), outdated("member-3"),
			}}, 10)
		},
		"move-from-west-to-east": func() string {
			return simulate(&fleet{limits: limits(3, 1, 1), clusters: []rollout.Cluster{
				deselected("west-1"), deselected("west-2"), deselected("west-3"), fresh("east-1"), fresh("east-2"), fresh("east-3"),
			}}, 12)
		},
		"bad-image-stops-at-one-cluster-and-the-fix-begins-there": func() string {
			f := &fleet{limits: limits(3, 1, 1), clusters: []rollout.Cluster{
				outdated("cluster-1"), outdated("cluster-2"), outdated("cluster-3"),
			}}
			bad := simulate(f, 3, "cluster-1")
			for i := range f.clusters {
				f.clusters[i].Current = false
			}
			f.at("cluster-1").Failed = true
			return "the bad image\n" + bad + "the fix\n" + simulate(f, 10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, path := run(), filepath.Join("testdata", name+".txt")
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
