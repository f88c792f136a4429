package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// webOnHub is what there is to be federated.
func webOnHub() []client.Object {
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "web", Name: name} }
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "web:reader"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "writer"}},
		&corev1.ConfigMap{ObjectMeta: in("settings")},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-2"}},
		&corev1.Service{ObjectMeta: in("front")},
		&corev1.ServiceAccount{ObjectMeta: in("default")},
		&appsv1.Deployment{ObjectMeta: in("front")},
	}
}

var webTerm = placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "web"}

func TestFederateANamespace(t *testing.T) {
	c := newConsole(t, webOnHub()...)
	require.NoError(t, c.run("federate", "namespace", "web", "--contents", "--dry-run"))
	assert.Equal(t, "placement/web created: namespace/web on all members (dry run)\n", c.Out.String())
	require.Error(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "web"}, &placementv1beta1.ClusterResourcePlacement{}))

	require.NoError(t, c.run("federate", "namespaces", "web"))
	assert.Equal(t, placementv1beta1.PlacementSpec{
		ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{webTerm},
		Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType},
	}, get(c, &placementv1beta1.ClusterResourcePlacement{}, "web").Spec)
	require.ErrorContains(t, c.run("federate", "namespace/web"), "placement/web is there already: choose another name with --name")

	require.NoError(t, c.run("federate", "namespace/web", "--name", "bare", "--contents=false", "--clusters", "member-1,member-2", "--strategy", "External"))
	assert.Equal(t, "placement/bare created: namespace/web on member-1, member-2\n", c.Out.String())
	bare := webTerm
	bare.SelectionScope = placementv1beta1.NamespaceOnly
	assert.Equal(t, placementv1beta1.PlacementSpec{
		ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{bare},
		Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"member-1", "member-2"}},
		Strategy:          &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType},
	}, get(c, &placementv1beta1.ClusterResourcePlacement{}, "bare").Spec)
}

func TestFederateSkipsKinds(t *testing.T) {
	c := newConsole(t, webOnHub()...)
	require.NoError(t, c.run("federate", "namespace", "web", "--skip-api-resources", "configmaps,apps,gadgets"))
	assert.Equal(t, "placement/web created: namespace/web, its Services on all members\n", c.Out.String())
	assert.Equal(t, "Note: --skip-api-resources gadgets skips nothing: no kind or API group that could be placed is called so\n", c.Err.String())
	selected := webTerm
	selected.SelectionScope = placementv1beta1.NamespaceWithResourceSelectors
	assert.Equal(t, []placementv1beta1.ResourceSelectorTerm{selected, {Version: "v1", Kind: "Service"}},
		get(c, &placementv1beta1.ClusterResourcePlacement{}, "web").Spec.ResourceSelectors,
		"neither what is skipped, nor kinds of which there is nothing but what Kubernetes makes itself")
}

func TestFederateClusterScopedObjects(t *testing.T) {
	c := newConsole(t, webOnHub()...)
	require.NoError(t, c.run("federate", "clusterroles", "web:reader", "writer", "-o", "yaml"))
	assert.Equal(t, `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata:
  name: web-reader
spec:
  policy:
    placementType: PickAll
  resourceSelectors:
  - group: rbac.authorization.k8s.io
    kind: ClusterRole
    name: web:reader
    version: v1
  - group: rbac.authorization.k8s.io
    kind: ClusterRole
    name: writer
    version: v1
`, c.Out.String())
	all := &placementv1beta1.ClusterResourcePlacementList{}
	require.NoError(t, c.Hub.List(t.Context(), all))
	assert.Empty(t, all.Items, "printing creates nothing")
}

func onlyNamed(term placementv1beta1.ResourceSelectorTerm) placementv1beta1.ResourceSelectorTerm {
	term.SelectionScope = placementv1beta1.NamespaceWithResourceSelectors
	return term
}

func TestFederateObjectsOfANamespace(t *testing.T) {
	c := newConsole(t, webOnHub()...)
	require.NoError(t, c.run("federate", "configmaps", "settings", "-n", "web"))
	assert.Equal(t, "placement/settings created: namespace/web, configmap/settings on all members\n", c.Out.String())
	assert.Equal(t, []placementv1beta1.ResourceSelectorTerm{onlyNamed(webTerm), {Version: "v1", Kind: "ConfigMap", Name: "settings"}},
		get(c, &placementv1beta1.ClusterResourcePlacement{}, "settings").Spec.ResourceSelectors)

	require.NoError(t, c.run("federate", "namespace/web", "configmap/settings", "-n", "web"))
	assert.Equal(t, "placement/web created: namespace/web on all members\n", c.Out.String(), "a namespace has it all")
	assert.Contains(t, c.Err.String(), "configmap/settings is placed with namespace/web")
}

const webFile = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: web}
---
apiVersion: v1
kind: List
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: writer}
- apiVersion: example.com/v1
  kind: Unknown
  metadata: {name: there, namespace: web}
