package hub

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/informer"
)

// CacheOptions are those of the hub's cache, for controllers and workers alike. It holds no managed fields, no
// manifests, and of roles only the fleet's own. Code that needs a manifest reads past the cache.
func CacheOptions() cache.Options {
	ownRoles := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{
		clusterv1beta1.FleetResourceLabel: clusterv1beta1.FleetResourceLabelValue,
	})}
	return cache.Options{
		NewInformer:      informer.New,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&placementv1beta1.Work{}: {Transform: stripWork(cache.TransformStripManagedFields())},
			&rbacv1.Role{}:           ownRoles,
			&rbacv1.RoleBinding{}:    ownRoles,
		},
	}
}

// stripWork takes the manifests out of a Work, which only its member needs.
func stripWork(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if work, ok := object.(*placementv1beta1.Work); ok {
			work.Spec.Workload = placementv1beta1.WorkloadTemplate{}
		}
		return next(object)
	}
}
