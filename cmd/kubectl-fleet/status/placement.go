package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/override"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Placement makes the tree of a placement: the run that is rolling it out, its steps, its clusters.
func Placement(p hub.Placement, facts Facts, options Options) tree.Node {
	state, _ := PlacementState(p)
	root := tree.Node{
		Kind: string(hub.KindPlacement), Name: p.String(), State: state,
		Start: p.Object.GetCreationTimestamp().Time, Detail: describePlacement(p, facts),
	}
	if state.Over() {
		root.Start = metav1.Time{}.Time // how long ago it was made is no news
	}
	for _, run := range facts.Runs {
		if run.Placement() == p.Ref && run.Outcome() == "" {
			root.Children = append(root.Children, Run(run, facts, options))
		}
	}
	root.Children = append(root.Children, stepsOf(p)...)
	root.Children = append(root.Children, idleOverrides(p, facts.Overrides)...)
	if !p.External() {
		root.Children = append(root.Children, facts.Gates.Nodes([]brake.Subject{brake.SubjectOf(p.Object)})...)
	}
	clusters, count := clustersOf(p, facts, options)
	if count.Total > 0 {
		root.Count = &count
	}
	root.Children = append(root.Children, clusters...)
	return root
}

func describePlacement(p hub.Placement, facts Facts) string {
	parts := []string{string(placementv1beta1.PickAllPlacementType)}
	if policy := p.Spec.Policy; policy != nil && policy.PlacementType != "" {
		parts[0] = string(policy.PlacementType)
	}
	overflows := p.Spec.Policy != nil && p.Spec.Policy.AffinityGroupMode == placementv1beta1.AffinityGroupOverflow
	if group := affinityGroupOf(facts); group != "" && !overflows {
		parts = append(parts, "affinity group "+group)
	}
	if p.External() {
		parts = append(parts, "rolled out by runs")
	}
	if p.Status.ObservedResourceIndex != "" {
		parts = append(parts, "snapshot "+p.Status.ObservedResourceIndex)
	}
	return strings.Join(parts, ", ")
}

// affinityGroupOf returns the group that the clusters of a placement are picked from, of several one; empty if there is none.
func affinityGroupOf(facts Facts) string {
	for _, cluster := range slices.Sorted(maps.Keys(facts.Bindings)) {
		if binding := facts.Bindings[cluster]; rules.IsLiveBinding(binding.Object) &&
			binding.Spec.ClusterDecision.AffinityGroup != "" {
			return binding.Spec.ClusterDecision.AffinityGroup
		}
	}
	return ""
}

// PlacementState returns what a placement is at: Succeeded if everything is where it should be; Failed if it will not get
// there before the user changes something, with what the condition says; Waiting if removals are held until a user accepts, or if
// all is placed but what the selectors name and the hub does not have.
func PlacementState(p hub.Placement) (updaterun.Phase, string) {
	state, message := rolloutState(p)
	if held := p.Condition(placementv1beta1.ConditionTypeRemovalsHeld); state != updaterun.PhaseFailed && meansTrue(held) {
		return updaterun.PhaseWaiting, held.Message
	}
	if missing := p.Condition(placementv1beta1.ConditionTypeResourcesMissing); state == updaterun.PhaseSucceeded && meansTrue(missing) {
		return updaterun.PhaseWaiting, missing.Message
	}
	return state, message
}

func meansTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// rolloutState returns how far the rollout of a placement is, whatever is held of it.
func rolloutState(p hub.Placement) (updaterun.Phase, string) {
	if !p.Object.GetDeletionTimestamp().IsZero() {
		if pending := p.Condition(placementv1beta1.ConditionTypeRemovalPending); meansTrue(pending) {
			return updaterun.PhaseDeleting, pending.Message
		}
		return updaterun.PhaseDeleting, ""
	}
	scheduled := p.Current(placementv1beta1.ConditionTypeScheduled)
	if scheduled == nil || scheduled.Status == metav1.ConditionUnknown {
		return updaterun.PhaseRunning, ""
	}
	if scheduled.Reason == placementv1beta1.ReasonInvalidResourceSelectors || scheduled.Reason == placementv1beta1.ReasonSelectionTooLarge {
		return updaterun.PhaseFailed, scheduled.Message
	}
	last := ""
	for _, step := range steps {
		c := p.Current(step)
		if c == nil {
			continue
		}
		last = step
		if c.Status != metav1.ConditionTrue {
			return stateAt(p, c), c.Message
		}
	}
	return stateAfter(p, scheduled, last), scheduled.Message
}

