package rollout

import (
	"fmt"
	"slices"
)

// Eviction asks to take a placement off one cluster. It is decided once.
type Eviction struct {
	Name    string
	Cluster string
	// Begun is set once it was decided to execute it: whatever happened since, the
	// eviction has either happened to the binding of then, or not at all.
	Begun *Verdict
	// Gone says, of one that has begun, that the binding of then is gone or going.
	Gone bool
}

// EvictionPolicy is what evictions from a placement are judged by.
type EvictionPolicy struct {
	// Type of the placement: PickAll, PickN or PickFixed.
	Type string
	// Clusters is the number a PickN placement asks for.
	Clusters int
	// Budget of the placement, nil if it has none.
	Budget *Budget
}

// Budget bounds evictions; one of its fields is set, to a number or a percentage.
type Budget struct {
	MaxUnavailable string
	MinAvailable   string
}

// Placement types as evictions tell them apart.
const (
	pickAll   = "PickAll"
	pickFixed = "PickFixed"
)

// Code says how an eviction was decided.
type Code string

// How an eviction can be decided.
const (
	PlacementMissing  Code = "PlacementMissing"
	PlacementDeleting Code = "PlacementDeleting"
	NotForPickFixed   Code = "PickFixed"
	NoBinding         Code = "NoBinding"
	ManyBindings      Code = "ManyBindings"
	BeingRemoved      Code = "BeingRemoved"
	NotPlaced         Code = "NotPlaced"
	ClusterSuspended  Code = "ClusterSuspended"
	PlacementFailed   Code = "PlacementFailed"
	NoBudget          Code = "NoBudget"
	BadBudget         Code = "BadBudget"
	WithinBudget      Code = "WithinBudget"
	BeyondBudget      Code = "BeyondBudget"
)

// Verdict is the outcome of an eviction. It is final.
type Verdict struct {
	Code Code `json:"code"`
	// Available and Total count clusters when a budget was asked.
	Available int `json:"available,omitempty"`
	Total     int `json:"total,omitempty"`
}

// Valid reports whether there was something to evict.
func (v Verdict) Valid() bool {
	switch v.Code {
	case PlacementMissing, PlacementDeleting, NotForPickFixed, NoBinding, ManyBindings:
		return false
	}
	return true
}

// Executed reports whether the eviction is carried out.
func (v Verdict) Executed() bool {
	switch v.Code {
	case BeingRemoved, PlacementFailed, NoBudget, WithinBudget:
		return true
	}
	return false
}

// messages say the cause first. What stands in parentheses, or alone, is KubeFleet's, which scripts and people know.
var messages = map[Code]string{
	PlacementMissing:  "The hub has no placement of this name: correct spec.placementName in another eviction (Failed to find ClusterResourcePlacement targeted by eviction)",
	PlacementDeleting: "The placement is being deleted, which clears the cluster without an eviction (Found deleting ClusterResourcePlacement targeted by eviction)",
	NotForPickFixed:   "The placement names its clusters: take the cluster out of spec.policy.clusterNames (Found ClusterResourcePlacement with PickFixed placement type targeted by eviction)",
	NoBinding:         "The placement is not on this cluster, there is nothing to evict (Failed to find scheduler decision for placement in cluster targeted by eviction)",
	ManyBindings:      "The placement has two bindings for this cluster; evict again once one of them is gone (Found more than one scheduler decision for placement in cluster targeted by eviction)",
	BeingRemoved:      "Eviction is allowed, resources propagated by placement is currently being removed from cluster targeted by eviction",
	NotPlaced:         "Eviction is blocked, placement has not propagated resources to target cluster yet",
	ClusterSuspended:  "Eviction is blocked, the placement suspends the cluster targeted by eviction: leave it out of strategy.suspension first",
	PlacementFailed:   "Eviction is allowed, placement has failed",
	NoBudget:          "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified",
	BadBudget: "Eviction is blocked by misconfigured ClusterResourcePlacementDisruptionBudget, either MaxUnavailable is specified or " +
		"MinAvailable is specified as a percentage for PickAll ClusterResourcePlacement",
	WithinBudget: "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: %d, totalPlacements: %d",
	BeyondBudget: "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: %d, totalPlacements: %d",
}

// ValidMessage is said of every eviction that has something to evict.
const ValidMessage = "Eviction is valid"

// Message says in words how the eviction was decided.
func (v Verdict) Message() string {
	if v.Code == WithinBudget || v.Code == BeyondBudget {
		return fmt.Sprintf(messages[v.Code], v.Available, v.Total)
	}
	return messages[v.Code]
}

