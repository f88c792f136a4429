package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/worksync"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// namespaceGrace is how long the hub may take to finish the deletion of a
// member's namespace before the member is let go without it.
const namespaceGrace = 10 * time.Second

const (
	// exportsEvery is the interval at which the exported services are checked that a leaving member waits for.
	exportsEvery = 10 * time.Second
	// namedExports is how many of them are named.
	namedExports = 5
)

// serviceExports is the kind by which KubeFleet's networking add-on keeps the services that a member exports.
var serviceExports = schema.GroupVersionKind{Group: "networking.fleet.azure.com", Version: "v1alpha1", Kind: "InternalServiceExportList"}

// ReasonNamespaceRemains is the reason of the event that says that a member has
// left and its namespace is still there.
const ReasonNamespaceRemains = "MemberClusterNamespaceRemains"

// seeOffMember lets a member leave: first its agent removes what was placed on it; then the agent is told to leave;
// when it has left, the hub's objects of the member are removed. An agent that does not answer delays this by the
// force-delete wait at most.
func (r *Reconciler) seeOffMember(ctx context.Context, member *clusterv1beta1.MemberCluster,
	box *clusterv1beta1.InternalMemberCluster) (ctrl.Result, error) {
	owes, err := r.owed(ctx, member, box)
	if err != nil {
		return ctrl.Result{}, err
	}
	report := Report{Mailbox: box, Now: metav1.NewTime(r.clock.Now()), Obstacle: "Member cluster is leaving the fleet"}
	var beat time.Duration
	report.Heard, report.HeartbeatsMissed, beat = r.checkHeartbeat(member, box)
	if rest := owes.until.Sub(r.clock.Now()); owes.what != "" && rest > 0 {
		report.Obstacle += fmt.Sprintf(": waiting for %s; it is removed without that at %s", owes.what,
			owes.until.UTC().Format(time.TimeOnly+" MST"))
		if beat > 0 {
			rest = min(rest, beat)
		}
		return ctrl.Result{RequeueAfter: min(rest, owes.every)}, r.storeStatus(ctx, member, Project(member, report))
	}
	return r.clearWorks(ctx, member, report, owes.what)
}

// owed is what a leaving member waits for.
type owed struct {
	// what it is; empty if the member may go.
	what string
	// until is when it is waited for no longer, every how often it is looked at at least.
	until time.Time
	every time.Duration
}

// owed returns what a leaving member waits for: first for services that other clusters may still use, then for its
// agent. If the time for the services has passed before the agent was asked, the agent gets its own time.
func (r *Reconciler) owed(ctx context.Context, member *clusterv1beta1.MemberCluster,
	box *clusterv1beta1.InternalMemberCluster) (owed, error) {
	until := member.DeletionTimestamp.Add(r.options.ForceDeleteWaitTime)
	exports, err := r.exports(ctx, member)
	switch {
	case err != nil:
		return owed{}, err
	case exports != "" && r.clock.Now().Before(until):
		return owed{exports, until, exportsEvery}, nil
	case exports != "":
		until = until.Add(r.options.ForceDeleteWaitTime)
	}
	waitsFor, err := r.sayGoodbye(ctx, member, box)
	return owed{waitsFor, until, r.options.ForceDeleteWaitTime}, err
}

// sayGoodbye takes the next step of leaving that needs the agent, and says what the member waits for; empty if the
// agent is done, or has never been there.
func (r *Reconciler) sayGoodbye(ctx context.Context, member *clusterv1beta1.MemberCluster,
	box *clusterv1beta1.InternalMemberCluster) (waitsFor string, err error) {
	if HasLeft(box) {
		return "", nil
	}
	if !KeepsPlaced(member) {
		placed, err := r.listPlaced(ctx, r.client, member)
		if err != nil {
			return "", err
		}
		if len(placed) > 0 {
			return fmt.Sprintf("%d work(s) to be removed from the cluster", len(placed)), nil
		}
	}
	if err := r.prepare.ensureMailbox(ctx, member, box, clusterv1beta1.ClusterStateLeave); err != nil {
		return "", err
	}
	return "the member agent to leave", nil
}

// exports returns which services of a leaving member other clusters may still use, by the objects of KubeFleet's
// networking add-on on the hub; empty if there are none, or if the add-on is not to be considered.
func (r *Reconciler) exports(ctx context.Context, member *clusterv1beta1.MemberCluster) (string, error) {
	if o := member.Spec.DeleteOptions; o != nil && o.ValidationMode == clusterv1beta1.DeleteValidationModeSkip {
		return "", nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(serviceExports)
	err := r.live.List(ctx, list, client.InNamespace(clusterv1beta1.MemberNamespace(member.Name)))
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), err == nil && len(list.Items) == 0:
		return "", nil // mostly the hub does not have the kind
	case err != nil:
		return "", fmt.Errorf("listing the exported services of member cluster %s: %w", member.Name, err)
	}
	names := make([]string, 0, namedExports)
	for i := range list.Items[:min(len(list.Items), namedExports)] {
		names = append(names, list.Items[i].Name)
	}
	return fmt.Sprintf("%d exported service(s) to be deleted in the member cluster, such as %s (or for spec.deleteOptions.validationMode: Skip)",
		len(list.Items), strings.Join(names, ", ")), nil
}