// stateAt returns the state of a placement that has come as far as a condition that is not true.
func stateAt(p hub.Placement, c *metav1.Condition) updaterun.Phase {
	switch step := hub.Plain(c.Type); {
	case c.Status == metav1.ConditionFalse && (step == placementv1beta1.ConditionTypeOverridden ||
		step == placementv1beta1.ConditionTypeApplied):
		return updaterun.PhaseFailed
	case step == placementv1beta1.ConditionTypeAvailable && (c.Reason == placementv1beta1.ReasonObjectTooLarge ||
		slices.ContainsFunc(p.Status.PerClusterPlacementStatuses, hasFailedForGood)):
		return updaterun.PhaseFailed
	case step == placementv1beta1.ConditionTypeRolloutStarted &&
		(p.External() || c.Reason == placementv1beta1.ReasonRolloutPaused || c.Reason == placementv1beta1.ReasonSuspended):
		return updaterun.PhaseWaiting
	default:
		return updaterun.PhaseRunning
	}
}

// hasFailedForGood reports whether an object on a cluster does not become available before its manifest changes.
func hasFailedForGood(entry placementv1beta1.PerClusterPlacementStatus) bool {
	return slices.ContainsFunc(entry.FailedPlacements, func(f placementv1beta1.FailedResourcePlacement) bool { return f.IsFinal() })
}

// stateAfter returns the state of a placement of which every condition there is is true, last being the last of them.
func stateAfter(p hub.Placement, scheduled *metav1.Condition, last string) updaterun.Phase {
	switch {
	case scheduled.Status == metav1.ConditionFalse:
		return updaterun.PhaseFailed
	case last == "" && len(p.Status.PerClusterPlacementStatuses) > 0:
		return updaterun.PhaseRunning // clusters are picked, nothing is said of the rollout yet
	case last != "" && last != placementv1beta1.ConditionTypeAvailable && last != placementv1beta1.ConditionTypeDiffReported:
		return updaterun.PhaseRunning
	default:
		return updaterun.PhaseSucceeded
	}
}

// stepsOf returns the conditions of the placement as a whole, with what those say that are not true.
func stepsOf(p hub.Placement) []tree.Node {
	var nodes []tree.Node
	for _, step := range append([]string{placementv1beta1.ConditionTypeScheduled}, steps...) {
		c := p.Current(step)
		if c == nil {
			continue
		}
		node := tree.Node{Kind: KindStep, Name: step, State: stepState(c)}
		if c.Status != metav1.ConditionTrue || step == placementv1beta1.ConditionTypeScheduled ||
			c.Reason == placementv1beta1.ReasonPartitionReached {
			node.Detail = cmp.Or(c.Message, c.Reason)
		}
		nodes = append(nodes, node)
	}
	if c := p.Condition(placementv1beta1.ConditionTypeClustersLeaving); c != nil && c.Status == metav1.ConditionTrue {
		state := updaterun.PhaseRunning
		if c.Reason == placementv1beta1.ReasonWaitingForRolloutStrategy || c.Reason == placementv1beta1.ReasonWaitingForHook {
			state = updaterun.PhaseWaiting
		}
		nodes = append(nodes, tree.Node{Kind: KindStep, Name: c.Type, State: state, Detail: c.Message})
	}
	for _, held := range []tree.Node{
		{Name: fleetflowv1alpha1.ConditionTypeHeld, State: updaterun.PhaseWaiting},
		{Name: placementv1beta1.ConditionTypeRemovalsHeld, State: updaterun.PhaseWaiting},
		{Name: placementv1beta1.ConditionTypeKindsHeld, State: updaterun.PhaseStopped},
		{Name: placementv1beta1.ConditionTypeDependenciesMissing, State: updaterun.PhaseStuck},
		{Name: placementv1beta1.ConditionTypeResourcesMissing, State: updaterun.PhaseWaiting},
		{Name: placementv1beta1.ConditionTypeResourcesLeftOut, State: updaterun.PhaseWaiting},
		{Name: placementv1beta1.ConditionTypeRemovalPending, State: updaterun.PhaseStuck},
		{Name: placementv1beta1.ConditionTypeUpdateRunHeld, State: updaterun.PhaseWaiting},
	} {
		if c := p.Condition(held.Name); c != nil && c.Status == metav1.ConditionTrue {
			nodes = append(nodes, tree.Node{Kind: KindStep, Name: held.Name, State: held.State, Detail: c.Message})
		}
	}
	if c := p.Condition(placementv1beta1.ConditionTypeEngineReachable); c != nil && c.Status == metav1.ConditionFalse {
		nodes = append(nodes, tree.Node{Kind: KindStep, Name: c.Type, State: updaterun.PhaseStuck, Detail: c.Message})
	}
	return nodes
}

