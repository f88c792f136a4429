package compare

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// addresses are the fields of a Service by which a manifest asks for no address, or for a certain one.
var addresses = [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}}

// addKept adds what the API server silently keeps of an object although the manifest says otherwise by leaving it out: a headless
// Service gets no address any more, and a volume keeps the source that it had. Other fields that are left out are refused if they
// cannot change, or are the cluster's to fill.
func (d *differ) addKept(manifest, object *unstructured.Unstructured) {
	for _, kept := range KeptSources(manifest, object) {
		d.addUntold(kept.Pointer(), kept.Value)
	}
	if (manifest.GroupVersionKind().GroupKind() != schema.GroupKind{Kind: "Service"}) {
		return
	}
	for _, field := range addresses {
		if hasField(manifest.Object, field) {
			return
		}
	}
	kind, _, _ := unstructured.NestedString(manifest.Object, "spec", "type")
	address, _, _ := unstructured.NestedString(object.Object, addresses[0]...)
	if kind != string(corev1.ServiceTypeExternalName) && address == corev1.ClusterIPNone {
		d.addDetail("/spec/clusterIP", nil, address)
	}
}

// addUntold adds a field that is kept, unless it is reported already.
func (d *differ) addUntold(path string, value any) {
	if !slices.ContainsFunc(d.report.Details, func(detail placementv1beta1.PatchDetail) bool {
		return detail.Path == path || strings.HasPrefix(path, detail.Path+"/")
	}) {
		d.addDetail(path, nil, value)
	}
}

// IsKept reports whether a field of an object is one that the API server keeps whatever is written, until the object is deleted.
func IsKept(kind schema.GroupKind, path string) bool {
	return kind == schema.GroupKind{Kind: "Service"} && path == "/spec/clusterIP"
}

// PodSpecs are where the built-in kinds have the specification of their pods.
var PodSpecs = [][]string{
	{"spec", "template", "spec"}, {"template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}, {"spec"},
}

// KeptSource is what a volume of an object has as its source although the manifest names none.
type KeptSource struct {
	// Volumes is where the list of the volumes is, and Index the place of the volume in it.
	Volumes []string
	Index   int
	// Name is the volume's, and Field the name of its source.
	Name, Field string
	Value       any
}

// Pointer returns the path of the source.
func (k KeptSource) Pointer() string {
	return "/" + strings.Join(k.Volumes, "/") + "/" + strconv.Itoa(k.Index) + "/" + k.Field
}

// KeptSources returns the sources of volumes for which the manifest names none. To the API server such a volume is an empty directory
// when the object is created, and it keeps any other source that it has.
func KeptSources(manifest, object *unstructured.Unstructured) []KeptSource {
	if !scheme.Scheme.Recognizes(manifest.GroupVersionKind()) {
		return nil
	}
	var kept []KeptSource
	for _, spec := range PodSpecs {
		at := append(slices.Clone(spec), "volumes")
		bare := namesWithoutSource(listAt(manifest.Object, at))
		if len(bare) == 0 {
			continue
		}
		for i, item := range listAt(object.Object, at) {
			volume, _ := item.(map[string]any)
			name, _ := volume["name"].(string)
			for _, field := range slices.Sorted(maps.Keys(volume)) {
				if bare[name] && field != "name" && field != "emptyDir" && volume[field] != nil {
					kept = append(kept, KeptSource{Volumes: at, Index: i, Name: name, Field: field, Value: volume[field]})
				}
			}
		}
	}
	return kept
}

// namesWithoutSource returns the names of the volumes that have nothing but a name.
func namesWithoutSource(volumes []any) map[string]bool {
	bare := map[string]bool{}
	for _, item := range volumes {
		volume, _ := item.(map[string]any)
		name, ok := volume["name"].(string)
		hasSource := false
		for field, value := range volume {
			hasSource = hasSource || field != "name" && value != nil
		}
		if ok && !hasSource {
			bare[name] = true
		}
	}
	return bare
}

func listAt(object map[string]any, path []string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, _ := value.([]any)
	return list
}
