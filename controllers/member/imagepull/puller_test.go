package imagepull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func readyNode(name string, edit ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	for _, e := range edit {
		e(node)
	}
	return node
}

func of(images ...string) fleetflowv1alpha1.ImagesOfPods {
	return fleetflowv1alpha1.ImagesOfPods{Namespace: "web", Images: images}
}

// kubelet is a cluster whose nodes pull images, or not.
type kubelet struct {
	*fake.Clientset
	made []*corev1.Pod
}

// newKubelet returns a cluster with nodes. The state of each container is what an image has.
func newKubelet(t *testing.T, states map[string]corev1.ContainerStatus, nodes ...*corev1.Node) *kubelet {
	t.Helper()
	k := &kubelet{Clientset: fake.NewClientset()}
	for _, node := range nodes {
		require.NoError(t, k.Tracker().Add(node))
	}
	k.PrependReactor("create", "pods", func(action kubetesting.Action) (bool, runtime.Object, error) {
		pod := action.(kubetesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Name = fmt.Sprintf("%s%d", pod.GenerateName, len(k.made))
		pod.UID = types.UID("uid-" + pod.Name)
		for _, c := range pod.Spec.Containers {
			status := states[c.Image]
			status.Name = c.Name
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
		k.made = append(k.made, pod.DeepCopy())
		return false, nil, nil
	})
	return k
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func started(id string) corev1.ContainerStatus {
	return corev1.ContainerStatus{ImageID: id, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError"}}}
}

func (k *kubelet) pull(t *testing.T, asked ...fleetflowv1alpha1.ImagesOfPods) map[string]fleetflowv1alpha1.PulledImage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	images, err := New(k, clocktesting.NewFakeClock(noon), logr.Discard()).Pull(ctx, "uid", time.Minute, asked)
	require.NoError(t, err)
	return byName(images)
}

func byName(images []fleetflowv1alpha1.PulledImage) map[string]fleetflowv1alpha1.PulledImage {
	told := map[string]fleetflowv1alpha1.PulledImage{}
	for _, image := range images {
		told[image.Image] = image
	}
	return told
}

func (k *kubelet) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	pods, err := k.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return pods.Items
}

func TestNodesPullAndNothingStays(t *testing.T) {
	k := newKubelet(t, map[string]corev1.ContainerStatus{
		"good:1": started("sha256:1"), "bad:1": waiting("ErrImagePull", "manifest for bad:1 not found"),
	}, readyNode("a"), readyNode("b"))
	told := k.pull(t, of("good:1", "bad:1"))
	assert.Equal(t, fleetflowv1alpha1.PulledImage{Image: "good:1", Outcome: "pulled", Nodes: 2, Pulled: 2}, told["good:1"])
	assert.Equal(t, fleetflowv1alpha1.PulledImage{
		Image: "bad:1", Outcome: "refused", Nodes: 2, Message: "ErrImagePull: manifest for bad:1 not found",
	}, told["bad:1"])
	require.Len(t, k.made, 2)
	assert.Empty(t, k.pods(t))
}

// A Pod of the agent may do nothing: it runs nothing, with no rights, on the node that it names, and ends by itself.
func TestAPodThatPullsHasOneForm(t *testing.T) {
	asked := of("good:1", "good:2")
	asked.PullPolicy = corev1.PullAlways
	asked.PullSecrets = []string{"registry"}
	asked.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	k := newKubelet(t, map[string]corev1.ContainerStatus{"good:1": started("1"), "good:2": started("2")}, readyNode("a"))
	k.pull(t, asked)
	require.Len(t, k.made, 1)
	pod := k.made[0]
	assert.Equal(t, "web", pod.Namespace)
	assert.Equal(t, map[string]string{"fleetflow.io/image-pull": "uid"}, pod.Labels)
	assert.Empty(t, pod.OwnerReferences)
	spec := pod.Spec
	assert.Equal(t, "a", spec.NodeName)
	assert.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, spec.ImagePullSecrets)
	assert.Equal(t, asked.Tolerations, spec.Tolerations)
	assert.Equal(t, corev1.RestartPolicyNever, spec.RestartPolicy)
	assert.EqualValues(t, 60, *spec.ActiveDeadlineSeconds)
	assert.False(t, *spec.AutomountServiceAccountToken)
	assert.False(t, *spec.EnableServiceLinks)
	assert.True(t, *spec.SecurityContext.RunAsNonRoot)
	assert.NotZero(t, *spec.SecurityContext.RunAsUser)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
	assert.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC)
	assert.Empty(t, spec.Volumes)
	assert.Empty(t, spec.ServiceAccountName)
	for _, c := range spec.Containers {
		assert.Equal(t, []string{nothing}, c.Command)
		assert.Empty(t, c.Args)
		assert.Empty(t, c.Env)
		assert.Empty(t, c.EnvFrom)
		assert.Empty(t, c.VolumeMounts)
		assert.Equal(t, corev1.PullAlways, c.ImagePullPolicy)
		assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
		assert.Nil(t, c.SecurityContext.Privileged)
		assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		assert.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
		assert.NotEmpty(t, c.Resources.Limits)
	}
}

