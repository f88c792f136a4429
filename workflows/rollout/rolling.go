package rollout

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State of a cluster in a placement, as its binding says.
type State string

// The states of a binding.
const (
	Scheduled   State = "Scheduled"   // picked, nothing written yet
	Bound       State = "Bound"       // written
	Unscheduled State = "Unscheduled" // no longer picked, still written
)

// Op is what a step does to one cluster.
type Op string

// The operations of a rolling update.
const (
	Update Op = "update" // in place, to the target revision
	Add    Op = "add"    // first write to a newly picked cluster
	// AddStable is a first write of the older revision that most clusters hold: the target is
	// not to spread further.
	AddStable Op = "addStable"
	Remove    Op = "remove" // take the resources away
	// PrepareUpdate and PrepareRemove take a cluster out of service before the change that a hook
	// holds; GiveUpChange says that the change is no longer wanted.
	PrepareUpdate Op = "prepareUpdate"
	PrepareRemove Op = "prepareRemove"
	GiveUpChange  Op = "giveUpChange"
	// Release takes back what was claimed for a cluster and is not to be done any
	// more, so that an attempt that still relies on the claim cannot do it.
	Release Op = "release"
)

// Cluster is what is known of one cluster when deciding.
type Cluster struct {
	Name  string
	State State
	// Deleting says that its binding is on the way out. It may still hold
	// resources, and never counts as available.
	Deleting bool
	// Placed says that the cluster holds, or may hold, resources.
	Placed bool
	// Current says that the binding is at the target revision.
	Current bool
	// Old says that the binding names another resource snapshot than the target: a cluster that
	// is not Current may also differ in how the resources are applied alone.
	Old bool
	// Available says that all its Works were seen available at the revision of
	// its binding, and that no recorded change of it is still under way.
	Available bool
	// Failed says that the placement on it is known to be broken.
	Failed bool
	// Claimed says that a change of it was claimed, and that it is not known whether it
	// will still be written: another attempt may be about to. The accounts of all other
	// clusters count it as made.
	Claimed bool
	// Expendable says that evicting it costs nothing: the placement on it has failed,
	// or only reports differences.
	Expendable bool
	// Reports says that differences are only reported on it, before an update and after:
	// an update takes nothing away.
	Reports bool
	// ReadyAt is when a cluster whose resources are available will count as available, as it has to be so for some time, or
	// they cannot be tracked; zero otherwise.
	ReadyAt time.Time
	// Order is its place among the clusters to be updated; those with the same go by name.
	Order int
	// Scatter is the value of the label by which MaxInFlight counts; empty if it does not count.
	Scatter string
	// Prepared is the change, Update or Remove, that it is out of service for: it is not Available then.
	Prepared Op
	// Drained says that it would be Available if it were not Prepared.
	Drained bool
	// Waits are what brakes the cluster, in the order of the brakes.
	Waits []Wait
	// Leaving says how its copy makes place for that of another cluster, if the placement fails over.
	Leaving Leaving
	// Superseded says that its copy stays, though another cluster has taken its place, until it is evicted: it counts nowhere.
	Superseded bool
	// Lost says that its binding is on the way out, and that the cluster does not report: what is left of the copy takes no room
	// of others.
	Lost bool
	// Settled says that it is as good as available for a copy that waits for it, SettlesAt when it will be by
	// the passing of time; zero if only it can tell.
	Settled   bool
	SettlesAt time.Time
}

// Limits of a rolling update, resolved to numbers of clusters.
type Limits struct {
	// Target is the number of clusters the policy asks for.
	Target int
	// MaxUnavailable and MaxSurge as in the rollout strategy.
	MaxUnavailable int
	MaxSurge       int
	// Partition is how many clusters keep an older snapshot.
	Partition int
	// Paused keeps clusters from being updated.
	Paused bool
	// MaxInFlight bounds the clusters with one value of Scatter that are updated at the same time;
	// 0 is no bound.
	MaxInFlight int
}

// Step is one decided change.
type Step struct {
	Cluster string
	Op      Op
}

// Plan is what to write now and what is left for later.
type Plan struct {
	// Evictions are decided before all else, in the order in which they were asked for.
	Evictions []EvictionStep
	Steps     []Step
	// Waits are why clusters do not move: one of each, and one of an eviction from it.
	Waits []Wait
	// WakeAt is the next instant at which time alone changes the plan.
	WakeAt time.Time
	// Settled says that nothing is left to write, except for what waits for closed clusters to open.
	Settled bool
}

// Facts are all that a plan is made from.
type Facts struct {
	Clusters []Cluster
	Limits   Limits
	// Evictions that have no outcome yet, the oldest first, and what bounds them.
	Evictions []Eviction
	Policy    EvictionPolicy
	// Replaced are the clusters that others replace, by name.
	Replaced map[string]Replacer
	// EvictionsOnly leaves updates, additions and removals to an update run.
	EvictionsOnly bool
}

