//go:build integration

package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/apis/clusterowned"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// plain returns a copy of an object without what differs between two objects of the same manifest: what the server sets, who owns
// it, and what is left to the cluster because the manifest does not set it.
func plain(object, manifest *unstructured.Unstructured) map[string]any {
	out := runtime.DeepCopyJSON(object.Object)
	delete(out, "status")
	for _, field := range clusterowned.Metadata {
		unstructured.RemoveNestedField(out, "metadata", field)
	}
	annotations, _, _ := unstructured.NestedMap(out, "metadata", "annotations")
	for _, key := range append([]string{placementv1beta1.ManifestHashAnnotation, placementv1beta1.LastAppliedConfigAnnotation}, clusterowned.Bookkeeping...) {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(out, "metadata", "annotations")
	} else {
		_ = unstructured.SetNestedMap(out, annotations, "metadata", "annotations")
	}
	clusterowned.Remove(out, clusterowned.Governed(manifest))
	kind := manifest.GroupVersionKind().GroupKind()
	left := slices.Clone(clusterowned.Filled(kind))
	if manifest.GetKind() != "Widget" {
		left = append(left, []string{"spec", "replicas"}) // an autoscaler may have set them
	}
	for _, field := range left {
		if value, found, _ := unstructured.NestedFieldNoCopy(manifest.Object, field...); !found || value == nil {
			unstructured.RemoveNestedField(out, field...)
		}
	}
	for _, field := range derived[kind.Kind] {
		if value, found, _ := unstructured.NestedFieldNoCopy(manifest.Object, field...); !found || value == nil {
			unstructured.RemoveNestedField(out, field...)
		}
	}
	switch kind.Kind {
	case "Service":
		removeNodePorts(out)
		if address, _, _ := unstructured.NestedString(manifest.Object, "spec", "clusterIP"); address == "" { // it is taken by chance
			unstructured.RemoveNestedField(out, "spec", "clusterIP")
			unstructured.RemoveNestedField(out, "spec", "clusterIPs")
		}
	case "ServiceAccount":
		delete(out, "secrets") // they belong to the cluster
	case "Job", "ReplicationController":
		removeLabelsOfTemplate(out, manifest)
	}
	return out
}

// derived are fields that the API server derives from others where an object has none, and keeps when those change: no way to apply
// a manifest without them changes them.
var derived = map[string][][]string{
	"NetworkPolicy": {{"spec", "policyTypes"}},
}

// removeLabelsOfTemplate removes the labels that the API server takes from the template for an object without labels. It takes none as
// long as the object has one of another tool.
func removeLabelsOfTemplate(object map[string]any, manifest *unstructured.Unstructured) {
	if len(manifest.GetLabels()) > 0 {
		return
	}
	ofTemplate, _, _ := unstructured.NestedMap(object, "spec", "template", "metadata", "labels")
	labels, _, _ := unstructured.NestedMap(object, "metadata", "labels")
	for key, value := range ofTemplate {
		if labels[key] == value {
			unstructured.RemoveNestedField(object, "metadata", "labels", key)
		}
	}
	if labels, found, _ := unstructured.NestedMap(object, "metadata", "labels"); found && len(labels) == 0 {
		unstructured.RemoveNestedField(object, "metadata", "labels")
	}
}

// removeNodePorts removes the ports that the API server takes by chance. No manifest sets any.
func removeNodePorts(object map[string]any) {
	ports, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "ports")
	list, _ := ports.([]any)
	for _, item := range list {
		if port, ok := item.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
}

// verdict collects where an object is not what is right.
type verdict struct{ breaches []string }

func (v *verdict) add(path, text string) { v.breaches = append(v.breaches, path+" "+text) }

