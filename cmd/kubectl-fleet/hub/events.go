package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// EventSources returns what tells what has happened with a placement: its Works, in which members report, the events of the hub, and the
// objects that these are about. Not every user may read the first two.
func EventSources(p Placement) []Source {
	scope := p.scope()
	namespace := p.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // has the events about objects in none
	}
	works := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: p.Name}
	if p.Namespace != "" {
		works[placementv1beta1.ParentNamespaceLabel] = p.Namespace
	}
	sources := []Source{
		{"what members report", &placementv1beta1.Work{}, func() client.ObjectList { return &placementv1beta1.WorkList{} },
			[]client.ListOption{works}, true},
		{"events of the hub", &corev1.Event{}, func() client.ObjectList { return &corev1.EventList{} },
			[]client.ListOption{client.InNamespace(namespace)}, true},
		{"approval requests", scope.NewApprovalRequest(""), func() client.ObjectList { return scope.NewApprovalRequestList() },
			inScope(scope), true},
	}
	if p.Namespace == "" {
		sources = append(sources, Source{"evictions", &placementv1beta1.ClusterResourcePlacementEviction{},
			func() client.ObjectList { return &placementv1beta1.ClusterResourcePlacementEvictionList{} }, nil, true})
	}
	return slices.Concat(sources, placementSources(p))
}

// MayRead returns whether a source may be read. An error for another reason shows when it is.
func (r Reader) MayRead(ctx context.Context, source Source) bool {
	return !apierrors.IsForbidden(listServed(ctx, r, source.what, source.list(), append(slices.Clone(source.options), client.Limit(1))...))
}

// digestManifests leaves of the manifests of a Work what tells whether they change.
func digestManifests(work *placementv1beta1.Work) {
	manifests := make([]placementv1beta1.Manifest, len(work.Spec.Workload.Manifests))
	for i, manifest := range work.Spec.Workload.Manifests {
		sum := sha256.Sum256(manifest.Raw)
		manifests[i].Raw = []byte(`"` + hex.EncodeToString(sum[:]) + `"`)
	}
	work.Spec.Workload.Manifests = manifests
}
