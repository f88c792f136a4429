package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// What we write on an object is what KubeFleet's agent would write, so that neither writes an object for the sake of its marks
// after the other. Objects to which earlier versions of ours have applied a manifest have other marks. As long as they say the
// same, they stay.

// withHashOn returns the manifest with the hash that an object has, if that is a hash of the same manifest.
func (m Manifest) withHashOn(live *unstructured.Unstructured) Manifest {
	m.stated = ""
	stated := live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation]
	if stated == m.Hash || m.isHashedByKubeFleet(stated) && saysReservedKeys(live, m.Object) {
		m.stated = stated
	}
	return m
}

// isHashedByKubeFleet reports whether a hash is what KubeFleet's agent writes of the manifest, as it is written or without its nulls.
func (m Manifest) isHashedByKubeFleet(hash string) bool {
	return hash != "" && (hash == m.kubeFleetHash() || hash == m.withNulls)
}

// markOf returns the hash that is written on an object. It is KubeFleet's, where that and the base of the next merge together tell
// manifests apart: KubeFleet's leaves labels and annotations of reserved domains out. A Secret keeps ours, as KubeFleet writes it
// anyhow: it adds a copy of the values.
func (m Manifest) markOf(withBase bool) string {
	switch {
	case m.stated != "":
		return m.stated
	case isSecret(m.Object):
		return m.Hash
	case withBase || !hasReservedKeys(m.Object):
		return m.kubeFleetHash()
	}
	return m.Hash
}

// hasReservedKeys reports whether an object has labels or annotations that do not go into KubeFleet's hash.
func hasReservedKeys(object *unstructured.Unstructured) bool {
	return len(reservedKeys(object.GetLabels())) > 0 || len(reservedKeys(object.GetAnnotations())) > 0
}

// saysReservedKeys reports whether the labels and annotations that do not go into KubeFleet's hash are those of the manifest that was
// last applied. Without a base of the next merge, it goes by what the object has, and by what of that is ours.
func saysReservedKeys(live, manifest *unstructured.Unstructured) bool {
	base := &unstructured.Unstructured{Object: lastApplied(live)}
	if len(base.Object) == 0 {
		return labels.SelectorFromSet(reservedKeys(manifest.GetLabels())).Matches(labels.Set(live.GetLabels())) &&
			labels.SelectorFromSet(reservedKeys(manifest.GetAnnotations())).Matches(labels.Set(live.GetAnnotations())) &&
			!hasKeysOfEarlierManifests(live, manifest)
	}
	before := reservedKeys(base.GetAnnotations())
	delete(before, placementv1beta1.ManifestHashAnnotation)
	return maps.Equal(reservedKeys(base.GetLabels()), reservedKeys(manifest.GetLabels())) &&
		maps.Equal(before, reservedKeys(manifest.GetAnnotations()))
}

// hasKeysOfEarlierManifests reports whether an object has labels or annotations of reserved domains that this agent alone has applied
// server-side, and that the manifest does not have. What it has updated tells nothing: API servers note labels of their own there.
func hasKeysOfEarlierManifests(live, manifest *unstructured.Unstructured) bool {
	marks := map[string]string{placementv1beta1.ManifestHashAnnotation: "", placementv1beta1.LastAppliedConfigAnnotation: ""}
	otherKeys := func(object *unstructured.Unstructured) (ofLabels, ofAnnotations map[string]string) {
		ofLabels = withoutKeysOf(reservedKeys(object.GetLabels()), manifest.GetLabels())
		return ofLabels, withoutKeysOf(withoutKeysOf(reservedKeys(object.GetAnnotations()), manifest.GetAnnotations()), marks)
	}
	if ofLabels, ofAnnotations := otherKeys(live); len(ofLabels)+len(ofAnnotations) == 0 {
		return false // there is no need to read whose they are
	}
	ofLabels, ofAnnotations := otherKeys(&unstructured.Unstructured{Object: fieldSetsOf(live).appliedAlone(live)})
	return len(ofLabels)+len(ofAnnotations) > 0
}

// withoutKeysOf returns the values whose keys others does not have.
func withoutKeysOf(values, others map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range values {
		if _, has := others[key]; !has {
			kept[key] = value
		}
	}
	return kept
}

// keyDomains are the domains of labels and annotations that do not go into KubeFleet's hash.
var keyDomains = []string{"kubernetes.io", "k8s.io", "kubernetes-fleet.io", "fleet.azure.com"}

// kubeFleetHash returns what KubeFleet writes as the hash of the manifest. A pass asks for it several times of the same manifest, which
// one goroutine has.
func (m Manifest) kubeFleetHash() string {
	if m.foreign == nil {
		return kubeFleetHash(m.Object)
	}
	if *m.foreign == "" {
		*m.foreign = kubeFleetHash(m.Object)
	}
	return *m.foreign
}

// kubeFleetHash returns what KubeFleet writes as the hash of a manifest: without name, namespace, status and the labels and
// annotations of reserved domains, and with what remains of the metadata always there.
func kubeFleetHash(object *unstructured.Unstructured) string {
	content := maps.Clone(object.Object)
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
		if !isReservedKey(key) {
			kept[key] = value
		}
	}
	return kept
}

func reservedKeys(values map[string]string) map[string]string {
	reserved := map[string]string{}
	for key, value := range values {
		if isReservedKey(key) {
			reserved[key] = value
		}
	}
	return reserved
}

func isReservedKey(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(keyDomains, func(suffix string) bool { return strings.HasSuffix(domain, suffix) })
}

// keepLastApplied lets the desired object have the manifest as last applied in the words of the live one, if both say the
// same. Which AppliedWork it names as the owner is of no account: no merge reads it. Manifests of two hashes are not looked into.
func keepLastApplied(live, desired *unstructured.Unstructured) {
	has := live.GetAnnotations()
	wants := desired.GetAnnotations()
	if has[placementv1beta1.ManifestHashAnnotation] != wants[placementv1beta1.ManifestHashAnnotation] ||
		has[placementv1beta1.LastAppliedConfigAnnotation] == wants[placementv1beta1.LastAppliedConfigAnnotation] {
		return
	}
	if saySame(lastApplied(live), lastApplied(desired)) {
		wants[placementv1beta1.LastAppliedConfigAnnotation] = has[placementv1beta1.LastAppliedConfigAnnotation]
		desired.SetAnnotations(wants)
	}
}

// saySame reports whether two manifests say the same except for their owner.
func saySame(has, wants map[string]any) bool {
	unstructured.RemoveNestedField(has, "metadata", "ownerReferences")
	unstructured.RemoveNestedField(wants, "metadata", "ownerReferences")
	return len(has) > 0 && equality.Semantic.DeepEqual(has, wants)
}

// isLeftByKubeFleet reports whether a Secret is as KubeFleet's agent has left it after it applied this very manifest. It is not
// written for the sake of the copy of its values, which goes with the first change of the Secret.
func isLeftByKubeFleet(live *unstructured.Unstructured, m Manifest) bool {
	return showsSecret(live) && isLastAppliedTo(live, m) && m.isHashedByKubeFleet(m.stated)
}
