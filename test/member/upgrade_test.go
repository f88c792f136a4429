//go:build integration

package member

import (
	"encoding/json"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// The agent is a process. These objects stand for the Pod that it would run in, and for the Deployment of that.
const (
	agentNamespace  = "agent-system"
	agentName       = "member-agent"
	agentRepository = "registry.example.com/member-agent"
)

// selfUpdateFlags are what the owner of the member lets the hub change of the agent.
var selfUpdateFlags = []string{
	"--pod=" + agentNamespace + "/" + agentName, "--self-update-deployment=" + agentName, "--self-update-repositories=" + agentRepository,
}

func agentTemplate(tag string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "member-agent", Image: agentRepository + ":" + tag, Args: []string{"--denied-kinds=Secret"},
		Env: []corev1.EnvVar{{Name: "HUB_SERVER_URL", Value: rig.Fleet.APIServerURL(state.Hub)}},
	}}}
}

// agentUpgraded asks for an image that is refused, for one of which no agent reports, and for one of which an agent reports.
func agentUpgraded(s *spec) {
	require.NoError(s, rig.Member.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentNamespace}}))
	labels := map[string]string{"app": agentName}
	none := int32(0)
	require.NoError(s, rig.Member.Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: agentName},
		Spec: appsv1.DeploymentSpec{
			Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: agentTemplate("v1")},
		},
	}))
	s.startAgentOf("v1")

	began := time.Now()
	s.requestImage(began, "other.example.com/member-agent:v2")
	s.awaitRequest(began, clusterv1beta1.ReasonAgentRequestRefused)
	assert.Equal(s, agentRepository+":v1", s.agentDeployment().Spec.Template.Spec.Containers[0].Image)

	second := began.Add(time.Minute)
	s.requestImage(second, agentRepository+":v2")
	s.awaitRequest(second, clusterv1beta1.ReasonAgentRequestUnderWay)
	changed := s.agentDeployment()
	assert.Equal(s, agentRepository+":v2", changed.Spec.Template.Spec.Containers[0].Image)
	assert.Equal(s, []string{"--denied-kinds=Secret"}, changed.Spec.Template.Spec.Containers[0].Args)
	s.lapseTrial(changed)
	s.awaitRequest(second, clusterv1beta1.ReasonAgentRequestFailed)
	assert.Equal(s, agentRepository+":v1", s.agentDeployment().Spec.Template.Spec.Containers[0].Image)

	third := second.Add(time.Minute)
	s.requestImage(third, agentRepository+":v2")
	s.awaitRequest(third, clusterv1beta1.ReasonAgentRequestUnderWay)
	s.startAgentOf("v2")
	box := s.awaitRequest(third, clusterv1beta1.ReasonAgentRequestDone)
	assert.Equal(s, agentRepository+":v2", box.Status.Properties[clusterv1beta1.AgentImageProperty].Value)
	assert.Equal(s, rig.Fleet.APIServerURL(state.Hub), box.Status.Properties[clusterv1beta1.AgentHubProperty].Value)

	s.changeBox(func(b *clusterv1beta1.InternalMemberCluster) { b.Spec.Agent = nil })
	s.place(s.configMap("a", "v"))
	s.awaitAvailable(s.name)
}

// startAgentOf starts the agent anew, as in a Pod with an image.
func (s *spec) startAgentOf(tag string) {
	s.Helper()
	s.do(control.Stop, onemember.Agent)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: agentName}, Spec: agentTemplate(tag)}
	require.NoError(s, client.IgnoreNotFound(rig.Member.Delete(s.ctx, pod.DeepCopy(), client.GracePeriodSeconds(0))))
	require.NoError(s, rig.Member.Create(s.ctx, pod))
	s.do(control.Start, onemember.Agent)
}

func (s *spec) agentDeployment() *appsv1.Deployment {
	s.Helper()
	deployment := &appsv1.Deployment{}
	require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Namespace: agentNamespace, Name: agentName}, deployment))
	return deployment
}

// lapseTrial makes a trial as old as one that has lasted too long.
func (s *spec) lapseTrial(deployment *appsv1.Deployment) {
	s.Helper()
	record := map[string]any{}
	require.NoError(s, json.Unmarshal([]byte(deployment.Annotations[clusterv1beta1.AgentRequestAnnotation]), &record))
	require.Equal(s, "Trial", record["phase"])
	record["started"] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	text, err := json.Marshal(record)
	require.NoError(s, err)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{clusterv1beta1.AgentRequestAnnotation: string(text)}}})
	require.NoError(s, err)
	require.NoError(s, rig.Member.Patch(s.ctx, deployment, client.RawPatch(types.MergePatchType, patch)))
}

// requestImage asks the agent for an image, in the place of the hub agent.
func (s *spec) requestImage(at time.Time, image string) {
	s.Helper()
	s.changeBox(func(b *clusterv1beta1.InternalMemberCluster) {
		b.Spec.Agent = &clusterv1beta1.AgentRequest{RequestTime: metav1.NewTime(at), Image: image}
	})
}

func (s *spec) changeBox(edit func(*clusterv1beta1.InternalMemberCluster)) {
	s.Helper()
	box := &clusterv1beta1.InternalMemberCluster{}
	require.NoError(s, rig.Hub.Get(s.ctx, boxKey(), box))
	before := box.DeepCopy()
	edit(box)
	require.NoError(s, rig.Hub.Patch(s.ctx, box, client.MergeFrom(before)))
}

func boxKey() client.ObjectKey {
	return client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(onemember.Member), Name: onemember.Member}
}

// awaitRequest waits until the agent says of the request of a time how far it is.
func (s *spec) awaitRequest(at time.Time, reason string) *clusterv1beta1.InternalMemberCluster {
	s.Helper()
	box, err := access.Await(s.ctx, rig.Hub, boxKey(), func(b *clusterv1beta1.InternalMemberCluster) string {
		said := meta.FindStatusCondition(b.Status.Conditions, clusterv1beta1.ConditionTypeAgentAsRequested)
		about := b.Status.Properties[clusterv1beta1.AgentRequestProperty].Value
		if said == nil || said.Reason != reason || about != at.UTC().Format(time.RFC3339) {
			return "the agent does not say " + reason
		}
		return ""
	})
	require.NoError(s, err)
	return box
}