// idleOverrides returns the overrides that have no effect and look as if they were meant for a placement: they select some of what it
// places, and refer to it, to none, or to one that does not exist, or they name the one of the same name in the other scope.
func idleOverrides(p hub.Placement, overrides []placementv1beta1.OverrideObject) []tree.Node {
	var nodes []tree.Node
	for _, o := range overrides {
		valid := meta.FindStatusCondition(o.GetConditions(), placementv1beta1.ConditionTypeValid)
		if valid == nil || valid.Status != metav1.ConditionFalse {
			continue
		}
		ref := o.GetOverridePlacement()
		isLost := valid.Reason == placementv1beta1.ReasonOverridePlacementNotFound
		isTwin := isLost && ref != nil && ref.Name == p.Name
		if !isTwin && (!isLost && !override.Concerns(ref, o.GetNamespace(), override.PlacementOf(p.Object)) ||
			!override.SelectsSome(o, p.Status.SelectedResources)) {
			continue
		}
		scope := placementv1beta1.ScopeOf(o)
		nodes = append(nodes, tree.Node{Kind: KindStep, Name: scope.OverrideKind().Kind + " " + scope.String() + o.GetName(),
			State: updaterun.PhaseStuck, Detail: cmp.Or(valid.Message, valid.Reason)})
	}
	slices.SortFunc(nodes, func(a, b tree.Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

func stepState(c *metav1.Condition) updaterun.Phase {
	switch c.Status {
	case metav1.ConditionTrue:
		return updaterun.PhaseSucceeded
	case metav1.ConditionFalse:
		if c.Reason == placementv1beta1.ReasonRolloutNotStartedYet || c.Reason == placementv1beta1.ReasonRolloutPaused ||
			c.Reason == placementv1beta1.ReasonSuspended || fleetflowv1alpha1.HoldsStarts(c.Reason) ||
			c.Reason == placementv1beta1.ReasonResourceNotAvailableYet {
			return updaterun.PhaseWaiting
		}
		return updaterun.PhaseFailed
	default:
		return updaterun.PhaseRunning
	}
}

// clustersOf returns the clusters of a placement, and how many of them are done.
func clustersOf(p hub.Placement, facts Facts, options Options) ([]tree.Node, updaterun.Counts) {
	entries := EntriesOf(p, facts)
	var nodes []tree.Node
	var count updaterun.Counts
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		node := clusterNode(entries[name])
		if binding, bound := facts.Bindings[name]; bound && rules.IsDeleting(binding.Object) {
			node = OnCluster(binding)
		}
		count.Count(node.State)
		nodes = append(nodes, node)
	}
	nodes = chooseClusters(nodes, options.All)
	for i := range p.Status.PerClusterPlacementStatuses {
		if entry := &p.Status.PerClusterPlacementStatuses[i]; entry.ClusterName == "" {
			nodes = append(nodes, tree.Node{Kind: KindCluster, Name: "(no cluster)", State: updaterun.PhaseFailed,
				Detail: messageOf(entry.Conditions)})
		}
	}
	return nodes, count
}

// StepsOn returns how far a placement is on a cluster: its conditions in their order, with what those say that are not true.
func StepsOn(entry placementv1beta1.PerClusterPlacementStatus) []tree.Node {
	var nodes []tree.Node
	for _, step := range steps {
		c := meta.FindStatusCondition(entry.Conditions, step)
		if c == nil {
			continue
		}
		node := tree.Node{Kind: KindStep, Name: step, State: stepState(c)}
		if c.Status != metav1.ConditionTrue {
			node.Detail = cmp.Or(c.Message, c.Reason)
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func messageOf(conditions []metav1.Condition) string {
	if len(conditions) == 0 {
		return ""
	}
	return conditions[0].Message
}

// EntriesOf reports every cluster: as the placement's status does, and where it is brief, as the bindings do.
func EntriesOf(p hub.Placement, facts Facts) map[string]placementv1beta1.PerClusterPlacementStatus {
	entries := map[string]placementv1beta1.PerClusterPlacementStatus{}
	for name, binding := range facts.Bindings {
		if binding.Spec.State == placementv1beta1.BindingStateUnscheduled {
			continue // it leaves, which the condition ClustersLeaving says
		}
		entries[name] = entryOf(binding)
	}
	for _, entry := range p.Status.PerClusterPlacementStatuses {
		_, known := entries[entry.ClusterName]
		if entry.ClusterName != "" && (len(entry.Conditions) > 0 || !known) {
			entries[entry.ClusterName] = entry
		}
	}
	return entries
}

// entryOf returns what a binding reports its cluster, as the status of the placement would.
func entryOf(binding hub.Binding) placementv1beta1.PerClusterPlacementStatus {
	return placementv1beta1.PerClusterPlacementStatus{
		ClusterName: binding.Spec.TargetCluster, Conditions: binding.Status.Conditions, FailedPlacements: binding.Status.FailedPlacements,
		DriftedPlacements: binding.Status.DriftedPlacements, DiffedPlacements: binding.Status.DiffedPlacements,
	}
}

// OnCluster returns what a placement is at on the cluster of a binding.
func OnCluster(binding hub.Binding) tree.Node {
	node := clusterNode(entryOf(binding))
	if rules.IsDeleting(binding.Object) || !rules.IsLiveBinding(binding.Object) {
		node.State = updaterun.PhaseDeleting
		node.Detail = "it leaves the cluster"
		if said := placementv1beta1.FindTrue(binding.Status.Conditions, placementv1beta1.ConditionTypeRemovalPending); said != nil {
			node.Detail = describeCondition(said)
		}
	}
	return node
}

func clusterNode(entry placementv1beta1.PerClusterPlacementStatus) tree.Node {
	node := tree.Node{Kind: KindCluster, Name: entry.ClusterName, State: updaterun.PhaseSucceeded, Children: failedObjects(entry.FailedPlacements)}
	held := firstUnmet(entry.Conditions)
	started := meta.IsStatusConditionTrue(entry.Conditions, placementv1beta1.ConditionTypeRolloutStarted)
	switch {
	case held == nil && hasEnded(entry.Conditions):
	case held == nil:
		node.State = updaterun.PhasePending
	case held.Status == metav1.ConditionUnknown && (held.Type == placementv1beta1.ConditionTypeRolloutStarted || !started):
		node.State = updaterun.PhasePending // it has not had its turn, which is all there is to say
	case saysSilent(held):
		node.State = updaterun.PhaseStuck
		node.Detail = held.Message
		node.Start = held.LastTransitionTime.Time
	case held.Reason == placementv1beta1.ReasonWaitingForHook:
		node.State = updaterun.PhaseWaiting
		node.Detail = held.Message
		node.Start = held.LastTransitionTime.Time
	case held.Type == placementv1beta1.ConditionTypeRolloutStarted:
		node.State = updaterun.PhasePending
		node.Detail = cmp.Or(held.Message, held.Reason)
	case hasFailed(held, entry):
		node.State = updaterun.PhaseFailed
		node.Detail = describeCondition(held)
	default:
		node.State = updaterun.PhaseRunning
		node.Detail = describeCondition(held)
		node.Start = held.LastTransitionTime.Time
	}
	node.Detail = cmp.Or(node.Detail, heldBack(entry), stillThere(entry))
	for _, finding := range []struct {
		number int
		what   string
	}{{len(entry.DriftedPlacements), "drifted"}, {len(entry.DiffedPlacements), "different from the manifest"}} {
		if finding.number > 0 {
			node.Detail = strings.TrimPrefix(fmt.Sprintf("%s; %s %s, see kubectl fleet diff", node.Detail, tree.Plural(finding.number, "object"),
				finding.what), "; ")
		}
	}
	return node
}

// hasFailed reports whether a cluster that has come as far as a condition does not get on before a user corrects something.
func hasFailed(held *metav1.Condition, entry placementv1beta1.PerClusterPlacementStatus) bool {
	switch held.Type {
	case placementv1beta1.ConditionTypeAvailable:
		return hasFailedForGood(entry)
	case placementv1beta1.ConditionTypeWorkSynchronized:
		return false
	default:
		return held.Status == metav1.ConditionFalse
	}
}

// heldBack returns which snapshot the partition keeps on a cluster, or that the cluster is suspended; nothing if neither is so.
func heldBack(entry placementv1beta1.PerClusterPlacementStatus) string {
	started := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeRolloutStarted)
	if started == nil || started.Reason != placementv1beta1.ReasonHeldByPartition && started.Reason != placementv1beta1.ReasonSuspended {
		return ""
	}
	return started.Message
}

// stillThere returns which objects that are not wanted any more are still on a cluster; nothing if there are none.
func stillThere(entry placementv1beta1.PerClusterPlacementStatus) string {
	if said := placementv1beta1.FindTrue(entry.Conditions, placementv1beta1.ConditionTypeRemovalPending); said != nil {
		return describeCondition(said)
	}
	return ""
}

// hasEnded reports whether the last step is there.
func hasEnded(conditions []metav1.Condition) bool {
	return meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeAvailable) != nil ||
		meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeDiffReported) != nil
}

// urgent are the states that the user should look at, the first of them first.
var urgent = []updaterun.Phase{updaterun.PhaseFailed, updaterun.PhaseStuck, updaterun.PhaseRunning, updaterun.PhaseWaiting,
	updaterun.PhasePending}

// ByUrgency brings to the front what the user should look at.
func ByUrgency(a, b tree.Node) int { return cmp.Compare(urgencyOf(a), urgencyOf(b)) }

func urgencyOf(node tree.Node) int {
	if at := slices.Index(urgent, node.State); at >= 0 {
		return at
	}
	return len(urgent)
}
