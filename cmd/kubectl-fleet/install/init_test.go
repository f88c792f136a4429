package install

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// becomesHub has a cluster take definitions, and a hub agent lead there.
func becomesHub(c *console, leads bool) (definitions *[]string) {
	definitions = &[]string{}
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, object runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			*definitions = append(*definitions, object.(interface{ GetName() string }).GetName())
			return nil
		},
	})
	if leads {
		require.NoError(c.T, c.Hub.Create(c.T.Context(), terminal.Lease(migration.HubAgentLease, "hub-agent-7f")))
	}
	return definitions
}

func TestInitMakesAHub(t *testing.T) {
	c := newConsole(t)
	helm := &recordedHelm{}
	definitions := becomesHub(c, true)
	require.NoError(t, c.runWithHelm(helm, "init", "--set", "image.tag=dev"))
	assert.Contains(t, *definitions, "memberclusters.cluster.kubernetes-fleet.io")
	assert.Contains(t, *definitions, "rolloutholds.fleetflow.io")
	assert.Equal(t, []string{"upgrade", "--install", "hub-agent"}, helm.args[:3])
	assert.Equal(t, []string{"--namespace", "fleet-system", "--create-namespace", "--reset-then-reuse-values", "--set", "image.tag=dev"}, helm.args[4:])
	assert.True(t, slices.ContainsFunc(helm.chart, func(path string) bool { return strings.HasSuffix(path, "templates/_guardrails.tpl") }), "files whose names begin with _ belong to the chart")
	assert.Contains(t, c.Out.String(), "waiting until it leads")
	made := &corev1.Namespace{}
	require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "fleet-system"}, made))
	assert.Equal(t, "restricted", made.Labels["pod-security.kubernetes.io/enforce"])
	assert.Empty(t, c.Err.String())
}

func TestInitAsksTheChartBeforeItChangesAnything(t *testing.T) {
	c := newConsole(t)
	helm := &recordedHelm{refuses: "--dry-run=server"}
	definitions := becomesHub(c, true)
	err := c.runWithHelm(helm, "init", "--set", "image.tag=dev")
	require.ErrorContains(t, err, "asking helm what the chart makes of it: pods run on this cluster")
	assert.Empty(t, *definitions)
	require.Error(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "fleet-system"}, &corev1.Namespace{}), "nothing was changed")
	assert.Equal(t, "--dry-run=server", helm.args[len(helm.args)-1], "and helm was asked once, without effect")
}

func TestInitLeavesTheLabelsOfANamespaceThatIsThere(t *testing.T) {
	there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet-system", Labels: map[string]string{"team": "platform"}}}
	c := newConsole(t, there)
	becomesHub(c, true)
	require.NoError(t, c.runWithHelm(&recordedHelm{}, "init", "--set", "image.tag=dev"))
	assert.Contains(t, c.Err.String(), "namespace fleet-system was there and lacks the label pod-security.kubernetes.io/enforce")
	require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKeyFromObject(there), there))
	assert.Equal(t, map[string]string{"team": "platform"}, there.Labels)
}