// Decide decides the next batch under the limits: no available cluster is taken away
// when fewer than Target − MaxUnavailable would remain, and no more than Target +
// MaxSurge clusters hold resources, except for both copies of a replacement (see hasRoom). Rewriting a cluster that is unavailable anyway, and
// first placements, are not bounded by MaxUnavailable. Broken clusters come first, so
// that a fix reaches them before it touches a healthy one, after those that are prepared to be
// updated; then others that are unavailable, because they cost nothing; then the order counts. No update leaves fewer
// than Partition clusters at an older snapshot, not even one of a broken cluster. Evictions
// are bounded by their budget only, but the batch cannot take away what they take away. A
// frozen cluster is neither updated nor given anything, nothing is removed from it, and
// evictions from it are refused. A closed cluster waits without taking the place of another, and
// so does one whose binding cannot be written until it is tried again.
func Decide(facts Facts) Plan {
	ordered := slices.Clone(facts.Clusters)
	slices.SortFunc(ordered, func(a, b Cluster) int {
		if first := cmp.Or(compareTrueFirst(a.Prepared == Update, b.Prepared == Update), compareTrueFirst(a.Failed, b.Failed)); first != 0 {
			return first
		}
		return compareFirst(cmp.Compare(a.Order, b.Order), a.Name, b.Name)
	})
	p := planner{limits: facts.Limits, planned: make(map[string]bool, len(ordered)), kept: map[string]bool{},
		evicting: map[string]bool{}, inFlight: map[string]int{}}
	p.failover.handovers = newHandovers(facts.Replaced, ordered)
	for _, c := range ordered {
		p.countCluster(c)
		if !p.failover.handovers.concern(c) { // these wait for each other alone
			p.failover.countCluster(c)
		}
	}
	p.planEvictions(facts, ordered)
	if !facts.EvictionsOnly {
		p.planFree(ordered)
		p.planTakeAway(ordered)
		p.planAdditions(ordered)
		p.noteClosed(ordered)
	}
	p.giveUpChanges(facts, ordered)
	p.releaseClaims(ordered)
	p.plan.Settled = len(p.plan.Steps) == 0 && len(p.plan.Evictions) == 0 && p.plan.Blocked()+p.plan.Hooked()+len(p.plan.Refused()) == 0
	if len(p.plan.Steps) == 0 && len(p.plan.Evictions) == 0 && p.accounts.pending == 0 {
		p.explainLimits(ordered)
	}
	return p.plan
}

// planner plans a rolling update by its accounts.
type planner struct {
	limits   Limits
	accounts accounts
	planned  map[string]bool
	// kept are clusters that are not updated now, whatever they cost.
	kept map[string]bool
	// evicting are clusters that wait, prepared or about to be, to be evicted.
	evicting map[string]bool
	// inFlight are the clusters under update by their value of Scatter.
	inFlight map[string]int
	failover failovers
	plan     Plan
}

func (p *planner) countCluster(c Cluster) {
	p.accounts.count(c)
	if c.isUpdating() {
		p.inFlight[c.Scatter]++
	}
	p.plan.WakeAt = EarlierOf(p.plan.WakeAt, c.ReadyAt)
	if refused := c.Refusal(); refused != nil {
		p.plan.WakeAt = EarlierOf(p.plan.WakeAt, refused.Until)
	}
}

// isOlder reports whether a wanted cluster keeps an older snapshot.
func (c Cluster) isOlder() bool { return c.Old && c.State == Bound && !c.Deleting }

// isUpdating reports whether a cluster was given the target and is not available with it yet, or may
// still be given it, or is prepared for it.
func (c Cluster) isUpdating() bool {
	return c.State == Bound && !c.Deleting && (c.Claimed || c.Prepared == Update || c.Current && !c.Available)
}

// compareTrueFirst orders those of which something holds before the others.
func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// EarlierOf returns the earlier of two instants, each of which may be missing.
func EarlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// takeOne takes a cluster away.
func (p *planner) takeOne(c Cluster) {
	p.planned[c.Name] = true
	p.accounts.take(c)
}

