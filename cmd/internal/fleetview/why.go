package fleetview

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// WhyFacts are what an explanation rests on.
type WhyFacts struct {
	Placement hub.Placement
	Policies  []hub.PolicySnapshot
	Members   []clusterv1beta1.MemberCluster
	Bindings  []hub.Binding
	// Demands are what the workloads ask for whose replicas the placement divides.
	Demands []rules.ReplicaDemand
	// Works of the placement, if it divides replicas or takes values of the status along: members report in them how many pods no node
	// takes, and what these values are.
	Works []placementv1beta1.Work
	// NamespaceLabels are those of the Namespace of the placement, as far as they may be read.
	NamespaceLabels map[string]string
	// Holds, Windows and Exemptions of the hub, as far as they may be read.
	Holds      []fleetflowv1alpha1.RolloutHold
	Windows    []fleetflowv1alpha1.RolloutWindow
	Exemptions []fleetflowv1alpha1.RolloutExemption
	// Runs of the placement, as far as they may be read.
	Runs []hub.Run
	// Overrides that may concern the placement, as far as they may be read.
	Overrides []placementv1beta1.OverrideObject
	Now       time.Time
}

// Read reads what an explanation rests on, except for the placement.
func (f *WhyFacts) Read(ctx context.Context, c client.Reader) (err error) {
	reader := hub.Reader{Reader: c}
	if f.Members, err = reader.Members(ctx); err != nil {
		return err
	}
	if f.Policies, err = reader.Of(f.Placement.Ref).PolicySnapshots(ctx); err != nil {
		return err
	}
	if f.Bindings, err = reader.Of(f.Placement.Ref).Bindings(ctx); err != nil {
		return err
	}
	if f.Holds, f.Windows, f.Exemptions, err = reader.Gates(ctx); err != nil {
		return err
	}
	inScope := hub.Reader{Reader: c, Namespace: f.Placement.Namespace}
	runs, err := inScope.Runs(ctx)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	f.Runs = slices.DeleteFunc(runs, func(run hub.Run) bool { return run.Placement() != f.Placement.Ref })
	if f.Overrides, err = inScope.Overrides(ctx); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if hubread.SelectsNamespaces(f.Holds, f.Windows) {
		f.NamespaceLabels, err = hubread.NamespaceLabels(ctx, c, f.Placement.Namespace)
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return f.readReplicas(ctx, reader)
}

// readReplicas reads what is divided, and where members report something that counts, their Works.
func (f *WhyFacts) readReplicas(ctx context.Context, reader hub.Reader) (err error) {
	if f.Demands, err = reader.Of(f.Placement.Ref).ReplicaDemands(ctx, f.Placement.Spec.Policy); err != nil {
		return err
	}
	if f.Demands == nil && len(rules.StatePathsOf(f.Placement.Object)) == 0 {
		return nil
	}
	works, err := reader.Of(f.Placement.Ref).AllWorks(ctx, f.Bindings)
	if f.Demands == nil && apierrors.IsForbidden(err) {
		return nil // who may not read Works is told the rest
	}
	for _, ofCluster := range works {
		f.Works = append(f.Works, ofCluster...)
	}
	return err
}

// Answer says why one cluster is picked or not.
type Answer struct {
	Placement string `json:"placement"`
	Cluster   string `json:"cluster"`
	Selected  bool   `json:"selected"`
	// Kept says that it was picked before and stays for that reason.
	Kept bool `json:"kept,omitempty"`
	// Reason is the one sentence that counts.
	Reason string `json:"reason"`
	// Filters are what each of the scheduler's filters says.
	Filters []Filter `json:"filters,omitempty"`
	// Score is how well the cluster fits, where clusters are ranked.
	Score  *Score   `json:"score,omitempty"`
	Scores []string `json:"scores,omitempty"`
	// Rank is its place in the line for the next pick, of InLine; 0 if it is not in line.
	Rank   int `json:"rank,omitempty"`
	InLine int `json:"inLine,omitempty"`
	// LastPicked is the picked cluster that it would have had to beat.
	LastPicked      string `json:"lastPicked,omitempty"`
	LastPickedScore *Score `json:"lastPickedScore,omitempty"`
	// Recorded is what the hub wrote when it decided, if that differs.
	Recorded string `json:"recorded,omitempty"`
	// Binding is the state of the binding to the cluster, empty if there is none.
	Binding string `json:"binding,omitempty"`
	// Replicas say what the cluster gets of the replicas of divided workloads, and why.
	Replicas []string `json:"replicas,omitempty"`
	// Notes say what else to know.
	Notes []string `json:"notes,omitempty"`
}

// Filter is what a filter says of the cluster.
type Filter struct {
	Name string `json:"name"`
	// Against is why it keeps the cluster out, empty if it does not.
	Against string `json:"against,omitempty"`
}

// Score is how well a cluster fits.
type Score struct {
	Affinity int `json:"affinity"`
	Topology int `json:"topologySpread"`
	// Taints is -1 for each taint that has other clusters picked first.
	Taints int `json:"taints,omitempty"`
}

func (s Score) String() string {
	text := fmt.Sprintf("affinity %d, topology spread %d", s.Affinity, s.Topology)
	if s.Taints != 0 {
		text += fmt.Sprintf(", taints %d", s.Taints)
	}
	return text
}

func scoreOf(said framework.Score) *Score {
	return &Score{Affinity: int(said.Affinity), Topology: int(said.Topology), Taints: int(said.Taints)}
}

// Why answers for some clusters, or without names for the whole fleet.
func Why(facts WhyFacts, names ...string) []Answer {
	policy := hub.LatestPolicy(facts.Policies)
	question := questionOf(facts, policy)
	var answers []Answer
	for _, said := range scheduler.Explain(question, names...) {
		answers = append(answers, newAnswer(facts, policy, said))
	}
	return answers
}

// questionOf returns what the hub's scheduler decides by.
func questionOf(facts WhyFacts, policy *hub.PolicySnapshot) scheduler.Facts {
	bindings := make([]placementv1beta1.BindingObject, 0, len(facts.Bindings))
	for _, binding := range facts.Bindings {
		bindings = append(bindings, binding.Object)
	}
	var latest placementv1beta1.PolicySnapshotObject
	if policy != nil {
		latest, _ = policy.Object.(placementv1beta1.PolicySnapshotObject)
	}
	question := scheduler.FactsOf(facts.Placement.Object, latest, bindings, facts.Members, facts.Now)
	question.Demands = facts.Demands
	scheduler.AddShort(question.Bindings, facts.Works)
	return question
}

func newAnswer(facts WhyFacts, policy *hub.PolicySnapshot, said scheduler.Explanation) Answer {
	a := Answer{
		Placement: facts.Placement.String(), Cluster: said.Cluster, Selected: said.Selected, Kept: said.Before,
		Reason: said.Reason, Rank: said.Rank, Scores: said.Details, Replicas: said.Shares,
	}
	for _, check := range said.Checks {
		a.Filters = append(a.Filters, Filter{check.Plugin, check.Reason})
	}
	ranked := facts.Placement.Spec.Policy != nil && facts.Placement.Spec.Policy.PlacementType == placementv1beta1.PickNPlacementType
	if ranked && (said.Selected || said.Rank > 0) {
		a.Score = scoreOf(said.Score)
	}
	if said.Rank > 0 {
		a.InLine = said.InLine
		if said.Last != nil {
			a.LastPicked = said.Last.Cluster
			a.LastPickedScore = scoreOf(said.Last.Score)
		}
	}
	if said.Leaves != "" {
		a.Notes = append(a.Notes, said.Leaves)
	}
	a.compareWithHub(facts, policy)
	return a
}

// compareWithHub adds what the hub itself has on record.
func (a *Answer) compareWithHub(facts WhyFacts, policy *hub.PolicySnapshot) {
	bound := false
	for _, binding := range facts.Bindings {
		if binding.Spec.TargetCluster == a.Cluster {
			a.Binding = string(binding.Spec.State)
			if rules.IsDeleting(binding.Object) {
				a.Binding += ", being removed"
			}
			bound = bound || rules.IsLiveBinding(binding.Object)
		}
	}
	generation := facts.Placement.Object.GetGeneration()
	switch {
	case policy == nil:
		a.Notes = append(a.Notes, "the hub has not decided on this placement yet: this is what it will find")
	case policy.Status.ObservedCRPGeneration < generation:
		a.Notes = append(a.Notes, "the hub has not decided on the latest change of the placement yet: this is what it will find")
	case bound != a.Selected && a.Selected:
		a.Notes = append(a.Notes, "the hub has not picked it yet: it will when it next looks at the placement")
	case bound != a.Selected:
		a.Notes = append(a.Notes, "the hub has picked it earlier and will let it go when it next looks at the placement")
	}
	a.noteRollout(facts)
	a.noteRemoval(facts)
	a.noteOverrides(facts)
	a.noteState(facts)
	a.notePolicy(facts, policy)
	if policy == nil {
		return
	}
	i := slices.IndexFunc(policy.Status.ClusterDecisions, func(d placementv1beta1.ClusterDecision) bool { return d.ClusterName == a.Cluster })
	if i >= 0 && policy.Status.ClusterDecisions[i].Reason != a.Reason {
		a.Recorded = policy.Status.ClusterDecisions[i].Reason
	}
}

// notePolicy adds by which policy, and by which scheduler, clusters are picked, if that is not as usual.
func (a *Answer) notePolicy(facts WhyFacts, policy *hub.PolicySnapshot) {
	if name := rules.SchedulerOf(facts.Placement.Object); name != "" {
		a.Notes = append(a.Notes, fmt.Sprintf("scheduler %q picks the clusters of this placement", name))
	}
	if policy == nil {
		return
	}
	if _, waits := rules.PolicyWaits(policy); waits {
		a.Notes = append(a.Notes, "clusters are picked by the policy before: the changed one waits for the next change of the selected resources (policy.activation Lazy)")
	}
}

// noteRollout adds what keeps updates from the cluster, and when they come to it.
func (a *Answer) noteRollout(facts WhyFacts) {
	if rules.IsSuspended(facts.Placement.Object, a.Cluster) {
		a.Notes = append(a.Notes, rules.SuspensionText)
	} else if held := heldBackText(facts.Placement, a.Cluster); held != "" {
		a.Notes = append(a.Notes, held)
	}
	a.noteGates(facts)
	a.noteRehearsals(facts)
	if place, of := placeInOrder(facts, a.Cluster); place > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("updates come to it as number %d of %d, by rollingUpdate.order", place, of))
	}
}

