package feed

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/status"
)

// Fleet is a picture of a fleet.
type Fleet struct {
	// At is when it was made.
	At time.Time
	// Members are sorted by name, and Clusters are the rows about them in the same order.
	Members  []*clusterv1beta1.MemberCluster
	Clusters []fleetview.Member
	// Placements are sorted by namespace and name, with their rows.
	Placements []Placement
	// Runs are sorted with the latest first, with their rows.
	Runs  []Run
	Holds []*fleetflowv1alpha1.RolloutHold
	// Gates are what closes clusters for rollouts, and what lets rollouts go despite that.
	Gates     status.Gates
	Evictions []*placementv1beta1.ClusterResourcePlacementEviction
	// Denied are the kinds that the user may not list. Trouble is why what is shown may be old; empty if it is not.
	Denied  []string
	Trouble string

	// unseen are the namespaces whose bindings the user may not list.
	unseen    map[string]bool
	bindings  map[hub.Ref][]hub.Binding
	approvals map[hub.Ref][]hub.Approval
	records   []*fleetflowv1alpha1.AuditRecord
	members   []clusterv1beta1.MemberCluster
	worked    *worked
}

// worked has what was worked out of a picture because a page asked for it, by the object that it is about or by the query of the page.
type worked struct {
	sync.Map
	// queries counts those that something was drawn for.
	queries atomic.Int32
}

// Placement is a placement with the row about it.
type Placement struct {
	hub.Placement
	Row fleetview.Placement
}

// Run is a run with how far it is, and the row about it.
type Run struct {
	hub.Run
	State updaterun.State
	Row   fleetview.Run
}

// Placement returns a placement; nil if there is none.
func (f *Fleet) Placement(ref hub.Ref) *Placement {
	for i := range f.Placements {
		if f.Placements[i].Ref == ref {
			return &f.Placements[i]
		}
	}
	return nil
}

// Run returns a run; nil if there is none.
func (f *Fleet) Run(ref hub.Ref) *Run {
	for i := range f.Runs {
		if f.Runs[i].Ref == ref {
			return &f.Runs[i]
		}
	}
	return nil
}

// RunsOf returns the runs of a placement, the latest first.
func (f *Fleet) RunsOf(placement hub.Ref) []Run {
	var found []Run
	for _, run := range f.Runs {
		if run.Run.Placement() == placement {
			found = append(found, run)
		}
	}
	return found
}

// Active returns the runs that are not over.
func (f *Fleet) Active() iter.Seq[*Run] {
	return func(yield func(*Run) bool) {
		for i := range f.Runs {
			if f.Runs[i].Outcome() == "" && !yield(&f.Runs[i]) {
				return
			}
		}
	}
}

// Changing returns the runs that change a cluster now.
func (f *Fleet) Changing(cluster string) []Run {
	var changing []Run
	for run := range f.Active() {
		if slices.ContainsFunc(run.State.Stages, func(stage updaterun.Stage) bool {
			return slices.Contains(stage.ClustersIn(updaterun.PhaseRunning), cluster)
		}) {
			changing = append(changing, *run)
		}
	}
	return changing
}

// HoldRows returns the rows about the holds.
func (f *Fleet) HoldRows() []fleetview.Hold {
	var rows []fleetview.Hold
	for _, hold := range f.Holds {
		rows = append(rows, fleetview.HoldOf(hold, f.At))
	}
	return rows
}

// HoldsInForce returns the rows about the holds that have not expired.
func (f *Fleet) HoldsInForce() []fleetview.Hold {
	return slices.DeleteFunc(f.HoldRows(), func(hold fleetview.Hold) bool { return hold.State == fleetview.HoldExpired })
}

// Numbers are how many members are healthy, how many placements are rolled out, and how many runs are not over.
type Numbers struct{ Healthy, Members, Done, Placements, Active int }

// Count counts what there is.
func (f *Fleet) Count() Numbers {
	count := Numbers{Members: len(f.Members), Placements: len(f.Placements)}
	for _, row := range f.Clusters {
		if row.Healthy == string(metav1.ConditionTrue) && !row.Late {
			count.Healthy++
		}
	}
	for _, p := range f.Placements {
		if p.Row.Phase == updaterun.PhaseSucceeded {
			count.Done++
		}
	}
	for range f.Active() {
		count.Active++
	}
	return count
}

// EngineAway returns what the first placement or run says that cannot go on without Temporal; empty if there is none.
func (f *Fleet) EngineAway() string {
	for _, p := range f.Placements {
		if said := awayBy(p.Object.GetPlacementStatus().Conditions); said != "" {
			return said
		}
	}
	for run := range f.Active() {
		if said := awayBy(run.Object.GetUpdateRunStatus().Conditions); said != "" {
			return said
		}
	}
	return ""
}

func awayBy(conditions []metav1.Condition) string {
	if !updaterun.IsEngineAway(conditions) {
		return ""
	}
	return meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeEngineReachable).Message
}

// FactsOf returns what the tree of a placement, and of one of its runs, is made of.
func (f *Fleet) FactsOf(placement hub.Ref) status.Facts {
	var runs []hub.Run
	var approvals []hub.Approval
	for _, run := range f.RunsOf(placement) {
		runs = append(runs, run.Run)
		approvals = append(approvals, f.approvals[run.Ref]...)
	}
	facts := status.Gather(runs, f.bindings[placement], approvals)
	if of := f.Placement(placement); of != nil {
		facts.Placement = &of.Placement
	}
	facts.Gates = f.Gates
	return facts
}

