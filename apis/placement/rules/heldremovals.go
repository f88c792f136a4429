package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// HeldRemovals are the bindings of a placement that the hub agent would let go though neither a change of the placement nor
// a deletion explains it, because the placement fails over from very many clusters at once, or because its namespace is being deleted. It holds them, and says so on the placement, until a user who may change the placement accepts.
type HeldRemovals struct {
	// Generation of the placement for which that was decided.
	Generation int64 `json:"generation"`
	// Total is how many bindings are held, Digest tells these from others.
	Total  int    `json:"total"`
	Digest string `json:"digest"`
	// Failover says that a placement would leave so many clusters for others at once.
	Failover bool `json:"failover,omitempty"`
	// Namespace is the one of the placement, if the placement would go because that is being deleted on the hub.
	Namespace string `json:"namespace,omitempty"`
	// Removals are the first of them by name.
	Removals []HeldRemoval `json:"removals"`
}

// maxHeldRemovals bounds the annotation.
const maxHeldRemovals = 200

// NewHeldRemovals returns the removals held of a placement as it is now, given in the order of their bindings.
func NewHeldRemovals(placement placementv1beta1.PlacementObject, removals []HeldRemoval) *HeldRemovals {
	sum := sha256.New()
	for _, removal := range removals {
		// Writing to a hash never fails.
		_, _ = fmt.Fprintln(sum, removal.Binding)
	}
	return &HeldRemovals{
		Generation: placement.GetGeneration(), Total: len(removals), Digest: hex.EncodeToString(sum.Sum(nil))[:16],
		Removals: removals[:min(len(removals), maxHeldRemovals)],
	}
}

// HeldRemoval is a binding that would be let go.
type HeldRemoval struct {
	Binding string `json:"binding"`
	Cluster string `json:"cluster"`
	// Why it would go, for people.
	Why string `json:"why"`
}

// HeldRemovalsOf returns what is held of a placement as it is now; nil if nothing is.
func HeldRemovalsOf(placement placementv1beta1.PlacementObject) *HeldRemovals {
	held := &HeldRemovals{}
	text := placement.GetAnnotations()[placementv1beta1.RemovalsHeldAnnotation]
	// What cannot be read is written again by the next decision.
	if text == "" || json.Unmarshal([]byte(text), held) != nil || held.Generation != placement.GetGeneration() {
		return nil
	}
	return held
}

// AcceptCommand returns the command by which a user accepts what is held of a placement.
func AcceptCommand(placement placementv1beta1.PlacementObject) string {
	command := "kubectl fleet migrate accept " + placement.GetName()
	if namespace := placement.GetNamespace(); namespace != "" {
		command += " -n " + namespace
	}
	return command
}

// Encode returns the value of RemovalsHeldAnnotation.
func (h *HeldRemovals) Encode() string {
	// Strings and integers always encode.
	data, _ := json.Marshal(h)
	return string(data)
}

// Token returns what RemovalsAcceptedAnnotation has on a placement to let go exactly these bindings, and no others: not of a later
// placement of the same name, not after another change of its spec.
func (h *HeldRemovals) Token(placement placementv1beta1.PlacementObject) string {
	return fmt.Sprintf("%s/%d/%s", placement.GetUID(), h.Generation, h.Digest)
}

// IsAccepted reports whether a user has accepted exactly these removals.
func (h *HeldRemovals) IsAccepted(placement placementv1beta1.PlacementObject) bool {
	return placement.GetAnnotations()[placementv1beta1.RemovalsAcceptedAnnotation] == h.Token(placement)
}