// noteRemoval adds which objects are still on the cluster that are not wanted there any more, and why.
func (a *Answer) noteRemoval(facts WhyFacts) {
	for _, binding := range facts.Bindings {
		said := placementv1beta1.FindTrue(binding.Status.Conditions, placementv1beta1.ConditionTypeRemovalPending)
		if binding.Spec.TargetCluster == a.Cluster && said != nil {
			a.Notes = append(a.Notes, "objects that are not wanted any more are still there: "+said.Message)
		}
	}
}

// noteOverrides adds which overrides change what is placed on the cluster though they name no placement: who writes the placement may not
// know of them.
func (a *Answer) noteOverrides(facts WhyFacts) {
	for _, binding := range facts.Bindings {
		if binding.Spec.TargetCluster != a.Cluster {
			continue
		}
		for _, override := range facts.Overrides {
			if override.GetOverridePlacement() == nil && usesOverride(binding.Spec, override) {
				scope := placementv1beta1.ScopeOf(override)
				a.Notes = append(a.Notes, fmt.Sprintf("%s %s%s changes what is placed there, as it names no placement and so concerns all",
					scope.OverrideKind().Kind, scope, override.GetName()))
			}
		}
	}
}

// usesOverride reports whether a binding has its objects changed by an override.
func usesOverride(binding *placementv1beta1.ResourceBindingSpec, override placementv1beta1.OverrideObject) bool {
	isOf := func(snapshot string) bool {
		index, err := strconv.Atoi(snapshot[strings.LastIndexByte(snapshot, '-')+1:])
		return err == nil && snapshot == placementv1beta1.OverrideSnapshotName(override.GetName(), index)
	}
	if override.GetNamespace() == "" {
		return slices.ContainsFunc(binding.ClusterResourceOverrideSnapshots, isOf)
	}
	return slices.ContainsFunc(binding.ResourceOverrideSnapshots, func(snapshot placementv1beta1.NamespacedName) bool {
		return snapshot.Namespace == override.GetNamespace() && isOf(snapshot.Name)
	})
}

