package hub

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/informer"
)

// CacheOptions returns those of the hub's cache, for controllers and workers alike. Of managed fields it holds only whether a user has
// applied a part of a binding or a Work. It holds no manifests, of what members write only what is read of it, and of roles only the
// fleet's own. Code that needs a manifest reads past the cache.
func CacheOptions() cache.Options {
	ownRoles := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{
		clusterv1beta1.FleetResourceLabel: clusterv1beta1.FleetResourceLabelValue,
	})}
	stripped := cache.TransformStripManagedFields()
	byObject := map[client.Object]cache.ByObject{
		&placementv1beta1.Work{}:                {Transform: stripWork(shareStrings(keepApplied))},
		&clusterv1beta1.InternalMemberCluster{}: {Transform: stripMailbox(stripped)},
		&fleetflowv1alpha1.MemberQuestion{}:     {Transform: stripQuestion(stripped)},
		&rbacv1.Role{}:                          ownRoles,
		&rbacv1.RoleBinding{}:                   ownRoles,
	}
	for _, scope := range placementv1beta1.Scopes() {
		byObject[scope.NewBinding("")] = cache.ByObject{Transform: shareStrings(keepApplied)}
		for _, object := range []client.Object{scope.NewPlacement(""), scope.NewPolicySnapshot(""), scope.NewUpdateRun("")} {
			byObject[object] = cache.ByObject{Transform: shareStrings(stripped)}
		}
	}
	return cache.Options{NewInformer: informer.New, DefaultTransform: stripped, ByObject: byObject}
}

// applied stands in the cache for the record of who has written which field, if a user has applied a part of the object on the server side.
var applied = []metav1.ManagedFieldsEntry{{Operation: metav1.ManagedFieldsOperationApply}}

// keepApplied takes the record of who has written which field out of an object, except that a user has applied a part of it: who writes
// the object on asks that (fence.Untrack).
func keepApplied(object any) (any, error) {
	o, ok := object.(client.Object)
	if !ok || len(o.GetManagedFields()) == 0 {
		return object, nil
	}
	isApplied := slices.ContainsFunc(o.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationApply
	})
	o.SetManagedFields(nil)
	if isApplied {
		o.SetManagedFields(applied)
	}
	return object, nil
}

// stripWork takes the manifests out of a Work, which only its member needs, and what the hub does
// not read of its report.
func stripWork(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if work, ok := object.(*placementv1beta1.Work); ok {
			workmodel.DropManifests(work)
			work.Status = summarizeReport(work.Status)
		}
		return next(object)
	}
}

// stripQuestion takes out of a question what only its member needs: manifests, and of Pods all but the names of their images, by which the
// answer is read. Names and messages that many questions have are there once.
func stripQuestion(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if question, ok := object.(*fleetflowv1alpha1.MemberQuestion); ok {
			if question.Spec.Rehearse != nil {
				question.Spec.Rehearse.Manifests = nil
			}
			stripImages(question)
		}
		return next(object)
	}
}

// stripImages takes out of a question for images what only its member needs, and shares the rest.
func stripImages(question *fleetflowv1alpha1.MemberQuestion) {
	if asked := question.Spec.PullImages; asked != nil {
		for i := range asked.Pods {
			asked.Pods[i] = fleetflowv1alpha1.ImagesOfPods{Namespace: asked.Pods[i].Namespace, Images: asked.Pods[i].Images}
			for j := range asked.Pods[i].Images {
				shareAll(&asked.Pods[i].Images[j])
			}
		}
	}
	if said := question.Status.Images; said != nil {
		for i := range said.Images {
			shareAll(&said.Images[i].Image, &said.Images[i].Message)
		}
	}
}

// stripMailbox bounds what a member reports about itself.
func stripMailbox(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if box, ok := object.(*clusterv1beta1.InternalMemberCluster); ok {
			boundMailbox(&box.Status)
		}
		return next(object)
	}
}
