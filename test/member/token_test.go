//go:build integration

package member

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// accounts is the namespace on the hub of the accounts of members.
const accounts = "connect-to-fleet"

// tokenRenewed gives the agent a token that is past half of its life, once without the right to renew it and once with.
func tokenRenewed(s *spec) {
	account := s.memberAccount()
	file := rig.Fleet.HubTokenFile(onemember.Member)
	before, err := os.ReadFile(file)
	require.NoError(s, err)
	s.Cleanup(func() { assert.NoError(s, os.WriteFile(file, before, 0o600)) }) // the other specs go by that one
	old := s.tokenOf(account, time.Now().Add(-40*time.Minute), time.Now().Add(20*time.Minute))
	require.NoError(s, os.WriteFile(file, []byte(old), 0o600))
	s.do(control.Stop, onemember.Agent)
	s.do(control.Start, onemember.Agent)

	box := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(onemember.Member), Name: onemember.Member}
	condition := func(b *clusterv1beta1.InternalMemberCluster) *metav1.Condition {
		return meta.FindStatusCondition(b.Status.Conditions, clusterv1beta1.ConditionTypeHubTokenRenewed)
	}
	_, err = access.Await(s.ctx, rig.Hub, box, func(b *clusterv1beta1.InternalMemberCluster) string {
		if c := condition(b); c == nil || c.Reason != clusterv1beta1.ReasonHubTokenRenewalRefused || !strings.Contains(c.Message, "join the cluster again") {
			return "it does not say that the token is not renewed"
		}
		return ""
	})
	require.NoError(s, err)

	in := metav1.ObjectMeta{Namespace: accounts, Name: account.Name}
	require.NoError(s, rig.Hub.Create(s.ctx, &rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account.Name}, Verbs: []string{"create"}},
	}}))
	s.bind(account, accounts, account.Name)
	_, err = access.Await(s.ctx, rig.Hub, box, func(b *clusterv1beta1.InternalMemberCluster) string {
		if c := condition(b); c == nil || c.Status != metav1.ConditionTrue {
			return "it says still that the token is not renewed"
		}
		return ""
	})
	require.NoError(s, err)
	renewed, err := os.ReadFile(file)
	require.NoError(s, err)
	require.NotEqual(s, old, string(renewed))
	var said struct{ Sub string }
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(string(renewed), ".")[1])
	require.NoError(s, err)
	require.NoError(s, json.Unmarshal(payload, &said))
	assert.Equal(s, "system:serviceaccount:connect-to-fleet:"+account.Name, said.Sub)
	s.place(s.configMap("a", "v"))
	s.awaitAvailable(s.name)
}

// memberAccount makes a service account on the hub with the rights of the member.
func (s *spec) memberAccount() *corev1.ServiceAccount {
	s.Helper()
	require.NoError(s, client.IgnoreAlreadyExists(rig.Hub.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: accounts}})))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accounts, Name: onemember.Member + "-hub-cluster-access"}}
	require.NoError(s, rig.Hub.Create(s.ctx, account))
	s.bind(account, clusterv1beta1.MemberNamespace(onemember.Member), onemember.Member)
	return account
}

// bind binds a role of a namespace to an account.
func (s *spec) bind(account *corev1.ServiceAccount, namespace, role string) {
	s.Helper()
	require.NoError(s, rig.Hub.Create(s.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}))
}

// tokenOf is a token that the hub would have given out some time ago.
func (s *spec) tokenOf(account *corev1.ServiceAccount, issued, expires time.Time) string {
	s.Helper()
	const issuer = "https://kubernetes.default.svc"
	claims, err := json.Marshal(map[string]any{
		"iss": issuer, "aud": []string{issuer}, "sub": "system:serviceaccount:" + account.Namespace + ":" + account.Name,
		"iat": issued.Unix(), "nbf": issued.Unix(), "exp": expires.Unix(),
		"kubernetes.io": map[string]any{
			"namespace": account.Namespace, "serviceaccount": map[string]any{"name": account.Name, "uid": account.UID},
		},
	})
	require.NoError(s, err)
	parsed, err := keyutil.PrivateKeyFromFile(rig.Fleet.Path(state.Hub, "pki", "service-account.key"))
	require.NoError(s, err)
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"ES256"}`)) + "." + encode(claims)
	digest := sha256.Sum256([]byte(text))
	r, t, err := ecdsa.Sign(rand.Reader, parsed.(*ecdsa.PrivateKey), digest[:])
	require.NoError(s, err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	t.FillBytes(signature[32:])
	return text + "." + encode(signature)
}
