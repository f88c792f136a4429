package updaterun

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxOutOfService bounds the clusters out of service that a run lists by name, and of which it says why.
const maxOutOfService = 20

// isOutOfService reports whether a run has taken a cluster out of service, does not update it any more and could not put it back.
func isOutOfService(c *placementv1beta1.ClusterUpdatingStatus) bool {
	return meta.IsStatusConditionFalse(c.Conditions, placementv1beta1.ConditionTypeBackInService)
}

// OutOfService returns the clusters, in the order of the run, that it has taken out of service, does not update any more and could not put
// back.
func OutOfService(run placementv1beta1.UpdateRunObject) []string {
	var names []string
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for j := range stages[i].Clusters {
			if isOutOfService(&stages[i].Clusters[j]) {
				names = append(names, stages[i].Clusters[j].ClusterName)
			}
		}
	}
	return names
}

// ConcludedBefore reports whether a run was done with a cluster, in whatever way, before an instant. A cluster that was taken out of service
// then is another run's.
func ConcludedBefore(c *placementv1beta1.ClusterUpdatingStatus, at time.Time) bool {
	concluded := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeSucceeded)
	return concluded != nil && concluded.LastTransitionTime.Time.Before(at)
}

// OutOfServiceText says, as an addition to a sentence, which clusters a run leaves out of service; nothing if it leaves none.
func OutOfServiceText(run placementv1beta1.UpdateRunObject) string {
	if names := OutOfService(run); len(names) > 0 {
		return "; " + describeOutOfService(names)
	}
	return ""
}

// describeOutOfService counts the clusters that a run could not put back into service, and lists the first of them.
func describeOutOfService(names []string) string {
	listed := strings.Join(names[:min(len(names), maxOutOfService)], ", ")
	if more := len(names) - maxOutOfService; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	noun := "clusters"
	if len(names) == 1 {
		noun = "cluster"
	}
	return fmt.Sprintf("%d %s that the run took out of service could not be put back, as the API server refuses to write that: %s",
		len(names), noun, listed)
}

// NotPutBack records that clusters could not be put back into service, with what the API server said of each.
func (r Recorder) NotPutBack(whys map[string]string) {
	shown := len(OutOfService(r.Run))
	r.forEachInRun(func(c *placementv1beta1.ClusterUpdatingStatus) {
		why, refused := whys[c.ClusterName]
		if !refused {
			return
		}
		said := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeBackInService)
		switch {
		case said != nil && said.Message == "":
			why = ""
		case said == nil:
			if shown++; shown > maxOutOfService {
				why = ""
			}
		}
		condition := metav1.Condition{Type: placementv1beta1.ConditionTypeBackInService, Status: metav1.ConditionFalse,
			Reason: placementv1beta1.ReasonRefused, Message: why, LastTransitionTime: metav1.NewTime(r.Now)}
		if !IsLarge(r.Run) {
			condition.ObservedGeneration = r.Run.GetGeneration()
		}
		meta.SetStatusCondition(&c.Conditions, condition)
	})
	r.tellOutOfService()
}

// PutBack records that clusters are back in service, or are not the run's to be put back any more.
func (r Recorder) PutBack(clusters []string) {
	for i := range r.Status().StagesStatus {
		forEachCluster(r.Stage(i), clusters, forgetOutOfService)
	}
	r.tellOutOfService()
}

// forgetOutOfService takes back that a cluster is out of service: it is to be updated, or is back.
func forgetOutOfService(c *placementv1beta1.ClusterUpdatingStatus) {
	meta.RemoveStatusCondition(&c.Conditions, placementv1beta1.ConditionTypeBackInService)
}

// tellOutOfService has the run say which of its clusters are out of service.
func (r Recorder) tellOutOfService() {
	names := OutOfService(r.Run)
	if len(names) == 0 {
		placementv1beta1.Resolve(&r.Status().Conditions, placementv1beta1.ConditionTypeBackInService, r.Run.GetGeneration(), metav1.NewTime(r.Now))
		return
	}
	message := describeOutOfService(names)
	if !rules.IsRunOver(r.Run) {
		message += "; this is tried again"
	}
	r.setCondition(&r.Status().Conditions, placementv1beta1.ConditionTypeBackInService, metav1.ConditionFalse, placementv1beta1.ReasonRefused, message)
}

// StuckOutOfService records that nothing is left to do for the run, but clusters are out of service.
func (r Recorder) StuckOutOfService() {
	r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStuck,
		"The updateRun is stuck: "+describeOutOfService(OutOfService(r.Run))+"; this is tried again")
}

// forEachInRun calls do for the clusters of all stages that update.
func (r Recorder) forEachInRun(do func(*placementv1beta1.ClusterUpdatingStatus)) {
	for i := range r.Status().StagesStatus {
		for j := range r.Stage(i).Clusters {
			do(&r.Stage(i).Clusters[j])
		}
	}
}
