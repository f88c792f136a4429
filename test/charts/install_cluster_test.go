//go:build integration

package charts

import (
	"crypto/tls"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// cluster is an administrator's access to a cluster.
type cluster struct {
	fleet   *fleet
	name    string
	config  *rest.Config
	dynamic dynamic.Interface
	client  kubernetes.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func newCluster(t *testing.T, f *fleet, name string, config *rest.Config) *cluster {
	t.Helper()
	c := &cluster{fleet: f, name: name, config: config}
	var err error
	c.dynamic, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	c.client, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	return c
}

func manifest(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		panic(err)
	}
	return object
}

func (c *cluster) resource(t *testing.T, gvk schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	t.Helper()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	require.NoError(t, err)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource)
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(namespace)
}

// apply applies an object as Helm 4 does, server-side; no field may be unknown.
func (c *cluster) apply(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	content, err := object.MarshalJSON()
	require.NoError(t, err)
	force := true
	_, err = c.resource(t, object.GroupVersionKind(), object.GetNamespace()).Patch(t.Context(), object.GetName(), "application/apply-patch+yaml", content,
		metav1.PatchOptions{FieldManager: "helm", Force: &force, FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err, "%s %s", object.GetKind(), object.GetName())
}

func (c *cluster) get(t *testing.T, version, kind, namespace, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	object, err := c.resource(t, schema.FromAPIVersionAndKind(version, kind), namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return &unstructured.Unstructured{}, err
	}
	return object, nil
}

func (c *cluster) delete(t *testing.T, version, kind, name string) {
	t.Helper()
	err := c.resource(t, schema.FromAPIVersionAndKind(version, kind), "").Delete(t.Context(), name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
}

// condition says whether a condition of an object is true at its generation.
func (c *cluster) condition(t *testing.T, version, kind, namespace, name, condition string) bool {
	t.Helper()
	object, err := c.get(t, version, kind, namespace, name)
	if err != nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(entry any) bool {
		fields, ok := entry.(map[string]any)
		return ok && fields["type"] == condition && fields["status"] == "True" && fields["observedGeneration"] == object.GetGeneration()
	})
}

func (c *cluster) install(t *testing.T, chart string, additional values) []*agent {
	t.Helper()
	return c.installFrom(t, namespace, chart, additional)
}

// installFrom applies the CRDs and every object of a chart, as a release of the chart's name from a namespace, and returns
// the agents of its Deployments.
func (c *cluster) installFrom(t *testing.T, namespace, chart string, additional values) []*agent {
	t.Helper()
	all := required()[chart]
	merge(all, additional)
	loaded, err := loader.Load(path.Join(root, "deploy", "charts", chart))
	require.NoError(t, err)
	for _, crd := range loaded.CRDObjects() {
		c.apply(t, manifest(string(crd.File.Data)))
	}
	c.mapper.Reset()
	rendered, err := renderAs(t, chart, chart, namespace, all)
	require.NoError(t, err)
	var agents []*agent
	for _, object := range inOrder(objects(t, rendered)) {
		if isHook(t, object) {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		require.NoError(t, err)
		applied := &unstructured.Unstructured{Object: content}
		unstructured.RemoveNestedField(applied.Object, "status")
		unstructured.RemoveNestedField(applied.Object, "metadata", "creationTimestamp")
		c.apply(t, applied)
		if d, ok := object.(*appsv1.Deployment); ok {
			agents = append(agents, c.agentOf(t, chart, d))
		}
	}
	return agents
}

// isHook says whether Helm leaves an object out of a release, to create it at another time.
func isHook(t *testing.T, object runtime.Object) bool {
	t.Helper()
	accessor, err := meta.Accessor(object)
	require.NoError(t, err)
	return accessor.GetAnnotations()["helm.sh/hook"] != ""
}

// inOrder puts namespaces first, and Deployments after what they mount, as Helm does, and policies last, as who applies may
// have to be one of those that they let through.
func inOrder(all []runtime.Object) []runtime.Object {
	rank := func(object runtime.Object) int {
		switch gvk := object.GetObjectKind().GroupVersionKind(); {
		case gvk.Kind == "Namespace":
			return 0
		case gvk.Kind == "Deployment":
			return 2
		case gvk.Group == "admissionregistration.k8s.io":
			return 3
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b runtime.Object) int { return rank(a) - rank(b) })
	return all
}

// agentOf reads a Deployment as a kubelet would.
func (c *cluster) agentOf(t *testing.T, program string, d *appsv1.Deployment) *agent {
	t.Helper()
	spec := d.Spec.Template.Spec
	secret := func(name string) map[string][]byte { return c.secret(t, d.Namespace, name) }
	p := inPod(t, spec, &spec.Containers[0], t.TempDir(), secret)
	a := &agent{name: d.Name, program: program, args: p.args, env: p.env, account: d.Namespace + "/" + spec.ServiceAccountName, secrets: p.secrets}
	for i := range spec.InitContainers {
		if sidecar := &spec.InitContainers[i]; sidecar.Name == "temporal" {
			p := inPod(t, spec, sidecar, t.TempDir(), secret)
			a.temporal = &agent{name: d.Name + "-temporal", program: "bundled-temporal", args: p.args, env: p.env}
		}
	}
	return a
}

// secret is the content of a Secret.
func (c *cluster) secret(t *testing.T, namespace, name string) map[string][]byte {
	t.Helper()
	object, err := c.get(t, "v1", "Secret", namespace, name)
	require.NoError(t, err)
	data, _, err := unstructured.NestedStringMap(object.Object, "data")
	require.NoError(t, err)
	decoded := map[string][]byte{}
	for key, value := range data {
		decoded[key] = decode64(t, value)
	}
	return decoded
}

// remount brings what an agent has mounted up to date.
func (c *cluster) remount(t *testing.T, a *agent) {
	t.Helper()
	namespace, _, _ := strings.Cut(a.account, "/")
	for name, at := range a.secrets {
		mount(t, at, c.secret(t, namespace, name))
	}
}

// run starts an agent. What a Pod has and a process has not is all that is added: a kubeconfig with a token of the service
// account instead of the mounted one, and free ports.
func (c *cluster) run(t *testing.T, a *agent) {
	t.Helper()
	a.program = c.fleet.build(t, a.program)
	a.health = "127.0.0.1:" + freePort(t)
	a.metrics = "127.0.0.1:" + freePort(t)
	a.args = append(a.args, "--kubeconfig="+c.kubeconfig(t, a), "--metrics-bind-address="+a.metrics, "--health-probe-bind-address="+a.health)
	c.fleet.start(t, a)
}

// requireMetricsNeedARight reads the metrics of an agent without a token, with one of an account without rights, and with one
// that the role of the chart is bound to.
func (c *cluster) requireMetricsNeedARight(t *testing.T, a *agent) {
	t.Helper()
	c.apply(t, manifest(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus, namespace: default}}`))
	other, err := c.client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.apply(t, manifest(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus-`+a.name+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+c.metricsRole(t)+`}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: default}]`))
	// The agent has made its certificate itself.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
	read := func(token string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.metrics+"/metrics", http.NoBody)
		require.NoError(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0
		}
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusUnauthorized, read(""), a.name)
	require.Equal(t, http.StatusForbidden, read(other.Status.Token), a.name)
	await(t, "Prometheus may read the metrics of "+a.name, func() bool {
		// Each with a token of its own: the agent remembers for a while that the API server did not know of the binding yet.
		issued, err := c.client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "prometheus", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err == nil && read(issued.Status.Token) == http.StatusOK
	})
}

// metricsRole is the name of the role that the chart on the cluster has for readers of metrics.
func (c *cluster) metricsRole(t *testing.T) string {
	t.Helper()
	roles, err := c.client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range roles.Items {
		if strings.HasSuffix(roles.Items[i].Name, "-metrics-reader") {
			return roles.Items[i].Name
		}
	}
	require.Fail(t, "the chart has no role for readers of metrics")
	return ""
}

func (c *cluster) kubeconfig(t *testing.T, a *agent) string {
	t.Helper()
	namespace, account, _ := strings.Cut(a.account, "/")
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthorityData: c.config.CAData}
	config.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "a"}
	config.CurrentContext = "x"
	content, err := clientcmd.Write(*config)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	return file
}
