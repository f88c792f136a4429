//go:build integration

package admission

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// identified is a member whose identity is changed only with the right to do so.
const identified = `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: identified}
spec: {identity: {kind: ServiceAccount, namespace: connect-to-fleet, name: identified, apiGroup: ""}}
`

// operators may do everything to MemberClusters but what takes the verb join.
var operators = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// mayOnly returns a session of a user who may do what these rules say, and nothing else.
func mayOnly(t *testing.T, user string, rules ...rbacv1.PolicyRule) *session {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tests:" + user}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, object := range []client.Object{role, binding} {
		require.NoError(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), object) })
	}
	s := granted(t, user, "system:serviceaccounts", "system:serviceaccounts:fleet-system")
	s.awaitRole(t, role.Name)
	return s
}

func onMembers(verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{clusterv1beta1.GroupName}, Resources: []string{"memberclusters"}, Verbs: verbs, ResourceNames: names}
}

// The right to cordon or to label a cluster is not enough to become it: its identity reads all Secrets placed there.
func TestAnOperatorOfAMemberDoesNotBecomeIt(t *testing.T) {
	const lacks = "spec.identity says who may read all that is placed on the cluster, Secrets included, and spec.agent which agent runs there: to create " +
		"a MemberCluster, or to change its identity or what is asked of its agent, takes the verb join on memberclusters.cluster.kubernetes-fleet.io, which the user lacks: have an administrator of the hub grant it"
	admin.create(t, identified)
	// The guard rails let the accounts of the release's namespace pass; this one they do not.
	operator := mayOnly(t, "system:serviceaccount:fleet-system:operator", onMembers(operators))
	tries := map[string]func(*testing.T, *session) error{
		"become a user":                          changes(memberCluster, "", "identified", `{spec: {identity: {kind: User, name: mallory, namespace: null, apiGroup: rbac.authorization.k8s.io}}}`),
		"become another account":                 changes(memberCluster, "", "identified", `{spec: {identity: {name: another}}}`),
		"become an account of another namespace": changes(memberCluster, "", "identified", `{spec: {identity: {namespace: default}}}`),
		"become it through v1":                   changes("{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster}", "", "identified", `{spec: {identity: {name: another}}}`),
		"become it by another agent":             changes(memberCluster, "", "identified", `{spec: {agent: {requestTime: "2026-01-01T00:00:00Z", image: "mallory.example.com/member-agent:v1"}}}`),
		"become it by another hub":               changes(memberCluster, "", "identified", `{spec: {agent: {requestTime: "2026-01-01T00:00:00Z", hubURL: "https://mallory.example.com"}}}`),
		"invent a member":                        creates(strings.ReplaceAll(identified, "identified", "invented")),
		"invent a member that gets its name":     creates(strings.ReplaceAll(identified, "{name: identified}", "{generateName: identified-}")),
	}
	for sentence, try := range tries {
		t.Run(sentence, func(t *testing.T) {
			err := try(t, operator)
			require.ErrorContains(t, err, lacks)
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
			assert.Equal(t, strings.HasPrefix(sentence, "become"), strings.Contains(err.Error(), ", or leave spec.identity and spec.agent as they are"))
		})
	}
	for sentence, patch := range map[string]string{
		"label it": `{metadata: {labels: {a: b}}}`, "cordon it": `{spec: {taints: [{key: cordon-key, value: cordon-value, effect: NoSchedule}]}}`,
		"apply it unchanged": `{}`, "leave out what follows from the kind": `{spec: {identity: {apiGroup: null}}}`, "hear of it less often": `{spec: {heartbeatPeriodSeconds: 600}}`,
	} {
		t.Run("but "+sentence, func(t *testing.T) {
			assert.NoError(t, changes(memberCluster, "", "identified", patch)(t, operator))
		})
	}
	t.Run("nor does the hub agent", func(t *testing.T) {
		assert.ErrorContains(t, tries["become a user"](t, granted(t, "fleet-hub-agent")), lacks)
		assert.NoError(t, changes(memberCluster, "", "identified", `{metadata: {finalizers: [kubernetes-fleet.io/membercluster-finalizer]}}`)(t, granted(t, "fleet-hub-agent")))
	})
	t.Run("with the verb, all of that is done", func(t *testing.T) {
		joiner := mayOnly(t, "joiner", onMembers(append(operators, "join")))
		for sentence, try := range tries {
			assert.NoError(t, try(t, joiner), sentence)
		}
	})
	t.Run("the verb can be for one member", func(t *testing.T) {
		joiner := mayOnly(t, "joiner-of-one", onMembers(operators), onMembers([]string{"join"}, "identified"))
		assert.NoError(t, tries["become a user"](t, joiner))
		assert.ErrorContains(t, tries["invent a member"](t, joiner), lacks)
	})
}