// compare compares what is right with what is there. What another tool has set and the manifest does not set may stay.
func (v *verdict) compare(path string, manifest, right, there, others any) {
	if compare.Same(right, there) {
		return
	}
	if manifest == nil && others != nil && compare.Same(there, others) || there == nil && isOfNulls(manifest, right) {
		return
	}
	switch r := right.(type) {
	case map[string]any:
		if t, ok := there.(map[string]any); ok {
			v.compareMaps(path, asMap(manifest), r, t, asMap(others))
			return
		}
	case []any:
		if t, ok := there.([]any); ok && (len(r) == len(t) || others != nil) {
			v.compareLists(path, asList(manifest), r, t, asList(others))
			return
		}
	}
	v.add(path, fmt.Sprintf("is %s and not %s", short(there), short(right)))
}

func (v *verdict) compareMaps(path string, manifest, right, there, others map[string]any) {
	keys := map[string]bool{}
	for key := range right {
		keys[key] = true
	}
	for key := range there {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := path + "/" + key
		want, wanted := right[key]
		has, found := there[key]
		other, set := others[key]
		_, ours := manifest[key]
		switch {
		case !wanted && set && !ours && compare.Same(has, other): // also a null
		case !wanted && ours && set && compare.Same(has, manifest[key]):
			// The manifest has it, and it has an effect only together with what the other tool has set.
		case wanted && found:
			v.compare(at, manifest[key], want, has, other)
		case wanted && isOfNulls(manifest[key], want):
		case wanted && want != nil:
			v.add(at, "is missing, it is to be "+short(want))
		case wanted:
			v.add(at, "is missing, it is to be null")
		case other != nil && asMap(has) != nil:
			v.compareMaps(at, asMap(manifest[key]), nil, asMap(has), asMap(other))
		case other == nil || manifest[key] != nil:
			v.add(at, "is "+short(has)+" and not to be there")
		}
	}
}

// isOfNulls tells whether a value that is right is an empty text or the quantity zero only because the manifest has a null in its
// place, or a map of such. The API server makes that of the null where a user chooses the keys; a patch takes the field off.
func isOfNulls(manifest, right any) bool {
	if texts, ok := right.(map[string]any); ok {
		for key, value := range texts {
			if !isOfNulls(asMap(manifest)[key], value) {
				return false
			}
		}
		return len(texts) > 0
	}
	return manifest == nil && (right == "" || right == "0")
}

// compareLists compares lists item by item. With others, their items may be among them.
func (v *verdict) compareLists(path string, manifest, right, there, others []any) {
	at := func(list []any, i int) any {
		if i < len(list) {
			return list[i]
		}
		return nil
	}
	if len(others) == 0 || len(right) == len(there) && len(manifest) == len(right) {
		for i := range right {
			v.compareItem(fmt.Sprintf("%s/%d", path, i), at(manifest, i), right[i], at(there, i), others)
		}
		return
	}
	for i, want := range right {
		if !slices.ContainsFunc(there, func(item any) bool {
			probe := verdict{}
			for _, other := range append([]any{nil}, others...) {
				probe = verdict{}
				if probe.compare("", at(manifest, i), want, item, other); len(probe.breaches) == 0 {
					return true
				}
			}
			return false
		}) {
			v.add(fmt.Sprintf("%s/%d", path, i), "is missing: "+short(want)+" among "+short(there))
		}
	}
}

// compareItem compares an item of a list, of which the other tool may have had any place.
func (v *verdict) compareItem(path string, manifest, right, there any, others []any) {
	first := verdict{}
	first.compare(path, manifest, right, there, nil)
	for _, other := range others {
		probe := verdict{}
		if probe.compare(path, manifest, right, there, other); len(probe.breaches) == 0 {
			return
		}
	}
	v.breaches = append(v.breaches, first.breaches...)
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

func asList(value any) []any {
	l, _ := value.([]any)
	return l
}

// short is a value as it is printed.
func short(value any) string {
	text := fmt.Sprintf("%#v", value)
	text = strings.NewReplacer("map[string]interface {}", "", "[]interface {}", "").Replace(text)
	if len(text) > 300 {
		return text[:300] + "…"
	}
	return text
}
