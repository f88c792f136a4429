package selfupdate

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// noTokens renews at once.
type noTokens struct{}

func (noTokens) RenewBefore(time.Time) (bool, string) { return false, "" }

// bench is a cluster with the agent's Deployment, and agents of it.
type bench struct {
	t       *testing.T
	cluster *fake.Clientset
	clock   *clocktesting.FakeClock
}

func podOf(setup Setup) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{
		{Name: "side-car", Image: "side-car:v1"},
		{Name: Container, Image: setup.Image, Args: []string{"--denied-kinds=Secret"}, Env: []corev1.EnvVar{
			{Name: "MEMBER_CLUSTER_NAME", Value: "one"}, {Name: HubVariable, Value: setup.HubURL},
		}},
	}}
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, clock: clocktesting.NewFakeClock(noon), cluster: fake.NewClientset(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "member-agent"},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: podOf(former)}},
	})}
}

// agent is an agent that runs in a Pod of a setup.
func (b *bench) agent(pod string, setup Setup) *Updater {
	b.t.Helper()
	_, err := b.cluster.CoreV1().Pods("fleet-system").Create(b.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: pod}, Spec: podOf(setup),
	}, metav1.CreateOptions{})
	require.NoError(b.t, err)
	return New(b.cluster, noTokens{}, b.clock, logr.Discard(), Options{
		Namespace: "fleet-system", Deployment: "member-agent", Pod: pod, HubURL: setup.HubURL, Allowed: owner, Timeout: 10 * time.Minute,
	})
}

func (b *bench) act(u *Updater) string {
	b.t.Helper()
	_, err := u.actOnce(b.t.Context())
	require.NoError(b.t, err)
	for _, condition := range u.Findings() {
		return condition.Reason
	}
	return ""
}

func (b *bench) deployment() *appsv1.Deployment {
	b.t.Helper()
	deployment, err := b.cluster.AppsV1().Deployments("fleet-system").Get(b.t.Context(), "member-agent", metav1.GetOptions{})
	require.NoError(b.t, err)
	return deployment
}

func ready(u *Updater) error {
	return u.Ready(httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))
}

func TestAnAgentMakesRoomForOneThatReports(t *testing.T) {
	b := newBench(t)
	old := b.agent("old", former)
	old.Reported()
	assert.Empty(t, b.act(old))
	old.Request(requestOf(noon, nil))
	assert.Equal(t, clusterv1beta1.ReasonAgentRequestUnderWay, b.act(old))
	assert.Equal(t, podOf(wanted), b.deployment().Spec.Template.Spec, "nothing but the image is another one")
	require.NoError(t, ready(old), "the old agent stays ready")

	fresh := b.agent("fresh", wanted)
	fresh.TryReport = func(context.Context) error { return errors.New("unauthorized") }
	require.ErrorContains(t, ready(fresh), "unauthorized")
	fresh.TryReport = func(context.Context) error { return nil }
	require.NoError(t, ready(fresh))
	fresh.TryReport = func(context.Context) error { return errors.New("the hub is away") }
	require.NoError(t, ready(fresh), "it has shown once that it can report")

	fresh.Request(requestOf(noon, nil))
	assert.Equal(t, clusterv1beta1.ReasonAgentRequestUnderWay, b.act(fresh))
	fresh.Reported()
	assert.Equal(t, clusterv1beta1.ReasonAgentRequestDone, b.act(fresh))
	assert.Equal(t, map[clusterv1beta1.PropertyName]string{
		clusterv1beta1.AgentImageProperty: wanted.Image, clusterv1beta1.AgentHubProperty: wanted.HubURL,
		clusterv1beta1.AgentRequestProperty: "2026-01-01T12:00:00Z",
	}, fresh.Properties())

	later := b.agent("later", wanted)
	later.TryReport = func(context.Context) error { return errors.New("the hub is away") }
	require.NoError(t, ready(later), "after the trial, an agent is ready without the hub")
}

func TestTheOldAgentIsBackIfTheNewOneDoesNotReport(t *testing.T) {
	b := newBench(t)
	old := b.agent("old", former)
	old.Reported()
	old.Request(requestOf(noon, nil))
	b.act(old)
	b.clock.Step(10 * time.Minute)
	assert.Equal(t, clusterv1beta1.ReasonAgentRequestFailed, b.act(old))
	assert.Equal(t, podOf(former), b.deployment().Spec.Template.Spec)
	assert.Equal(t, clusterv1beta1.ReasonAgentRequestFailed, b.act(old), "the request is not tried again")
	assert.Equal(t, podOf(former), b.deployment().Spec.Template.Spec)
	assert.Contains(t, old.Findings()[0].Message, "no agent has reported with image registry.example.com/member-agent:v2")
}

func TestAnAgentOutsideOfAPodChangesNothing(t *testing.T) {
	b := newBench(t)
	u := New(b.cluster, noTokens{}, b.clock, logr.Discard(), Options{HubURL: former.HubURL, Allowed: owner})
	assert.Empty(t, b.act(u))
	u.Request(requestOf(noon, nil))
	assert.Equal(t, clusterv1beta1.ReasonAgentRequestRefused, b.act(u))
	require.NoError(t, ready(u))
}

func TestADeploymentThatEndsTheOldAgentFirstIsNotChanged(t *testing.T) {
	count := func(of int32) *appsv1.Deployment {
		unavailable := intstr.FromInt32(of)
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Strategy: appsv1.DeploymentStrategy{
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable},
		}}}
	}
	part := intstr.FromString("25%")
	usual := count(0)
	usual.Spec.Strategy.RollingUpdate.MaxUnavailable = &part
	none := usual.DeepCopy()
	none.Spec.Replicas = new(int32(0))
	two := count(1)
	two.Spec.Replicas = new(int32(2))
	paused := count(0)
	paused.Spec.Paused = true
	recreate := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}}}
	for sentence, test := range map[string]struct {
		deployment *appsv1.Deployment
		want       string
	}{
		"Kubernetes' own strategy":       {usual, ""},
		"no Pod of it runs":              {none, ""},
		"no agent away":                  {count(0), ""},
		"one of two away":                {two, ""},
		"the only one away":              {count(1), "lets all agents be unavailable"},
		"all end first":                  {recreate, "strategy Recreate"},
		"a Deployment that stands still": {paused, "is paused"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.want == "" {
				assert.Empty(t, obstacleIn(test.deployment))
				return
			}
			assert.Contains(t, obstacleIn(test.deployment), test.want)
		})
	}
}
