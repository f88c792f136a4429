package migration_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
)

// definition is that of a kind, with these annotations.
func definition(name string, annotations ...string) client.Object {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	object.APIVersion = "apiextensions.k8s.io/v1"
	object.Kind = "CustomResourceDefinition"
	for i := 0; i < len(annotations); i += 2 {
		object.Annotations[annotations[i]] = annotations[i+1]
	}
	return object
}

// stored is a release as Helm stores it.
func stored(t *testing.T, name, status, manifest string) client.Object {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	require.NoError(t, json.NewEncoder(zip).Encode(map[string]string{"name": name, "manifest": manifest}))
	require.NoError(t, zip.Close())
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "sh.helm.release.v1." + name + "." + status, Labels: map[string]string{"owner": "helm", "name": name, "status": status}},
		Data:       map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
}

func TestReleasesThatWouldDeleteDefinitions(t *testing.T) {
	const name, namespace, policy = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "helm.sh/resource-policy"
	for sentence, test := range map[string]struct {
		definitions []client.Object
		want        []migration.Release
	}{
		"definitions that no release has": {definitions: []client.Object{definition("works.placement.kubernetes-fleet.io")}},
		"those of KubeFleet's charts": {
			[]client.Object{
				definition("works.placement.kubernetes-fleet.io", name, "hub-agent", namespace, "fleet-system"),
				definition("memberclusters.cluster.kubernetes-fleet.io", name, "hub-agent", namespace, "fleet-system"),
				definition("clusterrequests.placement.kubefleet.dev", name, "hub-agent", namespace, "fleet-system"),
				definition("appliedworks.placement.kubernetes-fleet.io", name, "member-agent", namespace, "default"),
			},
			[]migration.Release{
				{Namespace: "default", Name: "member-agent", Definitions: []string{"appliedworks.placement.kubernetes-fleet.io"}},
				{Namespace: "fleet-system", Name: "hub-agent", Definitions: []string{
					"clusterrequests.placement.kubefleet.dev", "memberclusters.cluster.kubernetes-fleet.io", "works.placement.kubernetes-fleet.io",
				}},
			},
		},
		"those that are kept": {definitions: []client.Object{definition("works.placement.kubernetes-fleet.io", name, "hub-agent", policy, "keep")}},
		"those that are kept, and that Helm would delete when it uninstalls": {
			[]client.Object{
				definition("works.placement.kubernetes-fleet.io", name, "hub-agent", namespace, "fleet-system", policy, "keep"),
				definition("clusterresourcebindings.placement.kubernetes-fleet.io", name, "hub-agent", namespace, "fleet-system", policy, "keep"),
				stored(t, "hub-agent", "deployed", "---\nkind: ServiceAccount\nmetadata: {name: a}\n---\nkind: CustomResourceDefinition\nmetadata: {name: works.placement.kubernetes-fleet.io}\n"+
					"---\nkind: CustomResourceDefinition\nmetadata: {name: clusterresourcebindings.placement.kubernetes-fleet.io, annotations: {helm.sh/resource-policy: keep}}\n"),
			},
			[]migration.Release{{Namespace: "fleet-system", Name: "hub-agent", Kept: true, Definitions: []string{"works.placement.kubernetes-fleet.io"}}},
		},
		"those that are kept, of a release that fleetflow's chart has taken": {definitions: []client.Object{
			definition("works.placement.kubernetes-fleet.io", name, "hub-agent", namespace, "fleet-system", policy, "keep"),
			stored(t, "hub-agent", "superseded", "kind: CustomResourceDefinition\nmetadata: {name: works.placement.kubernetes-fleet.io}\n"),
		}},
		"a policy that Helm does not know":      {[]client.Object{definition("works.placement.kubernetes-fleet.io", name, "a", namespace, "b", policy, "Keep")}, []migration.Release{{Namespace: "b", Name: "a", Definitions: []string{"works.placement.kubernetes-fleet.io"}}}},
		"those of others":                       {definitions: []client.Object{definition("serviceexports.multicluster.x-k8s.io", name, "submariner"), definition("certificates.cert-manager.io", name, "cert-manager")}},
		"a group whose name ends like ours":     {definitions: []client.Object{definition("works.notkubernetes-fleet.io", name, "a")}},
		"the inventory, which is in its charts": {[]client.Object{definition("clusterprofiles.multicluster.x-k8s.io", name, "a", namespace, "b")}, []migration.Release{{Namespace: "b", Name: "a", Definitions: []string{"clusterprofiles.multicluster.x-k8s.io"}}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			found, err := migration.ReadReleases(t.Context(), fake.NewClientBuilder().WithObjects(test.definitions...).Build())
			require.NoError(t, err)
			assert.Equal(t, test.want, found)
		})
	}
}