// planChange plans an update or a removal, or what comes before it: a hook that holds the change is
// answered once the cluster is prepared. A copy that waits for its replacement stays.
func (p *planner) planChange(c Cluster, op Op) {
	awaited := ""
	if op == Remove {
		awaited = p.failover.handovers.whyStays(c, p)
	}
	switch {
	case awaited != "":
		replacer := p.failover.handovers.replaced[c.Name]
		p.note(c, op, Wait{Kind: BrakeNewCluster, Object: replacer.Cluster, Why: awaited, Until: replacer.Again})
		p.plan.WakeAt = EarlierOf(p.plan.WakeAt, replacer.Again)
	case op == Remove && !p.evicting[c.Name] && !p.failover.handovers.concern(c) && p.failover.awaitsReplacement(c):
		p.note(c, op, Wait{Kind: BrakeReplacement, Until: p.failover.settlesAt})
		p.plan.WakeAt = EarlierOf(p.plan.WakeAt, p.failover.settlesAt)
	case !c.WaitsForHook(op):
		p.planStep(c, op)
	case c.Prepared == op:
		p.note(c, op, *c.hook(op))
		if op == Update && c.isOlder() {
			p.accounts.waitingOlder++
		}
	case op == Update:
		p.planStep(c, PrepareUpdate)
	default:
		p.planStep(c, PrepareRemove)
	}
}

// planStep plans a change of a cluster.
func (p *planner) planStep(c Cluster, op Op) {
	p.takeOne(c)
	if c.Leaving == LeavingGracefully && op == Remove && !p.failover.handovers.concern(c) {
		p.failover.leaving--
	}
	if op == Update && c.Reports && isUp(c) {
		p.accounts.available++
	}
	if (op == Update || op == PrepareUpdate) && !c.isUpdating() {
		p.inFlight[c.Scatter]++
	}
	p.plan.Steps = append(p.plan.Steps, Step{c.Name, op})
}

// isIdle reports whether nothing is planned for a cluster and nothing under way.
func (p *planner) isIdle(c Cluster) bool { return !c.Deleting && !p.planned[c.Name] }

// isFree reports whether, in addition, no eviction waits for a cluster.
func (p *planner) isFree(c Cluster) bool { return p.isIdle(c) && !p.evicting[c.Name] }

// planFree plans what costs no availability.
func (p *planner) planFree(clusters []Cluster) {
	for _, c := range clusters {
		costs := c.Available && (!c.Reports || takeAwayOp(c) == Remove)
		if !costs && p.isFree(c) && c.WantsTakeAway() && c.obstacle(takeAwayOp(c)) == nil && !p.keepsBack(c) {
			p.planChange(c, takeAwayOp(c))
		}
	}
}

// planTakeAway plans updates in place and removals of available clusters, removals
// first, as far as the budget goes.
func (p *planner) planTakeAway(clusters []Cluster) {
	for _, op := range []Op{Remove, Update} {
		for _, c := range clusters {
			if !c.Available || !p.isFree(c) || !c.WantsTakeAway() || takeAwayOp(c) != op || c.obstacle(op) != nil || p.keepsBack(c) {
				continue
			}
			if p.accounts.availableFor(c) <= p.limits.Target-p.limits.MaxUnavailable {
				p.block(c, op, BrakeMaxUnavailable)
				continue
			}
			p.planChange(c, op)
		}
	}
}

// keepsBack reports whether a cluster is not to be updated now: it is frozen, the rollout is
// paused, the partition keeps the cluster, or as many of its kind as may are being updated. A
// removal is no update, but a frozen cluster keeps what it has.
func (p *planner) keepsBack(c Cluster) bool {
	if p.keepsFrozen(c) {
		return true
	}
	if takeAwayOp(c) == Remove || p.kept[c.Name] {
		return p.kept[c.Name]
	}
	older := p.accounts.older - p.accounts.waitingOlder - p.accounts.reservedOlder
	inFlight := p.inFlight[c.Scatter]
	if c.Claimed { // what was claimed for itself is not reserved against it
		older += p.accounts.reservedOlder
	}
	if c.Claimed || c.Prepared == Update {
		inFlight--
	}
	switch {
	case c.Old && older <= p.limits.Partition:
		p.note(c, Update, Wait{Kind: BrakePartition, Reason: reasonHeldByPartition})
	case p.limits.Paused:
		p.note(c, Update, Wait{Kind: BrakePause, Reason: reasonRolloutPaused})
	case c.Scatter != "" && p.limits.MaxInFlight > 0 && inFlight >= p.limits.MaxInFlight:
		p.block(c, Update, BrakeMaxInFlight)
	default:
		return false
	}
	p.kept[c.Name] = true
	return true
}

// keepsFrozen reports whether a cluster is frozen, which it notes once.
func (p *planner) keepsFrozen(c Cluster) bool {
	freeze := c.freeze()
	if freeze != nil && !p.kept[c.Name] {
		p.note(c, "", *freeze)
		p.kept[c.Name] = true
	}
	return freeze != nil
}

// block notes that a cluster has to wait for others. It is among those that the partition lets go: none
// of the clusters after it takes its place.
func (p *planner) block(c Cluster, op Op, brake string) {
	p.note(c, op, Wait{Kind: brake})
	if c.isOlder() {
		p.accounts.waitingOlder++
	}
}

