package install

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

// errNoHub says that the cluster serves no MemberClusters.
var errNoHub = errors.New("it has no MemberClusters: install the chart hub-agent there, or choose the hub with --context")

// checkHub makes sure that the member can be invited, before anything is changed.
func (o *joinOptions) checkHub(ctx context.Context) error {
	member := &clusterv1beta1.MemberCluster{}
	err := o.hub.Get(ctx, client.ObjectKey{Name: o.member}, member)
	switch {
	case hub.Unserved(err):
		return errNoHub
	case apierrors.IsNotFound(err):
		o.warnOfUnguardedNamespace(ctx)
		return nil
	case err != nil:
		return fmt.Errorf("reading member/%s: %w", o.member, err)
	case member.DeletionTimestamp != nil:
		return fmt.Errorf("member/%s is leaving the fleet: try again once it is gone", o.member)
	case member.Spec.Identity != o.memberIdentity():
		return fmt.Errorf("member/%s is there with another identity, %s %s: choose another name, or unjoin it first",
			o.member, member.Spec.Identity.Kind, member.Spec.Identity.Name)
	default:
		o.invited = true
		o.known = member.Annotations[clusterv1beta1.ClusterUIDAnnotation]
		o.heard = heartbeatOf(member)
		return nil
	}
}

// warnOfUnguardedNamespace warns if the guard rails of the hub do not know that the namespace has accounts of members: who
// may write accounts there, or place it, gets at what is placed on the member.
func (o *joinOptions) warnOfUnguardedNamespace(ctx context.Context) {
	if strings.HasPrefix(o.access, "fleet-") || strings.HasPrefix(o.access, "kube-") {
		return
	}
	filter, err := plan.PublishedFilter(ctx, o.hub)
	if err != nil || filter.SkipsNamespace(o.access) {
		return // a hub that publishes nothing has no guard rails either
	}
	cli.Printf(o.Streams.ErrOut, "Warning: namespace %s is not among accessNamespaces of the hub agent's chart, so no guard rail keeps others from writing accounts and tokens there\n", o.access)
}

// checkMember makes sure that the cluster can join, and that Helm would not delete from it the definition of what is placed, and
// with that all that is, before anything is changed.
func (o *joinOptions) checkMember(ctx context.Context) error {
	if err := o.checkCluster(ctx); err != nil {
		return err
	}
	return migration.RefuseReleases(ctx, o.cluster, o.memberContext)
}

// checkCluster makes sure that the cluster can be reached, and that it is not another than the one that has its name:
// the agents of two would undo each other's work.
func (o *joinOptions) checkCluster(ctx context.Context) error {
	var err error
	if o.uid, err = uidOf(ctx, o.cluster); err != nil || o.uid == "" {
		return err
	}
	if err := o.taken.takeCluster(o.uid, o.member); err != nil {
		return err
	}
	if o.known != "" && o.known != o.uid && !o.move {
		return fmt.Errorf("member/%s is another cluster: that one has uid %s, this one %s. Choose another name, or unjoin that one first; "+
			"if this cluster is to have the name from now on, such as one that was built anew, give --move", o.member, o.known, o.uid)
	}
	return o.checkOtherNames(ctx)
}

// checkOtherNames refuses a cluster that is in the fleet under another name: its agent would leave that name without a word.
func (o *joinOptions) checkOtherNames(ctx context.Context) error {
	members := &clusterv1beta1.MemberClusterList{}
	if err := o.hub.List(ctx, members); err != nil {
		return fmt.Errorf("looking for the cluster under another name: %w", err)
	}
	for i := range members.Items {
		other := &members.Items[i]
		if other.Name == o.member || other.Annotations[clusterv1beta1.ClusterUIDAnnotation] != o.uid {
			continue
		}
		if !o.move {
			return fmt.Errorf("%[1]s is the cluster of member/%[2]s, which has the same uid %[3]s: it would become %[4]s, and %[2]s would have no cluster. "+
				"Check --member-context, or unjoin %[2]s first; if the cluster is to be %[4]s from now on, give --move", o.memberContext, other.Name,
				o.uid, o.member)
		}
		o.movedFrom = append(o.movedFrom, other)
	}
	return nil
}

// uidOf returns what a cluster is told by; empty if it has nothing of the kind.
func uidOf(ctx context.Context, cluster client.Client) (string, error) {
	system := &corev1.Namespace{}
	err := cluster.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading its namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(system.UID), nil
}