func TestWhatAContainerSaysOfItsImage(t *testing.T) {
	for sentence, is := range map[string]struct {
		status  corev1.ContainerStatus
		outcome fleetflowv1alpha1.RehearsalOutcome
	}{
		"it did not start":               {started("sha256:1"), "pulled"},
		"it was not made":                {waiting("CreateContainerError", "no such file"), "pulled"},
		"it was not configured":          {waiting("CreateContainerConfigError", "image has non-numeric user"), "pulled"},
		"it runs":                        {corev1.ContainerStatus{ImageID: "1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, "pulled"},
		"it runs, of which image?":       {corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, ""},
		"it has ended, of which image?":  {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, ""},
		"it is made":                     {waiting("ContainerCreating", ""), ""},
		"the registry refuses":           {waiting("ErrImagePull", "denied"), "refused"},
		"the registry refuses again":     {waiting("ImagePullBackOff", "Back-off"), "refused"},
		"the name is none":               {waiting("InvalidImageName", "couldn't parse"), "refused"},
		"the node cannot read the image": {waiting("ImageInspectError", "damaged"), "unknown"},
		"it may not pull":                {waiting("ErrImageNeverPull", "not present"), "unknown"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "image-0", Image: "a"}}}}
		is.status.Name = "image-0"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{is.status}
		found, over := judge(pod)
		assert.Equal(t, is.outcome, found["image-0"].outcome, sentence)
		assert.Equal(t, is.outcome != "", over, sentence)
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Reason = "OutOfpods"
		found, over = judge(pod)
		assert.True(t, over, sentence)
		if is.outcome == "" {
			assert.Equal(t, verdict{fleetflowv1alpha1.RehearsalUnknown, "OutOfpods"}, found["image-0"], sentence)
		}
	}
}

// A webhook of the cluster may take images from elsewhere, and add a container, which may have an image that is pulled, too.
func TestWhatTheClusterMakesOfThePodIsNoMatter(t *testing.T) {
	k := newKubelet(t, map[string]corev1.ContainerStatus{
		"mirror/a:1": started("1"), "mirror/b:1": waiting("ErrImagePull", "denied"), "proxy:1": waiting("ContainerCreating", ""),
	}, readyNode("a"))
	first := k.ReactionChain[0]
	k.PrependReactor("create", "pods", func(action kubetesting.Action) (bool, runtime.Object, error) {
		pod := action.(kubetesting.CreateAction).GetObject().(*corev1.Pod)
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Image = "mirror/" + pod.Spec.Containers[i].Image
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy:1"}, corev1.Container{Name: "again", Image: "mirror/a:1"})
		return first.React(action)
	})
	told := k.pull(t, of("a:1", "b:1"))
	assert.EqualValues(t, "pulled", told["a:1"].Outcome)
	assert.EqualValues(t, "refused", told["b:1"].Outcome)
}