func TestInitUpgradesAHub(t *testing.T) {
	ours := terminal.Versioned(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent"}}, "v0.2.0")
	ours.GetLabels()["app.kubernetes.io/instance"] = "hub-agent"
	c := newConsole(t, ours)
	helm := &recordedHelm{}
	definitions := becomesHub(c, true)
	require.NoError(t, c.runWithHelm(helm, "init", "--set", "image.tag=next"), "where Temporal is was said before")
	assert.NotEmpty(t, *definitions, "helm would leave them as they are")
	assert.Equal(t, []string{"--reset-then-reuse-values", "--set", "image.tag=next"}, helm.args[7:])
}

func TestInitAppliesTheDefinitionsOfTheChartThatIsNamed(t *testing.T) {
	c := newConsole(t)
	chart := t.TempDir()
	helm := &recordedHelm{definitions: map[string]string{chart: "# what it has\n---\n{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: theirs.example.com}}\n---\n" +
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: others.example.com}\n"}}
	definitions := becomesHub(c, true)
	require.NoError(t, c.runWithHelm(helm, "init", "--chart", chart))
	assert.Equal(t, []string{"theirs.example.com", "others.example.com"}, *definitions, "helm would leave them as they are")
	assert.Equal(t, chart, helm.args[3])
}

func TestADryRunOfInitChangesNothing(t *testing.T) {
	c := newConsole(t)
	helm := &recordedHelm{missing: true}
	definitions := becomesHub(c, false)
	require.NoError(t, c.runWithHelm(helm, "init", "--temporal", "temporal:7233", "--set", "image.tag=dev", "--dry-run"))
	assert.Empty(t, helm.args)
	assert.Empty(t, *definitions)
	assert.Contains(t, c.Out.String(), "installing the hub agent with helm (dry run)")
}

func TestInitSaysWhyTheAgentDoesNotLead(t *testing.T) {
	pod := terminal.Versioned(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent-7f"}}, "v0.2.0").(*corev1.Pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: "hub-agent:dev", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	c := newConsole(t, pod)
	c.Discover = terminal.EveryKind()
	becomesHub(c, false)
	err := c.runWithHelm(&recordedHelm{}, "init", "--set", "image.tag=dev", "--timeout", "10ms")
	require.ErrorContains(t, err, "Pod fleet-system/hub-agent-7f waits with ImagePullBackOff; the cluster does not get the image hub-agent:dev: push it there, or name another with --set image.repository=")
}

func TestInitRefusesWhatWouldNotWork(t *testing.T) {
	other := terminal.Versioned(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}, "v0.2.0")
	other.GetLabels()["app.kubernetes.io/instance"] = "prod"
	for sentence, test := range map[string]struct {
		objects    []client.Object
		kubernetes string
		forbidden  string
		missing    bool
		args       []string
		want       string
	}{
		"no image":                 {args: []string{"--dry-run"}, want: "is of no release, so that there is no image of its version: give --set image.repository=… --set image.tag=…"},
		"no helm":                  {missing: true, want: "helm is not installed"},
		"a Kubernetes that is old": {kubernetes: "v1.29.9-gke.1", want: "the hub runs Kubernetes v1.29.9-gke.1, and fleetflow needs 1.30 or later there"},
		"a hub of KubeFleet":       {objects: []client.Object{terminal.Lease(kubefleet.HubAgentLease, "theirs")}, want: "KubeFleet's hub agent (theirs) runs here: end it first. kubectl fleet migrate check"},
		"a release of KubeFleet's": {objects: []client.Object{terminal.DefinitionOfRelease("works.placement.kubernetes-fleet.io", "hub-agent")},
			want: "release hub-agent of Helm in namespace fleet-system has 1 definition(s) of the fleet's kinds among its objects, as KubeFleet's charts have them: an upgrade of it to " +
				"fleetflow's chart would delete them, with every object of these kinds and everything that is placed. Keep them first: " +
				"kubectl annotate crd --overwrite works.placement.kubernetes-fleet.io helm.sh/resource-policy=keep"},
		"a second release":            {objects: []client.Object{other}, want: "another release of the hub agent is installed: Deployment fleet/prod of release prod"},
		"a user without releases":     {forbidden: "secrets", want: "you may not create secrets here"},
		"a user who may not make one": {forbidden: "clusterroles", want: "you may not create clusterroles.rbac.authorization.k8s.io here"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, test.objects...)
			helm := &recordedHelm{missing: test.missing}
			definitions := becomesHub(c, false)
			if test.kubernetes != "" {
				c.Kubernetes = test.kubernetes
			}
			c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{Create: func(ctx context.Context, hub client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if review, is := object.(*authorizationv1.SelfSubjectAccessReview); is && review.Spec.ResourceAttributes.Resource == test.forbidden {
					return nil
				}
				return hub.Create(ctx, object, options...)
			}})
			args := test.args
			if args == nil {
				args = []string{"--set", "image.tag=dev"}
			}
			err := c.runWithHelm(helm, append([]string{"init", "--timeout", time.Second.String()}, args...)...)
			require.ErrorContains(t, err, test.want)
			assert.Empty(t, helm.args)
			assert.Empty(t, *definitions)
		})
	}
}
