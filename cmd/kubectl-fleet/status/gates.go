package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Kinds of nodes about what closes clusters, and what lets a rollout go despite it.
const (
	KindHold      = "hold"
	KindWindow    = "window"
	KindExemption = "exemption"
)

// IsGate reports whether a node is about a hold, a window or an exemption.
func IsGate(node tree.Node) bool {
	return node.Kind == KindHold || node.Kind == KindWindow || node.Kind == KindExemption
}

// Gates are the holds, windows and exemptions of a hub, as they are at an instant.
type Gates struct {
	Holds      []fleetflowv1alpha1.RolloutHold
	Windows    []fleetflowv1alpha1.RolloutWindow
	Exemptions []fleetflowv1alpha1.RolloutExemption
	// Now is the instant.
	Now time.Time
	// namespaces are the labels of those Namespaces that may be read, by name.
	namespaces map[string]map[string]string
}

// NoteNamespace notes the labels of a Namespace, by which holds and windows select.
func (g *Gates) NoteNamespace(namespace *metav1.PartialObjectMetadata) {
	if g.namespaces == nil {
		g.namespaces = map[string]map[string]string{}
	}
	g.namespaces[namespace.Name] = namespace.Labels
}

// Sort brings what is told into an order.
func (g Gates) Sort() {
	slices.SortFunc(g.Holds, func(a, b fleetflowv1alpha1.RolloutHold) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(g.Exemptions, func(a, b fleetflowv1alpha1.RolloutExemption) int { return cmp.Compare(a.Name, b.Name) })
}

// Chain returns what keeps clusters from starting in a stage of a run, as far as the gates may be read; nil if nothing can.
func (g Gates) Chain(run placementv1beta1.UpdateRunObject, placement placementv1beta1.PlacementObject, stage string, windows []string,
	members []clusterv1beta1.MemberCluster) *brake.Chain {
	of := brake.SubjectOfRun(run, placement, stage)
	of.Windows = windows
	objects := brake.Objects{Holds: g.Holds, Windows: g.Windows, Members: members}
	if !objects.AnyFor(of, g.Now) {
		return nil
	}
	of.NamespaceLabels = g.namespaces[of.Namespace]
	of.Exemptions = brake.ExemptionsOf(g.Exemptions, of, true)
	return objects.Chain(of, g.Now)
}

// runSubjects returns the stages of a run that may still start clusters, as gates know them.
func (f Facts) runSubjects(run hub.Run, view updaterun.State) []brake.Subject {
	if view.Phase.Over() {
		return nil
	}
	of := brake.Subject{
		Namespace: run.Namespace, Run: run.Name, UID: run.Object.GetUID(), Created: run.Object.GetCreationTimestamp(),
		Rollback: rules.RestoresWhatSucceeded(run.Object),
	}
	if f.Placement != nil {
		of.PlacementLabels = fleetflowv1alpha1.GateLabels(f.Placement.Object)
	}
	if len(view.Stages) == 0 {
		return []brake.Subject{of} // it is not planned yet
	}
	var subjects []brake.Subject
	for i, stage := range view.Stages {
		if stage.Passed() || stage.Total == 0 {
			continue
		}
		of.Stage = stage.Name
		of.Windows = nil
		if stage.Deletion {
			of.Stage = ""
		} else {
			of.Windows = updaterun.StageConfig(run.Object, i).Windows
		}
		subjects = append(subjects, of)
	}
	return subjects
}

// Nodes report the holds and windows that are about some subjects, those first that keep clusters from starting, and of the
// exemptions of the subjects that have not ended.
func (g Gates) Nodes(subjects []brake.Subject) []tree.Node {
	if len(subjects) == 0 {
		return nil
	}
	for i := range subjects {
		subjects[i].NamespaceLabels = g.namespaces[subjects[i].Namespace]
	}
	var nodes []tree.Node
	for i := range g.Holds {
		hold := &g.Holds[i]
		if hold.IsInForce(g.Now) && slices.ContainsFunc(subjects, func(s brake.Subject) bool { return brake.HoldConcerns(hold, s) }) {
			nodes = append(nodes, g.holdNode(hold))
		}
	}
	nodes = append(nodes, g.windowsOf(subjects)...)
	slices.SortStableFunc(nodes, func(a, b tree.Node) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	for _, exemption := range brake.ExemptionsOf(g.Exemptions, subjects[0], false) {
		if g.Now.Before(exemption.Spec.ExpirationTime.Time) {
			nodes = append(nodes, g.exemptionNode(&exemption))
		}
	}
	return nodes
}

func rankOf(node tree.Node) int {
	if node.State == updaterun.PhaseWaiting {
		return 0
	}
	return 1
}

func (g Gates) holdNode(hold *fleetflowv1alpha1.RolloutHold) tree.Node {
	until := "released"
	if expires := hold.Expires(); !expires.IsZero() {
		until = g.formatInstant(expires)
	}
	detail := fmt.Sprintf("nothing starts until %s: %s", until, hold.Spec.Message)
	if clusters := hold.Spec.ClusterSelector; clusters != nil {
		detail += "; for clusters " + metav1.FormatLabelSelector(clusters)
	}
	if namespaces := hold.Spec.NamespaceSelector; namespaces != nil {
		detail += "; for namespaces " + metav1.FormatLabelSelector(namespaces)
	}
	return tree.Node{Kind: KindHold, Name: "hold " + hold.Name, State: updaterun.PhaseWaiting, Detail: detail}
}

// windowsOf returns the windows that are about some subjects, except for freezes that are far ahead.
func (g Gates) windowsOf(subjects []brake.Subject) []tree.Node {
	compiled := brake.CompileWindows(g.Windows)
	stages := map[string][]string{}
	var concern []brake.Window
	for _, subject := range subjects {
		for _, window := range brake.WindowsOf(compiled, subject) {
			if stages[window.Name] == nil {
				concern = append(concern, window)
			}
			stages[window.Name] = append(stages[window.Name], subject.Stage)
		}
	}
	slices.SortStableFunc(concern, func(a, b brake.Window) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var nodes []tree.Node
	for _, window := range concern {
		if window.Spec.Type != fleetflowv1alpha1.WindowDeny || window.IsOpen(g.Now) || g.changesWithin(&window, week) {
			nodes = append(nodes, g.windowNode(&window, stages[window.Name]))
		}
	}
	return nodes
}

const day, week = 24 * time.Hour, 7 * 24 * time.Hour

// changesWithin reports whether a window opens or closes within some time.
func (g Gates) changesWithin(w *brake.Window, most time.Duration) bool {
	if w.Calendar == nil {
		return false
	}
	changes := w.Calendar.Changes(g.Now)
	return !changes.IsZero() && changes.Sub(g.Now) <= most
}

// WindowsOfTheDay returns those windows that every reader should know: freezes in force, windows that are not valid, and those that
// open or close within a day.
func (g Gates) WindowsOfTheDay() []tree.Node {
	var nodes []tree.Node
	for _, window := range brake.CompileWindows(g.Windows) {
		frozen := window.Spec.Type == fleetflowv1alpha1.WindowDeny && window.IsOpen(g.Now)
		if frozen || window.Fault != nil || g.changesWithin(&window, day) {
			nodes = append(nodes, g.windowNode(&window, window.Spec.Stages))
		}
	}
	return nodes
}

// windowNode reports a window; stages are those that it concerns, if its scope is Stage.
func (g Gates) windowNode(w *brake.Window, stages []string) tree.Node {
	node := tree.Node{Kind: KindWindow, Name: "window " + w.Name}
	deny := w.Spec.Type == fleetflowv1alpha1.WindowDeny
	open := w.IsOpen(g.Now)
	if deny == open {
		node.State = updaterun.PhaseWaiting
	}
	var changes time.Time
	if w.Calendar != nil {
		changes = w.Calendar.Changes(g.Now)
	}
	switch {
	case w.Fault != nil:
		node.Detail = "nothing starts, it is not valid: " + w.Fault.Message
	case deny && open:
		node.Detail = "nothing starts until " + g.formatInstant(changes)
	case deny:
		node.Detail = "nothing starts from " + g.formatInstant(changes) + " on"
	case open:
		node.Detail = "open until " + g.formatInstant(changes)
	default:
		node.Detail = "closed until " + g.formatInstant(changes)
	}
	if w.Spec.Message != "" {
		node.Detail += ": " + w.Spec.Message
	}
	switch {
	case w.Spec.Scope == fleetflowv1alpha1.WindowStage && len(stages) == 0:
		node.Detail += "; for stages that name it"
	case w.Spec.Scope == fleetflowv1alpha1.WindowStage:
		node.Detail += "; for stage " + strings.Join(stages, ", ")
	case w.Spec.ClusterSelector != nil:
		node.Detail += "; for clusters " + metav1.FormatLabelSelector(w.Spec.ClusterSelector)
	}
	return node
}

func (g Gates) exemptionNode(exemption *fleetflowv1alpha1.RolloutExemption) tree.Node {
	by, _ := exemption.MadeBy()
	detail := fmt.Sprintf("despite %s until %s, by %s: %s", exemption.Spec.FromText(), g.formatInstant(exemption.Spec.ExpirationTime.Time), by,
		exemption.Spec.Message)
	if exemption.Spec.Ticket != "" {
		detail += " (" + exemption.Spec.Ticket + ")"
	}
	return tree.Node{Kind: KindExemption, Name: "exemption " + exemption.Name, Detail: detail}
}

// formatInstant returns when something is, in its own zone, and how far ahead.
func (g Gates) formatInstant(at time.Time) string {
	if at.IsZero() {
		return "it is changed"
	}
	return fmt.Sprintf("%s (in %s)", at.Format(time.RFC3339), tree.Elapsed(at.Sub(g.Now)))
}