// On returns the bindings to a cluster by their placements.
func (f *Fleet) On(cluster string) map[hub.Ref]hub.Binding {
	found := map[hub.Ref]hub.Binding{}
	for placement, bindings := range f.bindings {
		for _, binding := range bindings {
			if before, twice := found[placement]; binding.Spec.TargetCluster == cluster && (!twice || rules.IsDeleting(before.Object)) {
				found[placement] = binding
			}
		}
	}
	return found
}

// Hit is an object that was looked for.
type Hit struct {
	hub.Ref
	State string
}

// Search returns the placements, runs and clusters with a text in their names.
func (f *Fleet) Search(text string) []Hit {
	hits := []Hit{}
	text = strings.ToLower(strings.TrimSpace(text))
	add := func(ref hub.Ref, state string) {
		if text != "" && strings.Contains(ref.String(), text) {
			hits = append(hits, Hit{ref, state})
		}
	}
	for _, p := range f.Placements {
		add(p.Ref, p.Row.Rollout)
	}
	for _, run := range f.Runs {
		add(run.Ref, picture.Word(run.State.Phase))
	}
	for _, row := range f.Clusters {
		add(hub.Ref{Kind: hub.KindMember, Name: row.Name}, row.Health())
	}
	return hits
}

// maker makes pictures. What it has made of an object it keeps for as long as the object is the same.
type maker struct {
	placements map[client.Object]hub.Placement
	runs       map[client.Object]Run
}

// fleet sorts what there is into a picture.
func (m *maker) fleet(kinds []*kind, now time.Time) *Fleet {
	f := &Fleet{At: now, worked: &worked{}, bindings: map[hub.Ref][]hub.Binding{}, approvals: map[hub.Ref][]hub.Approval{}}
	before := *m
	*m = maker{placements: map[client.Object]hub.Placement{}, runs: map[client.Object]Run{}}
	var placements []hub.Placement
	for _, k := range kinds {
		for _, object := range k.objects {
			switch o := object.(type) {
			case *clusterv1beta1.MemberCluster:
				f.Members = append(f.Members, o)
			case *metav1.PartialObjectMetadata:
				f.Gates.NoteNamespace(o)
			case *fleetflowv1alpha1.RolloutHold:
				f.Holds = append(f.Holds, o)
				f.Gates.Holds = append(f.Gates.Holds, *o)
			case *fleetflowv1alpha1.RolloutWindow:
				f.Gates.Windows = append(f.Gates.Windows, *o)
			case *fleetflowv1alpha1.RolloutExemption:
				f.Gates.Exemptions = append(f.Gates.Exemptions, *o)
			case *placementv1beta1.ClusterResourcePlacementEviction:
				f.Evictions = append(f.Evictions, o)
			case *fleetflowv1alpha1.AuditRecord:
				f.records = append(f.records, o)
			case placementv1beta1.PlacementObject:
				placements = append(placements, m.placement(before, o))
			case placementv1beta1.UpdateRunObject:
				f.Runs = append(f.Runs, m.run(before, o, now))
			case placementv1beta1.BindingObject:
				of := hub.Ref{Kind: hub.KindPlacement, Namespace: o.GetNamespace(), Name: o.GetLabels()[placementv1beta1.ParentPlacementLabel]}
				f.bindings[of] = append(f.bindings[of], hub.BindingOf(o))
			case placementv1beta1.ApprovalRequestObject:
				approval := hub.ApprovalOf(o)
				of := hub.Ref{Kind: hub.KindRun, Namespace: o.GetNamespace(), Name: approval.Spec.TargetUpdateRun}
				f.approvals[of] = append(f.approvals[of], approval)
			}
		}
	}
	f.Gates.Now = now
	f.Gates.Sort()
	f.sort(placements, now)
	return f
}

func (m *maker) placement(before maker, o placementv1beta1.PlacementObject) hub.Placement {
	view, known := before.placements[o]
	if !known {
		view = hub.PlacementOf(o)
	}
	m.placements[o] = view
	return view
}

// run makes a run and its row. The row of one that is over does not change with time, except for an age that is not shown.
func (m *maker) run(before maker, o placementv1beta1.UpdateRunObject, now time.Time) Run {
	run, known := before.runs[o]
	if !known {
		run = Run{Run: hub.RunOf(o), State: updaterun.Read(o)}
	}
	if !known || run.Outcome() == "" {
		run.Row = fleetview.Runs([]hub.Run{run.Run}, now)[0]
	}
	m.runs[o] = run
	return run
}

// sort brings all into order and adds the rows.
func (f *Fleet) sort(placements []hub.Placement, now time.Time) {
	slices.SortFunc(f.Members, func(a, b *clusterv1beta1.MemberCluster) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(f.Holds, func(a, b *fleetflowv1alpha1.RolloutHold) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(f.Evictions, func(a, b *placementv1beta1.ClusterResourcePlacementEviction) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(f.Runs, func(a, b Run) int {
		return cmp.Or(b.Object.GetCreationTimestamp().Compare(a.Object.GetCreationTimestamp().Time), cmp.Compare(a.String(), b.String()))
	})
	slices.SortFunc(placements, func(a, b hub.Placement) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	f.members = make([]clusterv1beta1.MemberCluster, len(f.Members))
	for i, member := range f.Members {
		f.members[i] = *member
	}
	f.Clusters = fleetview.Members(f.members, now)
	var active []hub.Run
	for run := range f.Active() {
		active = append(active, run.Run)
	}
	for i, row := range fleetview.Placements(placements, active, now) {
		f.Placements = append(f.Placements, Placement{placements[i], row})
	}
}
