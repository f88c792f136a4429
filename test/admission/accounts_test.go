//go:build integration

package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// accounts is the namespace of the accounts of members, and accountOfOne the account of a member named one.
	accounts     = "connect-to-fleet"
	accountOfOne = "one-hub-cluster-access"
)

// everythingThere is what Kubernetes' own admin may do in a namespace, and with namespaces.
var everythingThere = rbacv1.PolicyRule{
	APIGroups: []string{"", rbacv1.GroupName}, Verbs: append(operators, "bind", "escalate"),
	Resources: []string{"namespaces", "serviceaccounts", "serviceaccounts/token", "secrets", "roles", "rolebindings"},
}

// Who gets at a token of a member's account reads all Secrets that are placed on the member.
func TestTheNamespaceOfTheAccountsOfMembersIsForThoseWhoLetMembersIn(t *testing.T) {
	const lacks = "to write there takes the verb join on memberclusters.cluster.kubernetes-fleet.io, which the user lacks: have an administrator of the hub grant it"
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accounts}})))
	admin.create(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access}}`)
	mints := func(account string) func(*testing.T, *session) error {
		return func(t *testing.T, s *session) error {
			holder := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accounts, Name: account}}
			return s.SubResource("token").Create(t.Context(), holder, &authenticationv1.TokenRequest{})
		}
	}
	const serviceAccount = "{apiVersion: v1, kind: ServiceAccount}"
	ofOne := map[string]func(*testing.T, *session) error{
		"make a token":      mints(accountOfOne),
		"change an account": changes(serviceAccount, accounts, accountOfOne, `{metadata: {labels: {a: b}}}`),
		"delete an account": deletes(serviceAccount, accounts, accountOfOne),
		"make a token's Secret": creates(`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token,
			metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access-token, annotations: {kubernetes.io/service-account.name: one-hub-cluster-access}}}`),
		"let another renew it": creates(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: one-hub-cluster-access}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]}`),
	}
	ofAll := map[string]func(*testing.T, *session) error{
		"make the account of a member that is called like an account": creates(
			`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access-hub-cluster-access}}`),
		"make an account":      creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: two-hub-cluster-access}}`),
		"make some account":    creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: mine}}`),
		"have a name given":    creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, generateName: one-hub-cluster-access}}`),
		"delete the namespace": deletes("{apiVersion: v1, kind: Namespace}", "", accounts),
		"label the namespace":  changes("{apiVersion: v1, kind: Namespace}", "", accounts, `{metadata: {labels: {a: b}}}`),
	}
	guest := mayOnly(t, "guest-of-accounts", onMembers(operators), everythingThere)
	for _, tries := range []map[string]func(*testing.T, *session) error{ofOne, ofAll} {
		for sentence, try := range tries {
			t.Run("an administrator of namespaces does not "+sentence, func(t *testing.T) {
				err := try(t, guest)
				require.ErrorContains(t, err, lacks)
				assert.True(t, apierrors.IsForbidden(err), "%v", err)
			})
		}
	}
	t.Run("with the verb, all of that is done", func(t *testing.T) {
		joiner := mayOnly(t, "joiner-of-accounts", onMembers(append(operators, "join")), everythingThere)
		for _, tries := range []map[string]func(*testing.T, *session) error{ofOne, ofAll} {
			for sentence, try := range tries {
				assert.NoError(t, try(t, joiner), sentence)
			}
		}
	})
	t.Run("the verb for one member is for what is named after it", func(t *testing.T) {
		joiner := mayOnly(t, "joiner-of-one-account", onMembers(operators), onMembers([]string{"join"}, "one"), everythingThere)
		for sentence, try := range ofOne {
			assert.NoError(t, try(t, joiner), sentence)
		}
		for sentence, try := range ofAll {
			assert.ErrorContains(t, try(t, joiner), lacks, sentence)
		}
	})
	t.Run("an account renews its own token, and makes none of another", func(t *testing.T) {
		account := mayOnly(t, "system:serviceaccount:connect-to-fleet:one-hub-cluster-access", onMembers(operators), everythingThere)
		assert.NoError(t, mints(accountOfOne)(t, account))
		admin.create(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: three-hub-cluster-access}}`)
		assert.ErrorContains(t, mints("three-hub-cluster-access")(t, account), lacks)
	})
	t.Run("other namespaces are not concerned", func(t *testing.T) {
		assert.NoError(t, creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: default, name: one-hub-cluster-access}}`)(t, guest))
	})
}
