//go:build integration

package admission

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/membership"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	system = clusterv1beta1.SystemNamespace
	// accessPatience is how long the server may take to learn of a changed role.
	accessPatience = 20 * time.Second
)

// registrar is the hub's membership controller, told when to look. On this hub nothing else acts: no namespace is
// emptied or finalized, no garbage is collected.
type registrar struct {
	*membership.Reconciler
	clock  *clocktesting.FakePassiveClock
	events *events.FakeRecorder
}

func newRegistrar() *registrar {
	r := &registrar{clock: clocktesting.NewFakePassiveClock(time.Now()), events: events.NewFakeRecorder(1000)}
	r.Reconciler = membership.NewReconciler(admin, admin, r.events, r.clock, membership.Options{
		UnhealthyThreshold: time.Minute, ForceDeleteWaitTime: 15 * time.Minute,
	})
	return r
}

// look has the controller look at a member a few times, as its own writes would have it.
func (r *registrar) look(t *testing.T, name string) {
	t.Helper()
	for range 3 {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
		require.NoError(t, err)
	}
}

func (r *registrar) later(by time.Duration) { r.clock.SetTime(r.clock.Now().Add(by)) }

// told is what the events so far say.
func (r *registrar) told() string {
	var all []string
	for {
		select {
		case event := <-r.events.Events:
			all = append(all, event)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// invite makes a member whose agents log in with a service account of its own, as KubeFleet's documentation has it.
func (r *registrar) invite(t *testing.T, name string) *clusterv1beta1.MemberCluster {
	t.Helper()
	account := newAccount(t, name+"-hub-cluster-access")
	member := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1beta1.MemberClusterSpec{
			Identity:               rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name},
			HeartbeatPeriodSeconds: 60,
		},
	}
	require.NoError(t, admin.Create(t.Context(), member))
	t.Cleanup(func() { forget(t, name) })
	r.look(t, name)
	return member
}

// forget removes what a test has left of a member.
func forget(t *testing.T, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, object := range []client.Object{
		&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(name)}},
	} {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			continue
		}
		object.SetFinalizers(nil)
		_ = admin.Update(ctx, object)
		_ = admin.Delete(ctx, object)
		if namespace, ok := object.(*corev1.Namespace); ok && admin.Get(ctx, client.ObjectKeyFromObject(object), object) == nil {
			namespace.Spec.Finalizers = nil
			_ = admin.SubResource("finalize").Update(ctx, namespace)
		}
	}
}

func newAccount(t *testing.T, name string) *corev1.ServiceAccount {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name}}
	require.NoError(t, admin.Create(t.Context(), account))
	t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), account) })
	return account
}

// login returns a session with a token of a service account, and nothing else.
func login(t *testing.T, account string) *session {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	holder := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: account}}
	require.NoError(t, admin.SubResource("token").Create(t.Context(), holder, request))
	config := rest.AnonymousClientConfig(admin.config)
	config.BearerToken = request.Status.Token
	config.QPS = -1
	s, err := newSession(config)
	require.NoError(t, err)
	return s
}

// rights are what the server says the session may do in a namespace, beside asking who it is and reading the certificates to
// trust, as every user of Kubernetes may from 1.37 on.
func (s *session) rights(t *testing.T, namespace string) []authorizationv1.ResourceRule {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	require.NoError(t, s.Create(t.Context(), review))
	require.False(t, review.Status.Incomplete, review.Status.EvaluationError)
	return slices.DeleteFunc(review.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool {
		return !slices.ContainsFunc(rule.Resources, func(resource string) bool {
			return !strings.HasPrefix(resource, "selfsubject") && resource != "clustertrustbundles"
		})
	})
}

func TestAMemberHasTheRightsItNeedsInItsNamespaceAndNoOthers(t *testing.T) {
	r := newRegistrar()
	r.invite(t, "rights-own")
	r.invite(t, "rights-neighbour")
	member := login(t, "rights-own-hub-cluster-access")
	own := clusterv1beta1.MemberNamespace("rights-own")
	require.Eventually(t, func() bool { return len(member.rights(t, own)) > 0 }, accessPatience, 50*time.Millisecond)

	rule := func(group, resource string, verbs ...string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}}
	}
	assert.ElementsMatch(t, []authorizationv1.ResourceRule{
		rule("cluster.kubernetes-fleet.io", "internalmemberclusters", "get", "list", "watch"),
		rule("cluster.kubernetes-fleet.io", "internalmemberclusters/status", "update"),
		rule("placement.kubernetes-fleet.io", "works", "get", "list", "watch", "patch"),
		rule("placement.kubernetes-fleet.io", "works/status", "patch"),
		rule("fleetflow.io", "memberquestions", "get", "list", "watch"),
		rule("fleetflow.io", "memberquestions/status", "patch"),
	}, member.rights(t, own))

	namespaces := &corev1.NamespaceList{}
	require.NoError(t, admin.List(t.Context(), namespaces))
	require.Greater(t, len(namespaces.Items), 4)
	for i := range namespaces.Items {
		if name := namespaces.Items[i].Name; name != own {
			assert.Empty(t, member.rights(t, name), "in %s", name)
		}
	}
}

