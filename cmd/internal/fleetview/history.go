package fleetview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// HistoryFacts are what a history is made from.
type HistoryFacts struct {
	Placement hub.Placement
	Policies  []hub.PolicySnapshot
	Resources []hub.ResourceSnapshot
	Bindings  []hub.Binding
	Runs      []hub.Run
	// States are those of runs that were read before: the others are read.
	States    map[hub.Ref]updaterun.State
	Approvals []hub.Approval
	Evictions []placementv1beta1.ClusterResourcePlacementEviction
	// Records are those of the placement and its runs, as they were written one after the other for each object.
	Records []fleetflowv1alpha1.AuditRecord
}

// Read reads what a history is made from, except for the placement.
func (f *HistoryFacts) Read(ctx context.Context, c client.Reader) (err error) {
	ref := f.Placement.Ref
	reader := hub.Reader{Reader: c, Namespace: ref.Namespace}
	if f.Policies, err = reader.Of(ref).PolicySnapshots(ctx); err != nil {
		return err
	}
	if f.Resources, err = reader.Of(f.Placement.Ref).KnownSnapshots(ctx, f.Placement.Status); err != nil {
		return err
	}
	if f.Bindings, err = reader.Of(ref).Bindings(ctx); err != nil {
		return err
	}
	if f.Runs, err = reader.Runs(ctx); err != nil {
		return err
	}
	if f.Approvals, err = reader.Approvals(ctx, ref.Namespace); err != nil {
		return err
	}
	if f.Evictions, err = reader.Of(ref).Evictions(ctx); err != nil {
		return err
	}
	f.Records, err = reader.Of(ref).Records(ctx)
	fleetflowv1alpha1.SortRecords(f.Records)
	return err
}

// Entry is something that happened.
type Entry struct {
	At time.Time `json:"at"`
	// What it is about: placement, policy, snapshot, run, rehearsal, approval, eviction.
	What string `json:"what"`
	Name string `json:"name"`
	// Text says what happened.
	Text string `json:"text"`
	// By is who did it, as far as the hub has recorded it; Channel how it came in, Verified whether the API server
	// vouches for it.
	By       string                           `json:"by,omitempty"`
	Channel  placementv1beta1.ApprovalChannel `json:"channel,omitempty"`
	Verified bool                             `json:"verified,omitempty"`
	Comment  string                           `json:"comment,omitempty"`
	// PlanHash is the plan that it is about, of an approval the one that was approved, as far as that is known.
	PlanHash string `json:"planHash,omitempty"`
	// Recorded says that a record tells it, and no object that is still there.
	Recorded bool `json:"recorded,omitempty"`

	// bad says that a record reports something that has gone wrong.
	bad bool
}

// Sender returns who did it and how it came in, as far as the hub has recorded it.
func (e Entry) Sender() string {
	if e.Channel == "" {
		return e.By
	}
	record := placementv1beta1.ApprovalRecord{Username: e.By, Channel: e.Channel, Verified: e.Verified}
	return strings.TrimPrefix(record.How(), "by ")
}

// History makes a history, the oldest first.
func History(facts HistoryFacts) []Entry {
	entries := []Entry{{At: facts.Placement.Object.GetCreationTimestamp().Time, What: "placement", Name: facts.Placement.Name,
		Text: "created"}}
	entries = append(entries, policyEntries(facts.Policies)...)
	entries = append(entries, snapshotEntries(facts.Resources, facts.Bindings)...)
	for _, run := range facts.Runs {
		if run.Placement() == facts.Placement.Ref {
			entries = append(entries, runEntries(run, stateOf(run, facts.States), facts.Approvals)...)
		}
	}
	entries = append(entries, evictionEntries(facts.Evictions)...)
	entries = addRecorded(facts, entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.At.Compare(b.At) })
	return entries
}

