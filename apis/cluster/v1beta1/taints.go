package v1beta1

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// String returns how messages name a taint, as kubectl takes it: key=value:Effect.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// noteKey returns the key of a taint in TaintsSinceAnnotation, which is stored: it stays what it is.
func (t Taint) noteKey() string {
	return fmt.Sprintf("{Key:%s Value:%s Effect:%s}", t.Key, t.Value, t.Effect)
}

// Equal reports whether two taints are the same, with the same time.
func (t Taint) Equal(other Taint) bool {
	return t.noteKey() == other.noteKey() && t.TimeAdded.Equal(other.TimeAdded)
}

// TaintSince returns since when a cluster has a taint with effect NoExecute: since the time in the taint, if that is not yet to come,
// else since the hub first saw it. What neither tells is since now.
func TaintSince(cluster *MemberCluster, taint Taint, now time.Time) time.Time {
	if taint.TimeAdded != nil && !taint.TimeAdded.After(now) {
		return taint.TimeAdded.Time
	}
	if noted, ok := notedTaints(cluster)[taint.noteKey()]; ok && !noted.After(now) {
		return noted
	}
	return now
}

// NoteTaints returns the value of TaintsSinceAnnotation on a cluster, as it is now: when the hub first saw each taint with effect
// NoExecute of which the taint itself does not tell; empty if there is none.
func NoteTaints(cluster *MemberCluster, now time.Time) string {
	before := notedTaints(cluster)
	noted := map[string]time.Time{}
	for _, taint := range cluster.Spec.Taints {
		if taint.Effect != corev1.TaintEffectNoExecute || taint.TimeAdded != nil && !taint.TimeAdded.After(now) {
			continue
		}
		seen, ok := before[taint.noteKey()]
		if !ok || seen.After(now) {
			seen = now.UTC().Truncate(time.Second)
		}
		noted[taint.noteKey()] = seen
	}
	if len(noted) == 0 {
		return ""
	}
	// Strings and times always encode.
	data, _ := json.Marshal(noted)
	return string(data)
}

// notedTaints returns what the annotation says. What cannot be read was not noted.
func notedTaints(cluster *MemberCluster) map[string]time.Time {
	var noted map[string]time.Time
	if json.Unmarshal([]byte(cluster.Annotations[TaintsSinceAnnotation]), &noted) != nil {
		return nil
	}
	return noted
}

// EqualTaints reports whether two lists have the same taints in the same order.
func EqualTaints(a, b []Taint) bool { return slices.EqualFunc(a, b, Taint.Equal) }
