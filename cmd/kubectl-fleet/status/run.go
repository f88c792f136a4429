// Package status makes a tree of a placement or of a run: stages, clusters, and the objects that fail on them. It is
// pure.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Kinds of nodes.
const (
	KindStage   = "stage"
	KindCluster = "cluster"
	KindObject  = "object"
	KindGate    = "gate"
	KindStep    = "step"
	KindMore    = "more"
)

// Facts are what a tree is made of.
type Facts struct {
	Placement *hub.Placement
	Runs      []hub.Run
	Bindings  map[string]hub.Binding
	Approvals map[string]hub.Approval
	// Overrides are those that may be meant for the placement.
	Overrides []placementv1beta1.OverrideObject
	// Gates are what closes clusters for the rollout. Without a time of theirs they are not reported.
	Gates Gates
}

// Sort puts objects that were read into facts. Of several bindings to a cluster, the one that is not going counts.
func Sort(objects []client.Object) Facts {
	facts := Facts{Bindings: map[string]hub.Binding{}, Approvals: map[string]hub.Approval{}}
	for _, object := range objects {
		switch o := object.DeepCopyObject().(type) {
		case placementv1beta1.PlacementObject:
			p := hub.PlacementOf(o)
			facts.Placement = &p
		case placementv1beta1.UpdateRunObject:
			facts.Runs = append(facts.Runs, hub.RunOf(o))
		case placementv1beta1.BindingObject:
			facts.addBinding(hub.BindingOf(o))
		case placementv1beta1.ApprovalRequestObject:
			facts.Approvals[o.GetName()] = hub.ApprovalOf(o)
		case placementv1beta1.OverrideObject:
			facts.Overrides = append(facts.Overrides, o)
		case *metav1.PartialObjectMetadata:
			facts.Gates.NoteNamespace(o)
		case *fleetflowv1alpha1.RolloutHold:
			facts.Gates.Holds = append(facts.Gates.Holds, *o)
		case *fleetflowv1alpha1.RolloutWindow:
			facts.Gates.Windows = append(facts.Gates.Windows, *o)
		case *fleetflowv1alpha1.RolloutExemption:
			facts.Gates.Exemptions = append(facts.Gates.Exemptions, *o)
		}
	}
	facts.Gates.Sort()
	return facts
}

// Gather makes facts of what was sorted already.
func Gather(runs []hub.Run, bindings []hub.Binding, approvals []hub.Approval) Facts {
	facts := Facts{Runs: runs, Bindings: map[string]hub.Binding{}, Approvals: map[string]hub.Approval{}}
	for _, binding := range bindings {
		facts.addBinding(binding)
	}
	for _, approval := range approvals {
		facts.Approvals[approval.Object.GetName()] = approval
	}
	return facts
}

func (f *Facts) addBinding(binding hub.Binding) {
	if before, twice := f.Bindings[binding.Spec.TargetCluster]; !twice || rules.IsDeleting(before.Object) {
		f.Bindings[binding.Spec.TargetCluster] = binding
	}
}

// Options are what to show.
type Options struct {
	// All shows every cluster; otherwise those of which there are many are counted where all is well with them.
	All bool
}

// AllHint is the end of a line that counts what is left out.
const AllHint = " (--all shows them)"

// few is up to how many clusters each is shown in any case.
const few = 12

// shown bounds the clusters that are shown of many because something is to be said of them.
const shown = 20

// Run makes the tree of a run.
func Run(run hub.Run, facts Facts, options Options) tree.Node {
	view := updaterun.Read(run.Object)
	root := tree.Node{
		Kind: string(hub.KindRun), Name: run.String(), State: view.Phase, Count: &view.Counts,
		Start: run.Object.GetCreationTimestamp().Time, Detail: detailOf(run, view),
	}
	if waitsForTemporal(run, view) {
		root.State = updaterun.PhaseStuck
	}
	if c := run.Condition(placementv1beta1.ConditionTypeSucceeded); c != nil && view.Phase.Over() {
		root.End = c.LastTransitionTime.Time
	}
	root.Children = facts.Gates.Nodes(facts.runSubjects(run, view))
	b := builder{facts, options, run}
	for i, stage := range view.Stages {
		root.Children = append(root.Children, b.stageNode(stage, view, i))
	}
	return root
}

