package override

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/index"
)

// object is an override of either kind.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// kind tells the two kinds of overrides apart.
type kind struct {
	name  string
	empty func() object
	list  func() client.ObjectList
	items func(client.ObjectList) []object
}

func clusterKind() kind {
	return kind{
		name:  "clusterresourceoverride",
		empty: func() object { return &placementv1beta1.ClusterResourceOverride{} },
		list:  func() client.ObjectList { return &placementv1beta1.ClusterResourceOverrideList{} },
		items: func(list client.ObjectList) []object {
			return pointers[*placementv1beta1.ClusterResourceOverride](list.(*placementv1beta1.ClusterResourceOverrideList).Items)
		},
	}
}

func namespacedKind() kind {
	return kind{
		name:  "resourceoverride",
		empty: func() object { return &placementv1beta1.ResourceOverride{} },
		list:  func() client.ObjectList { return &placementv1beta1.ResourceOverrideList{} },
		items: func(list client.ObjectList) []object {
			return pointers[*placementv1beta1.ResourceOverride](list.(*placementv1beta1.ResourceOverrideList).Items)
		},
	}
}

// pointers returns the items of a list as objects.
func pointers[P interface {
	*T
	object
}, T any](items []T) []object {
	objects := make([]object, 0, len(items))
	for i := range items {
		objects = append(objects, P(&items[i]))
	}
	return objects
}

// known is what has to be known of those overrides that are to stay: one that is
// being deleted keeps nothing.
func known(objects []object) []Override {
	overrides := make([]Override, 0, len(objects))
	for _, o := range objects {
		if o.GetDeletionTimestamp().IsZero() {
			overrides = append(overrides, Override{
				NamespacedName: client.ObjectKeyFromObject(o),
				Created:        o.GetCreationTimestamp().Time,
				Selects:        index.Selected(o),
			})
		}
	}
	return overrides
}
