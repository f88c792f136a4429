package fleetview

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// rehearsal is what was found before a stage of a run.
type rehearsal struct {
	stage *placementv1beta1.StageUpdatingStatus
	found *placementv1beta1.StageRehearsal
	said  metav1.Condition
}

// rehearsalsOf returns what was found before the stages of a run, of those whose clusters have answered or have had their time.
func rehearsalsOf(run hub.Run) []rehearsal {
	var all []rehearsal
	for i := range run.Status.StagesStatus {
		stage := &run.Status.StagesStatus[i]
		for j := range stage.BeforeStageTaskStatus {
			task := &stage.BeforeStageTaskStatus[j]
			said := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeRehearsed)
			if task.Rehearsal != nil && said != nil && said.Status != metav1.ConditionUnknown {
				all = append(all, rehearsal{stage, task.Rehearsal, *said})
			}
		}
	}
	return all
}

// rehearsals returns the entries of a history about what the clusters of the stages of a run have said.
func rehearsals(run hub.Run) []Entry {
	var entries []Entry
	for _, r := range rehearsalsOf(run) {
		entry := Entry{
			At: r.said.LastTransitionTime.Time, What: "rehearsal", Name: r.found.Name,
			Text: fmt.Sprintf("rehearsal before stage %s: %s", r.stage.StageName, r.said.Message),
		}
		if r.found.CompletionTime != nil {
			entry.At = r.found.CompletionTime.Time
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
		for _, r := range rehearsalsOf(run) {
			if r.said.Status != metav1.ConditionFalse || !isIn(r.stage, a.Cluster) {
				continue
			}
			own := ""
			switch {
			case slices.Contains(r.found.RefusedClusters, a.Cluster):
				own = "it would refuse the change: "
			case slices.Contains(r.found.UnknownClusters, a.Cluster):
				own = "it is not known what it would do with the change: "
			}
			a.Notes = append(a.Notes, fmt.Sprintf("%s does not start stage %s, in which it is, for its rehearsal: %s%s", run.Ref, r.stage.StageName, own,
				r.said.Message))
		}
	}
}

func isIn(stage *placementv1beta1.StageUpdatingStatus, cluster string) bool {
	return slices.ContainsFunc(stage.Clusters, func(c placementv1beta1.ClusterUpdatingStatus) bool { return c.ClusterName == cluster })
}
