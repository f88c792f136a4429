//go:build integration

package charts

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
)

// helm is Helm's own code, pointed at a cluster.
func (c *cluster) helm(t *testing.T, namespace string) *action.Configuration {
	t.Helper()
	kubeconfig := filepath.Join(c.fleet.dir, "kubeconfig")
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &kubeconfig
	flags.Context = &c.name
	flags.Namespace = &namespace
	configuration := action.NewConfiguration()
	require.NoError(t, configuration.Init(flags, namespace, "secret"))
	return configuration
}

// lived is the name of a chart's release; that of the chart itself is the fleet's.
func lived(loaded *chart.Chart) string { return "lived-" + loaded.Name() }

// helmInstalls installs a chart and returns what Helm prints.
func (c *cluster) helmInstalls(t *testing.T, loaded *chart.Chart, v values) string {
	t.Helper()
	install := action.NewInstall(c.helm(t, namespace))
	install.ReleaseName = lived(loaded)
	install.Namespace = namespace
	install.WaitStrategy = kube.HookOnlyStrategy
	install.CreateNamespace = true
	done, err := install.RunWithContext(t.Context(), loaded, v)
	require.NoError(t, err)
	c.mapper.Reset()
	return done.(*helmrelease.Release).Info.Notes
}

// helmUpgrades upgrades a release with the values it has, and returns what Helm prints.
func (c *cluster) helmUpgrades(t *testing.T, loaded *chart.Chart) string {
	t.Helper()
	upgrade := action.NewUpgrade(c.helm(t, namespace))
	upgrade.Namespace = namespace
	upgrade.WaitStrategy = kube.HookOnlyStrategy
	upgrade.ResetThenReuseValues = true
	done, err := upgrade.RunWithContext(t.Context(), lived(loaded), loaded, nil)
	require.NoError(t, err)
	return done.(*helmrelease.Release).Info.Notes
}

func (c *cluster) helmUninstalls(t *testing.T, name string) {
	t.Helper()
	uninstall := action.NewUninstall(c.helm(t, namespace))
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	_, err := uninstall.Run(name)
	require.NoError(t, err)
}

func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(path.Join(root, "deploy", "charts", name))
	require.NoError(t, err)
	return loaded
}

