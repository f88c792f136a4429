package rollingupdate

import (
	"encoding/json"
	"strconv"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// claim is what a rollout is about to write, stored on the placement before it is written.
// The history has it as well; but a history can be lost while an attempt that it started
// is still at work. The next attempt reads the claim and counts the writes that may still
// come as written, until a write of its own makes sure that they cannot.
type claim struct {
	// Epoch grows by one with every claim.
	Epoch    int64  `json:"epoch"`
	Revision string `json:"revision,omitempty"`
	// Clusters are those of the batch, each with the beginning of the uid of its binding.
	Clusters map[string]string `json:"clusters,omitempty"`
	// Evictions that are to be executed, by name.
	Evictions map[string]startedEviction `json:"evictions,omitempty"`
}

// startedEviction is an eviction that is to be executed.
type startedEviction struct {
	UID string `json:"uid"`
	// Binding is the uid of the binding to delete.
	Binding string          `json:"binding"`
	Verdict rollout.Verdict `json:"verdict"`
}

// uidLength is how much of a uid is kept: enough to tell two bindings of one name apart.
const uidLength = 8

func shortenUID(uid string) string { return uid[:min(uidLength, len(uid))] }

// claimOn decodes the claim on a placement. One that cannot be decoded is none.
func claimOn(placement placementv1beta1.PlacementObject) claim {
	var c claim
	if json.Unmarshal([]byte(placement.GetAnnotations()[placementv1beta1.RolloutClaimAnnotation]), &c) != nil {
		return claim{}
	}
	return c
}

// newClaim makes the claim that follows another one.
func newClaim(in wf.AdvanceRequest) claim {
	c := claim{
		Epoch: in.Epoch, Revision: in.Snapshot, Clusters: map[string]string{}, Evictions: map[string]startedEviction{},
	}
	for _, change := range in.Batch {
		c.addChange(change)
	}
	return c
}

func (c *claim) addChange(change wf.Change) {
	if change.Op == wf.OpConclude {
		return
	}
	c.Clusters[change.Cluster] = shortenUID(change.UID)
	if change.Op == wf.OpEvict {
		c.Evictions[change.Eviction] = startedEviction{UID: change.EvictionUID, Binding: change.UID, Verdict: recordedVerdict(change)}
	}
}

// isPending reports whether what was claimed for a binding may still be written. A claim
// is good for one write to each binding, which leaves the claim's epoch on it.
func (c claim) isPending(b placementv1beta1.BindingObject) bool {
	uid, ok := c.Clusters[b.GetBindingSpec().TargetCluster]
	return ok && uid == shortenUID(string(b.GetUID())) && !rules.IsDeleting(b) &&
		b.GetAnnotations()[placementv1beta1.RolloutEpochAnnotation] != c.epochText()
}

// IsClaimed reports whether what the last claim of a placement has for a binding may still be written.
func IsClaimed(placement placementv1beta1.PlacementObject, b placementv1beta1.BindingObject) bool {
	return claimOn(placement).isPending(b)
}

func (c claim) epochText() string { return strconv.FormatInt(c.Epoch, 10) }

// startedEviction finds an eviction in the claim.
func (c claim) startedEviction(e *placementv1beta1.ClusterResourcePlacementEviction) (startedEviction, bool) {
	started, ok := c.Evictions[e.Name]
	return started, ok && started.UID == string(e.UID)
}

// keepStartedEvictions takes over the evictions of the last claim without an outcome.
func (c *claim) keepStartedEvictions(last claim, waiting []placementv1beta1.ClusterResourcePlacementEviction) {
	for i := range waiting {
		if _, again := c.Evictions[waiting[i].Name]; again {
			continue
		}
		if started, ok := last.startedEviction(&waiting[i]); ok {
			c.Evictions[waiting[i].Name] = started
		}
	}
}
