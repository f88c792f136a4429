package fleetview

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Rehearsal is what the clusters of a stage have said that a run would do there.
type Rehearsal struct {
	Stage string
	// Message says what was found, Bad that the stage is not started for it; At is when the clusters had answered.
	Message string
	Bad     bool
	At      time.Time
	// Refused and Unknown name the first clusters that would refuse it, or of which it is not known.
	Refused, Unknown []string
	Digest           string
	// Command asks them again on a command line.
	Command string

	name string
	of   *placementv1beta1.StageUpdatingStatus
	// answered is since when the clusters have answered or have had their time; nil before that.
	answered *time.Time
}

// RehearsalsOf returns what is known of the rehearsals before the stages of a run, or before one of them if it is named.
func RehearsalsOf(run hub.Run, stage string) []Rehearsal {
	var all []Rehearsal
	for i := range run.Status.StagesStatus {
		of := &run.Status.StagesStatus[i]
		for j := range of.BeforeStageTaskStatus {
			task := &of.BeforeStageTaskStatus[j]
			// One of type PrePull tells which images were pulled in the same field.
			if task.Type == placementv1beta1.StageTaskTypeRehearsal && task.Rehearsal != nil && (stage == "" || stage == of.StageName) {
				all = append(all, rehearsalOf(run, of, task))
			}
		}
	}
	return all
}

func rehearsalOf(run hub.Run, stage *placementv1beta1.StageUpdatingStatus, task *placementv1beta1.StageTaskStatus) Rehearsal {
	found := task.Rehearsal
	r := Rehearsal{
		Stage: stage.StageName, Message: "The clusters have not been asked yet.", Refused: found.RefusedClusters, Unknown: found.UnknownClusters,
		Digest: found.RehearsalDigest, Command: "kubectl fleet rehearse " + run.Flags() + " --stage " + stage.StageName,
		name: found.Name, of: stage,
	}
	if found.CompletionTime != nil {
		r.At = found.CompletionTime.Time
	}
	if said := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeRehearsed); said != nil {
		r.Message = said.Message
		r.Bad = said.Status == metav1.ConditionFalse
		if said.Status != metav1.ConditionUnknown {
			r.answered = &said.LastTransitionTime.Time
		}
	}
	return r
}

// rehearsalEntries returns the entries of a history about what the clusters of the stages of a run have said.
func rehearsalEntries(run hub.Run) []Entry {
	var entries []Entry
	for _, r := range RehearsalsOf(run, "") {
		if r.answered == nil {
			continue
		}
		entry := Entry{
			At: r.At, What: "rehearsal", Name: r.name, Text: fmt.Sprintf("rehearsal before stage %s: %s", r.Stage, r.Message),
		}
		if entry.At.IsZero() {
			entry.At = *r.answered
		}
		entries = append(entries, entry)
	}
	return entries
}

// noteRehearsals adds which runs do not come to the cluster for what the clusters of its stage have said.
func (a *Answer) noteRehearsals(facts WhyFacts) {
	for _, run := range facts.Runs {
		if rules.IsRunOver(run.Object) {
			continue
		}
		for _, r := range RehearsalsOf(run, "") {
			if !r.Bad || !isIn(r.of, a.Cluster) {
				continue
			}
			own := ""
			switch {
			case slices.Contains(r.Refused, a.Cluster):
				own = "it would refuse the change: "
			case slices.Contains(r.Unknown, a.Cluster):
				own = "it is not known what it would do with the change: "
			}
			a.Notes = append(a.Notes, fmt.Sprintf("%s does not start stage %s, in which it is, for its rehearsal: %s%s", run.Ref, r.Stage, own,
				r.Message))
		}
	}
}

func isIn(stage *placementv1beta1.StageUpdatingStatus, cluster string) bool {
	return slices.ContainsFunc(stage.Clusters, func(c placementv1beta1.ClusterUpdatingStatus) bool { return c.ClusterName == cluster })
}