// parcel puts a Work into a member's namespace, as the hub agent does.
func parcel(t *testing.T, member string) *placementv1beta1.Work {
	t.Helper()
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace(member), Name: "web-work", Finalizers: []string{placementv1beta1.WorkFinalizer},
	}}
	require.NoError(t, admin.Create(t.Context(), work))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = admin.Patch(ctx, work, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		_ = admin.Delete(ctx, work)
	})
	return work
}

func TestWhatAMemberDoesWithItsOwnToken(t *testing.T) {
	r := newRegistrar()
	r.invite(t, "deeds-own")
	r.invite(t, "deeds-neighbour")
	parcel(t, "deeds-own")
	parcel(t, "deeds-neighbour")
	member := login(t, "deeds-own-hub-cluster-access")
	const own, neighbour = "fleet-member-deeds-own", "fleet-member-deeds-neighbour"
	require.Eventually(t, func() bool {
		return member.List(t.Context(), &placementv1beta1.WorkList{}, client.InNamespace(own)) == nil
	}, accessPatience, 50*time.Millisecond)

	work := func(namespace string) *placementv1beta1.Work {
		return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-work"}}
	}
	merge := func(patch string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(patch)) }
	report := func(namespace, name string) error {
		box := &clusterv1beta1.InternalMemberCluster{}
		require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, box))
		box.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
		return member.Status().Update(t.Context(), box)
	}
	in := func(namespace string) client.ListOption { return client.InNamespace(namespace) }
	type deed func(context.Context) error
	for sentence, do := range map[string]deed{
		"reads its mailbox": func(ctx context.Context) error {
			return member.Get(ctx, client.ObjectKey{Namespace: own, Name: "deeds-own"}, &clusterv1beta1.InternalMemberCluster{})
		},
		"reports":         func(context.Context) error { return report(own, "deeds-own") },
		"reads its Works": func(ctx context.Context) error { return member.List(ctx, &placementv1beta1.WorkList{}, in(own)) },
		"reports on a Work": func(ctx context.Context) error {
			return member.Status().Patch(ctx, work(own), merge(`{"status":{"conditions":[]}}`))
		},
		"lets go of a Work": func(ctx context.Context) error {
			return member.Patch(ctx, work(own), merge(`{"metadata":{"finalizers":null}}`))
		},
	} {
		t.Run("it "+sentence, func(t *testing.T) { assert.NoError(t, do(t.Context())) })
	}
	for sentence, do := range map[string]deed{
		"reads Works of its neighbour": func(ctx context.Context) error { return member.List(ctx, &placementv1beta1.WorkList{}, in(neighbour)) },
		"reads Works of the whole hub": func(ctx context.Context) error { return member.List(ctx, &placementv1beta1.WorkList{}) },
		"reports for its neighbour":    func(context.Context) error { return report(neighbour, "deeds-neighbour") },
		"reports on a Work of its neighbour": func(ctx context.Context) error {
			return member.Status().Patch(ctx, work(neighbour), merge(`{"status":{"conditions":[]}}`))
		},
		"changes what a Work says": func(ctx context.Context) error {
			return member.Patch(ctx, work(own), merge(`{"spec":{"workload":{"manifests":[]}}}`))
		},
		"adds a finalizer to a Work": func(ctx context.Context) error {
			return member.Patch(ctx, work(own), merge(`{"metadata":{"finalizers":["kubernetes-fleet.io/work-cleanup","example.com/hold"]}}`))
		},
		"labels a Work": func(ctx context.Context) error {
			return member.Patch(ctx, work(own), merge(`{"metadata":{"labels":{"a":"b"}}}`))
		},
		"deletes a Work": func(ctx context.Context) error { return member.Delete(ctx, work(own)) },
		"makes a Work":   func(ctx context.Context) error { w := work(own); w.Name = "mine"; return member.Create(ctx, w) },
		"tells itself to leave": func(ctx context.Context) error {
			box := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "deeds-own"}}
			return member.Patch(ctx, box, merge(`{"spec":{"state":"Leave"}}`))
		},
		"reads Secrets in its namespace":     func(ctx context.Context) error { return member.List(ctx, &corev1.SecretList{}, in(own)) },
		"reads Secrets where its account is": func(ctx context.Context) error { return member.List(ctx, &corev1.SecretList{}, in(system)) },
		"gives itself a role": func(ctx context.Context) error {
			return member.Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "mine"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: "deeds-own-hub-cluster-access"}},
			})
		},
		"widens its role": func(ctx context.Context) error {
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "fleet-role-deeds-own"}}
			return member.Patch(ctx, role, merge(`{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`))
		},
		"reads members": func(ctx context.Context) error { return member.List(ctx, &clusterv1beta1.MemberClusterList{}) },
		"reads placements": func(ctx context.Context) error {
			return member.List(ctx, &placementv1beta1.ClusterResourcePlacementList{})
		},
		"reads namespaces": func(ctx context.Context) error { return member.List(ctx, &corev1.NamespaceList{}) },
		"makes a token for another account": func(ctx context.Context) error {
			holder := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "deeds-neighbour-hub-cluster-access"}}
			return member.SubResource("token").Create(ctx, holder, &authenticationv1.TokenRequest{})
		},
	} {
		t.Run("it never "+sentence, func(t *testing.T) {
			err := do(t.Context())
			require.Error(t, err)
			assert.True(t, apierrors.IsForbidden(err), "refused for another reason: %v", err)
		})
	}
}

