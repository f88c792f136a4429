//go:build integration

package member

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// vetoFlags are what the owner of the member refuses.
var vetoFlags = []string{"--denied-kinds=PriorityClass.scheduling.k8s.io", "--denied-namespaces=vetoed-*"}

// asAgent is a client of the member with the rights of the agent, who may claim to be another user.
func (s *spec) asAgent(claims rest.ImpersonationConfig) kubernetes.Interface {
	s.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", rig.Fleet.MemberAgentKubeconfig(onemember.Member))
	require.NoError(s, err)
	config.Impersonate = claims
	c, err := kubernetes.NewForConfig(config)
	require.NoError(s, err)
	return c
}

// agentActsAsItself is what a thief of the agent's token would try, and that the agent can nevertheless place roles with
// rights that it does not have.
func agentActsAsItself(s *spec) {
	for _, claims := range []rest.ImpersonationConfig{{UserName: "jane"}, {UserName: "jane", Groups: []string{"system:masters"}}} {
		_, err := s.asAgent(claims).CoreV1().Secrets("").List(s.ctx, metav1.ListOptions{})
		require.True(s, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(s, err, "cannot impersonate")
	}
	err := s.asAgent(rest.ImpersonationConfig{}).CoreV1().ConfigMaps(s.name).DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	require.True(s, apierrors.IsForbidden(err), "%v", err)

	role := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": s.name},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"users"}, "verbs": []any{"impersonate"}}},
	}
	binding := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": s.name},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": s.name},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}},
	}
	s.place(role, binding)
	s.awaitAvailable(s.name)
}

// ownersVeto is what a hub may not do on a cluster whose owner says so.
func ownersVeto(s *spec) {
	theirs := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Value: 7}
	require.NoError(s, rig.Member.Create(s.ctx, theirs))
	class := map[string]any{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": s.name}, "value": 1000,
	}
	denied := "vetoed-" + s.name
	work := s.place(class, onemember.NamespaceOf(denied), onemember.ConfigMap(denied, "in", "v"), s.configMap("a", "v"))
	s.awaitRefused(s.name, s.name, placementv1beta1.ReasonRefusedByMember,
		"PriorityClass.scheduling.k8s.io "+s.name+" is refused by the owner of the cluster", "--denied-kinds of the member agent", "veto")
	s.awaitRefused(s.name, denied, placementv1beta1.ReasonRefusedByMember, "into namespace "+denied+" (--denied-namespaces of the member agent)")
	s.awaitRefused(s.name, "in", placementv1beta1.ReasonRefusedByMember)
	s.awaitValue("a", "v")
	require.True(s, apierrors.IsNotFound(rig.Member.Get(s.ctx, client.ObjectKey{Name: denied}, &corev1.Namespace{})))

	require.NoError(s, rig.Hub.Delete(s.ctx, work))
	require.NoError(s, access.AwaitGone[placementv1beta1.Work](s.ctx, rig.Hub, onemember.Key(s.name)))
	require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Name: s.name}, theirs), "it is not removed either")
	assert.EqualValues(s, 7, theirs.Value)
	assert.Empty(s, theirs.OwnerReferences)
}

// rolesOfKubernetes are by what the cluster itself works.
func rolesOfKubernetes(s *spec) {
	read := func(name string) *rbacv1.ClusterRole {
		role := &rbacv1.ClusterRole{}
		require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Name: name}, role))
		return role
	}
	wildcard := func(name string) map[string]any {
		return map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
			"rules": []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}},
		}
	}
	before := map[string]*rbacv1.ClusterRole{"system:node": read("system:node"), "admin": read("admin")}
	work := s.place(wildcard("system:node"), wildcard("admin"), s.configMap("a", "v"))
	for name := range before {
		s.awaitRefused(s.name, name, placementv1beta1.ReasonReservedForKubernetes, "Kubernetes keeps it for itself")
	}
	s.awaitValue("a", "v")
	require.NoError(s, rig.Hub.Delete(s.ctx, work))
	require.NoError(s, access.AwaitGone[placementv1beta1.Work](s.ctx, rig.Hub, onemember.Key(s.name)))
	for name, role := range before {
		assert.Equal(s, role, read(name), "neither changed nor removed")
	}
}

func (s *spec) secretManifest(values map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": s.name, "name": "s"}, "stringData": values,
	}
}

// awaitSecret waits until the Secret of the spec is as wanted.
func (s *spec) awaitSecret(missing func(*corev1.Secret) string) {
	s.Helper()
	_, err := access.Await(s.ctx, rig.Member, client.ObjectKey{Namespace: s.name, Name: "s"}, missing)
	require.NoError(s, err)
}

// secretsWithoutCopies begins with a Secret as KubeFleet's agent and earlier ones of ours have left it.
func secretsWithoutCopies(s *spec) {
	left := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "s", Annotations: map[string]string{
			placementv1beta1.LastAppliedConfigAnnotation: fmt.Sprintf(
				`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":%q},"data":{"kept":"b25l","dropped":"dHdv"}}`, s.name),
		}},
		Data: map[string][]byte{"kept": []byte("one"), "dropped": []byte("two")},
	}
	require.NoError(s, rig.Member.Create(s.ctx, left, client.FieldOwner(apply.FieldManager)))
	work := s.place(s.secretManifest(map[string]any{"kept": "one", "added": "three"}))
	s.awaitAvailable(s.name)
	s.awaitSecret(func(secret *corev1.Secret) string {
		for _, value := range secret.Annotations {
			if strings.Contains(value, "b25l") {
				return "an annotation shows a value"
			}
		}
		if string(secret.Data["added"]) != "three" || secret.Data["dropped"] != nil {
			return fmt.Sprintf("it has %d values", len(secret.Data))
		}
		return ""
	})

	before := &corev1.Secret{}
	require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Namespace: s.name, Name: "s"}, before))
	drifted := before.DeepCopy()
	drifted.Data["kept"] = []byte("changed")
	require.NoError(s, rig.Member.Update(s.ctx, drifted, client.FieldOwner("kubectl")))
	s.awaitSecret(func(secret *corev1.Secret) string {
		if string(secret.Data["kept"]) != "one" {
			return "the drift is still there"
		}
		return ""
	})
	s.replaceManifests(work, s.secretManifest(map[string]any{"kept": "one"}))
	s.awaitSecret(func(secret *corev1.Secret) string {
		if secret.Data["added"] != nil {
			return "it still has what left the manifest"
		}
		return ""
	})
}
