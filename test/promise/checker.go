// Package promise judges recorded writes to a hub by what the product promises of a rollout: that limits hold at every single write,
// that nothing is deleted whose deletion was not asked for, and that nothing begins on a cluster while a hold is stored that covers it,
// except for the batch that had begun. It knows nothing of how rollouts are planned: it only reads what was stored, in the order in
// which it was stored.
package promise

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Checker keeps what the hub has stored of one placement.
type Checker struct {
	placement *placementv1beta1.ClusterResourcePlacement
	budget    *placementv1beta1.ClusterResourcePlacementDisruptionBudget
	bindings  map[string]*placementv1beta1.ClusterResourceBinding
	works     map[string]placementv1beta1.Work
	evictions map[string]*placementv1beta1.ClusterResourcePlacementEviction
	byUser    map[string]bool
	holds     map[string]*storedHold
	// exemptions are those of all placements and runs.
	exemptions map[string]storedExemption
	labels     map[string]map[string]string
	leaving    map[string]bool
	clock      time.Time
	// batch is for how long a batch may be written that had begun when fewer clusters were asked for; begun is that batch.
	batch time.Duration
	begun begunBatch
	// Judged counts the writes that took a cluster away, gave one its first resources, or
	// deleted one.
	Judged int
}

// New returns a checker for a placement of which nothing else is stored.
func New(placement *placementv1beta1.ClusterResourcePlacement) *Checker {
	return &Checker{
		placement: placement.DeepCopy(), bindings: map[string]*placementv1beta1.ClusterResourceBinding{},
		works:     map[string]placementv1beta1.Work{},
		evictions: map[string]*placementv1beta1.ClusterResourcePlacementEviction{}, byUser: map[string]bool{},
		holds: map[string]*storedHold{}, exemptions: map[string]storedExemption{}, labels: map[string]map[string]string{},
		leaving: map[string]bool{},
	}
}

// Placement notes that the placement was written. If it asks for fewer clusters than before, the batch may be written for a while
// that is claimed on it: it was decided when more were asked for, and its process may have been frozen since.
func (c *Checker) Placement(now *placementv1beta1.ClusterResourcePlacement) {
	before := c.target()
	most := before + c.limit(false, before)
	claimed := claimedOn(c.placement)
	c.placement = now.DeepCopy()
	if after := c.target(); c.batch > 0 && !c.clock.IsZero() && after < before && len(claimed) > 0 {
		c.begun = begunBatch{clusters: claimed, most: most, until: c.clock.Add(c.batch)}
	}
}

// begunBatch are clusters that may get their first resources though fewer clusters are asked for by now.
type begunBatch struct {
	clusters map[string]string
	// most is how many clusters might have resources when the batch was decided.
	most  int
	until time.Time
}

// mayGain returns how many clusters may have resources when a cluster gets its first.
func (b begunBatch) mayGain(cluster string, now time.Time) int {
	if _, claimed := b.clusters[cluster]; !claimed || now.After(b.until) {
		return 0
	}
	return b.most
}

// claimedOn returns the clusters of the batch that is claimed on a placement.
func claimedOn(p *placementv1beta1.ClusterResourcePlacement) map[string]string {
	var claim struct {
		Clusters map[string]string `json:"clusters"`
	}
	if json.Unmarshal([]byte(p.Annotations[placementv1beta1.RolloutClaimAnnotation]), &claim) != nil {
		return nil
	}
	return claim.Clusters
}

// Budget notes that the disruption budget was written, or deleted if it is nil.
func (c *Checker) Budget(now *placementv1beta1.ClusterResourcePlacementDisruptionBudget) {
	c.budget = now.DeepCopy()
}

// Eviction notes that an eviction was written.
func (c *Checker) Eviction(now *placementv1beta1.ClusterResourcePlacementEviction) {
	c.evictions[now.Name] = now.DeepCopy()
}

// UserDeletes allows that a binding is deleted.
func (c *Checker) UserDeletes(binding string) { c.byUser[binding] = true }

// Leaves notes whether a cluster is on its way out of the fleet, or out of it: the user wants nothing to stay there.
func (c *Checker) Leaves(cluster string, leaving bool) { c.leaving[cluster] = leaving }

