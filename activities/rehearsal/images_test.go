package rehearsal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/rehearsal"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func worksOf(manifests ...string) []placementv1beta1.Work {
	work := placementv1beta1.Work{}
	for _, raw := range manifests {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, placementv1beta1.Manifest{
			RawExtension: runtime.RawExtension{Raw: []byte(raw)},
		})
	}
	return []placementv1beta1.Work{work}
}

func TestImagesAreThoseOfThePodsThatTheWorksStart(t *testing.T) {
	const spec = `{"initContainers":[{"name":"i","image":"init:1"}],"containers":[{"name":"c","image":%q}]}`
	templated := func(apiVersion, kind, image string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"x","namespace":"web"},"spec":{"template":{"spec":`+spec+`}}}`, apiVersion, kind, image)
	}
	pods, omitted := rehearsal.ImagesOf(worksOf(
		templated("apps/v1", "Deployment", "deployment:1"), templated("apps/v1", "StatefulSet", "statefulset:1"),
		templated("apps/v1", "DaemonSet", "daemonset:1"), templated("apps/v1", "ReplicaSet", "replicaset:1"), templated("batch/v1", "Job", "job:1"),
		fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"namespace":"web"},"spec":{"jobTemplate":{"spec":{"template":{"spec":`+spec+`}}}}}`, "cronjob:1"),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web"},"spec":`+spec+`}`, "pod:1"),
		`{"apiVersion":"example.com/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[{"image":"other:1"}]}}}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"web"},"data":{"image":"no:1"}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":"none"}}}}`, `no JSON`,
	))
	assert.Zero(t, omitted)
	require.Len(t, pods, 1, "they run on the same nodes")
	assert.Equal(t, "web", pods[0].Namespace)
	assert.Equal(t, []string{
		"init:1", "deployment:1", "statefulset:1", "daemonset:1", "replicaset:1", "job:1", "cronjob:1", "pod:1",
	}, pods[0].Images)
}

func TestPodsThatRunElsewhereOrPullOtherwiseAreAskedForApart(t *testing.T) {
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":%q},"spec":{"template":{"spec":{%s"containers":[{"name":"c","image":"a:1"%s}]}}}}`
	pods, _ := rehearsal.ImagesOf(worksOf(
		fmt.Sprintf(deployment, "web", "", ""),
		fmt.Sprintf(deployment, "shop", "", ""),
		fmt.Sprintf(deployment, "", "", ""),
		fmt.Sprintf(deployment, "web", `"nodeSelector":{"gpu":"yes"},`, ""),
		fmt.Sprintf(deployment, "web", `"tolerations":[{"key":"gpu","operator":"Exists"}],`, ""),
		fmt.Sprintf(deployment, "web", `"imagePullSecrets":[{"name":"s"},{"name":"s"}],`, ""),
		fmt.Sprintf(deployment, "web", "", `,"imagePullPolicy":"Always"`),
		fmt.Sprintf(deployment, "web", "", `,"imagePullPolicy":"Never"`),
		fmt.Sprintf(deployment, "web", `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}]}}},`, ""),
	))
	require.Len(t, pods, 8)
	assert.Equal(t, "default", pods[2].Namespace)
	assert.Equal(t, []string{"s"}, pods[5].PullSecrets)
	assert.NotNil(t, pods[7].RequiredNodes)
	for _, of := range pods {
		assert.Equal(t, []string{"a:1"}, of.Images)
	}
}

func TestHundredsOfImagesAreBoundedAndSaid(t *testing.T) {
	var manifests []string
	for i := range 300 {
		manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web"},"spec":{"containers":[{"image":"a:%d"}]}}`, i))
	}
	long := strings.Repeat("x", 600)
	manifests = append(manifests, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"image":%q}]}}`, long))
	pods, omitted := rehearsal.ImagesOf(worksOf(manifests...))
	require.Len(t, pods, 1)
	assert.Len(t, pods[0].Images, 200)
	assert.EqualValues(t, 101, omitted)

	var apart []string
	for i := range 150 {
		apart = append(apart, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n%d"},"spec":{"containers":[{"image":"a:1"}]}}`, i))
	}
	pods, omitted = rehearsal.ImagesOf(worksOf(apart...))
	assert.Len(t, pods, 100)
	assert.EqualValues(t, 1, omitted, "it is not pulled everywhere")
}

// pulled returns a question for two images, and what a member says to it.
func pulled(images ...fleetflowv1alpha1.PulledImage) *fleetflowv1alpha1.MemberQuestion {
	return &fleetflowv1alpha1.MemberQuestion{
		Spec: fleetflowv1alpha1.MemberQuestionSpec{
			Type: fleetflowv1alpha1.QuestionPullImages, PullImages: &fleetflowv1alpha1.PullImagesQuestion{
				Revision: "1", Pods: []fleetflowv1alpha1.ImagesOfPods{{Namespace: "web", Images: []string{"a:1", "registry.example.com/b:1"}}},
			},
		},
		Status: fleetflowv1alpha1.MemberQuestionStatus{
			Conditions: []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeAnswered, Status: metav1.ConditionTrue, Reason: "Answered"}},
			Images:     &fleetflowv1alpha1.PulledImages{Revision: "1", Images: images},
		},
	}
}

