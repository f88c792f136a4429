package planhash

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Change is what has become of one cluster of a run since its plan was made.
type Change struct {
	Cluster string `json:"cluster"`
	Action  string `json:"action"`
	Attempt int32  `json:"attempt,omitempty"`
}

// Changes returns what users have had done with clusters of a run since its plan was made, by cluster. What a user asks for counts at
// once, and still does when the run has done it. A cluster that has left the placement counts once its stage has come to it and skips it.
func Changes(run placementv1beta1.UpdateRunObject) []Change {
	changed := map[string]Change{}
	attempts := map[string]int32{}
	isRollback := run.GetUpdateRunSpec().RollbackOf != ""
	status := run.GetUpdateRunStatus()
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			c := &status.StagesStatus[i].Clusters[j]
			attempts[c.ClusterName] = c.Attempt
			switch {
			case isRollback && c.ResourceSnapshotIndex == "": // it stays as it is by the plan
			case rules.IsSkipped(c):
				changed[c.ClusterName] = Change{Cluster: c.ClusterName, Action: string(placementv1beta1.ClusterActionSkip)}
			case c.Attempt > 0:
				changed[c.ClusterName] = Change{c.ClusterName, string(placementv1beta1.ClusterActionRetry), c.Attempt}
			}
		}
	}
	for _, asked := range run.GetUpdateRunSpec().ClusterActions {
		change := Change{Cluster: asked.Cluster, Action: string(asked.Action)}
		if asked.Action == placementv1beta1.ClusterActionRetry {
			change.Attempt = max(1, asked.Attempt)
			if change.Attempt <= attempts[asked.Cluster] {
				continue // the run has done it, and what became of the cluster since counts
			}
		}
		changed[asked.Cluster] = change
	}
	return slices.SortedFunc(maps.Values(changed), func(a, b Change) int { return cmp.Compare(a.Cluster, b.Cluster) })
}

// DigestChanges returns what tells changes of a run apart that has no hash of its plan.
func DigestChanges(run placementv1beta1.UpdateRunObject) string { return Prefix + digest(Changes(run)) }

// maxNamed is how many changes a sentence names.
const maxNamed = 10

// Describe returns changes in words; empty if there are none.
func Describe(changes []Change) string {
	var texts []string
	for _, c := range changes[:min(len(changes), maxNamed)] {
		texts = append(texts, c.Cluster+" is "+map[string]string{
			string(placementv1beta1.ClusterActionSkip): "skipped", string(placementv1beta1.ClusterActionRetry): "retried",
		}[c.Action])
	}
	if more := len(changes) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more are skipped or retried", more))
	}
	return strings.Join(texts, ", ")
}

// Effective returns the hash of the plan of a run as it is now, for an approval before or after a stage; empty for a run without a hash,
// which has begun with a hub agent that made none. It is that of the plan, unless the plan has changed since, or the clusters of
// the stage were asked what it does.
func Effective(run placementv1beta1.UpdateRunObject, stage string) string {
	planned := run.GetUpdateRunStatus().PlanHash
	changes := Changes(run)
	found := rehearsed(run, stage)
	if planned == "" || len(changes) == 0 && found == "" {
		return planned
	}
	return Prefix + digest(struct {
		Version   int      `json:"v"`
		Plan      string   `json:"plan"`
		Changes   []Change `json:"changes"`
		Rehearsal string   `json:"rehearsal,omitempty"`
	}{version, planned, changes, found})
}

// rehearsed returns the digest of what the clusters of a stage have said; empty if they were not asked, or have not all answered.
func rehearsed(run placementv1beta1.UpdateRunObject, stage string) string {
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		if stages[i].StageName != stage {
			continue
		}
		for _, task := range stages[i].BeforeStageTaskStatus {
			if task.Type == placementv1beta1.StageTaskTypeRehearsal && task.Rehearsal != nil {
				return task.Rehearsal.RehearsalDigest
			}
		}
	}
	return ""
}
