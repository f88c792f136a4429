package clusterprofile

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// ReasonNameTaken is the reason of the event that says that a member has no
// profile because another manager of clusters has one of its name.
const ReasonNameTaken = "ClusterProfileNameTaken"

// Reconciler keeps the profiles of members.
type Reconciler struct {
	client    client.Client
	events    events.EventRecorder
	namespace string
}

// NewReconciler makes a Reconciler that keeps profiles in a namespace.
func NewReconciler(c client.Client, recorder events.EventRecorder, namespace string) *Reconciler {
	return &Reconciler{client: c, events: recorder, namespace: namespace}
}

// Reconcile looks at the profile of the member with the name of the request.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := r.client.Get(ctx, client.ObjectKey{Name: request.Name}, member)
	switch {
	case apierrors.IsNotFound(err):
		member = nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading member cluster %s: %w", request.Name, err)
	}
	profile := &inventoryv1alpha1.ClusterProfile{}
	err = r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: request.Name}, profile)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading cluster profile %s: %w", request.Name, err)
	}
	exists := err == nil
	switch {
	case exists && !Ours(profile):
		if Wanted(member, false) {
			r.events.Eventf(member, profile, "Warning", ReasonNameTaken, "Profile",
				"Cluster profile %s/%s belongs to %s; this member gets none", r.namespace, profile.Name, profile.Spec.ClusterManager.Name)
		}
		return ctrl.Result{}, nil
	case Wanted(member, exists):
		return ctrl.Result{}, r.keepProfile(ctx, member, profile, exists)
	case exists && profile.DeletionTimestamp.IsZero():
		err := r.client.Delete(ctx, profile, client.Preconditions{UID: &profile.UID})
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting cluster profile %s: %w", profile.Name, err)
		}
	}
	return ctrl.Result{}, nil
}

// keepProfile makes a profile say what the member says.
func (r *Reconciler) keepProfile(ctx context.Context, member *clusterv1beta1.MemberCluster, profile *inventoryv1alpha1.ClusterProfile,
	exists bool) error {
	wanted := profile.DeepCopy()
	wanted.Namespace = r.namespace
	wanted.Name = member.Name
	wanted.Spec = Spec(member)
	metav1.SetMetaDataLabel(&wanted.ObjectMeta, inventoryv1alpha1.LabelClusterManagerKey, ManagerName)
	switch {
	case !exists:
		if err := r.client.Create(ctx, wanted); err != nil {
			return fmt.Errorf("creating cluster profile %s/%s: %w", r.namespace, member.Name, err)
		}
	case !apiequality.Semantic.DeepEqual(wanted, profile):
		if err := r.client.Patch(ctx, wanted, client.MergeFrom(profile)); err != nil {
			return fmt.Errorf("writing cluster profile %s: %w", member.Name, err)
		}
	}
	status, news := Status(member, wanted)
	if !news {
		return nil
	}
	return fence.ReplaceStatus(ctx, r.client, wanted, status)
}
