//go:build integration

package security

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

// whatIsTheAgents is said of namespaces and roles that are not those of members.
const whatIsTheAgents = "the hub agent writes the namespaces of members (fleet-member-*), and roles and role bindings in them, and no others"

func TestTokenOfAnAgent(t *testing.T) {
	attempt(t, attacks{
		"a thief with the token of the hub agent deletes a namespace of a team": refused(hubAgent, deletes(`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`), whatIsTheAgents),
		"a thief with the token of the hub agent makes a role in a namespace of a team": refused(hubAgent,
			creates(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: shop, name: mine}, rules: []}`), whatIsTheAgents),
		"a thief with the token of the hub agent writes what is placed": forbidden(hubAgent, patches(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: marker}}`, `{data: {a: b}}`)),
		"a thief with the token of the hub agent makes a placement":     forbidden(hubAgent, creates(placement("mine", "shop"))),
		"a thief with the token of a member agent acts as another user": refused(memberAgent, impersonates(), "cannot impersonate"),
		"a reader of annotations on a member reads a Secret":            secretsHaveNoCopies,
	})
}

// impersonates tries to read as an administrator of the cluster.
func impersonates() deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		config := rest.CopyConfig(memberAgent.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}}
		other, err := client.New(config, client.Options{Scheme: controlplane.Scheme(), Mapper: c.RESTMapper()})
		if err != nil {
			return nil, err
		}
		return nil, other.List(ctx, &corev1.SecretList{})
	}
}

// secretsHaveNoCopies reads a placed Secret on the members: the value is in its data alone.
func secretsHaveNoCopies(s *spec) {
	s.awaitMarker(other)
	for name, member := range s.members {
		secret := &corev1.Secret{}
		require.NoError(s, member.Get(s.Context(), client.ObjectKey{Namespace: other, Name: "vault"}, secret))
		assert.Equal(s, password, string(secret.Data["password"]), name)
		for key, value := range secret.Annotations {
			assert.NotContains(s, value, encodedPassword, "%s: annotation %s", name, key)
			assert.NotContains(s, value, password, "%s: annotation %s", name, key)
		}
	}
}