func TestAnotherIdentityIsLetInAndTheOneBeforeIsNot(t *testing.T) {
	r := newRegistrar()
	member := r.invite(t, "renamed")
	before := login(t, "renamed-hub-cluster-access")
	after := login(t, newAccount(t, "renamed-another").Name)
	mayRead := func(s *session) func() bool {
		return func() bool {
			return s.List(t.Context(), &placementv1beta1.WorkList{}, client.InNamespace("fleet-member-renamed")) == nil
		}
	}
	require.Eventually(t, mayRead(before), accessPatience, 50*time.Millisecond)
	require.False(t, mayRead(after)())

	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(member), member))
	member.Spec.Identity.Name = "renamed-another"
	require.NoError(t, admin.Update(t.Context(), member))
	r.look(t, "renamed")
	require.Eventually(t, mayRead(after), accessPatience, 50*time.Millisecond)
	require.False(t, mayRead(before)())
}

func TestOnAHubWithoutControllersAMemberLeavesAndJoinsAgain(t *testing.T) {
	r := newRegistrar()
	member := r.invite(t, "lonely")
	require.NoError(t, admin.Delete(t.Context(), member))
	r.look(t, "lonely")
	r.later(time.Minute)
	r.look(t, "lonely")
	require.True(t, apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(member), member)), "it is not held up")
	assert.Contains(t, r.told(), membership.ReasonNamespaceRemains)
	inNamespace := client.InNamespace("fleet-member-lonely")
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &clusterv1beta1.InternalMemberClusterList{}} {
		require.NoError(t, admin.List(t.Context(), list, inNamespace))
		assert.Zero(t, meta.LenList(list), "%T: nobody else would remove it", list)
	}

	again := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "lonely"}, Spec: member.Spec}
	require.NoError(t, admin.Create(t.Context(), again))
	r.look(t, "lonely")
	ready := func() *metav1.Condition {
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(again), again))
		return meta.FindStatusCondition(again.Status.Conditions, clusterv1beta1.ConditionTypeReadyToJoin)
	}
	require.Equal(t, metav1.ConditionFalse, ready().Status)
	_, command, found := strings.Cut(ready().Message, "do it with: ")
	require.True(t, found, ready().Message)
	runIn(t, command)
	r.look(t, "lonely")
	assert.Equal(t, metav1.ConditionTrue, ready().Status, ready().Message)
}

// administrator is the environment of an administrator of the hub, with the kubectl that the local fleet has.
func administrator() []string {
	path := filepath.Dir(hub.Tools["kubectl"]) + string(os.PathListSeparator) + os.Getenv("PATH")
	return append(os.Environ(), "KUBECONFIG="+hub.Kubeconfig(), "PATH="+path)
}