// Seed notes a binding that was there from the beginning.
func (c *Checker) Seed(b *placementv1beta1.ClusterResourceBinding) { c.bindings[b.Name] = b.DeepCopy() }

// Work notes that a Work was written; gone says that it was deleted.
func (c *Checker) Work(now *placementv1beta1.Work, gone bool) {
	key := now.Namespace + "/" + now.Name
	if gone {
		delete(c.works, key)
		return
	}
	c.works[key] = *now.DeepCopy()
}

// Binding judges a write to a binding; gone says that it is no longer stored.
func (c *Checker) Binding(now *placementv1beta1.ClusterResourceBinding, gone bool) error {
	was := c.known(now)
	before := c.available()
	wasUp := was != nil && c.up(was)
	target := c.target()
	olderBefore := c.older(now)
	held := cmp.Or(c.held(was, now, gone), c.stopped(was, now, gone))
	c.store(now, gone)
	if err := cmp.Or(c.suspended(was, now, gone), c.spread(was, now, olderBefore, gone), held); err != nil {
		return err
	}
	if gone {
		defer delete(c.byUser, now.Name) // the next of this name is another one
	}
	if begins(was, now, gone) || !gone && prepares(was, now) {
		evicted, err := c.deletion(was, before, gone)
		if evicted || err != nil {
			return err
		}
	}
	lost := wasUp && (gone || !c.up(now))
	if lost && !c.costsNothing(was, now, gone) {
		return c.loss(now, before, target)
	}
	if isPlacedNow(was, now, gone) {
		return c.gain(now, target)
	}
	return nil
}

// BindingOfRun judges a write of a placement that is left to update runs, which have other limits: that no hold forbids it, that the
// placement does not suspend the cluster, and that no lifecycle hook holds it.
func (c *Checker) BindingOfRun(now *placementv1beta1.ClusterResourceBinding, gone bool) error {
	was := c.known(now)
	c.store(now, gone)
	if begins(was, now, gone) {
		c.Judged++
	}
	if c.leaving[now.Spec.TargetCluster] || !c.placement.DeletionTimestamp.IsZero() {
		return nil
	}
	return cmp.Or(c.stopped(was, now, gone), c.suspended(was, now, gone), c.held(was, now, gone))
}

// isPlacedNow reports whether a write places something on a cluster that had nothing.
func isPlacedNow(was, now *placementv1beta1.ClusterResourceBinding, gone bool) bool {
	return !gone && placed(now) && !placed(was)
}

// known returns what was stored of a binding before a write; nil if it is a new one.
func (c *Checker) known(now *placementv1beta1.ClusterResourceBinding) *placementv1beta1.ClusterResourceBinding {
	if was := c.bindings[now.Name]; was != nil && was.UID == now.UID {
		return was
	}
	return nil
}

// suspended judges a write to a cluster that the placement suspends: it is given nothing, and nothing is taken away
// from it.
func (c *Checker) suspended(was, now *placementv1beta1.ClusterResourceBinding, gone bool) error {
	cluster := now.Spec.TargetCluster
	if was == nil || !rules.IsSuspended(c.placement, cluster) || c.byUser[now.Name] {
		return nil
	}
	if begins(was, now, gone) {
		return fmt.Errorf("the binding on %s is deleted while the placement suspends the cluster", cluster)
	}
	if !gone && !equality.Semantic.DeepEqual(was.Spec.ReplicaAssignments, now.Spec.ReplicaAssignments) {
		return fmt.Errorf("%s is given other replicas while the placement suspends it", cluster)
	}
	if !gone && was.Spec.ResourceSnapshotName != now.Spec.ResourceSnapshotName {
		return fmt.Errorf("%s is given %s while the placement suspends it", cluster, now.Spec.ResourceSnapshotName)
	}
	return nil
}

// held judges that no change of a cluster is written that a lifecycle hook holds, as the binding was stored before.
func (c *Checker) held(was, now *placementv1beta1.ClusterResourceBinding, gone bool) error {
	hooks := rules.LifecycleOf(c.placement)
	if !placed(was) || hooks == nil || c.byUser[now.Name] || !c.placement.DeletionTimestamp.IsZero() {
		return nil
	}
	if begins(was, now, gone) {
		if wait := rules.HoldsRemoval(hooks, was, c.now()); wait != nil {
			return fmt.Errorf("%s is removed while it waits for %s", now.Spec.TargetCluster, wait.Need())
		}
		return nil
	}
	if wait := rules.HoldsUpdate(hooks, was, c.now()); wait != nil && !gone && was.Spec.ResourceSnapshotName != now.Spec.ResourceSnapshotName {
		return fmt.Errorf("%s is updated while it waits for %s", now.Spec.TargetCluster, wait.Need())
	}
	return nil
}