func policyEntries(all []hub.PolicySnapshot) []Entry {
	entries := make([]Entry, 0, len(all))
	for _, policy := range all {
		picked := 0
		for _, decision := range policy.Status.ClusterDecisions {
			if decision.Selected {
				picked++
			}
		}
		text := fmt.Sprintf("policy %d: %s", policy.Index, describePolicy(policy.Spec.Policy))
		if rules.IsLatestSnapshot(policy) {
			text += fmt.Sprintf(", in force, %d clusters picked", picked)
		}
		entries = append(entries, Entry{At: policy.GetCreationTimestamp().Time, What: "policy", Name: policy.GetName(), Text: text})
	}
	return entries
}

func describePolicy(policy *placementv1beta1.PlacementPolicy) string {
	switch {
	case policy == nil || policy.PlacementType == "":
		return string(placementv1beta1.PickAllPlacementType)
	case policy.PlacementType == placementv1beta1.PickFixedPlacementType:
		return fmt.Sprintf("%s %s", policy.PlacementType, strings.Join(policy.ClusterNames, ", "))
	default:
		return string(policy.PlacementType)
	}
}

// snapshotEntries returns the resource snapshots, with on how many clusters each is.
func snapshotEntries(parts []hub.ResourceSnapshot, bindings []hub.Binding) []Entry {
	on := map[string]int{}
	for _, binding := range bindings {
		if binding.Spec.State == placementv1beta1.BindingStateBound && binding.Object.GetDeletionTimestamp().IsZero() {
			on[binding.Spec.ResourceSnapshotName]++
		}
	}
	var entries []Entry
	for i, part := range parts {
		if i > 0 && parts[i-1].Index == part.Index {
			continue // the master is first
		}
		text := fmt.Sprintf("snapshot %d taken", part.Index)
		if rules.IsLatestSnapshot(part) {
			text += ", the latest"
		}
		if number := on[part.GetName()]; number > 0 {
			text += fmt.Sprintf(", on %d clusters now", number)
		}
		entries = append(entries, Entry{At: part.GetCreationTimestamp().Time, What: "snapshot", Name: part.GetName(), Text: text})
	}
	return entries
}

// stateOf returns how far a run is, from what was read before if it is there.
func stateOf(run hub.Run, known map[hub.Ref]updaterun.State) updaterun.State {
	if state, is := known[run.Ref]; is {
		return state
	}
	return updaterun.Read(run.Object)
}

func runEntries(run hub.Run, view updaterun.State, approvals []hub.Approval) []Entry {
	text := fmt.Sprintf("rolls snapshot %s out by strategy %s",
		cmp.Or(run.Status.ResourceSnapshotIndexUsed, run.Spec.ResourceSnapshotIndex, "(latest)"), run.Spec.StagedUpdateStrategyName)
	if run.Spec.RollbackOf != "" {
		text = "takes back what run " + run.Spec.RollbackOf + " has done"
	}
	began := Entry{At: run.Object.GetCreationTimestamp().Time, What: "run", Name: run.Name, Text: text}
	if run.Spec.RollbackOf != "" {
		began.Comment = reasonOf(run.Object)
	}
	entries := append([]Entry{began}, skipEntries(run, view)...)
	entries = append(entries, rehearsalEntries(run)...)
	for _, stage := range view.Stages {
		for _, task := range stage.Tasks() {
			if task.Approvable && task.Done() {
				entries = append(entries, approvalEntry(task, stage.Name, approvals))
			}
		}
		if !stage.Ended.IsZero() && !stage.Started.IsZero() && stage.Total > 0 {
			entries = append(entries, Entry{At: stage.Ended, What: "run", Name: run.Name, Text: fmt.Sprintf("stage %s %s, %s, after %s",
				stage.Title(), strings.ToLower(string(stage.Phase)), stage.Sentence(), tree.Elapsed(stage.Ended.Sub(stage.Started)))})
		}
	}
	return append(entries, endEntries(run, view)...)
}