func detailOf(run hub.Run, view updaterun.State) string {
	detail := fmt.Sprintf("snapshot %s of %s", cmp.Or(run.Status.ResourceSnapshotIndexUsed, run.Spec.ResourceSnapshotIndex, "latest"),
		run.Placement())
	if run.Object.GetAnnotations()[placementv1beta1.TriggeredByAnnotation] != "" {
		detail += ", which has created the run by its trigger"
	}
	if run.Spec.RollbackOf != "" {
		detail = fmt.Sprintf("%s back to before run %s", run.Placement(), run.Spec.RollbackOf)
	}
	if held := run.Condition(fleetflowv1alpha1.ConditionTypeHeld); held != nil && held.Status == metav1.ConditionTrue {
		detail += ": " + held.Message
	}
	if out := run.Condition(placementv1beta1.ConditionTypeBackInService); out != nil && out.Status == metav1.ConditionFalse && !saysWhy(view) {
		detail += ": " + out.Message
	}
	if waitsForTemporal(run, view) {
		return detail + ": waits for Temporal, which the hub agent does not reach"
	}
	switch {
	case saysWhy(view):
		return detail + ": " + view.Why
	case view.Phase == updaterun.PhaseInitialized:
		return detail + ": waits for its start (kubectl fleet resume)"
	}
	return detail
}

// saysWhy reports whether a run says itself why it does not go on.
func saysWhy(view updaterun.State) bool {
	return view.Phase == updaterun.PhaseFailed || view.Phase == updaterun.PhaseStuck
}

// waitsForTemporal reports whether a run goes on only once the hub agent reaches Temporal.
func waitsForTemporal(run hub.Run, view updaterun.State) bool {
	return updaterun.IsEngineAway(run.Object.GetConditions()) && !view.Phase.Over()
}

type builder struct {
	facts   Facts
	options Options
	run     hub.Run
}

func (b builder) stageNode(stage updaterun.Stage, view updaterun.State, index int) tree.Node {
	count := stage.Counts
	node := tree.Node{Kind: KindStage, Name: stage.Title(), State: stage.Phase, Count: &count, Start: stage.Started, End: stage.Ended}
	if stage.Total == 0 {
		node.Count = nil
		node.Detail = "no clusters"
	}
	if stage.Phase == updaterun.PhasePending && stage.MaxConcurrency != "" {
		if atOnce, err := rollout.Concurrency(stage.MaxConcurrency, stage.Total); err == nil {
			node.Detail = fmt.Sprintf("%d at a time", atOnce)
		}
	}
	if view.Phase == updaterun.PhaseStopped && index == view.Current && !stage.Phase.Over() {
		node.State = updaterun.PhaseStopped
	}
	for _, task := range stage.Before {
		node.Children = append(node.Children, b.taskNode(task, stage.Name, "before"))
	}
	node.Children = append(node.Children, b.clusterNodes(stage)...)
	for _, task := range stage.During {
		node.Children = append(node.Children, b.taskNode(task, stage.Name, "during"))
	}
	for _, task := range stage.After {
		node.Children = append(node.Children, b.taskNode(task, stage.Name, "after"))
	}
	return node
}

// clusterNodes returns those of a stage, of many only the ones there is something to say of.
func (b builder) clusterNodes(stage updaterun.Stage) []tree.Node {
	nodes := make([]tree.Node, 0, len(stage.Clusters))
	for _, cluster := range stage.Clusters {
		nodes = append(nodes, b.clusterNode(cluster, stage))
	}
	return chooseClusters(nodes, b.options.All)
}

