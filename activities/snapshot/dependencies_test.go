package snapshot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// encoded makes an item of a manifest in namespace app.
func encoded(t *testing.T, manifest string) snapshot.Item {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &object.Object))
	object.SetNamespace("app")
	item, err := snapshot.Encode(object)
	require.NoError(t, err)
	return item
}

// workload is a manifest with a pod of a kind.
func workload(apiVersion, kind, name, pod string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: {template: {spec: %s}}}", apiVersion, kind, name, pod)
}

func deployed(pod string) string { return workload("apps/v1", "Deployment", "web", pod) }

func TestFindNeeds(t *testing.T) {
	everyKind := func(names string) []string { return strings.Split(names, ", ") }
	cases := map[string]struct {
		manifests []string
		want      []string
	}{
		"volumes":                 {[]string{deployed(`{volumes: [{name: a, configMap: {name: c}}, {name: b, secret: {secretName: s}}, {name: d, persistentVolumeClaim: {claimName: p}}, {name: e, emptyDir: {}}]}`)}, everyKind("ConfigMap app/c, PersistentVolumeClaim app/p, Secret app/s")},
		"projected volumes":       {[]string{deployed(`{volumes: [{name: a, projected: {sources: [{configMap: {name: c}}, {secret: {name: s}}, {serviceAccountToken: {path: t}}]}}]}`)}, everyKind("ConfigMap app/c, Secret app/s")},
		"environment variables":   {[]string{deployed(`{containers: [{name: a, env: [{name: one, value: v}, {name: two, valueFrom: {configMapKeyRef: {name: c, key: k}}}, {name: three, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}`)}, everyKind("ConfigMap app/c, Secret app/s")},
		"whole environments":      {[]string{deployed(`{initContainers: [{name: a, envFrom: [{configMapRef: {name: c}}]}], containers: [{name: a, envFrom: [{secretRef: {name: s}}]}]}`)}, everyKind("ConfigMap app/c, Secret app/s")},
		"Secrets of registries":   {[]string{deployed(`{imagePullSecrets: [{name: s}]}`)}, everyKind("Secret app/s")},
		"Secrets of drivers":      {[]string{deployed(`{volumes: [{name: a, csi: {driver: d, nodePublishSecretRef: {name: s}}}, {name: b, azureFile: {secretName: z, shareName: s}}]}`)}, everyKind("Secret app/s, Secret app/z")},
		"a service account":       {[]string{deployed(`{serviceAccountName: robot}`)}, everyKind("ServiceAccount app/robot")},
		"the default account":     {[]string{deployed(`{serviceAccountName: default}`)}, nil},
		"optional ones":           {[]string{deployed(`{volumes: [{name: a, configMap: {name: c, optional: true}}]}`)}, everyKind("ConfigMap app/c optional")},
		"optional for one of two": {[]string{workload("apps/v1", "DaemonSet", "a", `{volumes: [{name: a, configMap: {name: c, optional: true}}]}`), deployed(`{volumes: [{name: a, configMap: {name: c}}]}`)}, everyKind("ConfigMap app/c")},
		"a claim that a template makes": {[]string{`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {volumes: [
			{name: data, persistentVolumeClaim: {claimName: made}}, {name: other, persistentVolumeClaim: {claimName: p}}]}}}}`}, everyKind("PersistentVolumeClaim app/p")},
		"a CronJob":                                {[]string{`{apiVersion: batch/v1, kind: CronJob, metadata: {name: n}, spec: {jobTemplate: {spec: {template: {spec: {serviceAccountName: robot}}}}}}`}, everyKind("ServiceAccount app/robot")},
		"a CloneSet":                               {[]string{workload("apps.kruise.io/v1alpha1", "CloneSet", "n", `{serviceAccountName: robot}`)}, everyKind("ServiceAccount app/robot")},
		"an Ingress":                               {[]string{`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: n}, spec: {tls: [{hosts: [h], secretName: s}, {hosts: [h]}]}}`}, everyKind("Secret app/s")},
		"a kind that has no pods":                  {[]string{workload("example.com/v1", "Widget", "n", `{serviceAccountName: robot}`)}, nil},
		"a template that is none":                  {[]string{`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: n}, spec: {template: 5}}`}, nil},
		"a workload without a template":            {[]string{`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: n}, spec: {}}`}, nil},
		"what an envelope holds":                   {[]string{`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: e}, data: {}}`}, nil},
		"one that several objects name":            {[]string{workload("apps/v1", "StatefulSet", "b", `{serviceAccountName: robot}`), workload("apps/v1", "StatefulSet", "a", `{serviceAccountName: robot}`)}, everyKind("ServiceAccount app/robot")},
		"a ConfigMap, which needs no other object": {[]string{`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {serviceAccountName: robot}}`}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var items []snapshot.Item
			for _, manifest := range tc.manifests {
				items = append(items, encoded(t, manifest))
			}
			var got []string
			for _, need := range snapshot.FindNeeds(items) {
				text := need.String()
				if need.Optional {
					text += " optional"
				}
				got = append(got, text)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestTheObjectThatCannotDoWithoutADependencyIsNamed(t *testing.T) {
	items := []snapshot.Item{
		encoded(t, workload("apps/v1", "DaemonSet", "a", `{volumes: [{name: a, configMap: {name: c, optional: true}}]}`)),
		encoded(t, workload("apps/v1", "Deployment", "second", `{volumes: [{name: a, configMap: {name: c}}]}`)),
		encoded(t, workload("apps/v1", "Deployment", "first", `{volumes: [{name: a, configMap: {name: c}}]}`)),
	}
	needs := snapshot.FindNeeds(items)
	require.Len(t, needs, 1)
	assert.Equal(t, `Deployment app/first names ConfigMap "c", which does not exist in its namespace on the hub, the only one whose objects it can use`,
		needs[0].Missing(snapshot.AbsentDependency))
}

func TestDependenciesAreSelectedByTheSameRulesAsEverything(t *testing.T) {
	wanted := []snapshot.Dependency{{Kind: "ConfigMap", Namespace: "team", Name: "c"}, {Kind: "Secret", Namespace: "team", Name: "s"}}
	skipping, err := snapshot.NewFilter(snapshot.FilterOptions{SkippedAPIs: "v1/ConfigMap"})
	require.NoError(t, err)
	cases := map[string]struct {
		catalog *snapshot.Catalog
		rules   int
		held    []string
		refused string
	}{
		"a kind that is placed":                  {catalog(), 1, nil, ""},
		"a kind that is held":                    {catalog().Holding([]string{"configmaps"}), 0, []string{"configmaps"}, ""},
		"a kind that the hub's operator forbids": {filtered(skipping), 0, nil, "of a kind that the hub agent's flag --skipped-propagating-apis names"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selection := &snapshot.Selection{}
			added, refused := selection.AddDependencies(wanted, tc.catalog)
			assert.Len(t, added, tc.rules)
			assert.Equal(t, added, selection.Rules)
			assert.Equal(t, tc.held, selection.Held)
			assert.Equal(t, tc.refused, refused[wanted[0]])
			assert.Equal(t, "of a kind that the hub does not place", refused[wanted[1]], "the catalog of this test has no Secrets")
		})
	}
}

func TestMoreDependenciesThanAVerdictHoldsAreRefused(t *testing.T) {
	many := func(n, length int) (all []snapshot.Dependency) {
		for i := range n {
			all = append(all, snapshot.Dependency{Kind: "Secret", Namespace: "app", Name: fmt.Sprintf("%d%s", i, strings.Repeat("n", length))})
		}
		return all
	}
	require.NoError(t, snapshot.CheckDependencies(many(1000, 0)))
	for _, all := range [][]snapshot.Dependency{many(1001, 0), many(300, 250)} {
		var invalid *snapshot.InvalidError
		require.ErrorAs(t, snapshot.CheckDependencies(all), &invalid)
		assert.Equal(t, snapshot.ReasonTooMuch, invalid.Reason)
		assert.Contains(t, invalid.Message, fmt.Sprintf("adds %d objects", len(all)))
	}
}

func TestADependencyInAnotherNamespaceIsNoOne(t *testing.T) {
	selection, err := snapshot.Compile(placementv1beta1.Scope{Namespace: "app"}, nil, catalog())
	require.NoError(t, err)
	for _, need := range snapshot.FindNeeds([]snapshot.Item{encoded(t, deployed(`{volumes: [{name: a, configMap: {name: other/c}}]}`))}) {
		assert.Equal(t, "app", need.Namespace, "what looks like another namespace is part of the name")
		added, _ := selection.AddDependencies([]snapshot.Dependency{need.Dependency}, catalog())
		assert.Equal(t, "app", added[0].Namespace)
	}
}
