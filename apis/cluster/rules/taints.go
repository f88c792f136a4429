package rules

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// TaintSince returns since when a cluster has a taint with effect NoExecute: since the time in the taint, if that is not yet to come,
// else since the hub first saw it. What neither tells is since now.
func TaintSince(cluster *clusterv1beta1.MemberCluster, taint clusterv1beta1.Taint, now time.Time) time.Time {
	if taint.TimeAdded != nil && !taint.TimeAdded.After(now) {
		return taint.TimeAdded.Time
	}
	if noted, ok := notedTaints(cluster)[taint.NoteKey()]; ok && !noted.After(now) {
		return noted
	}
	return now
}

// NoteTaints returns the value of TaintsSinceAnnotation on a cluster, as it is now: when the hub first saw each taint with effect
// NoExecute of which the taint itself does not tell; empty if there is none.
func NoteTaints(cluster *clusterv1beta1.MemberCluster, now time.Time) string {
	before := notedTaints(cluster)
	noted := map[string]time.Time{}
	for _, taint := range cluster.Spec.Taints {
		if taint.Effect != corev1.TaintEffectNoExecute || taint.TimeAdded != nil && !taint.TimeAdded.After(now) {
			continue
		}
		seen, ok := before[taint.NoteKey()]
		if !ok || seen.After(now) {
			seen = now.UTC().Truncate(time.Second)
		}
		noted[taint.NoteKey()] = seen
	}
	if len(noted) == 0 {
		return ""
	}
	// Strings and times always encode.
	data, _ := json.Marshal(noted)
	return string(data)
}

// notedTaints returns what the annotation says. What cannot be read was not noted.
func notedTaints(cluster *clusterv1beta1.MemberCluster) map[string]time.Time {
	var noted map[string]time.Time
	if json.Unmarshal([]byte(cluster.Annotations[clusterv1beta1.TaintsSinceAnnotation]), &noted) != nil {
		return nil
	}
	return noted
}
