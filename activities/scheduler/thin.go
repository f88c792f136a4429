package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
)

// thinning has bindings leave one after the other, so that what remains is spread best.
type thinning struct {
	order departures
	// departing are the plug-ins that look at what remains, by their place in the runner's reserves.
	departing map[int]framework.DepartPlugin
	run       *runner
	// waiting are the bindings that have not gone, by class of their cluster; of a class the last goes first.
	waiting map[int][]Binding
}

// findSurplusBySpread finds as many bindings as are too many, by cluster: in the order of marks, costs and states, and of those that are
// equal by these always the one without which the rest is spread best.
func findSurplusBySpread(c *cycle, surplus int) (map[string]Binding, error) {
	run, err := c.startPlugins(nil)
	if err != nil {
		return nil, err
	}
	t := thinning{order: newDepartures(c), run: run, departing: map[int]framework.DepartPlugin{}, waiting: map[int][]Binding{}}
	for i, reserve := range run.reserves {
		if departing, is := reserve.(framework.DepartPlugin); is {
			t.departing[i] = departing
		}
	}
	for _, binding := range slices.SortedFunc(maps.Values(c.held.current), t.compareStays) {
		class := run.classOf(c.fleet.findCluster(binding.Cluster))
		t.waiting[class] = append(t.waiting[class], binding)
	}
	tooMany := make(map[string]Binding, surplus)
	for range surplus {
		goes := t.takeNext()
		tooMany[goes.Cluster] = goes
		for _, plugin := range t.departing {
			plugin.Release(c.fleet.findCluster(goes.Cluster))
		}
	}
	return tooMany, nil
}

// compareStays is that of departures, without the part of the recorded scores that the spread was.
func (t *thinning) compareStays(a, b Binding) int {
	return cmp.Or(t.order.compareCases(a, b), t.compareEqual(a, b))
}

func (t *thinning) compareEqual(a, b Binding) int {
	ofA := scoreOf(a.Decision.ClusterScore)
	ofB := scoreOf(b.Decision.ClusterScore)
	ofA.Topology = 0
	ofB.Topology = 0
	return cmp.Or(ofA.Compare(ofB), cmp.Compare(b.Cluster, a.Cluster))
}

// takeNext takes the binding that goes next.
func (t *thinning) takeNext() Binding {
	from := -1
	var next Binding
	var least framework.Loss
	for class, bindings := range t.waiting {
		last := bindings[len(bindings)-1]
		loss := t.lossOf(class)
		if from < 0 || cmp.Or(t.order.compareCases(next, last), loss.Compare(least), t.compareEqual(next, last)) < 0 {
			from = class
			next = last
			least = loss
		}
	}
	if left := t.waiting[from][:len(t.waiting[from])-1]; len(left) > 0 {
		t.waiting[from] = left
	} else {
		delete(t.waiting, from)
	}
	return next
}

func (t *thinning) lossOf(class int) framework.Loss {
	var loss framework.Loss
	for i, plugin := range t.departing {
		loss = loss.Add(plugin.LossOf(t.run.members[class][i]))
	}
	return loss
}