// mostStateNotes is how many values of a status are named that are not taken along.
const mostStateNotes = 5

// noteState adds which values of the status of what is placed there would not go along to another cluster, and why.
func (a *Answer) noteState(facts WhyFacts) {
	paths := rules.StatePathsOf(facts.Placement.Object)
	untaken := 0
	for i := range facts.Works {
		work := &facts.Works[i]
		if work.Namespace != placementv1beta1.MemberNamespace(a.Cluster) {
			continue
		}
		for _, said := range work.Status.ManifestConditions {
			for _, value := range said.StateValues {
				if value.Message == "" || !slices.Contains(paths, value.JSONPath) {
					continue
				}
				if untaken++; untaken <= mostStateNotes {
					id := said.Identifier
					object := rules.Workload{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
					a.Notes = append(a.Notes, fmt.Sprintf("of the status of %s, %s would not go along to another cluster: %s", object, value.JSONPath,
						value.Message))
				}
			}
		}
	}
	if more := untaken - mostStateNotes; more > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("%d more values of a status would not go along to another cluster", more))
	}
}

// noteGates adds which holds and windows keep changes from beginning on the cluster, until when, and which exemptions let them
// begin despite that.
func (a *Answer) noteGates(facts WhyFacts) {
	at := slices.IndexFunc(facts.Members, func(m clusterv1beta1.MemberCluster) bool { return m.Name == a.Cluster })
	if at < 0 {
		return
	}
	cluster := brake.Cluster{Name: a.Cluster, Labels: facts.Members[at].Labels}
	subject := brake.SubjectOf(facts.Placement.Object)
	subject.NamespaceLabels = facts.NamespaceLabels
	start := fleetflowv1alpha1.StartFirstPlacements
	word := "what is placed on it for the first time"
	for _, binding := range facts.Bindings {
		if binding.Spec.TargetCluster == a.Cluster && binding.Spec.ResourceSnapshotName != "" {
			start = fleetflowv1alpha1.StartUpdates
			word = "a change of what it has"
		}
	}
	objects := brake.Objects{Holds: facts.Holds, Windows: facts.Windows, Members: facts.Members}
	closed := func(of brake.Subject) (rollout.Wait, bool) {
		return objects.Chain(of, facts.Now).Closed(cluster, start, facts.Now)
	}
	closure, is := closed(subject)
	if !is {
		return
	}
	subject.Exemptions = brake.ExemptionsOf(facts.Exemptions, subject, false)
	if facts.Placement.External() {
		a.Notes = append(a.Notes, fmt.Sprintf("%s does not begin now, unless a run is exempt: it waits for %s", word, closure.Text()))
		return
	}
	if _, still := closed(subject); still {
		a.Notes = append(a.Notes, fmt.Sprintf("%s does not begin now: it waits for %s", word, closure.Text()))
		return
	}
	for i := range subject.Exemptions {
		if exemption := &subject.Exemptions[i]; facts.Now.Before(exemption.Spec.ExpirationTime.Time) {
			a.Notes = append(a.Notes, fmt.Sprintf("%s begins despite %s: %s", word, closure.Title(), exemption.Record()))
		}
	}
}

