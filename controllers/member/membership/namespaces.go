package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// namespaceKind is that of namespaces, of which metadata is enough.
var namespaceKind = metav1.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// newNamespace returns an empty namespace to read metadata into.
func newNamespace() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: namespaceKind.Version, Kind: namespaceKind.Kind}}
}

// listNamespaces returns the namespaces that are not being deleted, each with the AppliedWork that owns it, if one does.
func (s *Surveyor) listNamespaces(ctx context.Context) (map[string]string, error) {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: namespaceKind.Version, Kind: namespaceKind.Kind + "List"}}
	if err := s.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	found := make(map[string]string, len(list.Items))
	for i := range list.Items {
		namespace := &list.Items[i]
		if !namespace.DeletionTimestamp.IsZero() {
			continue
		}
		found[namespace.Name] = ""
		for _, owner := range namespace.OwnerReferences {
			if owner.Kind == "AppliedWork" {
				found[namespace.Name] = owner.Name
			}
		}
	}
	return found, nil
}

// fingerprintNamespaces tells apart which namespaces there are.
func fingerprintNamespaces(found map[string]string) string {
	return strings.Join(namesOf(found), ",")
}

func namesOf(found map[string]string) []string {
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ReportNamespaces returns what is reported of the namespaces found: all, or as many as are tracked, those first that were
// reported before. A cluster that is not known to have a namespace gets nothing of a placement in it.
func ReportNamespaces(found, previous map[string]string) (map[string]string, metav1.Condition) {
	names := namesOf(found)
	slices.SortStableFunc(names, func(a, b string) int {
		_, trackedA := previous[a]
		_, trackedB := previous[b]
		switch {
		case trackedA == trackedB:
			return 0
		case trackedA:
			return -1
		}
		return 1
	})
	condition := metav1.Condition{
		Type: clusterv1beta1.ConditionTypeNamespaceCollectionSucceeded, Status: metav1.ConditionTrue,
		Reason: clusterv1beta1.ReasonNamespaceCollectionSucceeded, Message: "Every namespace is reported",
	}
	if len(names) > clusterv1beta1.MaxReportedNamespaces {
		names = names[:clusterv1beta1.MaxReportedNamespaces]
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1beta1.ReasonNamespaceCollectionDegraded
		condition.Message = fmt.Sprintf("%d of %d namespaces are reported, and placements in the others do not come to this cluster", len(names),
			len(found))
	}
	reported := make(map[string]string, len(names))
	for _, name := range names {
		reported[name] = found[name]
	}
	return reported, condition
}
