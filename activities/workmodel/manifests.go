package workmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ManifestsHashAnnotation is on Works in the hub's cache, which has no manifests: the hash of the manifests of a Work that is not
// signed. By it the Work is signed without being read again. No stored Work has it: the API server takes no key that begins so.
const ManifestsHashAnnotation = "/manifests-hash"

// DropManifests takes the manifests out of a Work, which only its member needs. One from which they were taken stays as it is.
func DropManifests(work *placementv1beta1.Work) {
	if _, dropped := work.Annotations[ManifestsHashAnnotation]; dropped {
		return
	}
	if !rules.IsSigned(work) && work.Labels[placementv1beta1.ParentBindingLabel] != "" {
		hash, err := HashOfManifests(work)
		if err != nil {
			hash = err.Error() // the hash of no other Work: it is written anew
		}
		metav1.SetMetaDataAnnotation(&work.ObjectMeta, ManifestsHashAnnotation, hash)
	}
	work.Spec.Workload = placementv1beta1.WorkloadTemplate{}
}

// HashOfManifests returns the same for two Works whose manifests mean the same, however they are written.
func HashOfManifests(work *placementv1beta1.Work) (string, error) {
	if hash := work.Annotations[ManifestsHashAnnotation]; hash != "" {
		return hash, nil
	}
	sum := sha256.New()
	encoder := json.NewEncoder(sum) // sorts the fields, and ends each manifest with a line break
	for _, manifest := range work.Spec.Workload.Manifests {
		var object any
		if err := json.Unmarshal(manifest.Raw, &object); err != nil {
			return "", fmt.Errorf("decoding a manifest of work %s/%s: %w", work.Namespace, work.Name, err)
		}
		if err := encoder.Encode(object); err != nil {
			return "", fmt.Errorf("hashing a manifest of work %s/%s: %w", work.Namespace, work.Name, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
