package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// An object that KubeFleet's agent has applied bears the marks that ours would give it, but for two things: the hash is of
// another form of the manifest, and the manifest as last applied ends with a newline. As long as they say the same, they
// stay: an object is not written for the sake of its marks.

// withHashOn returns the manifest with the hash that an object bears, if that is KubeFleet's hash of the same manifest.
func (m Manifest) withHashOn(live *unstructured.Unstructured) Manifest {
	stated := live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation]
	if stated != "" && stated != m.Hash && stated == kubeFleetHash(m.Object) {
		m.Hash = stated
	}
	return m
}

// keyDomains are the domains of labels and annotations that do not go into KubeFleet's hash.
var keyDomains = []string{"kubernetes.io", "k8s.io", "kubernetes-fleet.io", "fleet.azure.com"}

// kubeFleetHash is what KubeFleet writes as the hash of a manifest: without name, namespace, status and the labels and
// annotations of reserved domains, and with what remains of the metadata always there.
func kubeFleetHash(object *unstructured.Unstructured) string {
	content := object.DeepCopy().Object
	delete(content, "status")
	content["metadata"] = map[string]any{
		"labels": withoutReservedKeys(object.GetLabels()), "annotations": withoutReservedKeys(object.GetAnnotations()),
		"finalizers": []any{}, "ownerReferences": []any{}, "managedFields": []any{},
	}
	data, err := json.Marshal(content)
	if err != nil {
		return "" // of no object
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func withoutReservedKeys(values map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range values {
		domain, _, _ := strings.Cut(key, "/")
		reserved := false
		for _, suffix := range keyDomains {
			reserved = reserved || strings.HasSuffix(domain, suffix)
		}
		if !reserved {
			kept[key] = value
		}
	}
	return kept
}

// keepLastApplied lets the desired object have the manifest as last applied in the words of the live one, if both say the
// same. Which AppliedWork it names as the owner is of no account: no merge reads it. Manifests of two hashes are not looked into.
func keepLastApplied(live, desired *unstructured.Unstructured) {
	has, wants := live.GetAnnotations(), desired.GetAnnotations()
	if has[placementv1beta1.ManifestHashAnnotation] != wants[placementv1beta1.ManifestHashAnnotation] ||
		has[placementv1beta1.LastAppliedConfigAnnotation] == wants[placementv1beta1.LastAppliedConfigAnnotation] {
		return
	}
	if saySame(lastApplied(live), lastApplied(desired)) {
		wants[placementv1beta1.LastAppliedConfigAnnotation] = has[placementv1beta1.LastAppliedConfigAnnotation]
		desired.SetAnnotations(wants)
	}
}

// saySame tells whether two manifests say the same but for their owner.
func saySame(has, wants map[string]any) bool {
	unstructured.RemoveNestedField(has, "metadata", "ownerReferences")
	unstructured.RemoveNestedField(wants, "metadata", "ownerReferences")
	return len(has) > 0 && equality.Semantic.DeepEqual(has, wants)
}

// isLeftByKubeFleet tells whether a Secret is as KubeFleet's agent has left it after it applied this very manifest. It is not
// written for the sake of the copy of its values, which goes with the first change of the Secret.
func isLeftByKubeFleet(live *unstructured.Unstructured, m Manifest) bool {
	return showsSecret(live) && isLastAppliedTo(live, m) && m.Hash == kubeFleetHash(m.Object)
}