// prepares reports whether a write takes a cluster out of service before it is left.
func prepares(was, now *placementv1beta1.ClusterResourceBinding) bool {
	before := stands(was)
	after := stands(now)
	return was != nil && before != after && after == placementv1beta1.LifecyclePreparingRemove
}

// stands returns where a cluster stands between its lifecycle hooks.
func stands(b *placementv1beta1.ClusterResourceBinding) placementv1beta1.LifecycleState {
	if b == nil {
		return ""
	}
	state, _ := rules.LifecycleStateOf(b)
	return state
}

// spread judges that a snapshot reaches a cluster: the rollout must not be paused, and as many
// clusters as the partition says must keep an older snapshot, if so many had one.
func (c *Checker) spread(was, now *placementv1beta1.ClusterResourceBinding, olderBefore int, gone bool) error {
	s := c.placement.Spec.Strategy
	moved := placed(was) && was.Spec.ResourceSnapshotName != now.Spec.ResourceSnapshotName &&
		now.Spec.State == placementv1beta1.BindingStateBound
	if gone || !moved || s == nil || s.RollingUpdate == nil {
		return nil
	}
	if s.RollingUpdate.Paused {
		return fmt.Errorf("%s is updated to %s while the rollout is paused", now.Spec.TargetCluster, now.Spec.ResourceSnapshotName)
	}
	if partition := s.RollingUpdate.Partition; partition != nil {
		target := c.target()
		least := resolve(*partition, target)
		if partition.Type == intstr.String && partition.StrVal != "100%" && target > 1 {
			least = min(least, target-1)
		}
		if older := c.older(now); older < min(least, olderBefore) {
			return fmt.Errorf("updating %s leaves %d clusters at an older snapshot, the partition is %d", now.Spec.TargetCluster, older, least)
		}
	}
	return nil
}

// older counts the wanted clusters at a snapshot that is older than that of a binding.
func (c *Checker) older(than *placementv1beta1.ClusterResourceBinding) int {
	n := 0
	for _, b := range c.bindings {
		if placed(b) && b.DeletionTimestamp.IsZero() && b.Spec.State == placementv1beta1.BindingStateBound &&
			indexOf(b.Spec.ResourceSnapshotName) < indexOf(than.Spec.ResourceSnapshotName) {
			n++
		}
	}
	return n
}

// indexOf returns the index in the name of a snapshot.
func indexOf(snapshot string) int {
	index, _ := strconv.Atoi(workmodel.SnapshotIndex(snapshot))
	return index
}

// begins reports whether the end of a binding begins with a write.
func begins(was, now *placementv1beta1.ClusterResourceBinding, gone bool) bool {
	return was != nil && was.DeletionTimestamp.IsZero() && (gone || !now.DeletionTimestamp.IsZero())
}

// costsNothing reports whether what a cluster loses is no matter of the limits: the user has
// taken it or the cluster out of the fleet, or nothing is applied there.
func (c *Checker) costsNothing(was, now *placementv1beta1.ClusterResourceBinding, gone bool) bool {
	return c.byUser[now.Name] || c.leaving[now.Spec.TargetCluster] || !c.placement.DeletionTimestamp.IsZero() || reportsOnly(was, now, gone)
}

// reportsOnly reports whether a cluster goes on without anything being applied to it: then it loses
// nothing.
func reportsOnly(was, now *placementv1beta1.ClusterResourceBinding, gone bool) bool {
	if gone || !now.DeletionTimestamp.IsZero() {
		return false
	}
	for _, b := range []*placementv1beta1.ClusterResourceBinding{was, now} {
		if s := b.Spec.ApplyStrategy; s == nil || s.Type != placementv1beta1.ApplyStrategyTypeReportDiff {
			return false
		}
	}
	return true
}

// store notes that a binding was written.
func (c *Checker) store(now *placementv1beta1.ClusterResourceBinding, gone bool) {
	if gone {
		delete(c.bindings, now.Name)
		return
	}
	c.bindings[now.Name] = now.DeepCopy()
}