func TestWhereTheClusterTakesNoPodTheImagesAreUnknown(t *testing.T) {
	for why, err := range map[string]error{
		"namespace web is not there yet": apierrors.NewNotFound(corev1.Resource("namespaces"), "web"),
		`the cluster does not take the Pod that would pull it: pods "x" is forbidden: exceeded quota`: apierrors.NewForbidden(
			corev1.Resource("pods"), "x", errors.New("exceeded quota")),
	} {
		k := newKubelet(t, nil, readyNode("a"))
		k.PrependReactor("create", "pods", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		assert.Equal(t, fleetflowv1alpha1.PulledImage{Image: "a:1", Outcome: "unknown", Nodes: 1, Message: why}, k.pull(t, of("a:1"))["a:1"])
	}
	k := newKubelet(t, nil)
	assert.Equal(t, "no node that is ready would run it", k.pull(t, of("a:1"))["a:1"].Message)
	assert.Empty(t, k.made)
}

func TestAnImageThatTakesTooLongIsUnknown(t *testing.T) {
	k := newKubelet(t, map[string]corev1.ContainerStatus{"fast:1": started("1"), "slow:1": waiting("ContainerCreating", "")}, readyNode("a"))
	ctx, cancel := context.WithCancel(t.Context())
	k.PrependReactor("get", "pods", func(kubetesting.Action) (bool, runtime.Object, error) {
		cancel() // the time is over once the Pod is looked at
		return false, nil, nil
	})
	images, err := New(k, clocktesting.NewFakeClock(noon), logr.Discard()).Pull(ctx, "uid", time.Minute, []fleetflowv1alpha1.ImagesOfPods{of("fast:1", "slow:1")})
	require.NoError(t, err)
	told := byName(images)
	assert.EqualValues(t, "pulled", told["fast:1"].Outcome, "what was found until then is told")
	assert.EqualValues(t, "unknown", told["slow:1"].Outcome)
	assert.Equal(t, "it was not pulled in time", told["slow:1"].Message)
	assert.Empty(t, k.pods(t))
}

func TestAChangeOfThePodIsSeen(t *testing.T) {
	k := newKubelet(t, map[string]corev1.ContainerStatus{"slow:1": waiting("ContainerCreating", "")}, readyNode("a"))
	k.PrependReactor("get", "pods", func(kubetesting.Action) (bool, runtime.Object, error) {
		before := k.made[0].DeepCopy()
		after := before.DeepCopy()
		after.Status.ContainerStatuses[0] = started("1")
		after.Status.ContainerStatuses[0].Name = "image-0"
		require.NoError(t, k.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), after, after.Namespace))
		return true, before, nil
	})
	assert.EqualValues(t, "pulled", k.pull(t, of("slow:1"))["slow:1"].Outcome)
}

func TestWhatAnEarlierAgentHasLeftBehindIsRemoved(t *testing.T) {
	left := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "image-pull-x", UID: "1", Labels: map[string]string{Label: "old"}}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "web", UID: "2"}}
	for name, do := range map[string]func(*testing.T, *Puller){
		"as the agent starts": func(t *testing.T, p *Puller) { require.NoError(t, p.Start(t.Context())) },
		"before the next question": func(t *testing.T, p *Puller) {
			_, err := p.Pull(t.Context(), "uid", time.Minute, nil)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKubelet(t, nil)
			require.NoError(t, k.Tracker().Add(left.DeepCopy()))
			require.NoError(t, k.Tracker().Add(other.DeepCopy()))
			do(t, New(k, clocktesting.NewFakeClock(noon), logr.Discard()))
			pods := k.pods(t)
			require.Len(t, pods, 1)
			assert.Equal(t, "web", pods[0].Name)
		})
	}
}

