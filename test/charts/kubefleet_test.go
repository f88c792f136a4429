package charts

import (
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// kubeFleetsMember are the values of KubeFleet's chart for members that have another meaning here, or none.
func kubeFleetsMember() values {
	return values{
		"config": values{
			"provider": "secret", "identityKey": "identity-key-path", "identityCert": "identity-cert-path", "CABundle": "ca-bundle-path",
			"identitySecretName": "", "hubKubeconfigSecretName": "",
			"azureCloudConfig": values{
				"cloud": "AzurePublicCloud", "tenantId": "t", "subscriptionId": "s", "useManagedIdentityExtension": false, "userAssignedIdentityID": "",
				"aadClientId": "", "aadClientSecret": "", "resourceGroup": "", "userAgent": "", "location": "", "vnetName": "", "vnetResourceGroup": "",
			},
		},
		"priorityQueue": values{"enabled": true, "priorityLinearEquationCoeffA": -3, "priorityLinearEquationCoeffB": 100},
		"useKubeconfig": false, "serviceAccountAnnotations": values{"team": "platform"}, "extraInitContainers": []any{values{"name": "plugin", "image": "plugin:v1"}},
		"workApplierRequeueRateLimiterFixedDelaySeconds": 5,
		"azure": values{"clientid": "none"}, "useCAAuth": false, "tlsClientInsecure": true, "propertyProvider": "none", "region": "",
		"enablePprof": true, "pprofPort": 6065, "hubPprofPort": 6066,
		"refreshtoken": values{"repository": "registry.example.com/refresh-token", "tag": "v1", "pullPolicy": "Always"},
		"secret":       values{"name": "hub-kubeconfig-secret", "namespace": "default"},
	}
}

func TestValuesOfKubeFleetsMembersAreTaken(t *testing.T) {
	all := must(t, "member-agent", kubeFleetsMember())
	assert.Equal(t, "platform", named[*corev1.ServiceAccount](t, all, release).Annotations["team"])
	assert.Equal(t, "plugin", deployment(t, all, release).Spec.Template.Spec.InitContainers[0].Name)
	assert.Subset(t, args(t, all, release), []string{"--hub-token-secret=default/hub-kubeconfig-secret", "--tls-insecure=true", "--property-provider=none"})
}

// kubeFleetsHub are the values of KubeFleet's chart for hubs that have another meaning here, or none.
func kubeFleetsHub() values {
	return values{
		"enableWebhook": true, "webhookServiceName": "fleetwebhook", "enableGuardRail": true, "webhookClientConnectionType": "service", "useCertManager": false,
		"webhookCertSecretName": "unset", "enableV1Alpha1APIs": false, "enableV1Beta1APIs": true, "enableClusterInventoryAPI": true, "enableStagedUpdateRunAPIs": true,
		"enableEvictionAPIs": true, "enablePprof": true, "pprofPort": 6065, "hubAPIQPS": 250, "hubAPIBurst": 1000, "MaxConcurrentClusterPlacement": 100,
		"ConcurrentResourceChangeSyncs": 20, "logFileMaxSize": "10000000", "MaxFleetSizeSupported": 100, "forceDeleteWaitTime": "15m0s", "clusterUnhealthyThreshold": "3m0s",
		"resourceSnapshotCreationMinimumInterval": "30s", "resourceChangesCollectionDuration": "15s", "enableWorkload": false, "namespace": "fleet-system",
		"enableAdmissionPolicyManager": true, "admissionPolicyManagerConfigName": "policies.yaml", "additionalConfigDataMountPath": "/etc/hub-agent",
		"additionalConfigData": values{"policies.yaml": "denyPodsAndReplicaSets: {}"},
	}
}

func TestValuesOfKubeFleetsHubAreTaken(t *testing.T) {
	all := must(t, "hub-agent", kubeFleetsHub())
	assert.Subset(t, args(t, all, release), []string{"--cluster-unhealthy-threshold=3m0s"})
}

// TestValuesOfKubeFleetThatAreRefusedSayWhatToSet goes by the guide, whose table has each refused value in a row that begins with it.
func TestValuesOfKubeFleetThatAreRefusedSayWhatToSet(t *testing.T) {
	said := map[string]string{
		"useCAAuth=true":        "put its token into the Secret that config.hubTokenSecret names, and leave useCAAuth out",
		"useKubeconfig=true":    "useKubeconfig and config.hubKubeconfigSecretName: the agent makes its connection of config.hubURL and a token",
		"config.provider=azure": "renew it there",
	}
	guide, refusals := contentOf(t, "docs", "migration.md"), contentOf(t, "charts", "member-agent", "templates", "_kubefleet.tpl")
	assert.Equal(t, len(said), strings.Count(refusals, "{{- fail "), "refusals of the chart")
	for assignment, want := range said {
		t.Run(assignment, func(t *testing.T) {
			assert.Contains(t, guide, "\n| `"+assignment+"` | ")
			given := kubeFleetsMember()
			require.NoError(t, strvals.ParseInto(assignment, given))
			_, err := with(t, "member-agent", given)
			require.ErrorContains(t, err, want)
		})
	}
}

// contentOf is the text of a file below deploy.
func contentOf(t *testing.T, parts ...string) string {
	t.Helper()
	content, err := os.ReadFile(path.Join(append([]string{root, "deploy"}, parts...)...))
	require.NoError(t, err)
	return string(content)
}

// What has nothing to switch would be read as a promise: "enableV1Alpha1APIs" that there are such APIs.
func TestValuesWithoutEffectAreTakenAndNotShown(t *testing.T) {
	content := contentOf(t, "charts", "member-agent", "values.yaml")
	for _, name := range []string{"refreshtoken", "enableV1Alpha1APIs", "enableV1Beta1APIs", "hubPprofPort", "region", "azure", "useCAAuth", "priorityQueue", "useKubeconfig"} {
		assert.NotContains(t, content, "\n"+name+":")
	}
}

// definitionsOf answers the look-ups of a chart with definitions of kinds.
type definitionsOf []runtime.Object

// GetClientFor returns a client of definitions, and one of nothing for other kinds.
func (d definitionsOf) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	lists := map[schema.GroupVersionResource]string{definitions: "CustomResourceDefinitionList", {Version: "v1", Resource: "others"}: "OtherList"}
	if kind != "CustomResourceDefinition" {
		return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists).Resource(schema.GroupVersionResource{Version: "v1", Resource: "others"}), false, nil
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, d...).Resource(definitions), false, nil
}