// listPlaced lists the Works in a member's namespace.
func (r *Reconciler) listPlaced(ctx context.Context, reader client.Reader,
	member *clusterv1beta1.MemberCluster) ([]placementv1beta1.Work, error) {
	var list placementv1beta1.WorkList
	if err := reader.List(ctx, &list, client.InNamespace(clusterv1beta1.MemberNamespace(member.Name))); err != nil {
		return nil, fmt.Errorf("listing the works of member cluster %s: %w", member.Name, err)
	}
	return list.Items, nil
}

// clearWorks removes the hub's objects of a member and lets the member go. waitsFor is what the agent had not done
// when its time was up.
func (r *Reconciler) clearWorks(ctx context.Context, member *clusterv1beta1.MemberCluster, report Report,
	waitsFor string) (ctrl.Result, error) {
	if waitsFor != "" {
		r.events.Eventf(member, nil, "Warning", "MemberClusterForceRemoved", "Leave",
			"The member agent did not answer in time; removing the member cluster without waiting for %s", waitsFor)
		if err := r.leaves(ctx, member, waitsFor); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.clearNamespace(ctx, member); err != nil {
		return ctrl.Result{}, err
	}
	gone, err := r.deleteNamespace(ctx, member)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !gone {
		return ctrl.Result{RequeueAfter: namespaceGrace / 4}, nil
	}
	report.Mailbox = nil
	if err := r.leaves(ctx, member, ""); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.storeStatus(ctx, member, farewell(Project(member, report), report.Now)); err != nil {
		return ctrl.Result{}, err
	}
	r.forgetMember(member.Name)
	return ctrl.Result{}, fence.RemoveFinalizer(ctx, r.client, member, clusterv1beta1.MemberClusterFinalizer,
		clusterv1beta1.ProfileFinalizer)
}

// maxUntold is how much of an error an event says.
const maxUntold = 900

// leaves tells others that a member leaves, if they want to know.
func (r *Reconciler) leaves(ctx context.Context, member *clusterv1beta1.MemberCluster, without string) error {
	if r.options.Leaves == nil {
		return nil
	}
	err := r.options.Leaves(ctx, member, without)
	if err != nil {
		r.events.Eventf(member, nil, "Warning", "MemberClusterLeavesUntold", "Leave",
			"The member cluster stays until it is on record that it leaves: %s", clusterv1beta1.CutText(err.Error(), maxUntold))
	}
	return err
}

// farewell returns the last status of a member: it has left.
func farewell(status clusterv1beta1.MemberClusterStatus, now metav1.Time) clusterv1beta1.MemberClusterStatus {
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type != clusterv1beta1.ConditionTypeJoined {
			continue
		}
		if condition.Status != metav1.ConditionFalse {
			condition.LastTransitionTime = now
		}
		condition.Status = metav1.ConditionFalse
		condition.Reason = clusterv1beta1.ReasonMemberClusterLeft
		condition.Message = "Member cluster has left the fleet"
	}
	return status
}

// clearNamespace removes the objects in a member's namespace by name and kind: the hub may run without a namespace
// controller. Works that their member will not clean up any more are released.
func (r *Reconciler) clearNamespace(ctx context.Context, member *clusterv1beta1.MemberCluster) error {
	namespace := clusterv1beta1.MemberNamespace(member.Name)
	remaining, err := r.listPlaced(ctx, r.live, member)
	if err != nil {
		return err
	}
	var failures []error
	for i := range remaining {
		failures = append(failures, r.prepare.removeMember(ctx, &remaining[i]), worksync.ReleaseWork(ctx, r.client, &remaining[i]))
	}
	for _, object := range []client.Object{
		&clusterv1beta1.InternalMemberCluster{ObjectMeta: fleetMeta(namespace, member.Name)},
		&rbacv1.RoleBinding{ObjectMeta: fleetMeta(namespace, clusterv1beta1.MemberRoleBindingName(member.Name))},
		&rbacv1.Role{ObjectMeta: fleetMeta(namespace, clusterv1beta1.MemberRoleName(member.Name))},
	} {
		failures = append(failures, r.prepare.removeMember(ctx, object))
	}
	return errors.Join(failures...)
}

func (p preparer) removeMember(ctx context.Context, object client.Object) error {
	if err := p.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return wrapError(err, "deleting", object)
	}
	return nil
}

// deleteNamespace deletes the member's namespace and says whether the member can go: the namespace is gone, or no
// controller seems to finish its deletion.
func (r *Reconciler) deleteNamespace(ctx context.Context, member *clusterv1beta1.MemberCluster) (bool, error) {
	name := clusterv1beta1.MemberNamespace(member.Name)
	namespace := &corev1.Namespace{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if namespace.DeletionTimestamp.IsZero() {
		return false, r.prepare.removeMember(ctx, namespace)
	}
	if r.clock.Since(namespace.DeletionTimestamp.Time) < namespaceGrace {
		return false, nil
	}
	r.events.Eventf(member, nil, "Warning", ReasonNamespaceRemains, "Leave", "%s", stuckNamespace(name))
	return true, nil
}