func TestImagesArePulledWhereTheirPodsRun(t *testing.T) {
	tainted := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: effect}} }
	}
	nodes := []corev1.Node{
		*readyNode("plain"), *readyNode("preferably-not", tainted(corev1.TaintEffectPreferNoSchedule)), *readyNode("tainted", tainted(corev1.TaintEffectNoSchedule)),
		*readyNode("cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		*readyNode("lost", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
	}
	asked := of("a")
	assert.Equal(t, []string{"plain", "preferably-not"}, nodesOf(nodes, &asked))
	asked.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	assert.Equal(t, []string{"plain", "preferably-not", "tainted"}, nodesOf(nodes, &asked))
	asked.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	assert.Equal(t, []string{"cordoned", "plain", "preferably-not", "tainted"}, nodesOf(nodes, &asked))
	asked.NodeSelector = map[string]string{"name": "tainted"}
	assert.Equal(t, []string{"tainted"}, nodesOf(nodes, &asked))
	asked.NodeSelector = nil
	asked.RequiredNodes = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"plain", "cordoned"}},
	}}}}
	assert.Equal(t, []string{"preferably-not", "tainted"}, nodesOf(nodes, &asked))
	asked.RequiredNodes = nil
	asked.NodeName = "plain"
	assert.Equal(t, []string{"plain"}, nodesOf(nodes, &asked))
}

func TestManyNodesAndImagesAreBounded(t *testing.T) {
	var nodes []corev1.Node
	for i := range 150 {
		nodes = append(nodes, *readyNode(fmt.Sprintf("n%03d", i)))
	}
	var images []string
	for i := range 25 {
		images = append(images, fmt.Sprintf("a:%d", i))
	}
	asked := []fleetflowv1alpha1.ImagesOfPods{of(images...)}
	seen := newResults(asked)
	byNode := plan(nodes, asked, seen)
	require.Len(t, byNode, maxNodes)
	require.Len(t, byNode[0], 3)
	assert.Len(t, byNode[0][0].images, imagesOfPod)
	assert.Equal(t, "50 more nodes would run it, and at most 100 pull it", byName(seen.tell())["a:0"].Message)
	assert.EqualValues(t, "unknown", byName(seen.tell())["a:0"].Outcome)
}

func TestWordsOfARegistryLetNobodyIn(t *testing.T) {
	said := harmless("ErrImagePull: Get \"https://user:hunter2@registry.example.com/v2/a?X-Amz-Signature=hunter2&x=1\":\n\x1b[2J denied\u202e " + strings.Repeat("é", 300))
	assert.NotContains(t, said, "hunter2")
	assert.NotContains(t, said, "\n")
	assert.NotContains(t, said, "\x1b")
	assert.NotContains(t, said, "\u202e")
	assert.Contains(t, said, "registry.example.com/v2/a?…")
	assert.LessOrEqual(t, len(said), maxWords)
}

// sent counts requests that come through.
type sent int

func (s *sent) RoundTrip(*http.Request) (*http.Response, error) {
	*s++
	return &http.Response{StatusCode: http.StatusOK}, nil
}

func TestNothingButPodsIsWritten(t *testing.T) {
	for request, passes := range map[string]bool{
		"GET /api/v1/nodes":                                   true,
		"GET /api/v1/pods":                                    true,
		"GET /api/v1/namespaces/web/pods/x":                   true,
		"GET /api/v1/namespaces/web/pods":                     true,
		"POST /api/v1/namespaces/web/pods":                    true,
		"DELETE /api/v1/namespaces/web/pods/x":                true,
		"DELETE /api/v1/namespaces/web/pods":                  false,
		"POST /api/v1/namespaces/web/pods/x/exec":             false,
		"GET /api/v1/namespaces/web/pods/x/log":               false,
		"GET /api/v1/namespaces/web/secrets":                  false,
		"PUT /api/v1/namespaces/web/pods/x":                   false,
		"PATCH /api/v1/namespaces/web/pods/x":                 false,
		"POST /apis/apps/v1/namespaces/web/deployments":       false,
		"POST /api/v1/namespaces/web/serviceaccounts/x/token": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "https://member"+path, http.NoBody)
		require.NoError(t, err)
		var through sent
		response, err := podsOnly{&through}.RoundTrip(r)
		if err == nil && response.Body != nil {
			_ = response.Body.Close()
		}
		assert.Equal(t, passes, err == nil, request)
		assert.Equal(t, passes, through == 1, request)
	}
}
