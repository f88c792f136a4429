package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

func TestTheCopyOfAReplacedClusterStaysUntilTheNewOneIsAvailable(t *testing.T) {
	for name, test := range map[string]struct {
		old, by func(*rollout.Cluster)
		unfit   bool
		absent  bool
		waits   string
	}{
		"it goes once the new copy is available":            {},
		"it stays while there is no new copy":               {absent: true, waits: "has no copy"},
		"it stays while the new copy is not available":      {by: func(c *rollout.Cluster) { c.Available = false }, waits: "is not available"},
		"it stays while the new copy is of other resources": {by: func(c *rollout.Cluster) { c.Current = false }, waits: "latest resources"},
		"it stays while the new cluster has nothing": {by: func(c *rollout.Cluster) {
			c.State, c.Placed, c.Current, c.Available = rollout.Scheduled, false, false, false
		}, waits: "latest resources"},
		"it stays while the new copy goes":                      {by: func(c *rollout.Cluster) { c.State = rollout.Unscheduled }, waits: "has no copy"},
		"it stays while the new copy is being removed":          {by: func(c *rollout.Cluster) { c.Deleting = true }, waits: "has no copy"},
		"it stays while a change of the new copy may be made":   {by: func(c *rollout.Cluster) { c.Claimed = true }, waits: "about to be changed"},
		"it stays while the new cluster is not known healthy":   {unfit: true, waits: "not known to be healthy"},
		"it stays even where the old copy is ill, and costs no": {old: func(c *rollout.Cluster) { c.Available = false }, by: func(c *rollout.Cluster) { c.Available = false }, waits: "not available"},
	} {
		t.Run(name, func(t *testing.T) {
			old := rollout.Cluster{Name: "old", State: rollout.Unscheduled, Placed: true, Current: true, Available: true}
			by := rollout.Cluster{Name: "new", State: rollout.Bound, Placed: true, Current: true, Available: true}
			if test.old != nil {
				test.old(&old)
			}
			if test.by != nil {
				test.by(&by)
			}
			clusters := []rollout.Cluster{old}
			if !test.absent {
				clusters = append(clusters, by)
			}
			plan := rollout.Decide(rollout.Facts{Clusters: clusters, Replaced: map[string]rollout.Replacer{"old": {Cluster: "new", Fit: !test.unfit}}, Limits: rollout.Limits{Target: 1, MaxUnavailable: 1, MaxSurge: 1}})
			removes := slices.Contains(plan.Steps, rollout.Step{Cluster: "old", Op: rollout.Remove})
			assert.Equal(t, test.waits == "", removes)
			if test.waits != "" {
				require.NotEmpty(t, plan.Waits)
				at := slices.IndexFunc(plan.Waits, func(w rollout.Wait) bool { return w.Kind == rollout.BrakeNewCluster })
				require.GreaterOrEqual(t, at, 0)
				assert.Contains(t, plan.Waits[at].Why, test.waits)
				assert.False(t, plan.Settled)
			}
		})
	}
}

// What the API server has just refused is not proposed again at once, and the plan says when to look again.
func TestARemovalThatWasRefusedIsTriedAgainLater(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	plan := rollout.Decide(rollout.Facts{
		Clusters: []rollout.Cluster{
			{Name: "old", State: rollout.Unscheduled, Placed: true, Current: true, Available: true},
			{Name: "new", State: rollout.Bound, Placed: true, Current: true, Available: true},
		},
		Replaced: map[string]rollout.Replacer{"old": {Cluster: "new", Fit: true, Again: at}}, Limits: rollout.Limits{Target: 1, MaxUnavailable: 1, MaxSurge: 1},
	})
	assert.Empty(t, plan.Steps)
	assert.Equal(t, at, plan.WakeAt)
	require.Len(t, plan.Waits, 1)
	assert.Equal(t, rollout.BrakeNewCluster, plan.Waits[0].Kind)
	assert.Contains(t, plan.Waits[0].Why, "was not available when that was looked at last")
}

