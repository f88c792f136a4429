//go:build integration

package charts

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
)

// ofKubeFleet is a chart of the shape of KubeFleet's: the definitions of the kinds are among its templates, and nothing says that
// they are kept.
func ofKubeFleet(t *testing.T, name string) *chart.Chart {
	t.Helper()
	made := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: "0.2.2", AppVersion: "0.2.2", Type: "application"}}
	made.Templates = append(made.Templates, &common.File{Name: "templates/rbac.yaml", Data: []byte(
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + "-sa, namespace: fleet-system}\n")})
	for _, crd := range load(t, name).CRDObjects() {
		definition := manifest(string(crd.File.Data))
		if strings.HasSuffix(definition.GetName(), ".fleetflow.io") {
			continue // it has none of these
		}
		versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		require.NoError(t, err)
		for _, version := range versions {
			// Without schemas, which are too long for what Helm stores of a release.
			fields := version.(map[string]any)
			fields["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
			delete(fields, "additionalPrinterColumns")
			delete(fields, "selectableFields")
		}
		require.NoError(t, unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"))
		content, err := yaml.Marshal(definition.Object)
		require.NoError(t, err)
		made.Templates = append(made.Templates, &common.File{Name: "templates/" + crd.File.Name, Data: content})
	}
	return made
}

// forgetRelease makes Helm forget a release of this name, as the guide does it, and removes what the tests have put beside it.
func (c *cluster) forgetRelease(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, c.client.CoreV1().Secrets(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "owner=helm,name=" + name}))
	c.deleteCRDs(t, load(t, name))
	err := c.client.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), name+"-sa", metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	c.delete(t, "v1", "Namespace", "there")
	c.awaitNo(t, "v1", "Namespace", "", "there")
}

// installAs installs a chart under a name. Definitions that are there stay as they are, as with Helm 3; Helm 4 takes them from
// the release that has them.
func (c *cluster) installAs(t *testing.T, name string, loaded *chart.Chart, v values) {
	t.Helper()
	install := action.NewInstall(c.helm(t, namespace))
	install.ReleaseName = name
	install.Namespace = namespace
	install.WaitStrategy = kube.HookOnlyStrategy
	install.CreateNamespace = true
	install.SkipCRDs = true
	_, err := install.RunWithContext(t.Context(), loaded, v)
	require.NoError(t, err)
	c.mapper.Reset()
}

// failWith runs a command that must not succeed, and returns what it prints.
func (o *operator) failWith(line string) string {
	o.t.Helper()
	out, err := o.command(line).CombinedOutput()
	ended := &exec.ExitError{}
	require.ErrorAs(o.t, err, &ended, "%s\n%s", line, out)
	return string(out)
}

