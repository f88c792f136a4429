package rollingupdate

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// rolloutFacts are what one batch is decided from.
type rolloutFacts struct {
	rollout.Facts
	// bindingNames and pins by cluster; a pin is what a change of the binding must find.
	bindingNames map[string]string
	pins         map[string]wf.Change
	// staying says of each binding, by its uid, that it is not being deleted.
	staying map[string]bool
	// evictionUIDs are the uids of evictions without an outcome, by name.
	evictionUIDs map[string]string
	// unavailable are the bindings of clusters that have resources and are not available.
	unavailable []placementv1beta1.BindingObject
	// older counts the clusters that hold each older snapshot; stable is the one of them that new
	// clusters get while the target is not to spread further.
	older  map[string]int
	stable string
	// claimRoom is how many bytes a claim may have of clusters and evictions.
	claimRoom int
	// refused are the clusters whose bindings could not be written when that was last tried.
	refused []rollout.Wait
}

func newRolloutFacts() *rolloutFacts {
	return &rolloutFacts{
		bindingNames: map[string]string{}, pins: map[string]wf.Change{}, staying: map[string]bool{}, evictionUIDs: map[string]string{},
		older: map[string]int{},
	}
}

// decidePlan returns the plan, as far as the next claim has room for it.
func (f *rolloutFacts) decidePlan() rollout.Plan {
	plan := rollout.Decide(f.Facts)
	f.limitToRoom(&plan)
	return plan
}

// forgetIdleRefusals leaves out the refused writes of clusters to which nothing is to be written any more. With evictionsOnly, update runs
// change the clusters.
func (f *rolloutFacts) forgetIdleRefusals(evictionsOnly bool) {
	if len(f.refused) == 0 {
		return
	}
	due := map[string]bool{}
	for _, c := range f.Clusters {
		changes := !evictionsOnly && (c.WantsTakeAway() || c.State == rollout.Scheduled)
		due[c.Name] = due[c.Name] || changes || c.Claimed || c.Prepared != ""
	}
	for _, e := range f.Evictions {
		due[e.Cluster] = true
	}
	f.refused = slices.DeleteFunc(f.refused, func(wait rollout.Wait) bool { return !due[wait.Cluster] })
}

func (f *rolloutFacts) addCluster(c rollout.Cluster, b placementv1beta1.BindingObject) {
	f.Clusters = append(f.Clusters, c)
	f.bindingNames[c.Name] = b.GetName()
	if c.Old {
		f.older[b.GetBindingSpec().ResourceSnapshotName]++
	}
	if c.Placed && !c.Available {
		f.unavailable = append(f.unavailable, b)
	}
	f.staying[string(b.GetUID())] = !rules.IsDeleting(b)
	f.pins[c.Name] = wf.Change{
		Cluster: c.Name, Binding: b.GetName(), UID: string(b.GetUID()),
		FromState: string(b.GetBindingSpec().State), FromRevision: workmodel.Revision(b),
	}
}

// isAnsweredSince reports whether a hook of a cluster was answered, or holds it, since the facts were gathered, or its binding may be
// written again.
func (f *rolloutFacts) isAnsweredSince(now rollout.Cluster) bool {
	return slices.ContainsFunc(f.Clusters, func(c rollout.Cluster) bool {
		return c.Name == now.Name && (c.Prepared != now.Prepared || c.WaitsForHook(rollout.Update) != now.WaitsForHook(rollout.Update) ||
			c.WaitsForHook(rollout.Remove) != now.WaitsForHook(rollout.Remove) || c.Refusal() != nil && now.Refusal() == nil)
	})
}

// basis returns a fingerprint of the bindings that the facts were gathered from: which there
// are, and what they ask for.
func (f *rolloutFacts) basis() string {
	var sum uint64
	for uid, stays := range f.staying {
		sum += hashOf(uid, stays) // a sum does not depend on the order
	}
	for _, pin := range f.pins {
		sum += hashOf(pin.UID, pin.FromState, pin.FromRevision)
	}
	for _, c := range f.Clusters {
		if c.Prepared != "" {
			sum += hashOf(c.Name, c.Prepared)
		}
	}
	return strconv.FormatUint(sum, 36)
}

func hashOf(values ...any) uint64 {
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, values...) // writing to a hash never fails
	return hash.Sum64()
}

// evictionChange returns what the history keeps of a decided eviction.
func (f *rolloutFacts) evictionChange(step rollout.EvictionStep) wf.Change {
	c := wf.Change{Cluster: step.Cluster}
	if step.Op == rollout.Evict {
		c = f.pins[step.Cluster]
	}
	c.Op, c.Eviction, c.EvictionUID = string(step.Op), step.Eviction, f.evictionUIDs[step.Eviction]
	c.Verdict = &wf.Verdict{Code: string(step.Verdict.Code), Available: step.Verdict.Available, Total: step.Verdict.Total}
	return c
}

func isEviction(change wf.Change) bool { return change.Eviction != "" }

// recordedVerdict returns the verdict in a change as the history keeps it.
func recordedVerdict(change wf.Change) rollout.Verdict {
	if change.Verdict == nil {
		return rollout.Verdict{}
	}
	return rollout.Verdict{Code: rollout.Code(change.Verdict.Code), Available: change.Verdict.Available, Total: change.Verdict.Total}
}

// LimitsOf resolves the limits of the rollout, whose percentages are of the number of
// clusters that the placement asks for (API reference, RollingUpdateConfig).
func LimitsOf(placement placementv1beta1.PlacementObject, clusters []rollout.Cluster) (limits rollout.Limits, err error) {
	fitting := 0
	for _, c := range clusters {
		if c.State != rollout.Unscheduled && !c.Deleting {
			fitting++
		}
	}
	limits.Target = rules.TargetClusters(placement.GetPlacementSpec().Policy, fitting)
	unavailable, surge := rules.RolloutLimits(placement)
	if limits.MaxUnavailable, err = rollout.Resolve(unavailable.String(), limits.Target); err != nil {
		return limits, fmt.Errorf("maxUnavailable of placement %s: %w", placement.GetName(), err)
	}
	if limits.MaxSurge, err = rollout.Resolve(surge.String(), limits.Target); err != nil {
		return limits, fmt.Errorf("maxSurge of placement %s: %w", placement.GetName(), err)
	}
	config := rules.RollingUpdateOf(placement)
	limits.Paused = config.Paused
	limits.MaxInFlight = planning.MaxInFlightPerValue(config.Order)
	if config.Partition == nil {
		return limits, nil
	}
	if limits.Partition, err = rollout.ResolvePartition(config.Partition.String(), limits.Target); err != nil {
		return limits, fmt.Errorf("partition of placement %s: %w", placement.GetName(), err)
	}
	return limits, nil
}

// snapshotIndex returns the index in the name of a snapshot; -1 if the name has another form.
func snapshotIndex(snapshot string) int {
	index, err := strconv.Atoi(workmodel.SnapshotIndex(snapshot))
	if err != nil {
		return -1
	}
	return index
}