// chooseClusters leaves out of many clusters those with which all is well, and of the others those that stand out least.
func chooseClusters(nodes []tree.Node, all bool) []tree.Node {
	if all || len(nodes) <= few {
		return nodes
	}
	var order []int
	for i, node := range nodes {
		if weightOf(node) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(weightOf(nodes[y]), weightOf(nodes[x])), nodes[x].Start.Compare(nodes[y].Start))
	})
	order = order[:min(len(order), shown)]
	slices.Sort(order)
	chosen := make([]tree.Node, 0, len(order)+1)
	for _, i := range order {
		chosen = append(chosen, nodes[i])
	}
	return append(chosen, hiddenNodes(nodes, order)...)
}

// weightOf returns how much a cluster stands out; 0 is not at all.
func weightOf(node tree.Node) int {
	switch {
	case node.State == updaterun.PhaseFailed:
		return 4
	case len(node.Children) > 0:
		return 3
	case node.State == updaterun.PhaseRunning:
		return 2
	case node.State == updaterun.PhaseSkipped || node.Detail != "":
		return 1
	default:
		return 0
	}
}

// hiddenNodes counts what is not shown.
func hiddenNodes(nodes []tree.Node, chosen []int) []tree.Node {
	hidden := map[updaterun.Phase]int{}
	for _, node := range nodes {
		hidden[node.State]++
	}
	for _, i := range chosen {
		hidden[nodes[i].State]--
	}
	var parts []string
	for _, state := range []updaterun.Phase{updaterun.PhaseSucceeded, updaterun.PhaseRunning, updaterun.PhaseFailed, updaterun.PhaseSkipped,
		updaterun.PhasePending} {
		if number := hidden[state]; number > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", number, strings.ToLower(string(state))))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []tree.Node{{Kind: KindMore, Name: "not shown:", Detail: strings.Join(parts, ", ") + AllHint}}
}

func (b builder) clusterNode(cluster updaterun.Cluster, stage updaterun.Stage) tree.Node {
	node := tree.Node{Kind: KindCluster, Name: cluster.Name, State: cluster.Phase, Start: cluster.Started, End: cluster.Ended}
	if cluster.Phase == updaterun.PhaseFailed || cluster.Phase == updaterun.PhaseSkipped {
		node.Detail = cluster.Why
	}
	binding, ok := b.facts.Bindings[cluster.Name]
	if !ok || stage.Deletion || cluster.Phase == updaterun.PhaseSucceeded || cluster.Phase == updaterun.PhasePending {
		return node
	}
	if cluster.Phase == updaterun.PhaseRunning {
		node.Detail = waitsFor(binding.Status.Conditions, stage.MinReady)
	}
	node.Children = failedObjects(binding.Status.FailedPlacements)
	return node
}

// waitsFor returns what the update of a cluster waits for: its first condition that is not true, or that it stays available for
// some time; nothing if it waits for neither.
func waitsFor(conditions []metav1.Condition, minReady time.Duration) string {
	if held := firstUnmet(conditions); held != nil {
		return describeCondition(held)
	}
	available := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeAvailable)
	if available == nil || minReady == 0 {
		return ""
	}
	return fmt.Sprintf("available since %s, done after %s without a break", available.LastTransitionTime.UTC().Format("15:04:05Z"),
		tree.Wait(minReady))
}

// steps of a cluster in their order.
var steps = []string{
	placementv1beta1.ConditionTypeRolloutStarted, placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized,
	placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable, placementv1beta1.ConditionTypeDiffReported,
}

