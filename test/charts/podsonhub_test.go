package charts

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// clusterOf answers the look-ups of a chart with the objects of a cluster.
type clusterOf []runtime.Object

// GetClientFor returns a client of Pods, or of the Namespaces that every cluster has; of everything else the cluster has none.
func (c clusterOf) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	resource := "pods"
	if kind == "Namespace" {
		resource = "namespaces"
	}
	hub := fake.NewSimpleDynamicClient(scheme.Scheme, append(slices.Clone(c), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})...)
	return hub.Resource(corev1.SchemeGroupVersion.WithResource(resource)), kind != "Namespace", nil
}

func podIn(namespace string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(string(phase)), Namespace: namespace}, Status: corev1.PodStatus{Phase: phase}}
}

// TestAHubWithPodsOfOthersIsNotTakenUnawares renders the hub chart for a cluster where pods run already.
func TestAHubWithPodsOfOthersIsNotTakenUnawares(t *testing.T) {
	argocd := podIn("argocd", corev1.PodRunning)
	for sentence, test := range map[string]struct {
		pods    []runtime.Object
		values  values
		upgrade bool
		want    string
	}{
		"a hub without other pods": {pods: []runtime.Object{podIn("kube-system", corev1.PodRunning), podIn(namespace, corev1.PodRunning)}},
		"a hub with Argo CD and a pod of a user": {
			pods: []runtime.Object{argocd, podIn("web", corev1.PodPending), podIn("argocd", corev1.PodPending)},
			want: "pods run on this cluster in argocd, web, and would not be created again after they have ended: with enableWorkload=false " +
				"the hub refuses new pods there. Install with --set 'workloadNamespaces={argocd,web}', or with --set enableWorkload=true",
		},
		"what is named is named again": {
			pods: []runtime.Object{argocd, podIn("web", corev1.PodRunning)}, values: values{"workloadNamespaces": []any{"web"}},
			want: "--set 'workloadNamespaces={web,argocd}'",
		},
		"pods that have ended":               {pods: []runtime.Object{podIn("web", corev1.PodSucceeded), podIn("web", corev1.PodFailed)}},
		"namespaces with pods, all named":    {pods: []runtime.Object{argocd}, values: values{"workloadNamespaces": []any{"argocd"}}},
		"a hub that runs workloads":          {pods: []runtime.Object{argocd}, values: values{"enableWorkload": true}},
		"an upgrade":                         {pods: []runtime.Object{argocd}, upgrade: true},
		"pods of Rancher's Fleet":            {pods: []runtime.Object{podIn("fleet-default", corev1.PodRunning)}, want: "in fleet-default,"},
		"Temporal in a namespace of the hub": {pods: []runtime.Object{podIn("temporal", corev1.PodRunning)}, values: values{"temporal": values{"address": "frontend.temporal:7233"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			chart, err := loader.Load(path.Join(root, "deploy", "charts", "hub-agent"))
			require.NoError(t, err)
			v := required()["hub-agent"]
			merge(v, test.values)
			options := common.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: !test.upgrade, IsUpgrade: test.upgrade, Revision: 1}
			all, err := util.ToRenderValues(chart, v, options, everything())
			require.NoError(t, err)
			rendered, err := engine.RenderWithClientProvider(chart, all, clusterOf(test.pods))
			if test.want == "" {
				require.NoError(t, err)
				assert.Empty(t, strings.TrimSpace(rendered["hub-agent/templates/podcheck.yaml"]), "it has been looked")
				return
			}
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// TestWithoutAClusterAJobLooksForPods renders as Argo CD does, which applies hooks of Helm before everything else.
func TestWithoutAClusterAJobLooksForPods(t *testing.T) {
	all := must(t, "hub-agent", values{"workloadNamespaces": []any{"web", "db"}})
	job := only[*batchv1.Job](t, all)
	assert.Equal(t, "pre-install,pre-upgrade", job.Annotations["helm.sh/hook"])
	pod := job.Spec.Template.Spec
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.True(t, *pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []string{
		"check-pods",
		`--refused=!(["fleet-","kube-"].exists(p, name.startsWith(p)) && !(name in ["fleet-default","fleet-local"])) && !(name in ["fleet-system", "web", "db"])`,
		"--workload-namespaces=web,db",
	}, pod.Containers[0].Args, "it is what the policy says")
	assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}, named[*rbacv1.ClusterRole](t, all, pod.ServiceAccountName).Rules)
	for _, object := range []metav1.Object{named[*corev1.ServiceAccount](t, all, pod.ServiceAccountName), named[*rbacv1.ClusterRole](t, all, pod.ServiceAccountName), named[*rbacv1.ClusterRoleBinding](t, all, pod.ServiceAccountName)} {
		assert.Equal(t, "pre-install,pre-upgrade", object.GetAnnotations()["helm.sh/hook"], object.GetName())
	}
	for sentence, given := range map[string]values{"a hub that runs workloads": {"enableWorkload": true}, "a hub that is not looked at": {"podCheck": values{"enabled": false}}} {
		assert.Empty(t, ofKind(t, must(t, "hub-agent", given), "Job"), sentence)
	}
}

func TestReservedNamespacesAreUpToTheOperator(t *testing.T) {
	for sentence, test := range map[string]struct {
		values values
		want   string
	}{
		"Rancher's namespaces are Rancher's": {nil, `["fleet-","kube-"].exists(p, name.startsWith(p)) && !(name in ["fleet-default","fleet-local"])`},
		"unless the agent is in one":         {values{"namespace": "fleet-local"}, `!(name in ["fleet-default"])`},
		"other prefixes":                     {values{"guardRail": values{"reservedPrefixes": []any{"kubefleet-"}, "foreignNamespaces": []any{}}}, `["kubefleet-","fleet-member-","kube-"].exists(p, name.startsWith(p)))`},
	} {
		t.Run(sentence, func(t *testing.T) {
			policies := policiesOf(t, test.values)
			assert.Contains(t, condition(t, policies["reserved-namespaces"], "is-in-a-reserved-namespace"), test.want)
		})
	}
	other := policiesOf(t, values{"guardRail": values{"reservedPrefixes": []any{"kubefleet-"}}})
	assert.Contains(t, other["reserved-namespaces"].Spec.Validations[0].Message, "begin with kubefleet- or fleet-member- or kube-, and")
	for _, name := range []string{"fleet-member-1", "kube-system", "Fleet"} {
		_, err := with(t, "hub-agent", values{"guardRail": values{"foreignNamespaces": []any{name}}})
		assert.ErrorContains(t, err, "/guardRail/foreignNamespaces/0")
	}
}

// TestMembersMayBeOld renders the member chart for the oldest clusters that may join.
func TestMembersMayBeOld(t *testing.T) {
	chart, err := loader.Load(path.Join(root, "deploy", "charts", "member-agent"))
	require.NoError(t, err)
	for version, want := range map[string]bool{"v1.24.0": true, "v1.24.17-eks-2d5f260": true, "v1.36.0": true, "v1.23.17": false} {
		assert.Equal(t, want, chartutil.IsCompatibleRange(chart.Metadata.KubeVersion, version), version)
	}
	old := common.DefaultCapabilities.Copy()
	old.KubeVersion = common.KubeVersion{Version: "v1.24.0", Major: "1", Minor: "24"}
	all, err := util.ToRenderValues(chart, required()["member-agent"], common.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true}, old)
	require.NoError(t, err)
	rendered, err := (&engine.Engine{Strict: true}).Render(chart, all)
	require.NoError(t, err)
	assert.NotEmpty(t, objects(t, rendered))
}

// TestTheProductionValuesRender takes the example as a user does, with a registry and a tag of its own.
func TestTheProductionValuesRender(t *testing.T) {
	content, err := os.ReadFile(path.Join(root, "deploy", "charts", "hub-agent", "examples", "values-production.yaml"))
	require.NoError(t, err)
	filled := strings.NewReplacer("<registry>", "registry.example.com", "<tag>", "v1", "<platform-team>", "platform-team").Replace(string(content))
	assert.NotContains(t, filled, "<", "there is nothing else to fill in")
	given := values{}
	require.NoError(t, yaml.Unmarshal([]byte(filled), &given))
	rendered, err := render(t, "hub-agent", given)
	require.NoError(t, err)
	all := objects(t, rendered)
	assert.ElementsMatch(t, []string{release, release + "-workers"}, ofKind(t, all, "Deployment"))
	assert.Contains(t, args(t, all, release), "--temporal-approvals=off")
}
