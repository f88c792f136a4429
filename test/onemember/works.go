package onemember

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Work returns a Work of the member with these objects, as the hub agent writes them for a placement of the same name.
func Work(name string, objects ...map[string]any) *placementv1beta1.Work {
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: name, Finalizers: []string{placementv1beta1.WorkFinalizer},
		Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel: name,
			placementv1beta1.ParentBindingLabel:   name + "-" + Member,
		},
	}}
	w.Spec.Workload.Manifests = Manifests(objects...)
	return w
}

// Manifests returns objects as the manifests of a Work.
func Manifests(objects ...map[string]any) []placementv1beta1.Manifest {
	manifests := make([]placementv1beta1.Manifest, len(objects))
	for i, object := range objects {
		raw, err := json.Marshal(object)
		if err != nil {
			panic(fmt.Sprintf("encoding a manifest: %v", err)) // of strings and numbers; it cannot fail
		}
		manifests[i].RawExtension = runtime.RawExtension{Raw: raw}
	}
	return manifests
}

// ConfigMap returns the manifest of a ConfigMap with one key.
func ConfigMap(namespace, name, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"data":     map[string]any{"key": value},
	}
}

// NamespaceOf returns the manifest of a Namespace.
func NamespaceOf(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
}

// Key names a Work of the member.
func Key(work string) client.ObjectKey { return client.ObjectKey{Namespace: Namespace, Name: work} }
