package override

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Ref returns the short form of a source: the name of a ClusterResourceOverrideSnapshot, or
// namespace/name of a ResourceOverrideSnapshot.
func (s Source) Ref() string {
	return placementv1beta1.Scope{Namespace: s.Namespace}.String() + s.Name
}

// ParseRef reads the short form.
func ParseRef(ref string) (Source, error) {
	namespace, name, namespaced := strings.Cut(ref, "/")
	switch {
	case !namespaced && ref != "":
		return Source{Kind: clusterKind, Name: ref}, nil
	case namespaced && namespace != "" && name != "" && !strings.Contains(name, "/"):
		return Source{Kind: namespacedKind, Namespace: namespace, Name: name}, nil
	}
	return Source{}, fmt.Errorf("%q names no override snapshot", ref)
}

// Namespaced reports whether the source is a ResourceOverrideSnapshot.
func (s Source) Namespaced() bool { return s.Kind == namespacedKind }

// Concern is an override that selects some resource of a placement.
type Concern struct {
	Source Source
	// Made says that it was made for this placement, rather than for all.
	Made bool
}

// Concerns returns the overrides that the matcher has picked, whatever the clusters, in the
// order in which they are applied.
func (m *Matcher) Concerns() []Concern {
	concerns := make([]Concern, 0, len(m.overrides))
	for i := range m.overrides {
		concerns = append(concerns, Concern{Source: m.overrides[i].source, Made: m.overrides[i].made})
	}
	return concerns
}

// Picked returns the Matcher of overrides that were found to concern a placement before.
func Picked(snapshots []placementv1beta1.OverrideSnapshotObject) *Matcher {
	m := &Matcher{}
	for _, candidate := range sortedSpecs(snapshots) {
		m.overrides = append(m.overrides, newMatch(candidate))
	}
	return m
}

// fingerprintLength is in hexadecimal digits: enough to tell a handful of sets apart.
const fingerprintLength = 12

// Made returns a fingerprint of the overrides that refer to the placement, whatever they select:
// of their snapshots and what those say. It is empty if there are none.
func Made(placement Placement, snapshots []placementv1beta1.OverrideSnapshotObject) string {
	var made []string
	for _, candidate := range sortedSpecs(snapshots) {
		if candidate.placement != nil && Concerns(candidate.placement, candidate.source.Namespace, placement) {
			// One that was deleted and made anew can have the name of its snapshot again.
			made = append(made, fmt.Sprintf("%s %x", candidate.source, candidate.content))
		}
	}
	if len(made) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(made, "\n")))
	return hex.EncodeToString(sum[:])[:fingerprintLength]
}