func (o *joinOptions) memberIdentity() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: o.access, Name: o.accountName()}
}

// createUnlessThere creates an object that may be there.
func createUnlessThere(ctx context.Context, c client.Client, object client.Object) error {
	if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		_, kind, _ := strings.Cut(fmt.Sprintf("%T", object), ".")
		return fmt.Errorf("creating %s %q: %w", strings.ToLower(kind), object.GetName(), err)
	}
	return nil
}

// makeIdentity makes the service account anew, so that no token of an earlier one counts, and keeps a token of it. The account
// may renew its own token, and nothing else.
func (o *joinOptions) makeIdentity(ctx context.Context) error {
	write := o.Writer(o.hub)
	if err := createUnlessThere(ctx, write, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.access}}); err != nil {
		return err
	}
	for _, old := range accountObjects(o.access, o.accountName()) {
		if err := client.IgnoreNotFound(write.Delete(ctx, old)); err != nil {
			return fmt.Errorf("deleting what is left of an earlier account, so that its tokens count no more: %T %s/%s: %w", old, o.access,
				old.GetName(), err)
		}
	}
	in := metav1.ObjectMeta{Namespace: o.access, Name: o.accountName()}
	account := &corev1.ServiceAccount{ObjectMeta: in}
	for _, object := range []client.Object{
		account,
		&rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account.Name},
				Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account.Name},
			Subjects: []rbacv1.Subject{o.memberIdentity()},
		},
	} {
		if err := write.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s/%s: %w", object, o.access, object.GetName(), err)
		}
	}
	if !o.heard.IsZero() && !o.Dry() {
		// Once its earlier tokens count no more, a later report is by the new one.
		member := &clusterv1beta1.MemberCluster{}
		if err := o.hub.Get(ctx, client.ObjectKey{Name: o.member}, member); err != nil {
			return fmt.Errorf("reading member/%s: %w", o.member, err)
		}
		o.heard = heartbeatOf(member)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(
		int64(o.tokenDuration.Seconds()))}}
	if err := write.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token of %s/%s: %w", o.access, account.Name, err)
	}
	o.token = request.Status.Token
	return nil
}

// heartbeatOf returns when the agent of a member reported last; zero if it never did.
func heartbeatOf(member *clusterv1beta1.MemberCluster) time.Time {
	for i := range member.Status.AgentStatus {
		if member.Status.AgentStatus[i].Type == clusterv1beta1.MemberAgent {
			return member.Status.AgentStatus[i].LastReceivedHeartbeat.Time
		}
	}
	return time.Time{}
}

// accountOf names the service account of a member on the hub.
func accountOf(member string) string { return member + "-hub-cluster-access" }

// accountObjects returns the objects of a member's account: what lets it renew its token, a token without end that an earlier
// join may have made, and itself.
func accountObjects(namespace, account string) []client.Object {
	in := metav1.ObjectMeta{Namespace: namespace, Name: account}
	return []client.Object{
		&rbacv1.RoleBinding{ObjectMeta: in}, &rbacv1.Role{ObjectMeta: in},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account + "-token"}},
		&corev1.ServiceAccount{ObjectMeta: in},
	}
}

func (o *joinOptions) createMember(ctx context.Context) error {
	member := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: o.member, Labels: o.labels},
		Spec:       clusterv1beta1.MemberClusterSpec{Identity: o.memberIdentity(), HeartbeatPeriodSeconds: o.heartbeat},
	}
	if o.uid != "" {
		member.Annotations = map[string]string{clusterv1beta1.ClusterUIDAnnotation: o.uid}
	}
	if err := createUnlessThere(ctx, o.Writer(o.hub), member); err != nil {
		return err
	}
	if o.invited && len(o.labels) > 0 { // others that it has stay
		if err := mergeMetadata(ctx, o.Writer(o.hub), member, "labels", o.labels); err != nil {
			return fmt.Errorf("labelling member/%s: %w", o.member, err)
		}
	}
	return o.noteCluster(ctx, member)
}

