//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	joinScript  = "join-member-cluster.sh"
	leaveScript = "leave-member-cluster.sh"
)

// clusterJoinsAndLeaves is the whole life of a member, as an administrator has it with the scripts.
func clusterJoinsAndLeaves(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	g := s.guest(s.name + "-guest")

	require.Contains(s, g.script(joinScript), "Waiting for "+g.name+" to join")
	g.awaitValue(value1)
	g.requireMember()
	g.requireOwnNamespaceOnly()

	require.Contains(s, g.script(leaveScript), g.name+" has left the fleet")
	g.requireNothingLeft()
	awaitGone(s, g.cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})

	g.script(joinScript)
	g.awaitValue(value1)
	g.script(leaveScript, "KEEP_PLACED=true")
	g.requireNothingLeft()
	require.NoError(s, g.Get(s.Context(), client.ObjectKeyFromObject(s.configMap("")), &corev1.ConfigMap{}), "what was placed stays, if it is to")

	s.changeTo(value2)
	g.script(joinScript)
	g.awaitValue(value2)
	g.script(leaveScript)
	awaitGone(s, g.cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
}

// deadMemberIsRemoved has a member whose agent does not answer when it is to leave, and that is back later.
func deadMemberIsRemoved(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	g := s.guest(s.name + "-guest")
	g.script(joinScript)
	g.awaitValue(value1)

	g.killAgent()
	m := g.member()
	s.delete(s.hub, m)
	await(s, s.hub, m, "to say what it waits for", func(m *clusterv1beta1.MemberCluster) error {
		return says(m.Status.Conditions, clusterv1beta1.ConditionTypeReadyToJoin, "it is removed without that at")
	})
	awaitGone(s, s.hub, m)
	g.requireNothingLeft()
	require.NoError(s, g.Get(s.Context(), client.ObjectKeyFromObject(s.configMap("")), &corev1.ConfigMap{}), "nobody could remove it")

	s.changeTo(value2)
	g.script(joinScript)
	g.awaitValue(value2)
	g.script(leaveScript)
	awaitGone(s, g.cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
}

// uninstalledHubAgentRemovesNothing is the order in which KubeFleet's documentation uninstalls: the hub agent first,
// while there are members still.
func uninstalledHubAgentRemovesNothing(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	g := s.guest(s.name + "-guest")
	g.script(joinScript)
	g.awaitValue(value1)

	s.stop(hubAgent)
	g.killAgent()
	require.NoError(s, g.Get(s.Context(), client.ObjectKeyFromObject(s.configMap("")), &corev1.ConfigMap{}))
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKeyFromObject(g.member()), g.member()), "it is still a member")
	s.changeTo(value2)

	s.start(hubAgent)
	g.script(joinScript)
	g.awaitValue(value2)
	g.script(leaveScript)
}

func (g *guest) member() *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
}

func (g *guest) profile() *unstructured.Unstructured {
	profile := &unstructured.Unstructured{}
	profile.SetGroupVersionKind(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"})
	profile.SetNamespace(clusterv1beta1.SystemNamespace)
	profile.SetName(g.name)
	return profile
}

// awaitValue waits until the spec's ConfigMap is on the guest with a value.
func (g *guest) awaitValue(value string) {
	g.spec.Helper()
	await(g.spec, g.cluster, g.spec.configMap(""), "to have "+value, func(c *corev1.ConfigMap) error {
		if c.Data["key"] != value {
			return fmt.Errorf("it has %v", c.Data)
		}
		return nil
	})
}

// requireMember asserts what the hub shows of a member that has joined.
func (g *guest) requireMember() {
	s := g.spec
	s.Helper()
	m := await(s, s.hub, g.member(), "to be ready, joined and healthy", func(m *clusterv1beta1.MemberCluster) error {
		for _, kind := range []string{"ReadyToJoin", "Joined", "Healthy"} {
			if err := isTrue(m.Status.Conditions, kind, m.Generation); err != nil {
				return err
			}
		}
		return nil
	})
	require.Len(s, m.Status.AgentStatus, 1)
	agent := m.Status.AgentStatus[0]
	assert.Equal(s, clusterv1beta1.MemberAgent, agent.Type)
	assert.True(s, meta.IsStatusConditionTrue(agent.Conditions, "Joined") && meta.IsStatusConditionTrue(agent.Conditions, "Healthy"))
	assert.NotZero(s, agent.LastReceivedHeartbeat)
	assert.Equal(s, "0", m.Status.Properties[clusterv1beta1.NodeCountProperty].Value)

	profile := g.profile()
	require.Eventually(s, func() bool {
		err := s.hub.Get(s.Context(), client.ObjectKeyFromObject(profile), profile)
		return err == nil && profile.Object["status"] != nil
	}, patience, visibilityEvery)
	manager, _, _ := unstructured.NestedString(profile.Object, "spec", "clusterManager", "name")
	version, _, _ := unstructured.NestedString(profile.Object, "status", "version", "kubernetes")
	assert.Equal(s, "kubefleet", manager)
	assert.Equal(s, m.Status.Properties[clusterv1beta1.KubernetesVersionProperty].Value, version)
	assert.Contains(s, fmt.Sprint(profile.Object["status"]), "MemberClusterAPIServerHealthy")
}

// requireOwnNamespaceOnly asserts what the token that the script has put on the guest is good for.
func (g *guest) requireOwnNamespaceOnly() {
	s := g.spec
	s.Helper()
	admin, err := controlplane.RESTConfig(s.Fleet, state.Hub)
	require.NoError(s, err)
	token, err := os.ReadFile(filepath.Join(g.dir, "token"))
	require.NoError(s, err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = string(token)
	own, err := client.New(config, client.Options{Scheme: controlplane.Scheme()})
	require.NoError(s, err)
	for namespace, allowed := range map[string]bool{
		clusterv1beta1.MemberNamespace(g.name): true, clusterv1beta1.MemberNamespace("member-1"): false, "": false,
	} {
		err := own.List(s.Context(), &placementv1beta1.WorkList{}, client.InNamespace(namespace))
		assert.Equal(s, !allowed, apierrors.IsForbidden(err), "Works in %q: %v", namespace, err)
	}
	err = own.List(s.Context(), &corev1.SecretList{}, client.InNamespace(clusterv1beta1.MemberNamespace(g.name)))
	assert.True(s, apierrors.IsForbidden(err), "%v", err)
}

// requireNothingLeft asserts that the hub has nothing of a member that has left.
func (g *guest) requireNothingLeft() {
	s := g.spec
	s.Helper()
	require.True(s, apierrors.IsNotFound(s.hub.Get(s.Context(), client.ObjectKeyFromObject(g.member()), g.member())))
	awaitGone(s, s.hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(g.name)}})
	require.Eventually(s, func() bool {
		return apierrors.IsNotFound(s.hub.Get(s.Context(), client.ObjectKeyFromObject(g.profile()), g.profile()))
	}, patience, visibilityEvery, "the profile of a member that has left")
}

// says returns why a condition does not say something.
func says(conditions []metav1.Condition, kind, words string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return fmt.Errorf("there is no condition %s", kind)
	}
	if !strings.Contains(c.Message, words) {
		return fmt.Errorf("%s says %q", kind, c.Message)
	}
	return nil
}