// placed reports whether a binding, if there is one, gives its cluster resources.
func placed(b *placementv1beta1.ClusterResourceBinding) bool {
	return b != nil && b.Spec.ResourceSnapshotName != ""
}

// loss judges that an available cluster is taken away, of so many that were available. Clusters that a user takes out of the fleet
// count or not: they do until the fleet unschedules them, and their resources may be gone before that.
func (c *Checker) loss(now *placementv1beta1.ClusterResourceBinding, available, target int) error {
	c.Judged++
	leaving := c.countWanted(func(b *placementv1beta1.ClusterResourceBinding) bool { return c.leaving[b.Spec.TargetCluster] })
	others := target - leaving
	if p := c.placement.Spec.Policy; p != nil && p.PlacementType == placementv1beta1.PickNPlacementType && leaving > 0 {
		// Those that replace them are there, or not yet.
		others = min(target, c.countWanted(func(b *placementv1beta1.ClusterResourceBinding) bool { return !c.leaving[b.Spec.TargetCluster] }))
	}
	othersAvailable := available - c.countWanted(func(b *placementv1beta1.ClusterResourceBinding) bool {
		return c.leaving[b.Spec.TargetCluster] && c.up(b)
	})
	if least := target - c.limit(true, target); available-1 < least && othersAvailable-1 < others-c.limit(true, others) {
		return fmt.Errorf("taking %s away leaves %d clusters available, %d must remain", now.Spec.TargetCluster, available-1, least)
	}
	return nil
}

// countWanted counts those of the clusters that are to have resources.
func (c *Checker) countWanted(counts func(*placementv1beta1.ClusterResourceBinding) bool) int {
	n := 0
	for _, b := range c.bindings {
		if b.Spec.State != placementv1beta1.BindingStateUnscheduled && b.DeletionTimestamp.IsZero() && counts(b) {
			n++
		}
	}
	return n
}

// gain judges that a cluster gets resources for the first time.
func (c *Checker) gain(now *placementv1beta1.ClusterResourceBinding, target int) error {
	c.Judged++
	if most := max(target+c.limit(false, target), c.begun.mayGain(now.Spec.TargetCluster, c.clock)); c.placed() > most {
		return fmt.Errorf("placing on %s makes %d clusters, %d may have resources", now.Spec.TargetCluster, c.placed(), most)
	}
	return nil
}

// deletion judges that a binding goes: its deletion must have been asked for. It says whether an
// eviction has, which has a budget of its own.
func (c *Checker) deletion(was *placementv1beta1.ClusterResourceBinding, available int, gone bool) (evicted bool, err error) {
	c.Judged++
	free := was.Spec.State == placementv1beta1.BindingStateUnscheduled || c.byUser[was.Name] || c.leaving[was.Spec.TargetCluster] ||
		!c.placement.DeletionTimestamp.IsZero()
	switch {
	case !c.asked(was.Spec.TargetCluster), c.fixed():
		if !free {
			return false, fmt.Errorf("the binding on %s is deleted without a cause that allows it", was.Spec.TargetCluster)
		}
		return false, nil
	case c.budget == nil, c.failed(was):
		return true, nil
	case c.misfit():
		if !free {
			return true, fmt.Errorf("evicting from %s under a budget that does not fit the placement", was.Spec.TargetCluster)
		}
		return false, nil
	}
	total := len(c.bindings)
	if gone {
		total++ // it was there when it was decided
	}
	if stands(was) == placementv1beta1.LifecyclePreparingRemove && c.state(was).Available {
		available++ // the budget was spent when it was taken out of service
	}
	if c.disruptions(available, total) <= 0 {
		if free {
			return false, nil // then it was not the eviction
		}
		return true, fmt.Errorf("evicting from %s is more than the budget allows: %d of %d were available", was.Spec.TargetCluster,
			available, total)
	}
	return true, nil
}

func (c *Checker) asked(cluster string) bool {
	for _, e := range c.evictions {
		if e.Spec.ClusterName == cluster && !e.Ended() {
			return true
		}
	}
	return false
}

// fixed reports whether evictions from the placement are never allowed.
func (c *Checker) fixed() bool {
	p := c.placement.Spec.Policy
	return p != nil && p.PlacementType == placementv1beta1.PickFixedPlacementType
}