// stored is which objects there are, by their names, each with what changes when it is created anew or written; an object that is gone
// is not among them.
func (c *cluster) stored(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, object := range objects {
		stored, err := c.get(t, object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
		if err != nil {
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			continue
		}
		require.Nil(t, stored.GetDeletionTimestamp(), "%s %s is being deleted", object.GetKind(), object.GetName())
		found[object.GetKind()+" "+object.GetName()] = string(stored.GetUID()) + " at " + stored.GetResourceVersion()
	}
	return found
}

// filled puts objects of a fleet on a cluster: on a hub a member and a placement, on a member what was placed, owned by its AppliedWork.
func (c *cluster) filled(t *testing.T, name string) (objects []*unstructured.Unstructured) {
	t.Helper()
	create := func(text string, owner *unstructured.Unstructured) *unstructured.Unstructured {
		object := manifest(text)
		if owner != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}})
		}
		var made *unstructured.Unstructured
		await(t, object.GetKind()+" "+object.GetName()+" is created", func() bool {
			c.mapper.Reset()
			mapping, err := c.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
			if err != nil {
				return false // the definition is about to be served
			}
			made, err = c.resource(t, mapping.GroupVersionKind, object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
		objects = append(objects, made)
		return made
	}
	if name == "hub-agent" {
		create(`
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: there}
spec: {identity: {kind: User, name: there}}`, nil)
		create(`
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: there}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: there}]`, nil)
		return objects
	}
	work := create(`
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: AppliedWork
metadata: {name: there}
spec: {workName: there, workNamespace: fleet-member-one}`, nil)
	create(`{apiVersion: v1, kind: Namespace, metadata: {name: there}}`, work)
	for _, of := range []string{"one", "two", "three"} {
		create(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: there, name: `+of+`}}`, work)
	}
	return objects
}

// annotation is the command that is printed for definitions that Helm would delete.
var annotation = regexp.MustCompile(`kubectl (--context \S+ )?annotate crd [^;:,"]*helm\.sh/resource-policy=keep`)

// TestAReleaseOfKubeFleetIsNotReplacedWithWhatItPlaced walks every way by which a chart of ours comes over a release of
// KubeFleet's of the same name, and the way back: nothing that is placed is deleted or written. Helm would delete what the release has and the chart has not: the definitions, and with them
// every object of their kinds and everything that such an object owns.
func TestAReleaseOfKubeFleetIsNotReplacedWithWhatItPlaced(t *testing.T) {
	f := bringUp(t)
	newOperator(t, f) // builds what all parts use
	// The other way around: each cluster of the fleet has what its own agent needs already, made by other means than Helm.
	clusters := map[string]*cluster{"hub-agent": f.cluster(t, "member-1"), "member-agent": f.cluster(t, "hub")}
	script := "HUB_CLUSTER_CONTEXT=hub HUB_CLUSTER_ADDRESS=https://hub:6443 MEMBER_CLUSTER=replaced MEMBER_CLUSTER_CONTEXT=hub deploy/join/join-member-cluster.sh"
	for name, ways := range map[string][]string{
		"hub-agent": {
			"helm upgrade --install hub-agent deploy/charts/hub-agent -n fleet-system --kube-context member-1 --set temporal.address=temporal:7233",
			"helm upgrade hub-agent deploy/charts/hub-agent -n fleet-system --kube-context member-1 --no-hooks --force-conflicts --set temporal.address=temporal:7233",
			"kubectl fleet init --context member-1 --temporal temporal:7233 --set image.tag=dev",
			"kubectl fleet migrate check --context member-1",
		},
		"member-agent": {
			"helm upgrade --install member-agent deploy/charts/member-agent -n fleet-system --kube-context hub --set config.hubURL=https://hub:6443 --set config.memberClusterName=one",
			"kubectl fleet join replaced --context hub --member-context hub --hub-address https://hub:6443",
			"kubectl fleet migrate check --context hub --member-context hub",
			script,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &operator{t: t, fleet: f}
			c := clusters[name]
			c.forgetRelease(t, name)
			c.installAs(t, name, ofKubeFleet(t, name), nil)
			objects := c.filled(t, name)
			before := c.stored(t, objects)
			require.Len(t, before, len(objects))

			safe := ""
			for _, way := range ways {
				said := o.failWith(way)
				assert.Equal(t, before, c.stored(t, objects), way)
				safe = annotation.FindString(said)
				require.NotEmpty(t, safe, "%s says nothing of the safe command:\n%s", way, said)
			}
			_, err := f.cluster(t, "hub").get(t, memberClusters, "MemberCluster", "", "replaced")
			assert.True(t, apierrors.IsNotFound(err), "a join that is refused changes nothing")

			if !strings.Contains(safe, "--context") {
				safe = strings.Replace(safe, "kubectl", "kubectl --context "+c.name, 1)
			}
			o.run(safe)
			for _, way := range ways {
				if strings.Contains(way, "migrate check") {
					assert.Contains(t, o.run(way+" || true"), "DefinitionsStored: Helm has stored ", "an uninstallation would still delete them")
				}
			}
			o.run(ways[0])
			assert.Equal(t, before, c.stored(t, objects), "after the upgrade that is safe")
			o.run("helm uninstall " + name + " -n fleet-system --kube-context " + c.name)
			assert.Equal(t, before, c.stored(t, objects), "after the release that took over is uninstalled")
			c.installAs(t, name, ofKubeFleet(t, name), nil)
			assert.Equal(t, before, c.stored(t, objects), "after a release of KubeFleet's is back")
			c.forgetRelease(t, name)
		})
	}
}

// TestAReleaseOfKubeFleetIsNotUninstalledWithWhatItPlaced has a chart of ours beside a release of KubeFleet's, which is then
// uninstalled: Helm goes by what it has stored of the release, so that no annotation on a definition stops it.
func TestAReleaseOfKubeFleetIsNotUninstalledWithWhatItPlaced(t *testing.T) {
	for _, name := range []string{"hub-agent", "member-agent"} {
		t.Run(name, func(t *testing.T) {
			loaded := load(t, name)
			c := bringUp(t).cluster(t, map[string]string{"hub-agent": "member-1", "member-agent": "hub"}[name])
			c.forgetRelease(t, name)
			c.installAs(t, name, ofKubeFleet(t, name), nil)
			objects := c.filled(t, name)
			before := c.stored(t, objects)
			c.installAs(t, lived(loaded), loaded, required()[name])
			crd := manifest(string(loaded.CRDObjects()[0].File.Data))
			dry := func() error {
				return c.resource(t, crd.GroupVersionKind(), "").Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
			}
			await(t, "the policy is in force", func() bool { return dry() != nil })
			assert.ErrorContains(t, dry(), "fleetflow.io/allow-deletion=true")

			uninstall := action.NewUninstall(c.helm(t, namespace))
			uninstall.WaitStrategy = kube.HookOnlyStrategy
			_, err := uninstall.Run(name)
			require.Error(t, err, "Helm could not delete all of the release")
			assert.Equal(t, before, c.stored(t, objects))

			c.helmUninstalls(t, lived(loaded))
			c.forgetRelease(t, name)
		})
	}
}