// A hub may have members whose identity was admitted before there was a rule against it.
func TestAMemberWhoseIdentityIsNoLongerAdmittedIsStillWritten(t *testing.T) {
	const old = `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: old-identity, finalizers: [kubernetes-fleet.io/membercluster-finalizer]}
spec: {identity: {kind: Group, name: "system:authenticated", apiGroup: rbac.authorization.k8s.io}}
`
	probe := func(ctx context.Context) error {
		_, err := admin.try(ctx, parse(t, old), metav1.DryRunAll)
		return err
	}
	require.ErrorContains(t, probe(t.Context()), "must not begin with system:")
	restore := withoutIdentityRules(t)
	require.Eventually(t, func() bool { return probe(t.Context()) == nil }, accessPatience, 50*time.Millisecond)
	stored := admin.create(t, old)
	restore()
	again := parse(t, strings.ReplaceAll(old, "old-identity", "another"))
	require.Eventually(t, func() bool {
		_, err := admin.try(t.Context(), again, metav1.DryRunAll)
		return apierrors.IsInvalid(err)
	}, accessPatience, 50*time.Millisecond)

	change := func(patch string, subresources ...string) error {
		return changes(memberCluster, "", "old-identity", patch, subresources...)(t, admin)
	}
	assert.NoError(t, change(`{metadata: {labels: {environment: prod}}}`))
	assert.NoError(t, change(`{spec: {heartbeatPeriodSeconds: 30, taints: [{key: a, effect: NoSchedule}]}}`))
	assert.NoError(t, change(`{status: {conditions: [{type: Joined, status: "True", reason: a, message: b, lastTransitionTime: "2025-01-01T00:00:00Z"}]}}`, "status"))
	assert.NoError(t, change(`{spec: {identity: {kind: User, name: jane}}}`), "it can be put right")
	require.ErrorContains(t, change(`{spec: {identity: {name: "system:masters"}}}`), "must not begin with system:")
	assert.NoError(t, change(`{metadata: {finalizers: null}}`), "the hub agent lets it go")
	require.NoError(t, deletes(memberCluster, "", stored.GetName())(t, admin))
}

// withoutIdentityRules has the definition of MemberClusters admit every identity, as it once did, and returns what ends
// that.
func withoutIdentityRules(t *testing.T) (restore func()) {
	t.Helper()
	resource, err := admin.resource(parse(t, definition))
	require.NoError(t, err)
	write := func(rules func([]any) []any) (before []any) {
		crd, err := resource.Get(t.Context(), "memberclusters.cluster.kubernetes-fleet.io", metav1.GetOptions{})
		require.NoError(t, err)
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "identity", "x-kubernetes-validations"}
		for _, version := range versions {
			have, _, err := unstructured.NestedSlice(version.(map[string]any), path...)
			require.NoError(t, err)
			before = have
			require.NoError(t, unstructured.SetNestedSlice(version.(map[string]any), rules(have), path...))
		}
		require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		_, err = resource.Update(t.Context(), crd, metav1.UpdateOptions{})
		require.NoError(t, err)
		return before
	}
	all := write(func(rules []any) []any { return rules[:1] })
	return func() { write(func([]any) []any { return all }) }
}