// skipEntries returns which clusters a run was asked to go on without, once it does. The reason on a run that rolls another back is why it
// does that.
func skipEntries(run hub.Run, view updaterun.State) []Entry {
	entry := Entry{What: "run", Name: run.Name}
	var without []string
	for _, stage := range view.Stages {
		for _, cluster := range stage.Clusters {
			if cluster.Phase != updaterun.PhaseSkipped || !asksToSkip(run, cluster.Name) {
				continue
			}
			without = append(without, cluster.Name)
			if cluster.Ended.After(entry.At) {
				entry.At = cluster.Ended
			}
		}
	}
	if len(without) == 0 {
		return nil
	}
	entry.Text = "goes on without " + updaterun.ListNames(without)
	if run.Spec.RollbackOf == "" {
		entry.Comment = reasonOf(run.Object)
	}
	return []Entry{entry}
}

func asksToSkip(run hub.Run, cluster string) bool {
	return slices.ContainsFunc(run.Spec.ClusterActions, func(a placementv1beta1.ClusterAction) bool {
		return a.Cluster == cluster && a.Action == placementv1beta1.ClusterActionSkip
	})
}

// reasonOf returns why a user wanted what an object asks for, if the user has said so.
func reasonOf(object metav1.Object) string {
	return object.GetAnnotations()[placementv1beta1.ReasonAnnotation]
}

// endEntries returns how a run has ended, or what it is at.
func endEntries(run hub.Run, view updaterun.State) []Entry {
	if !rules.IsRunOver(run.Object) {
		return nil
	}
	text := strings.ToLower(string(view.Phase))
	if view.Phase == updaterun.PhaseFailed {
		text += ": " + view.Why
	} else if view.Total > 0 {
		text += ", " + view.Sentence()
	}
	return []Entry{{At: view.Since, What: "run", Name: run.Name, Text: text}}
}

// approvalEntry returns who approved: as the request has recorded it, else as its condition says.
func approvalEntry(task stagetask.State, stage string, approvals []hub.Approval) Entry {
	entry := Entry{At: task.DoneAt, What: "approval", Name: task.Subject, Text: "stage " + stage + " approved"}
	i := slices.IndexFunc(approvals, func(a hub.Approval) bool { return a.Object.GetName() == task.Subject })
	if i < 0 {
		entry.Comment = task.Message
		return entry
	}
	if record := approvals[i].Status.Approval; record != nil {
		entry.At = record.At.Time
		entry.By = record.Username
		if votes := approvals[i].Status.Votes; len(votes) > 1 {
			entry.By = stagetask.VotersOf(votes)
		}
		entry.Channel = record.Channel
		entry.Verified = record.Verified
		entry.Comment = record.Comment
		entry.PlanHash = record.PlanHash
		return entry
	}
	if c := meta.FindStatusCondition(approvals[i].Status.Conditions, placementv1beta1.ConditionTypeApproved); c != nil {
		entry.At = c.LastTransitionTime.Time
		entry.Comment = cmp.Or(c.Message, c.Reason)
	}
	return entry
}

func evictionEntries(all []placementv1beta1.ClusterResourcePlacementEviction) []Entry {
	var entries []Entry
	for i := range all {
		eviction := &all[i]
		entry := Entry{At: eviction.CreationTimestamp.Time, What: "eviction", Name: eviction.Name, Text: "of " + eviction.Spec.ClusterName +
			" asked for", Comment: reasonOf(eviction)}
		for _, c := range eviction.Status.Conditions {
			if c.Type == placementv1beta1.ConditionTypeExecuted || c.Status == metav1.ConditionFalse {
				entry.At = c.LastTransitionTime.Time
				entry.Text = fmt.Sprintf("of %s: %s", eviction.Spec.ClusterName, cmp.Or(c.Message, c.Reason))
			}
		}
		entries = append(entries, entry)
	}
	return entries
}
