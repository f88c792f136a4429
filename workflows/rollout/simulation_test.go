package rollout_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// fleet is a simulated fleet: what the hub has stored of one placement.
type fleet struct {
	clusters []rollout.Cluster
	limits   rollout.Limits
	// first are the clusters whose first placement is under way, which is no update.
	first map[string]bool
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

// older counts the wanted clusters that keep an older snapshot.
func (f *fleet) older() (n int) {
	for _, c := range f.clusters {
		if c.Old && c.State == rollout.Bound && !c.Deleting {
			n++
		}
	}
	return n
}

// updating counts the clusters with one value that were updated and are not available yet.
func (f *fleet) updating(value string) (n int) {
	for _, c := range f.clusters {
		if c.Scatter == value && c.State == rollout.Bound && !c.Deleting && c.Current && !c.Available && !f.first[c.Name] {
			n++
		}
	}
	return n
}

// judgeUpdate says what an update breaks of what is to be held back.
func (f *fleet) judgeUpdate(c *rollout.Cluster) error {
	switch {
	case f.limits.Paused:
		return errors.New("the rollout is paused")
	case c.Old && f.older()-1 < f.limits.Partition:
		return fmt.Errorf("%d clusters would keep an older snapshot, %d are to", f.older()-1, f.limits.Partition)
	case f.limits.MaxInFlight > 0 && c.Scatter != "" && f.updating(c.Scatter)+1 > f.limits.MaxInFlight:
		return fmt.Errorf("%d clusters of %s would be updated, %d may be", f.updating(c.Scatter)+1, c.Scatter, f.limits.MaxInFlight)
	}
	return nil
}

// write does to the fleet what a step does, and says which limit it breaks by
// the state stored at that write.
func (f *fleet) write(step rollout.Step) error {
	c := f.at(step.Cluster)
	if c == nil || c.Deleting {
		return fmt.Errorf("%s of a cluster that is gone or going", step.Op)
	}
	op := step.Op
	if op == rollout.AddStable {
		op = rollout.Add
	}
	if slices.ContainsFunc(c.Waits, func(w rollout.Wait) bool { return w.Op == op }) {
		return fmt.Errorf("%s of a cluster that is closed for that", step.Op)
	}
	if taken := c.Available; taken && step.Op != rollout.Add && step.Op != rollout.AddStable {
		if least := f.limits.Target - f.limits.MaxUnavailable; f.available()-1 < least {
			return fmt.Errorf("%s leaves %d available, at least %d must remain", step.Op, f.available()-1, least)
		}
	}
	switch step.Op {
	case rollout.Add, rollout.AddStable:
		if c.State != rollout.Scheduled {
			return fmt.Errorf("add of a cluster that is %s", c.State)
		}
		if most := f.limits.Target + f.limits.MaxSurge; f.placed()+1 > most {
			return fmt.Errorf("add makes %d placed, at most %d may be", f.placed()+1, most)
		}
		if spreads := step.Op == rollout.Add; spreads && f.limits.Paused && slices.ContainsFunc(f.clusters, func(o rollout.Cluster) bool { return o.Old && o.Placed }) {
			return errors.New("the target spreads during a pause")
		}
		if f.first == nil {
			f.first = map[string]bool{}
		}
		f.first[c.Name] = true
		c.State = rollout.Bound
		c.Placed = true
		c.Available = false
		c.Current = step.Op == rollout.Add
		c.Old = step.Op == rollout.AddStable
	case rollout.Update:
		if c.State != rollout.Bound || c.Current {
			return fmt.Errorf("update of a cluster that is %s, current %t", c.State, c.Current)
		}
		if err := f.judgeUpdate(c); err != nil {
			return err
		}
		delete(f.first, c.Name)
		c.Current = true
		c.Old = false
		c.Available = false
		c.Failed = false
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
		c.Available = true
		c.Failed = false
		delete(f.first, name)
	}
}

// disturb does something to the fleet that nobody asked the planner about.
func (f *fleet) disturb(r *rand.Rand) {
	if len(f.clusters) == 0 {
		return
	}
	c := &f.clusters[r.IntN(len(f.clusters))]
	switch r.IntN(9) {
	case 8:
		c.Waits = anyClosed(r)
	case 0, 1, 2:
		f.settle(c.Name)
	case 3: // lost by itself
		c.Available = false
	case 4:
		if c.Placed && !c.Deleting {
			c.Available = false
			c.Failed = true
		}
	case 5: // the resources change
		for i := range f.clusters {
			f.clusters[i].Current = false
			f.clusters[i].Old = f.clusters[i].Placed
		}
	case 6: // the policy changes
		f.reschedule(c, r)
	case 7:
		f.limits = rollout.Limits{Target: r.IntN(len(f.clusters) + 3), MaxUnavailable: r.IntN(3), MaxSurge: r.IntN(3)}
		f.holdBack(r)
	}
}

// anyClosed closes a cluster for some changes, or for none.
func anyClosed(r *rand.Rand) (waits []rollout.Wait) {
	if r.IntN(2) == 0 {
		return nil
	}
	for _, wait := range closedForAll() {
		if r.IntN(2) == 0 {
			waits = append(waits, wait)
		}
	}
	return waits
}

// closedForAll closes a cluster for whatever would begin.
func closedForAll() (waits []rollout.Wait) {
	for _, op := range []rollout.Op{rollout.Update, rollout.Add, rollout.Remove, rollout.Evict} {
		wait := hold
		wait.Op = op
		waits = append(waits, wait)
	}
	return waits
}

// waitingFor is a cluster that a brake keeps, before all others.
func waitingFor(c rollout.Cluster, wait rollout.Wait) rollout.Cluster {
	c.Waits = slices.Concat([]rollout.Wait{wait}, c.Waits)
	return c
}

// batch is a plan, with how many clusters wait.
type batch struct {
	Evictions         []rollout.EvictionStep
	Steps             []rollout.Step
	Blocked, HeldBack int
	WakeAt            time.Time
	Settled           bool
}

func batchOf(plan rollout.Plan) batch {
	return batch{plan.Evictions, plan.Steps, plan.Blocked(), plan.HeldBack(), plan.WakeAt, plan.Settled}
}

// stepsOf are the operations that wait.
func stepsOf(waits []rollout.Wait) (steps []rollout.Step) {
	for _, wait := range waits {
		steps = append(steps, rollout.Step{Cluster: wait.Cluster, Op: wait.Op})
	}
	return steps
}

// holdBack makes the limits hold clusters back, or not.
func (f *fleet) holdBack(r *rand.Rand) {
	f.limits.Paused = r.IntN(5) == 0
	f.limits.Partition = max(0, r.IntN(len(f.clusters)+3)-2)
	f.limits.MaxInFlight = r.IntN(3)
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
			c.State = rollout.Unscheduled
			c.Placed = true
		default:
			c.State = rollout.Bound
			c.Placed = true
			c.Current = r.IntN(3) == 0
			c.Old = !c.Current && r.IntN(4) > 0
		}
		c.Order = r.IntN(4)
		c.Scatter = []string{"", "east", "west"}[r.IntN(3)]
		if c.Placed {
			c.Available = r.IntN(4) > 0
			c.Failed = !c.Available && r.IntN(2) == 0
			c.Deleting = r.IntN(8) == 0
		}
		f.clusters = append(f.clusters, c)
	}
	f.limits = rollout.Limits{Target: r.IntN(len(f.clusters) + 3), MaxUnavailable: r.IntN(4), MaxSurge: r.IntN(4)}
	f.holdBack(r)
	return f
}

