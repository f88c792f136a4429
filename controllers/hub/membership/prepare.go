package membership

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// preparer makes what a member needs on the hub; live reads past the cache.
type preparer struct {
	client client.Client
	live   client.Reader
}

// prepareNamespace makes the member's namespace, the access to it and its mailbox. It returns an obstacle that is no
// failure of this controller in words for the user.
func (p preparer) prepareNamespace(ctx context.Context, member *clusterv1beta1.MemberCluster,
	box *clusterv1beta1.InternalMemberCluster) (obstacle string, err error) {
	namespace := clusterv1beta1.MemberNamespace(member.Name)
	existing, err := p.ensureNamespace(ctx, namespace)
	switch {
	case err != nil:
		return "", err
	case existing == nil:
		if err := p.createOrUpdate(ctx, &corev1.Namespace{ObjectMeta: fleetMeta("", namespace)}); err != nil {
			return "", err
		}
	case !existing.DeletionTimestamp.IsZero():
		return stuckNamespace(namespace), nil
	}
	if err := p.ensureAccess(ctx, member, namespace); err != nil {
		return "", err
	}
	return "", p.ensureMailbox(ctx, member, box, clusterv1beta1.ClusterStateJoin)
}

// stuckNamespace returns what to do about a namespace that does not go away. The
// hub may run without the controllers of kube-controller-manager.
func stuckNamespace(namespace string) string {
	return fmt.Sprintf("Namespace %[1]s, left by a member of this name, is still being deleted. "+
		"If the hub runs without the namespace controller, no controller finishes that; do it with: "+
		`echo '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"%[1]s"},"spec":{"finalizers":[]}}' | kubectl replace --raw /api/v1/namespaces/%[1]s/finalize -f -`, namespace)
}

// ensureNamespace reads the metadata of a namespace; nil if there is none.
func (p preparer) ensureNamespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := p.client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil // no namespace is an answer, not a failure
	}
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace, nil
}

// ensureAccess lets the member's identity into its namespace, and only there.
func (p preparer) ensureAccess(ctx context.Context, member *clusterv1beta1.MemberCluster, namespace string) error {
	role := &rbacv1.Role{
		ObjectMeta: fleetMeta(namespace, clusterv1beta1.MemberRoleName(member.Name)),
		Rules:      memberRules(),
	}
	if err := ensureMeta(ctx, p, role, func(have *rbacv1.Role) bool {
		same := apiequality.Semantic.DeepEqual(have.Rules, role.Rules)
		have.Rules = role.Rules
		return same
	}); err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: fleetMeta(namespace, clusterv1beta1.MemberRoleBindingName(member.Name)),
		Subjects:   []rbacv1.Subject{subjectOf(member.Spec.Identity)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}
	if err := p.dropOther(ctx, binding); err != nil {
		return err
	}
	return ensureMeta(ctx, p, binding, func(have *rbacv1.RoleBinding) bool {
		same := apiequality.Semantic.DeepEqual(have.Subjects, binding.Subjects)
		have.Subjects = binding.Subjects
		return same
	})
}

// dropOther deletes a role binding of the wanted name that is to another role: the role of a binding cannot be
// changed, and the member must not be bound to another one.
func (p preparer) dropOther(ctx context.Context, want *rbacv1.RoleBinding) error {
	have := &rbacv1.RoleBinding{}
	err := p.client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if err != nil || have.RoleRef == want.RoleRef {
		return wrapError(client.IgnoreNotFound(err), "reading", want)
	}
	return p.removeMember(ctx, have)
}

