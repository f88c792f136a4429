package placement

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// namedSilent is how many silent clusters a message names, each with the time since when.
const namedSilent = 3

// saysSilent reports whether a condition of a cluster says that no agent looks at it: the member does not report, or its agent
// does not reach it.
func saysSilent(said *metav1.Condition) bool {
	return said != nil && clusterrules.IsDoubt(said.Reason)
}

// describeSilent names the clusters whose step is unknown because no agent looks at them.
func describeSilent(step *stepTemplate, entries []placementv1beta1.PerClusterPlacementStatus) string {
	var texts []string
	what := "do not report"
	for i := range entries {
		if said := meta.FindStatusCondition(entries[i].Conditions, step.step); saysSilent(said) {
			texts = append(texts, said.Message)
			if said.Reason != clusterv1beta1.ReasonMemberClusterHeartbeatMissed {
				what = "do not report or are not healthy"
			}
		}
	}
	text := fmt.Sprintf("%d of %d cluster(s) %s: %s", len(texts), len(entries), what, strings.Join(texts[:min(len(texts), namedSilent)], ", "))
	if more := len(texts) - namedSilent; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// describeSilentBeside adds the silent clusters to what a step says of others.
func describeSilentBeside(step *stepTemplate, status metav1.ConditionStatus, entries []placementv1beta1.PerClusterPlacementStatus) string {
	silent := false
	others := status == metav1.ConditionFalse
	for i := range entries {
		said := meta.FindStatusCondition(entries[i].Conditions, step.step)
		silent = silent || saysSilent(said)
		others = others || said == nil || said.Status == metav1.ConditionUnknown && !saysSilent(said)
	}
	if !silent || !others {
		return ""
	}
	return "; " + describeSilent(step, entries)
}

// newlySilent returns the names of the clusters that are silent now and were reported as looked at before. Brief entries tell
// neither.
func newlySilent(before, after []placementv1beta1.PerClusterPlacementStatus) []string {
	heard := map[string]bool{}
	for i := range before {
		heard[before[i].ClusterName] = len(before[i].Conditions) > 0 && workmodel.FindDoubt(before[i].Conditions) == nil
	}
	var names []string
	for i := range after {
		if heard[after[i].ClusterName] && workmodel.FindDoubt(after[i].Conditions) != nil {
			names = append(names, after[i].ClusterName)
		}
	}
	slices.Sort(names)
	return names
}
