package workmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// revisionLength is the number of hex digits of a revision: short enough to
// read, long enough that the handful of revisions of one binding never collide.
const revisionLength = 12

// Revision returns a short hash of everything in a binding that decides what its cluster
// has to run. Two bindings of the same revision need the same Works; why the cluster
// was picked does not go into it.
func Revision(binding placementv1beta1.BindingObject) string {
	spec := binding.GetBindingSpec()
	if spec.ResourceSnapshotName == "" {
		return ""
	}
	content := struct {
		Snapshot         string
		ClusterOverrides []string                          `json:",omitempty"`
		Overrides        []placementv1beta1.NamespacedName `json:",omitempty"`
		OverrideInputs   string                            `json:",omitempty"`
		ApplyStrategy    *placementv1beta1.ApplyStrategy   `json:",omitempty"`
		PreservedState   string                            `json:",omitempty"`
	}{
		Snapshot:         spec.ResourceSnapshotName,
		ClusterOverrides: spec.ClusterResourceOverrideSnapshots,
		Overrides:        spec.ResourceOverrideSnapshots,
		ApplyStrategy:    spec.ApplyStrategy,
		PreservedState:   binding.GetAnnotations()[placementv1beta1.PreservedStateAnnotation],
	}
	if len(content.ClusterOverrides)+len(content.Overrides) > 0 {
		content.OverrideInputs = binding.GetAnnotations()[placementv1beta1.OverrideInputsAnnotation]
	}
	raw, err := json.Marshal(content)
	if err != nil {
		// Plain strings and booleans always marshal.
		panic(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:revisionLength]
}