// heldBackText returns what the status of the placement says about a cluster that the partition, a pause or a lifecycle hook holds
// back, or whose binding cannot be written; empty if it says nothing of that.
func heldBackText(placement hub.Placement, cluster string) string {
	for i := range placement.Status.PerClusterPlacementStatuses {
		entry := &placement.Status.PerClusterPlacementStatuses[i]
		said := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeRolloutStarted)
		if entry.ClusterName != cluster || said == nil {
			continue
		}
		switch said.Reason {
		case placementv1beta1.ReasonHeldByPartition, placementv1beta1.ReasonRolloutPaused, placementv1beta1.ReasonWaitingForHook,
			placementv1beta1.ReasonRefused:
			return said.Message
		}
	}
	return ""
}

// placeInOrder returns the place of a picked cluster in the order of rolling updates, and how many clusters there are; 0 if the
// placement asks for no order, or has not picked the cluster. Clusters that are broken or not available come before all others.
func placeInOrder(facts WhyFacts, cluster string) (place, of int) {
	order := rules.RollingUpdateOf(facts.Placement.Object).Order
	if order == nil {
		return 0, 0
	}
	labels := map[string]map[string]string{}
	for i := range facts.Members {
		labels[facts.Members[i].Name] = facts.Members[i].Labels
	}
	var picked []rollout.Member
	for _, binding := range facts.Bindings {
		if name := binding.Spec.TargetCluster; rules.IsLiveBinding(binding.Object) {
			picked = append(picked, rollout.Member{Name: name, Labels: labels[name]})
		}
	}
	return slices.Index(planning.CompileOrder(order).Sort(picked), cluster) + 1, len(picked)
}