// additionOp returns how a new cluster gets resources: at the stable revision if the target is not to
// spread further, or if the partition wants more clusters at an older snapshot than there are.
func (p *planner) additionOp() Op {
	if p.accounts.stable && (p.limits.Paused || p.accounts.older-p.accounts.reservedOlder < p.limits.Partition) {
		return AddStable
	}
	return Add
}

// planAdditions plans first writes as far as the surge goes.
func (p *planner) planAdditions(clusters []Cluster) {
	for _, c := range clusters {
		if c.State != Scheduled || !p.isIdle(c) || c.obstacle(Add) != nil || p.keepsFrozen(c) {
			continue
		}
		if !p.failover.handovers.concern(c) && p.failover.awaitsDeparture(c) {
			p.note(c, Add, Wait{Kind: BrakeDeparture})
			continue
		}
		reserved := p.accounts.reservedRoom
		if c.Claimed {
			reserved = 0
		}
		if !p.failover.handovers.hasRoom(c, p.accounts.placed+reserved, p.failover.leaving > 0, p.limits) {
			p.note(c, Add, Wait{Kind: BrakeMaxSurge})
			continue
		}
		p.accounts.placed++
		if p.failover.handovers.waiting[c.Name] && !holdsResources(c) {
			p.failover.handovers.twofold++
		}
		if c.Claimed && !holdsResources(c) {
			p.accounts.reservedRoom--
		}
		op := p.additionOp()
		if op == AddStable {
			p.accounts.older++
		}
		p.planStep(c, op)
	}
}

// giveUpChanges puts clusters back into service that were prepared for a change that is no longer wanted, or
// that the partition, a pause or what closes clusters does not allow any more, or that wait for the new cluster again. Of those of update runs the runs take care.
func (p *planner) giveUpChanges(facts Facts, clusters []Cluster) {
	for _, c := range clusters {
		unwanted := c.Prepared == Remove && c.State != Unscheduled && !p.evicting[c.Name] ||
			!facts.EvictionsOnly && c.Prepared == Remove && p.failover.handovers.whyStays(c, p) != "" ||
			!facts.EvictionsOnly && c.Prepared == Update && (!c.WantsTakeAway() || p.kept[c.Name] || c.isClosed(Update))
		switch refused := c.Refusal(); {
		case !unwanted || !p.isIdle(c):
		case refused != nil:
			p.note(c, GiveUpChange, *refused)
		default:
			p.planned[c.Name] = true
			p.plan.Steps = append(p.plan.Steps, Step{c.Name, GiveUpChange})
		}
	}
}

// releaseClaims takes back claims that are not followed up. To take one back is a write as well.
func (p *planner) releaseClaims(clusters []Cluster) {
	for _, c := range clusters {
		if c.Claimed && p.isIdle(c) && c.Refusal() == nil {
			p.plan.Steps = append(p.plan.Steps, Step{c.Name, Release})
		}
	}
}

// WantsTakeAway reports whether the cluster must be rewritten or removed.
func (c Cluster) WantsTakeAway() bool {
	return c.State == Unscheduled && !c.Superseded || c.State == Bound && !c.Current
}

func takeAwayOp(c Cluster) Op {
	if c.State == Unscheduled {
		return Remove
	}
	return Update
}

// Resolve turns a limit such as 3 or "25%" into a number of clusters of total;
// percentages are rounded up (API reference, RollingUpdateConfig).
func Resolve(value string, total int) (int, error) {
	percent, isPercent := strings.CutSuffix(value, "%")
	n, err := strconv.Atoi(percent)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("limit %q is neither a number of clusters nor a percentage", value)
	}
	if isPercent {
		return int(math.Ceil(float64(n) * float64(total) / 100)), nil
	}
	return n, nil
}

// ResolvePartition turns a partition such as 3 or "25%" into a number of clusters of total.
// Percentages are rounded up, but below 100 % at least one of several clusters is updated.
func ResolvePartition(value string, total int) (int, error) {
	held, err := Resolve(value, total)
	if strings.HasSuffix(value, "%") && value != "100%" && total > 1 {
		held = min(held, total-1)
	}
	return held, err
}

// StableSnapshot is, of the older snapshots that clusters hold, the one that most of them do, of
// several the newer; empty if there is none. Held counts the clusters by snapshot, index is what
// tells which of two is newer.
func StableSnapshot(held map[string]int, index func(snapshot string) int) string {
	stable := ""
	for name, count := range held {
		if stable == "" || cmp.Or(cmp.Compare(count, held[stable]), cmp.Compare(index(name), index(stable)), strings.Compare(name, stable)) > 0 {
			stable = name
		}
	}
	return stable
}
