//go:build integration

package admission

import (
	"fmt"
	"testing"
	"time"

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
	APIGroups: []string{"", "apps", rbacv1.GroupName}, Verbs: append(operators, "bind", "escalate"),
	Resources: []string{"namespaces", "serviceaccounts", "serviceaccounts/token", "secrets", "roles", "rolebindings", "clusterroles", "deployments"},
}

const (
	secretKind = "{apiVersion: v1, kind: Secret}"
	roleKind   = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}"
	// tokenSecret has a Secret of a name hold a token of an account that does not end.
	tokenSecret = `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: connect-to-fleet, name: %s,
		annotations: {kubernetes.io/service-account.name: %s}}}`
	// renewing are the rules that let some accounts make tokens.
	renewing = `[{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [%s], verbs: [create]}]`
	// bound is a RoleBinding of a member's name to a kind of role of a member's name, for subjects.
	bound = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: connect-to-fleet, name: %s-hub-cluster-access},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s-hub-cluster-access}, subjects: [%s]}`
)

// mints asks for a token of an account of a member that holds for some time.
func mints(account string, lifetime ...time.Duration) func(*testing.T, *session) error {
	return func(t *testing.T, s *session) error {
		request := &authenticationv1.TokenRequest{}
		for _, holds := range lifetime {
			request.Spec.ExpirationSeconds = new(int64(holds.Seconds()))
		}
		return s.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accounts, Name: account}}, request)
	}
}

// Who gets at a token of a member's account reads all Secrets that are placed on the member.
func TestTheNamespaceOfTheAccountsOfMembersIsForThoseWhoLetMembersIn(t *testing.T) {
	const lacks = "to write there takes the verb join on memberclusters.cluster.kubernetes-fleet.io, which the user lacks"
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accounts}})))
	admin.create(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access}}`)
	admin.create(t, fmt.Sprintf(tokenSecret, "one-hub-cluster-access-token", accountOfOne))
	admin.create(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access}, rules: []}`)
	const serviceAccount = "{apiVersion: v1, kind: ServiceAccount}"
	ofOne := map[string]func(*testing.T, *session) error{
		"make a token":                             mints(accountOfOne),
		"change an account":                        changes(serviceAccount, accounts, accountOfOne, `{metadata: {labels: {a: b}}}`),
		"delete an account":                        deletes(serviceAccount, accounts, accountOfOne),
		"make a token for long":                    mints(accountOfOne, 365*24*time.Hour),
		"delete a token that does not end":         deletes(secretKind, accounts, "one-hub-cluster-access-token"),
		"say that the account may renew its token": changes(roleKind, accounts, accountOfOne, `{rules: `+fmt.Sprintf(renewing, accountOfOne)+`}`),
		"delete what lets it renew its token":      deletes(roleKind, accounts, accountOfOne),
		"let it renew its token":                   creates(fmt.Sprintf(bound, "one", "Role", "one", `{kind: ServiceAccount, namespace: connect-to-fleet, name: one-hub-cluster-access}`)),
	}
	ofAll := map[string]func(*testing.T, *session) error{
		"make the account of a member that is called like an account": creates(
			`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access-hub-cluster-access}}`),
		"make a Secret with the token of that member":       creates(fmt.Sprintf(tokenSecret, "one-hub-cluster-access-tokens", accountOfOne)),
		"make a Secret with the token of another":           creates(fmt.Sprintf(tokenSecret, "one-hub-cluster-access", "two-hub-cluster-access")),
		"make some Secret that is named after the member":   creates(`{apiVersion: v1, kind: Secret, metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access-token-token}}`),
		"have a Secret of that member hold another's token": changes(secretKind, accounts, "one-hub-cluster-access-token", `{metadata: {annotations: {kubernetes.io/service-account.name: two-hub-cluster-access}}}`),
		"delete a token of another":                         deletes(secretKind, accounts, "four-hub-cluster-access-token"),
		"let it make tokens of another":                     changes(roleKind, accounts, accountOfOne, `{rules: `+fmt.Sprintf(renewing, "two-hub-cluster-access")+`}`),
		"let it make tokens of all":                         changes(roleKind, accounts, accountOfOne, `{rules: [{apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}]}`),
		"let it make tokens of two":                         changes(roleKind, accounts, accountOfOne, `{rules: `+fmt.Sprintf(renewing, "one-hub-cluster-access, two-hub-cluster-access")+`}`),
		"let it read Secrets":                               changes(roleKind, accounts, accountOfOne, `{rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`),
		"let it do more with its account":                   changes(roleKind, accounts, accountOfOne, `{rules: [{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [one-hub-cluster-access], verbs: ["*"]}]}`),
		"let a user renew it":                               creates(fmt.Sprintf(bound, "one", "Role", "one", `{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}`)),
		"let another member renew it":                       creates(fmt.Sprintf(bound, "one", "Role", "one", `{kind: ServiceAccount, namespace: connect-to-fleet, name: two-hub-cluster-access}`)),
		"let an account of another namespace renew it":      creates(fmt.Sprintf(bound, "one", "Role", "one", `{kind: ServiceAccount, namespace: default, name: one-hub-cluster-access}`)),
		"let two renew it":                                  creates(fmt.Sprintf(bound, "one", "Role", "one", `{kind: ServiceAccount, namespace: connect-to-fleet, name: one-hub-cluster-access}, {apiGroup: rbac.authorization.k8s.io, kind: Group, name: all}`)),
		"bind it to the role of another":                    creates(fmt.Sprintf(bound, "one", "Role", "two", `{kind: ServiceAccount, namespace: connect-to-fleet, name: one-hub-cluster-access}`)),
		"bind it to a ClusterRole":                          creates(fmt.Sprintf(bound, "one", "ClusterRole", "one", `{kind: ServiceAccount, namespace: connect-to-fleet, name: one-hub-cluster-access}`)),
		"run a Deployment that is named after the member": creates(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: connect-to-fleet, name: one-hub-cluster-access},
			spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: two-hub-cluster-access, containers: [{name: c, image: pause}]}}}}`),
		"make an account":      creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: two-hub-cluster-access}}`),
		"make some account":    creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: mine}}`),
		"have a name given":    creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, generateName: one-hub-cluster-access}}`),
		"delete the namespace": deletes("{apiVersion: v1, kind: Namespace}", "", accounts),
		"label the namespace":  changes("{apiVersion: v1, kind: Namespace}", "", accounts, `{metadata: {labels: {a: b}}}`),
	}
	admin.create(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: three-hub-cluster-access}}`)
	admin.create(t, fmt.Sprintf(tokenSecret, "four-hub-cluster-access-token", "three-hub-cluster-access"))
	admin.create(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: one-hub-cluster-access}, rules: []}`)
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
		assert.NoError(t, mints(accountOfOne, 48*time.Hour)(t, account))
		assert.ErrorContains(t, mints(accountOfOne, 48*time.Hour+time.Second)(t, account), "a member renews its token for 48 hours at most, and asks for 172801 seconds")
		assert.ErrorContains(t, mints("three-hub-cluster-access")(t, account), lacks)
	})
	t.Run("other namespaces are not concerned", func(t *testing.T) {
		assert.NoError(t, creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: default, name: one-hub-cluster-access}}`)(t, guest))
	})
}