func TestAClusterThatIsReplacedIsInServiceWhileItsCopyStays(t *testing.T) {
	for name, test := range map[string]struct {
		change func(old, by *rollout.Cluster)
		backs  bool
	}{
		"it is put back while the new copy is not available": {change: func(_, by *rollout.Cluster) { by.Available = false }, backs: true},
		"it is put back while the new copy goes":             {change: func(_, by *rollout.Cluster) { by.State = rollout.Unscheduled }, backs: true},
		"it stays out of service while the hook holds it":    {change: func(_, _ *rollout.Cluster) {}},
		"it is in service": {change: func(old, by *rollout.Cluster) {
			old.Prepared, old.Available = "", true
			by.Available = false
		}},
	} {
		t.Run(name, func(t *testing.T) {
			old := rollout.Cluster{Name: "old", State: rollout.Unscheduled, Placed: true, Current: true, Prepared: rollout.Remove, Drained: true,
				Waits: []rollout.Wait{{Kind: rollout.BrakeHook, Op: rollout.Remove, Object: "drain"}}}
			by := rollout.Cluster{Name: "new", State: rollout.Bound, Placed: true, Current: true, Available: true}
			test.change(&old, &by)
			plan := rollout.Decide(rollout.Facts{Clusters: []rollout.Cluster{old, by}, Replaced: map[string]rollout.Replacer{"old": {Cluster: "new", Fit: true}},
				Limits: rollout.Limits{Target: 1, MaxUnavailable: 0, MaxSurge: 1}})
			assert.Equal(t, test.backs, slices.Contains(plan.Steps, rollout.Step{Cluster: "old", Op: rollout.GiveUpChange}), "%v", plan.Steps)
			assert.False(t, plan.Settled)
		})
	}
}

// Both copies are there for a time, whatever maxSurge is: with 0 of it, one cluster at a time is replaced. One whose replacement is stuck takes
// no room of others that fail over.
func TestAReplacementHasRoomForBothCopies(t *testing.T) {
	held := func(name string) rollout.Cluster {
		return rollout.Cluster{Name: name, State: rollout.Unscheduled, Placed: true, Current: true, Available: true}
	}
	fresh := func(name string) rollout.Cluster { return rollout.Cluster{Name: name, State: rollout.Scheduled} }
	ill := func(name string) rollout.Cluster {
		return rollout.Cluster{Name: name, State: rollout.Bound, Placed: true, Current: true}
	}
	failing := func(name string) rollout.Cluster {
		return rollout.Cluster{Name: name, State: rollout.Unscheduled, Placed: true, Current: true, Leaving: rollout.LeavingGracefully}
	}
	for name, test := range map[string]struct {
		clusters []rollout.Cluster
		surge    int
		added    []rollout.Step
	}{
		"without a surge, one at a time": {[]rollout.Cluster{held("a"), fresh("na"), held("b"), fresh("nb")}, 0, []rollout.Step{{Cluster: "na", Op: rollout.Add}}},
		"without a surge, others wait":   {[]rollout.Cluster{held("a"), ill("na"), held("b"), fresh("nb")}, 0, nil},
		"a surge of one has room for it": {[]rollout.Cluster{held("a"), fresh("na"), held("b"), fresh("nb")}, 1, []rollout.Step{{Cluster: "na", Op: rollout.Add}}},
		"a surge of two has room for both": {[]rollout.Cluster{held("a"), fresh("na"), held("b"), fresh("nb")}, 2,
			[]rollout.Step{{Cluster: "na", Op: rollout.Add}, {Cluster: "nb", Op: rollout.Add}}},
		"another cluster fails over":      {[]rollout.Cluster{held("a"), ill("na"), failing("x"), fresh("nx")}, 1, []rollout.Step{{Cluster: "nx", Op: rollout.Add}}},
		"another cluster has failed over": {[]rollout.Cluster{held("a"), ill("na"), fresh("nx")}, 0, []rollout.Step{{Cluster: "nx", Op: rollout.Add}}},
		"others are kept to their surge":  {[]rollout.Cluster{held("a"), ill("na"), held("x"), fresh("nx")}, 1, nil},
		"others are kept from any surge":  {[]rollout.Cluster{held("a"), ill("na"), failing("x"), ill("nx"), failing("y"), fresh("ny")}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			target := 0
			for _, c := range test.clusters {
				if c.State != rollout.Unscheduled {
					target++
				}
			}
			plan := rollout.Decide(rollout.Facts{Clusters: test.clusters, Limits: rollout.Limits{Target: target, MaxUnavailable: 0, MaxSurge: test.surge},
				Replaced: map[string]rollout.Replacer{"a": {Cluster: "na", Fit: true}, "b": {Cluster: "nb", Fit: true}}})
			added := slices.DeleteFunc(plan.Steps, func(step rollout.Step) bool { return step.Op != rollout.Add })
			assert.ElementsMatch(t, test.added, added)
		})
	}
}