// memberRules returns the permissions of a member's agent on the hub: to read its mailbox, its Works and what it is asked, to report on
// them, and to remove its finalizers from Works. It emits no events there.
func memberRules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{clusterv1beta1.GroupName}, Resources: []string{"internalmemberclusters"}, Verbs: read},
		{APIGroups: []string{clusterv1beta1.GroupName}, Resources: []string{"internalmemberclusters/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"works"}, Verbs: append(slices.Clone(read), "patch")},
		{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"works/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{fleetflowv1alpha1.GroupName}, Resources: []string{"memberquestions"}, Verbs: read},
		{APIGroups: []string{fleetflowv1alpha1.GroupName}, Resources: []string{"memberquestions/status"}, Verbs: []string{"patch"}},
	}
}

// subjectOf fills in the API group the way the API server does, so that the
// comparison with what is stored does not find a difference for ever.
func subjectOf(identity rbacv1.Subject) rbacv1.Subject {
	if identity.APIGroup == "" && identity.Kind != rbacv1.ServiceAccountKind {
		identity.APIGroup = rbacv1.GroupName
	}
	return identity
}

// ensureMailbox makes the mailbox say what the hub wants of the member.
func (p preparer) ensureMailbox(ctx context.Context, member *clusterv1beta1.MemberCluster, box *clusterv1beta1.InternalMemberCluster,
	state clusterv1beta1.ClusterState) error {
	want := clusterv1beta1.InternalMemberClusterSpec{
		State: state, HeartbeatPeriodSeconds: member.Spec.HeartbeatPeriodSeconds, Agent: member.Spec.Agent,
	}
	if box == nil {
		created := &clusterv1beta1.InternalMemberCluster{
			ObjectMeta: fleetMeta(clusterv1beta1.MemberNamespace(member.Name), member.Name),
			Spec:       want,
		}
		markKept(created, member)
		return p.createOrUpdate(ctx, created)
	}
	changed := box.DeepCopy()
	changed.Spec = want
	markKept(changed, member)
	if apiequality.Semantic.DeepEqual(changed, box) {
		return nil
	}
	if err := p.client.Patch(ctx, changed, client.MergeFrom(box)); err != nil {
		return fmt.Errorf("writing internal member cluster %s: %w", box.Name, err)
	}
	return nil
}

// markKept passes on to the agent that the member is to keep what was placed on it.
func markKept(box *clusterv1beta1.InternalMemberCluster, member *clusterv1beta1.MemberCluster) {
	if KeepsPlaced(member) {
		metav1.SetMetaDataAnnotation(&box.ObjectMeta, clusterv1beta1.KeepPlacedAnnotation,
			member.Annotations[clusterv1beta1.KeepPlacedAnnotation])
		return
	}
	delete(box.Annotations, clusterv1beta1.KeepPlacedAnnotation)
}

func fleetMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace,
		Name:      name,
		Labels:    map[string]string{clusterv1beta1.FleetResourceLabel: clusterv1beta1.FleetResourceLabelValue},
	}
}

func (p preparer) createOrUpdate(ctx context.Context, object client.Object) error {
	if err := p.client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// ensureMeta makes sure an object exists and is as wanted: align makes it so and
// says whether it already was. The cache knows only objects with the fleet's
// label; one without it is found live and gets the label.
func ensureMeta[T client.Object](ctx context.Context, p preparer, want T, align func(T) bool) error {
	have := want.DeepCopyObject().(T)
	key := client.ObjectKeyFromObject(want)
	err := p.client.Get(ctx, key, have)
	if apierrors.IsNotFound(err) {
		err = p.client.Create(ctx, want.DeepCopyObject().(T))
		if !apierrors.IsAlreadyExists(err) {
			return wrapError(err, "creating", want)
		}
		err = p.live.Get(ctx, key, have)
	}
	if err != nil {
		return wrapError(err, "reading", want)
	}
	labelled := have.GetLabels()[clusterv1beta1.FleetResourceLabel] == clusterv1beta1.FleetResourceLabelValue
	if align(have) && labelled {
		return nil
	}
	labels := have.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1beta1.FleetResourceLabel] = clusterv1beta1.FleetResourceLabelValue
	have.SetLabels(labels)
	return wrapError(p.client.Update(ctx, have), "updating", want)
}

func wrapError(err error, doing string, object client.Object) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %T %s: %w", doing, object, client.ObjectKeyFromObject(object), err)
}