// misfit reports whether the budget says what it cannot say of a placement on all clusters.
func (c *Checker) misfit() bool {
	p := c.placement.Spec.Policy
	if p != nil && p.PlacementType != "" && p.PlacementType != placementv1beta1.PickAllPlacementType {
		return false
	}
	return c.budget.Spec.MaxUnavailable != nil || c.budget.Spec.MinAvailable.Type == intstr.String
}

// disruptions returns how many clusters the budget lets go.
func (c *Checker) disruptions(available, total int) int {
	n := 0
	if p := c.placement.Spec.Policy; p != nil && p.NumberOfClusters != nil {
		n = int(*p.NumberOfClusters)
	}
	if least := c.budget.Spec.MinAvailable; least != nil {
		return available - resolve(*least, n)
	}
	return resolve(*c.budget.Spec.MaxUnavailable, n) - (max(total, n) - available)
}

// up reports whether a cluster is available, as stored.
func (c *Checker) up(b *placementv1beta1.ClusterResourceBinding) bool {
	return b.DeletionTimestamp.IsZero() && !rules.IsSuperseded(b) && c.state(b).Available &&
		rules.HoldsAvailable(rules.LifecycleOf(c.placement), b, c.now()) == nil
}

// now is long after every grace period: those are not judged.
func (c *Checker) now() time.Time { return time.Unix(1<<40, 0) }

// Available reports whether the resources of a cluster are available, whatever hooks say.
func (c *Checker) Available(b *placementv1beta1.ClusterResourceBinding) bool {
	return c.state(b).Available
}

func (c *Checker) failed(b *placementv1beta1.ClusterResourceBinding) bool { return c.state(b).Failed }

func (c *Checker) state(b *placementv1beta1.ClusterResourceBinding) workmodel.ClusterState {
	return workmodel.StateOf(b, c.worksOf(b))
}

func (c *Checker) worksOf(b *placementv1beta1.ClusterResourceBinding) (works []placementv1beta1.Work) {
	for key, work := range c.works {
		if strings.HasPrefix(key, placementv1beta1.MemberNamespace(b.Spec.TargetCluster)+"/") &&
			work.Labels[placementv1beta1.ParentBindingLabel] == b.Name {
			works = append(works, work)
		}
	}
	return works
}

func (c *Checker) available() int {
	n := 0
	for _, b := range c.bindings {
		if c.up(b) {
			n++
		}
	}
	return n
}

// placed counts the clusters that may have resources: those that are to have some, and those that have not yet removed them.
func (c *Checker) placed() int {
	n := 0
	for _, b := range c.bindings {
		if (placed(b) || !b.DeletionTimestamp.IsZero() && len(c.worksOf(b)) > 0) && !rules.IsSuperseded(b) {
			n++
		}
	}
	return n
}

// target returns the number of clusters the placement asks for.
func (c *Checker) target() int {
	p := c.placement.Spec.Policy
	switch {
	case p != nil && p.PlacementType == placementv1beta1.PickNPlacementType && p.NumberOfClusters != nil:
		return int(*p.NumberOfClusters)
	case p != nil && p.PlacementType == placementv1beta1.PickFixedPlacementType:
		return len(p.ClusterNames)
	}
	n := 0
	for _, b := range c.bindings {
		if b.Spec.State != placementv1beta1.BindingStateUnscheduled && b.DeletionTimestamp.IsZero() {
			n++
		}
	}
	return n
}

// limit is maxUnavailable or maxSurge as a number of clusters.
func (c *Checker) limit(unavailable bool, target int) int {
	value := intstr.FromString("25%")
	if s := c.placement.Spec.Strategy; s != nil && s.RollingUpdate != nil {
		set := s.RollingUpdate.MaxSurge
		if unavailable {
			set = s.RollingUpdate.MaxUnavailable
		}
		if set != nil {
			value = *set
		}
	}
	return resolve(value, target)
}

// resolve turns a number or a percentage, rounded up, into a number of clusters.
func resolve(value intstr.IntOrString, of int) int {
	if value.Type == intstr.Int {
		return value.IntValue()
	}
	percent, _ := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	return int(math.Ceil(float64(percent*of) / 100))
}
