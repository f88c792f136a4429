package rollingupdate

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/validation"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// A claim is an annotation of the placement, and the API server bounds the annotations of an object together.
const (
	// maxClaimBytes bounds what a claim has of clusters and evictions: each batch writes it.
	maxClaimBytes = 128 * 1024
	// spareBytes are left for the frame of a claim, and for what is annotated while it stands, such as which writes are refused.
	spareBytes = 32 * 1024
)

// claimBytes returns how much room a cluster takes in a claim, with its quotes, colon and comma.
func claimBytes(cluster string) int { return len(cluster) + uidLength + len(`"":"",`) }

// evictionBytes returns how much room an eviction takes in a claim.
func evictionBytes(name string, started startedEviction) int {
	text, err := json.Marshal(map[string]startedEviction{name: started})
	if err != nil { // names and numbers can always be encoded
		return maxClaimBytes
	}
	return len(text)
}

// roomForClaim returns how many bytes a claim may have of clusters and evictions beside the other annotations of its placement.
func roomForClaim(annotations map[string]string) int {
	room := validation.TotalAnnotationSizeLimitB - spareBytes
	for key, value := range annotations {
		if key != placementv1beta1.RolloutClaimAnnotation {
			room -= len(key) + len(value)
		}
	}
	return min(room, maxClaimBytes)
}

// claimRoom is what the next claim has room for beside what it has to keep.
type claimRoom struct {
	left    int
	claimed map[string]bool
	// taken says that the claim has something new: one there always is, even if the API server will say that there is no room.
	taken bool
}

// newClaimRoom returns the room that the next claim has beside the clusters that are claimed, and the evictions that have begun.
func newClaimRoom(f *rolloutFacts) *claimRoom {
	r := &claimRoom{left: f.claimRoom, claimed: map[string]bool{}}
	for _, c := range f.Clusters {
		if c.Claimed && !r.claimed[c.Name] {
			r.claimed[c.Name] = true
			r.left -= claimBytes(c.Name)
		}
	}
	for _, e := range f.Evictions {
		if e.Begun != nil {
			r.left -= evictionBytes(e.Name, startedEviction{UID: f.evictionUIDs[e.Name], Binding: f.pins[e.Cluster].UID, Verdict: *e.Begun})
		}
	}
	return r
}

// take takes room for a cluster and more bytes, and reports whether there was any.
func (r *claimRoom) take(cluster string, more int) bool {
	needs := more
	if !r.claimed[cluster] {
		needs += claimBytes(cluster)
	}
	if needs == 0 {
		return true
	}
	if r.taken && needs > r.left {
		return false
	}
	r.taken = true
	r.claimed[cluster] = true
	r.left -= needs
	return true
}

// limitToRoom leaves out of a plan what the next claim has no room for. An eviction was judged by those before it: with one, all that come
// after it wait.
func (f *rolloutFacts) limitToRoom(plan *rollout.Plan) {
	room := newClaimRoom(f)
	begun := map[string]bool{}
	for _, e := range f.Evictions {
		begun[e.Name] = e.Begun != nil
	}
	for i, step := range plan.Evictions {
		if step.Op != rollout.Evict {
			continue
		}
		more := 0
		if !begun[step.Eviction] {
			more = evictionBytes(step.Eviction, startedEviction{UID: f.evictionUIDs[step.Eviction], Binding: f.pins[step.Cluster].UID, Verdict: step.Verdict})
		}
		if !room.take(step.Cluster, more) {
			plan.Evictions = plan.Evictions[:i]
			plan.Steps = keepClaimed(plan.Steps, 0, room)
			return
		}
	}
	for i, step := range plan.Steps {
		if !room.take(step.Cluster, 0) {
			plan.Steps = keepClaimed(plan.Steps, i, room)
			return
		}
	}
}

// keepClaimed returns the steps before a position, and those behind it that need no room.
func keepClaimed(steps []rollout.Step, before int, room *claimRoom) []rollout.Step {
	kept := steps[:before:before]
	for _, step := range steps[before:] {
		if room.claimed[step.Cluster] {
			kept = append(kept, step)
		}
	}
	return kept
}