// noteCluster notes of which cluster the member is, and that no other member is of it.
func (o *joinOptions) noteCluster(ctx context.Context, member *clusterv1beta1.MemberCluster) error {
	uids := map[client.Object]any{}
	for _, other := range o.movedFrom {
		uids[other] = nil
	}
	if o.uid != "" && o.invited && o.known != o.uid {
		uids[member] = o.uid
	}
	for noted, uid := range uids {
		uid := map[string]any{clusterv1beta1.ClusterUIDAnnotation: uid}
		if err := mergeMetadata(ctx, o.Writer(o.hub), noted, "annotations", uid); err != nil {
			return fmt.Errorf("noting on member/%s which cluster it is: %w", noted.GetName(), err)
		}
	}
	return nil
}

// mergeMetadata merges values into the labels or the annotations of an object.
func mergeMetadata(ctx context.Context, write client.Client, object client.Object, field string, values any) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{field: values}})
	if err != nil {
		return fmt.Errorf("encoding the %s: %w", field, err)
	}
	return write.Patch(ctx, object, client.RawPatch(types.MergePatchType, data))
}

// putToken writes the token for the hub to the cluster.
func (o *joinOptions) putToken(ctx context.Context) error {
	if err := o.makeNamespace(ctx, o.cluster); err != nil {
		return err
	}
	write := o.Writer(o.cluster)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: tokenSecret}}
	_, err := controllerutil.CreateOrPatch(ctx, write, secret, func() error {
		secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(o.token)}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing Secret %s/%s: %w", agentNamespace, tokenSecret, err)
	}
	return nil
}

// breakOldLease deletes the lease of an agent that was uninstalled: the new one would wait until it runs out.
func (o *joinOptions) breakOldLease(ctx context.Context) error {
	agent := &metav1.PartialObjectMetadata{}
	agent.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	err := o.cluster.Get(ctx, client.ObjectKey{Namespace: agentNamespace, Name: agentRelease}, agent)
	switch {
	case err == nil:
		return nil // it keeps its lease
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("looking for an agent: %w", err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: agentLease}}
	if err := client.IgnoreNotFound(o.Writer(o.cluster).Delete(ctx, lease)); err != nil {
		return fmt.Errorf("deleting the lease of an agent that is gone: %w", err)
	}
	return nil
}

// authorityOf returns the CA of the hub's API server in base64, that of a file if one is named; empty if its context has none.
func authorityOf(hub *rest.Config, named string) (string, error) {
	data := hub.CAData
	file := hub.CAFile
	if named != "" {
		data = nil
		file = named
	}
	if len(data) == 0 && file != "" {
		read, err := os.ReadFile(file) //nolint:gosec // the user names it
		if err != nil {
			return "", fmt.Errorf("reading the CA of the hub: %w", err)
		}
		data = read
	}
	return base64.StdEncoding.EncodeToString(data), nil
}

// hasJoined reports whether the member has joined, with the token that it has now.
func (o *joinOptions) hasJoined(member *clusterv1beta1.MemberCluster, there bool) bool {
	return there && meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionTypeJoined) &&
		(o.heard.IsZero() || heartbeatOf(member).After(o.heard))
}

func (o *joinOptions) awaitJoined(ctx context.Context) error {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: o.member}}
	err := steer.Await(ctx, o.hub, member, &clusterv1beta1.MemberClusterList{}, o.timeout, o.hasJoined, steer.ByName(member)...)
	if err == nil {
		return nil
	}
	pods := &corev1.PodList{}
	// Without the right to read Pods there is the log to look at.
	_ = o.cluster.List(ctx, pods, client.InNamespace(agentNamespace), client.MatchingLabels{"app.kubernetes.io/name": agentRelease})
	if found := diagnosis.FindUnstarted(pods.Items, o.Factory.Clock.Now()); len(found) > 0 {
		return fmt.Errorf("on %s: %s; %s (%w)", o.memberContext, found[0].Message, found[0].Remedy, err)
	}
	return fmt.Errorf("%w; %s. The agent's log says more: kubectl --context %s --namespace %s logs deployment/%s", err, conditionsOf(member),
		o.memberContext, agentNamespace, agentRelease)
}

// conditionsOf says in words how far a member is.
func conditionsOf(member *clusterv1beta1.MemberCluster) string {
	var said []string
	for _, c := range member.Status.Conditions {
		said = append(said, fmt.Sprintf("%s is %s: %s", c.Type, c.Status, c.Message))
	}
	if len(said) == 0 {
		return "the hub agent has not taken it up: is it running?"
	}
	return strings.Join(said, "; ")
}