// decideBatch decides the next batch of a rollout without evictions.
func decideBatch(clusters []rollout.Cluster, limits rollout.Limits) rollout.Plan {
	return rollout.Decide(rollout.Facts{Clusters: clusters, Limits: limits})
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
			plan := decideBatch(f.clusters, f.limits)
			f.checkClosed(t, seed, plan)
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

// checkClosed checks that closed clusters cost the others nothing: without them the same is planned.
func (f *fleet) checkClosed(t *testing.T, seed uint64, plan rollout.Plan) {
	t.Helper()
	closed := stepsOf(plan.Closed())
	for _, step := range closed {
		require.NotContains(t, plan.Steps, step, "seed %d", seed)
	}
	if len(closed) == 0 {
		return
	}
	without := slices.Clone(f.clusters)
	for i := range without {
		if c := &without[i]; slices.ContainsFunc(closed, func(s rollout.Step) bool { return s.Cluster == c.Name }) {
			*c = waitingFor(*c, freeze) // it counts as it is, and keeps no other from its turn
		}
	}
	require.Equal(t, plan.Steps, decideBatch(without, f.limits).Steps, "seed %d", seed)
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
		f.limits.Paused = false
		least := min(f.limits.Partition, f.older())
		rounds := 0
		for ; ; rounds++ {
			require.Less(t, rounds, 200, "seed %d does not end", seed)
			plan := decideBatch(f.clusters, f.limits)
			if plan.Settled {
				break
			}
			for _, step := range plan.Steps {
				require.NoError(t, f.write(step), "seed %d", seed)
			}
			f.settle(f.clusters[r.IntN(len(f.clusters))].Name)
		}
		for _, c := range f.clusters {
			require.True(t, c.Deleting || c.State == rollout.Bound && (c.Current || c.Old), "seed %d: %+v", seed, c)
		}
		require.GreaterOrEqual(t, f.older(), least, "seed %d", seed)
		require.LessOrEqual(t, f.older(), f.limits.Partition, "seed %d: more are held back than are to be", seed)
	}
}