func TestAnAnswerForImagesIsBelievedAsFarAsItSaysEverything(t *testing.T) {
	a := fleetflowv1alpha1.PulledImage{Image: "a:1", Outcome: "pulled", Nodes: 2, Pulled: 2}
	b := fleetflowv1alpha1.PulledImage{Image: "registry.example.com/b:1", Outcome: "pulled", Nodes: 1, Pulled: 1}
	refused := fleetflowv1alpha1.PulledImage{Image: b.Image, Outcome: "refused", Nodes: 1, Message: "no <b>\x1b[2J such tag " + strings.Repeat("x", 600)}
	for sentence, of := range map[string]struct {
		question *fleetflowv1alpha1.MemberQuestion
		outcome  fleetflowv1alpha1.RehearsalOutcome
	}{
		"all are there":             {pulled(a, b), fleetflowv1alpha1.RehearsalPulled},
		"one is refused":            {pulled(a, refused), fleetflowv1alpha1.RehearsalRefused},
		"one is not told":           {pulled(a), fleetflowv1alpha1.RehearsalUnknown},
		"others are told":           {pulled(a, fleetflowv1alpha1.PulledImage{Image: "c", Outcome: "pulled", Nodes: 1, Pulled: 1}), fleetflowv1alpha1.RehearsalUnknown},
		"no node was asked":         {pulled(a, fleetflowv1alpha1.PulledImage{Image: b.Image, Outcome: "pulled"}), fleetflowv1alpha1.RehearsalUnknown},
		"not all nodes have one":    {pulled(a, fleetflowv1alpha1.PulledImage{Image: b.Image, Outcome: "pulled", Nodes: 2, Pulled: 1}), fleetflowv1alpha1.RehearsalUnknown},
		"an outcome is made up":     {pulled(a, fleetflowv1alpha1.PulledImage{Image: b.Image, Outcome: "fine", Nodes: 1, Pulled: 1}), fleetflowv1alpha1.RehearsalUnknown},
		"one is twice in the words": {pulled(a, b, fleetflowv1alpha1.PulledImage{Image: b.Image, Outcome: "unknown"}), fleetflowv1alpha1.RehearsalUnknown},
	} {
		answer := rehearsal.Read(of.question)
		assert.Equal(t, of.outcome, answer.Outcome, sentence)
	}
	answer := rehearsal.Read(pulled(a, refused))
	assert.Equal(t, "registry.example.com", answer.Lines[1].By)
	assert.LessOrEqual(t, len(answer.Lines[1].Message), 256)
	assert.NotContains(t, answer.Lines[1].Message, "<")
	assert.NotContains(t, answer.Lines[1].Message, "\x1b")

	for sentence, spoil := range map[string]func(*fleetflowv1alpha1.MemberQuestion){
		"it is about another revision": func(q *fleetflowv1alpha1.MemberQuestion) { q.Status.Images.Revision = "2" },
		"it is empty":                  func(q *fleetflowv1alpha1.MemberQuestion) { q.Status.Images = nil },
		"it answers something else": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Rehearsal = &fleetflowv1alpha1.RehearsalAnswer{Revision: "1"}
			q.Status.Images = nil
		},
		"there is none": func(q *fleetflowv1alpha1.MemberQuestion) { q.Status = fleetflowv1alpha1.MemberQuestionStatus{} },
		"the owner does not let it": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Conditions[0].Status = metav1.ConditionFalse
			q.Status.Conditions[0].Reason = fleetflowv1alpha1.ReasonQuestionDeclined
		},
		"the agent does not know the question": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Conditions[0].Status = metav1.ConditionFalse
			q.Status.Conditions[0].Reason = fleetflowv1alpha1.ReasonQuestionUnknown
		},
		"some had no room": func(q *fleetflowv1alpha1.MemberQuestion) { q.Spec.PullImages.OmittedImages = 3 },
	} {
		question := pulled(a, b)
		require.Equal(t, fleetflowv1alpha1.RehearsalPulled, rehearsal.Read(question).Outcome)
		spoil(question)
		assert.Equal(t, fleetflowv1alpha1.RehearsalUnknown, rehearsal.Read(question).Outcome, sentence)
	}
}

func TestAMemberCannotSayOfAChangeThatItWasPulled(t *testing.T) {
	answer := rehearsal.Read(answered(t, object("pulled", "a", "")))
	assert.Equal(t, fleetflowv1alpha1.RehearsalUnknown, answer.Outcome)
}