// definitionOf is the definition of a kind that a release has, with this policy.
func definitionOf(name, release, namespace, policy string) runtime.Object {
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	made.SetName(name)
	said := map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
	if policy != "" {
		said["helm.sh/resource-policy"] = policy
	}
	made.SetAnnotations(said)
	return made
}

// Helm deletes what a release has and its new chart has not.
func TestAReleaseThatHasDefinitionsIsNotUpgraded(t *testing.T) {
	const works = "works.placement.kubernetes-fleet.io"
	for sentence, test := range map[string]struct {
		definitions definitionsOf
		want        string
	}{
		"a release that has none":                 {},
		"one of KubeFleet's":                      {definitionsOf{definitionOf(works, release, namespace, "")}, "annotate crd --overwrite " + works + " helm.sh/resource-policy=keep"},
		"one whose policy Helm does not know":     {definitionsOf{definitionOf(works, release, namespace, "kept")}, "annotate crd"},
		"one whose definitions are kept":          {definitions: definitionsOf{definitionOf(works, release, namespace, "keep")}},
		"definitions of another release":          {definitions: definitionsOf{definitionOf(works, "other", namespace, ""), definitionOf("a.cluster.kubernetes-fleet.io", release, "other", "")}},
		"definitions of others in one release":    {definitions: definitionsOf{definitionOf("certificates.cert-manager.io", release, namespace, "")}},
		"a kind that only KubeFleet has, as well": {definitionsOf{definitionOf("clusterrequests.placement.kubefleet.dev", release, namespace, "")}, "1 definition(s)"},
	} {
		for name, v := range required() {
			if name == "fleet-dashboard" {
				continue // it has no definitions
			}
			t.Run(sentence+" of "+name, func(t *testing.T) {
				loaded, err := loader.Load(path.Join(root, "deploy", "charts", name))
				require.NoError(t, err)
				options := common.ReleaseOptions{Name: release, Namespace: namespace, IsUpgrade: true, Revision: 2}
				all, err := util.ToRenderValues(loaded, v, options, everything())
				require.NoError(t, err)
				_, err = engine.RenderWithClientProvider(loaded, all, test.definitions)
				if test.want == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, test.want)
			})
		}
	}
}

// Clients that render without a cluster are told nothing by a look-up.
func TestDefinitionsAreKeptByAPolicy(t *testing.T) {
	for name := range required() {
		if name == "fleet-dashboard" {
			continue // it has no definitions
		}
		t.Run(name, func(t *testing.T) {
			policy := named[*admissionv1.ValidatingAdmissionPolicy](t, must(t, name, nil), release+"-definitions-kept")
			assert.Equal(t, []admissionv1.OperationType{admissionv1.Delete}, policy.Spec.MatchConstraints.ResourceRules[0].Operations)
			for _, object := range must(t, name, values{"keepDefinitions": false}) {
				if kept, is := object.(*admissionv1.ValidatingAdmissionPolicy); is {
					assert.NotContains(t, kept.Name, "definitions-kept")
				}
			}
		})
	}
}