// runIn runs a command that a message tells an administrator to run.
func runIn(t *testing.T, command string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
	shell.Env = administrator()
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s\n%s", command, out)
}

func TestTheJoinScriptGivesATokenThatEndsAndMakesEarlierOnesWorthless(t *testing.T) {
	t.Cleanup(func() { forget(t, "scripted") })
	const account = "scripted-hub-cluster-access"
	eternal := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "connect-to-fleet", Name: account + "-token"}}
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: eternal.Namespace}})))
	require.NoError(t, admin.Create(t.Context(), eternal))
	// join runs the script and returns a session with the token that it puts on the cluster.
	join := func() *session {
		script := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "deploy", "join", "join-member-cluster.sh"))
		// One cluster is both, and nothing is installed: no agent comes that would say that it has joined.
		script.Env = append(administrator(), "HUB_CLUSTER_CONTEXT="+state.Hub, "MEMBER_CLUSTER_CONTEXT="+state.Hub,
			"HUB_CLUSTER_ADDRESS="+hub.APIServerURL(state.Hub), "MEMBER_CLUSTER=scripted", "HELM=true", "TOKEN_DURATION=1h", "JOIN_TIMEOUT=1s")
		out, err := script.CombinedOutput()
		require.Error(t, err, "%s", out)
		require.Contains(t, string(out), "scripted has not joined. The log of its agent says more")
		secret := &corev1.Secret{}
		require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "hub-kubeconfig-secret"}, secret))
		t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), secret) })
		config := rest.AnonymousClientConfig(admin.config)
		config.BearerToken = string(secret.Data["token"])
		s, err := newSession(config)
		require.NoError(t, err)
		return s
	}
	whoAmI := func(s *session) (string, error) {
		review := &authenticationv1.SelfSubjectReview{}
		err := s.Create(t.Context(), review)
		return review.Status.UserInfo.Username, err
	}
	first := join()
	member := &clusterv1beta1.MemberCluster{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: "scripted"}, member))
	assert.Equal(t, account, member.Spec.Identity.Name)
	name, err := whoAmI(first)
	require.NoError(t, err)
	assert.Equal(t, "system:serviceaccount:connect-to-fleet:"+account, name)
	assert.True(t, apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(eternal), eternal)), "a token without end does not outlive it")

	mint := func(s *session, account string) error {
		holder := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "connect-to-fleet", Name: account}}
		return s.SubResource("token").Create(t.Context(), holder, &authenticationv1.TokenRequest{})
	}
	require.Eventually(t, func() bool { return mint(first, account) == nil }, accessPatience, 50*time.Millisecond, "it renews its own")
	assert.True(t, apierrors.IsForbidden(mint(first, "another-hub-cluster-access")), "and no other")

	second := join()
	require.Eventually(t, func() bool {
		_, err := whoAmI(first)
		return apierrors.IsUnauthorized(err)
	}, tokenPatience, 50*time.Millisecond, "the token of the first account counts no more")
	_, err = whoAmI(second)
	require.NoError(t, err)
}

// tokenPatience is longer than an API server remembers that a token was good.
const tokenPatience = 30 * time.Second

func TestAMemberWhoseAgentIsDeadIsRemovedAfterAWhile(t *testing.T) {
	r := newRegistrar()
	member := r.invite(t, "dead")
	work := parcel(t, "dead")
	box := &clusterv1beta1.InternalMemberCluster{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: "fleet-member-dead", Name: "dead"}, box))
	box.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now(),
		Conditions: []metav1.Condition{{
			Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonInternalMemberClusterJoined,
			LastTransitionTime: metav1.Now(),
		}},
	}}
	require.NoError(t, admin.Status().Update(t.Context(), box))
	r.look(t, "dead")
	require.NoError(t, admin.Delete(t.Context(), member))
	r.look(t, "dead")
	r.later(14 * time.Minute)
	r.look(t, "dead")
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(member), member), "its agent may still come back")
	ready := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeReadyToJoin)
	assert.Contains(t, ready.Message, "waiting for 1 work(s) to be removed from the cluster; it is removed without that at")

	r.later(2 * time.Minute)
	r.look(t, "dead")
	r.later(time.Minute)
	r.look(t, "dead")
	assert.True(t, apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(member), member)))
	assert.True(t, apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(work), work)), "nobody else would let go of it")
	assert.Contains(t, r.told(), "MemberClusterForceRemoved")
}