// What to do about an eviction.
const (
	Evict    Op = "evict"    // delete the binding, then conclude
	Conclude Op = "conclude" // write the outcome
)

// EvictionStep is one decided eviction.
type EvictionStep struct {
	Eviction string
	Cluster  string
	Op       Op
	Verdict  Verdict
}

// planEvictions decides evictions one after the other. One whose cluster is claimed is not
// refused before the claim was taken back: until then, it may still be executed.
func (p *planner) planEvictions(facts Facts, clusters []Cluster) {
	byName := make(map[string][]Cluster, len(clusters))
	for _, c := range clusters {
		byName[c.Name] = append(byName[c.Name], c)
	}
	for _, e := range facts.Evictions {
		targets := byName[e.Cluster]
		step := EvictionStep{Eviction: e.Name, Cluster: e.Cluster, Op: Conclude, Verdict: p.judgeEviction(e, targets, facts.Policy)}
		deletes := step.Verdict.Executed() && step.Verdict.Code != BeingRemoved && !e.Gone
		switch {
		case !e.Gone && waitsToOpen(targets):
			p.note(targets[0], Evict, *targets[0].obstacle(Evict)) // it is judged when the cluster opens
			continue
		case len(targets) == 1 && p.planned[e.Cluster], !deletes && !e.Gone && claimed(targets):
			p.note(Cluster{Name: e.Cluster}, Evict, Wait{Kind: BrakeClaim})
			continue
		case deletes && targets[0].WaitsForHook(Remove):
			p.evicting[e.Cluster] = true
			if !p.planned[e.Cluster] {
				p.planChange(targets[0], Remove)
			}
			continue
		case deletes:
			step.Op = Evict
			p.takeOne(targets[0])
		}
		p.plan.Evictions = append(p.plan.Evictions, step)
	}
}

// waitsToOpen reports whether the one cluster to evict from is closed for that, or was refused a moment ago.
func waitsToOpen(targets []Cluster) bool {
	return len(targets) == 1 && targets[0].obstacle(Evict) != nil && !targets[0].Deleting
}

func claimed(targets []Cluster) bool {
	return slices.ContainsFunc(targets, func(c Cluster) bool { return c.Claimed && !c.Deleting })
}

// judgeEviction returns how an eviction ends if it is decided now.
func (p *planner) judgeEviction(e Eviction, targets []Cluster, policy EvictionPolicy) Verdict {
	switch {
	case e.Begun != nil && e.Gone:
		return *e.Begun
	case policy.Type == pickFixed:
		return Verdict{Code: NotForPickFixed}
	case len(targets) == 0:
		return Verdict{Code: NoBinding}
	case len(targets) > 1:
		return Verdict{Code: ManyBindings}
	case targets[0].Deleting:
		return Verdict{Code: BeingRemoved}
	case !targets[0].Placed || targets[0].State == Scheduled:
		return Verdict{Code: NotPlaced}
	case targets[0].freeze() != nil:
		return Verdict{Code: ClusterSuspended}
	case targets[0].Failed || targets[0].Expendable:
		return Verdict{Code: PlacementFailed}
	case policy.Budget == nil, targets[0].Superseded:
		return Verdict{Code: NoBudget}
	}
	available := p.accounts.availableFor(targets[0])
	if targets[0].Prepared == Remove && targets[0].Drained {
		available++ // the budget let it be prepared
	}
	return p.weighBudget(available, policy)
}

// weighBudget asks the budget. A percentage is one of the number of clusters asked for,
// rounded up; what a placement asks for and does not have counts as unavailable.
func (p *planner) weighBudget(available int, policy EvictionPolicy) Verdict {
	v := Verdict{Code: BeyondBudget, Available: available, Total: p.accounts.total}
	budget := policy.Budget
	value := budget.MinAvailable
	if budget.MaxUnavailable != "" {
		value = budget.MaxUnavailable
	}
	bound, err := Resolve(value, policy.Clusters)
	isPercent := value != "" && value[len(value)-1] == '%'
	if err != nil || policy.Type == pickAll && (budget.MaxUnavailable != "" || isPercent) {
		return Verdict{Code: BadBudget}
	}
	left := available - bound
	if budget.MaxUnavailable != "" {
		left = bound - (max(p.accounts.total, policy.Clusters) - available)
	}
	if left > 0 {
		v.Code = WithinBudget
	}
	return v
}