// TestInRandomWorldsNoCopyGoesBeforeTheNewOneIsAvailable has clusters replaced while those that replace them fall ill, and recover, at
// random, and checks each removal by what is so when it is decided. In the end, when all is well, every replacement is done: nothing waits for
// each other.
func TestInRandomWorldsNoCopyGoesBeforeTheNewOneIsAvailable(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 11))
		n := 1 + r.IntN(6)
		limits := rollout.Limits{Target: n, MaxUnavailable: r.IntN(3), MaxSurge: r.IntN(3)}
		world := map[string]*rollout.Cluster{}
		replaced := map[string]rollout.Replacer{}
		var order []string
		add := func(c rollout.Cluster) { world[c.Name] = &c; order = append(order, c.Name) }
		for i := range n {
			name := fmt.Sprintf("c%d", i)
			c := rollout.Cluster{Name: name, State: rollout.Bound, Placed: true, Current: true, Available: true}
			switch r.IntN(3) {
			case 0:
				c.State = rollout.Unscheduled
				replaced[name] = rollout.Replacer{Cluster: "n" + name, Fit: true}
				add(rollout.Cluster{Name: "n" + name, State: rollout.Scheduled})
			case 1: // it fails over to another
				if limits.MaxUnavailable+limits.MaxSurge == 0 {
					break
				}
				c.State, c.Leaving = rollout.Unscheduled, rollout.LeavingGracefully
				if limits.MaxSurge == 0 || limits.MaxUnavailable > 0 && r.IntN(2) == 0 {
					c.Leaving = rollout.LeavingDirectly
				}
				add(rollout.Cluster{Name: "n" + name, State: rollout.Scheduled})
			}
			add(c)
		}
		facts := func() rollout.Facts {
			var clusters []rollout.Cluster
			for _, name := range order {
				if c := world[name]; c != nil {
					clusters = append(clusters, *c)
				}
			}
			return rollout.Facts{Clusters: clusters, Limits: limits, Replaced: replaced}
		}
		round := func(calm bool) {
			for _, name := range order {
				c := world[name]
				switch {
				case c == nil:
				case c.Deleting:
					if calm || r.IntN(2) == 0 {
						delete(world, name)
					}
				case c.Placed && c.State == rollout.Bound:
					c.Available = calm || r.IntN(3) > 0
				}
				if by, is := replaced[name]; is {
					by.Fit = calm || r.IntN(3) > 0
					replaced[name] = by
				}
			}
			for _, step := range rollout.Decide(facts()).Steps {
				c := world[step.Cluster]
				switch step.Op {
				case rollout.Remove:
					if replacer, is := replaced[c.Name]; is {
						by := world[replacer.Cluster]
						require.True(t, by != nil && by.Available && by.Current && by.State == rollout.Bound && !by.Deleting && replacer.Fit,
							"seed %d: the copy on %s goes while that on %s is %+v", seed, c.Name, replacer.Cluster, by)
					}
					c.Deleting = true
				case rollout.Add, rollout.Update:
					c.State, c.Placed, c.Current, c.Available = rollout.Bound, true, true, false
				}
			}
		}
		for range 12 {
			round(false)
		}
		for range 4 * n {
			round(true)
		}
		for _, c := range world {
			require.Equal(t, rollout.Bound, c.State, "seed %d: %s %+v", seed, c.Name, rollout.Decide(facts()).Waits)
		}
	}
}