// older is a chart as it was before its version, when a kind lacked a field of its spec.
func older(t *testing.T, name, kind, field string) *chart.Chart {
	t.Helper()
	old := load(t, name)
	old.Metadata.Version = "0.0.1"
	old.Metadata.AppVersion = "0.0.1"
	for i, file := range old.Files {
		if !strings.HasPrefix(file.Name, "crds/") || !strings.HasSuffix(file.Name, "_"+kind+".yaml") {
			continue
		}
		crd := manifest(string(file.Data))
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		for _, version := range versions {
			properties, found, err := unstructured.NestedMap(version.(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
			require.NoError(t, err)
			require.True(t, found)
			require.Contains(t, properties, field)
			unstructured.RemoveNestedField(version.(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", field)
		}
		require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		content, err := yaml.Marshal(crd.Object)
		require.NoError(t, err)
		old.Files[i] = &common.File{Name: file.Name, ModTime: file.ModTime, Data: content}
		return old
	}
	require.Fail(t, "no CRD of "+kind)
	return nil
}

// applyCRDs takes the documented step: helm show crds | kubectl apply --server-side --force-conflicts -f -
func (c *cluster) applyCRDs(t *testing.T, loaded *chart.Chart) {
	t.Helper()
	force := true
	for _, crd := range loaded.CRDObjects() {
		object := manifest(string(crd.File.Data))
		content, err := object.MarshalJSON()
		require.NoError(t, err)
		_, err = c.resource(t, object.GroupVersionKind(), "").Patch(t.Context(), object.GetName(), "application/apply-patch+yaml", content,
			metav1.PatchOptions{FieldManager: "kubectl", Force: &force, FieldValidation: metav1.FieldValidationStrict})
		require.NoError(t, err)
	}
}

// deleteCRDs deletes the kinds of a chart, with all that there is of them, and waits until they are gone.
func (c *cluster) deleteCRDs(t *testing.T, loaded *chart.Chart) {
	t.Helper()
	const version, kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	for _, crd := range loaded.CRDObjects() {
		name := manifest(string(crd.File.Data)).GetName()
		definitions := c.resource(t, schema.FromAPIVersionAndKind(version, kind), "")
		meant := []byte(`{"metadata": {"annotations": {"fleetflow.io/allow-deletion": "true"}}}`)
		if _, err := definitions.Patch(t.Context(), name, types.MergePatchType, meant, metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
		c.delete(t, version, kind, name)
	}
	for _, crd := range loaded.CRDObjects() {
		name := manifest(string(crd.File.Data)).GetName()
		await(t, name+" is gone", func() bool {
			_, err := c.get(t, version, kind, "", name)
			return apierrors.IsNotFound(err)
		})
	}
}

// ofRelease names what a cluster has of a release, of every kind there is.
func (c *cluster) ofRelease(t *testing.T, name string) []string {
	t.Helper()
	lists, err := c.client.Discovery().ServerPreferredResources()
	require.NoError(t, err)
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	var found []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, resource := range list.APIResources {
			if resource.Name == "secrets" || resource.Name == "endpoints" || resource.Name == "endpointslices" {
				continue // what Helm and Kubernetes note for themselves
			}
			all, err := c.dynamic.Resource(version.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name})
			require.NoError(t, err, resource.Name)
			for _, object := range all.Items {
				found = append(found, object.GetKind()+" "+object.GetName())
			}
		}
	}
	return found
}

// hasField says whether the stored definition of a kind knows a field of its spec.
func (c *cluster) hasField(t *testing.T, crd, field string) bool {
	t.Helper()
	stored, err := c.get(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", crd)
	require.NoError(t, err)
	versions, _, err := unstructured.NestedSlice(stored.Object, "spec", "versions")
	require.NoError(t, err)
	_, found, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", field)
	require.NoError(t, err)
	return found
}

// TestInstalledChartsAreUpgradedAndUninstalled takes both charts through their life with Helm's own code: installed in an
// older version, upgraded, uninstalled and installed again. What users have made is there at every moment, until the CRDs
// are deleted.
func TestInstalledChartsAreUpgradedAndUninstalled(t *testing.T) {
	for name, kind := range map[string]struct{ plural, group, field, object string }{
		"hub-agent": {"memberclusters", "cluster.kubernetes-fleet.io", "heartbeatPeriodSeconds", `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: kept}
spec: {identity: {kind: User, name: kept}, heartbeatPeriodSeconds: 30}`},
		"member-agent": {"appliedworks", "placement.kubernetes-fleet.io", "workNamespace", `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: AppliedWork
metadata: {name: kept}
spec: {workName: w, workNamespace: fleet-member-one}`},
	} {
		t.Run(name, func(t *testing.T) {
			// A member of the fleet is a cluster that has neither release.
			c := bringUp(t).cluster(t, "member-1")
			old := older(t, name, kind.plural, kind.field)
			current := load(t, name)
			crd := kind.plural + "." + kind.group
			c.deleteCRDs(t, current)
			notes := c.helmInstalls(t, old, required()[name])
			assert.NotContains(t, notes, "helm show crds", "a new installation has its CRDs")
			assert.Contains(t, c.image(t, lived(current)), ":0.0.1")
			object := manifest(kind.object)

			notes = c.helmUpgrades(t, current)
			assert.Contains(t, notes, "helm show crds")
			assert.Contains(t, c.image(t, lived(current)), ":"+current.Metadata.AppVersion)
			require.False(t, c.hasField(t, crd, kind.field), "Helm leaves CRDs as they are")
			c.applyCRDs(t, current)
			require.True(t, c.hasField(t, crd, kind.field))
			await(t, "the API server serves the newer kind", func() bool {
				_, err := c.resource(t, object.GroupVersionKind(), "").Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
				return err == nil
			})

			c.helmUninstalls(t, lived(current))
			await(t, "nothing of a release stays", func() bool { return len(c.ofRelease(t, lived(current))) == 0 }) // Pods end last
			assert.True(t, c.hasField(t, crd, kind.field), "but for the CRDs")
			c.helmInstalls(t, current, required()[name])
			_, err := c.get(t, object.GetAPIVersion(), object.GetKind(), "", "kept")
			require.NoError(t, err, "what users have made is there again")

			c.helmUninstalls(t, lived(current))
			c.deleteCRDs(t, current)
		})
	}
}

// image is that of a release's agent.
func (c *cluster) image(t *testing.T, name string) string {
	t.Helper()
	d, err := c.get(t, "apps/v1", "Deployment", namespace, name)
	require.NoError(t, err)
	containers, _, err := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	image, _, err := unstructured.NestedString(containers[0].(map[string]any), "image")
	require.NoError(t, err)
	return image
}
