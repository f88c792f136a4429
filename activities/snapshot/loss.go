package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Loss are the objects that a selection has no more though its selectors ask for them, and that are therefore held: the latest
// snapshot keeps them until a user accepts, or they are there again.
type Loss struct {
	// Reason is that of the condition RemovalsHeld.
	Reason string `json:"reason"`
	// Before is how many objects the latest snapshot has, Total how many of them are lost; Digest tells these from others.
	Before int    `json:"before"`
	Total  int    `json:"total"`
	Digest string `json:"digest"`
	// Named are the first of them, as people name them.
	Named []string `json:"named"`
}

// namedLost is how many lost objects are named.
const namedLost = 5

// NewLoss describes lost objects.
func NewLoss(reason string, before int, lost []Identity) *Loss {
	named := make([]string, 0, len(lost))
	for _, id := range lost {
		name := id.Kind + " " + id.Name
		if id.Namespace != "" {
			name = id.Kind + " " + id.Namespace + "/" + id.Name
		}
		named = append(named, name)
	}
	slices.Sort(named)
	return &Loss{Reason: reason, Before: before, Total: len(lost), Digest: Fingerprint(lost), Named: named[:min(len(named), namedLost)]}
}

// LossOf returns the loss that is held of a placement, and the index of the snapshot that keeps it; nil if none is. A verdict that
// cannot be read has none: the hub agent makes it anew.
func LossOf(placement placementv1beta1.PlacementObject) (lost *Loss, index int) {
	verdict, _ := DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	return verdict.Lost, verdict.Index
}

// Token returns what SelectionLossAcceptedAnnotation has on a placement to let exactly these objects go from the latest snapshot: the
// next loss comes with another snapshot, and is held again.
func (l *Loss) Token(placement placementv1beta1.PlacementObject, index int) string {
	return fmt.Sprintf("%s/%d/%s", placement.GetUID(), index, l.Digest)
}

// IsAccepted reports whether a user has accepted exactly this loss from a snapshot, or wants no loss of the placement to be held.
func (l *Loss) IsAccepted(placement placementv1beta1.PlacementObject, index int) bool {
	annotations := placement.GetAnnotations()
	return annotations[placementv1beta1.AcceptRemovalsAnnotation] == placementv1beta1.LabelValueTrue ||
		annotations[placementv1beta1.SelectionLossAcceptedAnnotation] == l.Token(placement, index)
}

// NetLoss counts the lost objects less those that others of the same kind and namespace take the place of: an object whose name
// has a hash of its content is replaced, not lost.
func NetLoss(lost, gained []Identity) int {
	type place struct {
		schema.GroupKind
		namespace string
	}
	count := map[place]int{}
	for _, id := range lost {
		count[place{id.GroupKind, id.Namespace}]++
	}
	for _, id := range gained {
		count[place{id.GroupKind, id.Namespace}]--
	}
	total := 0
	for _, net := range count {
		total += max(0, net)
	}
	return total
}

// AskedFor returns those objects of a snapshot that the selectors select as the snapshot has them, and what these name, if that is
// propagated. They are what a user has not left out, whatever has become of them on the hub.
func (s *Selection) AskedFor(former map[Identity][]byte, propagates bool) ([]Identity, error) {
	heads := make(map[Identity]*metav1.PartialObjectMetadata, len(former))
	for id, manifest := range former {
		head := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(manifest, head); err != nil {
			return nil, fmt.Errorf("decoding %s %s of the latest snapshot: %w", id.Kind, id.Name, err)
		}
		heads[id] = head
	}
	asked := map[Identity]bool{}
	var items []Item
	for id, head := range heads {
		var namespace labels.Set
		if home := heads[Identity{GroupKind: NamespaceKind, Name: id.Namespace}]; home != nil {
			namespace = home.Labels
		}
		if s.matchOf(id.GroupKind, head, namespace) == matchNone {
			continue
		}
		item, err := itemOfManifest(id, former[id])
		if err != nil {
			return nil, err
		}
		asked[id] = true
		items = append(items, item)
	}
	if propagates {
		for _, need := range FindNeeds(items) {
			if _, has := former[need.Identity()]; has {
				asked[need.Identity()] = true
			}
		}
	}
	return slices.Collect(maps.Keys(asked)), nil
}

// entryKind is what an entry of an envelope is counted as: an object like any other, whichever kind of envelope it is in.
var entryKind = schema.GroupKind{Kind: "Envelope entry"}

// EntriesOf returns the entries of an envelope, from its manifest; nil of anything else. The clusters have an object for each.
func EntriesOf(id Identity, manifest []byte) []Identity {
	var envelope struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Data map[string]json.RawMessage `json:"data"`
	}
	if json.Unmarshal(manifest, &envelope) != nil {
		return nil // not written by the hub
	}
	if _, is := EnvelopeType(id.GroupKind, envelope.Metadata.Annotations); !is {
		return nil
	}
	entries := make([]Identity, 0, len(envelope.Data))
	for key := range envelope.Data {
		entries = append(entries, Identity{GroupKind: entryKind, Namespace: id.Namespace, Name: id.Name + "/" + key})
	}
	return entries
}

// HashSelectors tells apart what placements ask to select.
func HashSelectors(placement placementv1beta1.PlacementObject) string {
	// The terms are strings and maps, which always encode.
	data, _ := json.Marshal(placement.GetPlacementSpec().ResourceSelectors)
	sum := sha256.Sum256(append(data, fmt.Sprint(placement.GetPlacementSpec().PropagateDeps)...))
	return hex.EncodeToString(sum[:8])
}