// firstUnmet returns the first condition that is not true.
func firstUnmet(conditions []metav1.Condition) *metav1.Condition {
	for _, step := range steps {
		if c := meta.FindStatusCondition(conditions, step); c != nil && c.Status != metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// describeCondition returns what a condition says, in a line.
func describeCondition(c *metav1.Condition) string {
	switch {
	case c.Message == "":
		return c.Type + ": " + c.Reason
	case saysSilent(c):
		return c.Message
	}
	return c.Type + ": " + c.Message
}

// saysSilent reports whether a condition says that no agent looks at the member: it does not report, or its agent does not reach
// it.
func saysSilent(c *metav1.Condition) bool {
	return clusterrules.IsDoubt(c.Reason)
}

// failedObjects returns those that fail, in their order.
func failedObjects(failed []placementv1beta1.FailedResourcePlacement) []tree.Node {
	nodes := make([]tree.Node, 0, len(failed))
	for i := range failed {
		nodes = append(nodes, tree.Node{Kind: KindObject, Name: ObjectName(failed[i].ResourceIdentifier), State: updaterun.PhaseFailed,
			Detail: describeCondition(&failed[i].Condition)})
	}
	slices.SortStableFunc(nodes, func(a, b tree.Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

// ObjectName names a placed object in a line: Deployment.apps shop/web.
func ObjectName(id placementv1beta1.ResourceIdentifier) string {
	name := id.Kind
	if id.Group != "" {
		name += "." + id.Group
	}
	name += " "
	if id.Namespace != "" {
		name += id.Namespace + "/"
	}
	name += id.Name
	if id.Envelope != nil {
		name += " in " + id.Envelope.Name
	}
	return name
}

func (b builder) taskNode(task stagetask.State, stage, side string) tree.Node {
	node := tree.Node{Kind: KindGate, Name: task.Title + " " + side, State: taskState(task)}
	switch {
	case task.Timed:
		node.Name = task.Title + " " + tree.Wait(task.Duration)
		node.Start = task.WaitsSince
		node.Due = task.Due
		node.End = task.DoneAt
	case task.Done() && task.Incomplete:
		node.Detail = task.Message
	case task.Done():
		node.Detail = b.approvedBy(task)
	case task.Failed:
		node.Detail = task.Message
	case task.Waiting():
		node.Start = task.WaitsSince
		if task.Approvable {
			node.Command = approveCommand(b.run.Ref, stage)
			node.Due = task.Expires
			node.Detail = strings.Join(slices.DeleteFunc([]string{task.Detail(), node.Command}, func(text string) bool { return text == "" }), "; ")
		}
	}
	return node
}

// approveCommand returns the command that approves a stage of a run; empty for names that a shell would not take as they are. What users
// have written is not in it: it is there to be copied.
func approveCommand(run hub.Ref, stage string) string {
	command := "kubectl fleet approve " + run.Name + " --stage " + stage
	names := []string{run.Name, stage}
	if run.Namespace != "" {
		command += " -n " + run.Namespace
		names = append(names, run.Namespace)
	}
	if slices.ContainsFunc(names, func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) > 0 }) {
		return ""
	}
	return command
}

func taskState(task stagetask.State) updaterun.Phase {
	switch {
	case task.Done():
		return updaterun.PhaseSucceeded
	case task.Failed:
		return updaterun.PhaseFailed
	case task.Waiting():
		return updaterun.PhaseWaiting
	default:
		return updaterun.PhasePending
	}
}

// approvedBy returns who approved, as far as the hub has recorded it.
func (b builder) approvedBy(task stagetask.State) string {
	request, ok := b.facts.Approvals[task.Subject]
	if !ok || request.Status.Approval == nil {
		return task.Subject
	}
	return Approved(*request.Status.Approval)
}

// Approved returns who approved and through which channel.
func Approved(record placementv1beta1.ApprovalRecord) string {
	text := record.How()
	if record.Comment != "" {
		text += fmt.Sprintf(": %q", record.Comment)
	}
	return text
}

// StripHints takes out of a tree what is for a command line.
func StripHints(nodes []tree.Node) {
	for i := range nodes {
		if nodes[i].Kind == KindMore {
			nodes[i].Detail = strings.TrimSuffix(nodes[i].Detail, AllHint)
		}
		StripHints(nodes[i].Children)
	}
}