`

func TestFederateAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.yaml")
	require.NoError(t, os.WriteFile(path, []byte(webFile), 0o600))
	c := newConsole(t)
	require.NoError(t, c.run("federate", "--filename", path))
	fromFile := c.Out.String()
	p := object[placementv1beta1.ClusterResourcePlacement](t, fromFile)
	assert.Equal(t, "settings", p.Name)
	assert.Equal(t, []placementv1beta1.ResourceSelectorTerm{
		onlyNamed(webTerm), {Version: "v1", Kind: "ConfigMap", Name: "settings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "writer"},
		{Group: "example.com", Version: "v1", Kind: "Unknown", Name: "there"},
	}, p.Spec.ResourceSelectors)

	c.Stdin = webFile
	require.NoError(t, c.run("federate", "-f", "-"))
	assert.Equal(t, fromFile, c.Out.String())

	for sentence, add := range map[string]string{
		"with its namespace": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n",
		"of two namespaces":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n",
	} {
		c := newConsole(t)
		c.Stdin = webFile + "---\n" + add
		require.NoError(t, c.run("federate", "-f", "-"), sentence)
		terms := object[placementv1beta1.ClusterResourcePlacement](t, c.Out.String()).Spec.ResourceSelectors
		assert.Contains(t, terms, webTerm, sentence)
		assert.NotContains(t, c.Out.String(), "ConfigMap", sentence)
		assert.Contains(t, c.Err.String(), "configmap/settings is placed with namespace/web, as is everything else in it", sentence)
	}

	c.Stdin = "kind: ConfigMap"
	require.ErrorContains(t, c.run("federate", "-f", "-"), "an object lacks apiVersion or kind")
	c.Stdin = ""
	require.ErrorContains(t, c.run("federate", "-f", "-"), "there is nothing to place")
}

func TestFederateRefuses(t *testing.T) {
	for sentence, try := range map[string]struct {
		args []string
		want string
	}{
		"what lives in namespace default":  {[]string{"configmap", "settings", "-n", "default"}, "configmap/settings lives in namespace default, which is reserved"},
		"what Kubernetes makes itself":     {[]string{"serviceaccount", "default", "-n", "web"}, "serviceaccount/default is never placed"},
		"another namespace, too":           {[]string{"configmap/settings", "namespace/shop-2", "-n", "web"}, "cannot also have namespace/shop-2"},
		"a namespace of Kubernetes":        {[]string{"namespace", "kube-system"}, "is reserved"},
		"a kind that is never placed":      {[]string{"node", "node-1"}, "of a kind that is never placed"},
		"a type that there is not":         {[]string{"gadget", "web"}, `the hub has no type "gadget"`},
		"an object that there is not":      {[]string{"namespace", "shop"}, "reading namespace/shop"},
		"a type without a name":            {[]string{"namespace"}, "needs a name after the type"},
		"nothing":                          {nil, "needs a type and a name"},
		"objects named in both ways":       {[]string{"namespace", "web", "clusterrole/writer"}, "name all objects in one way"},
		"a strategy that there is not":     {[]string{"namespace", "web", "--strategy", "careful"}, "use RollingUpdate or External"},
		"a table":                          {[]string{"namespace", "web", "-o", "wide"}, "use yaml or json"},
		"to skip kinds of a cluster role":  {[]string{"clusterrole", "writer", "--skip-api-resources", "apps"}, "name one namespace and nothing else"},
		"to skip kinds of a file":          {[]string{"-f", "-", "--skip-api-resources", "apps"}, "cannot be used with --filename"},
		"to skip kinds of a bare":          {[]string{"namespace", "web", "--contents=false", "--skip-api-resources", "apps"}, "nothing for --skip-api-resources to skip"},
		"a file and a name":                {[]string{"namespace", "web", "-f", "-"}, "leave TYPE and NAME out"},
		"a file that there is not":         {[]string{"-f", "/there/is/none"}, "does not exist"},
		"a name that is a type and a name": {[]string{"namespace/"}, "names no object"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, webOnHub()...)
			assert.ErrorContains(t, c.run(append([]string{"federate"}, try.args...)...), try.want)
		})
	}
}

func TestOrphaning(t *testing.T) {
	kept := func(c *console) *placementv1beta1.DeleteStrategy {
		return get(c, &placementv1beta1.ClusterResourcePlacement{}, "web").Spec.Strategy.DeleteStrategy
	}
	c := newConsole(t, externalPlacement())
	require.NoError(t, c.run("orphaning", "status", "web"))
	assert.Equal(t, "disabled: what placement/web has placed on clusters is removed from them when it is deleted\n", c.Out.String())
	require.NoError(t, c.run("orphaning", "enable", "crp/web", "--dry-run"))
	assert.Nil(t, kept(c))
	require.NoError(t, c.run("orphaning-deletion", "enable", "web"))
	assert.Equal(t, "orphaning of placement/web enabled\n", c.Out.String())
	assert.Equal(t, placementv1beta1.DeletePropagationPolicyAbandon, kept(c).PropagationPolicy)
	require.NoError(t, c.run("orphaning", "enable", "web"))
	assert.Equal(t, "orphaning of placement/web is enabled already\n", c.Out.String())
	require.NoError(t, c.run("orphaning-deletion", "status", "clusterresourceplacement", "web"))
	assert.Equal(t, "enabled: what placement/web has placed on clusters stays there when it is deleted\n", c.Out.String())

	c.Stdin = "n\n"
	require.ErrorIs(t, c.run("orphaning", "disable", "web"), cli.ErrDeclined)
	assert.Equal(t, placementv1beta1.DeletePropagationPolicyAbandon, kept(c).PropagationPolicy)
	require.NoError(t, c.run("orphaning", "disable", "web", "--yes"))
	assert.Equal(t, placementv1beta1.DeletePropagationPolicyDelete, kept(c).PropagationPolicy)
	assert.Equal(t, placementv1beta1.ExternalRolloutStrategyType, get(c, &placementv1beta1.ClusterResourcePlacement{}, "web").Spec.Strategy.Type)

	rolling := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web"}}
	c = newConsole(t, rolling)
	require.NoError(t, c.run("orphaning", "enable", "web"), "a placement without a strategy")
	assert.Equal(t, placementv1beta1.DeletePropagationPolicyAbandon, kept(c).PropagationPolicy)
	require.ErrorContains(t, c.run("orphaning", "enable"), "needs the name of a placement")
}
