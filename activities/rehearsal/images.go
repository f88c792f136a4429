package rehearsal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// maxImages bounds the images of a question, maxPods the kinds of Pods that they are of.
	maxImages = 200
	maxPods   = 100
	// maxImageName is how long the name of an image may be.
	maxImageName = 512
	// maxRefusal is how many bytes of what a registry says are kept.
	maxRefusal = 256
)

// templated is where the kinds that start Pods have their Pods.
type templated struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		corev1.PodSpec
		Template    corev1.PodTemplateSpec `json:"template"`
		JobTemplate struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

// podsOf return the Pods that an object of a kind starts.
var podsOf = map[string]func(*templated) corev1.PodSpec{
	"v1 Pod":              func(t *templated) corev1.PodSpec { return t.Spec.PodSpec },
	"apps/v1 Deployment":  func(t *templated) corev1.PodSpec { return t.Spec.Template.Spec },
	"apps/v1 StatefulSet": func(t *templated) corev1.PodSpec { return t.Spec.Template.Spec },
	"apps/v1 DaemonSet":   func(t *templated) corev1.PodSpec { return t.Spec.Template.Spec },
	"apps/v1 ReplicaSet":  func(t *templated) corev1.PodSpec { return t.Spec.Template.Spec },
	"batch/v1 Job":        func(t *templated) corev1.PodSpec { return t.Spec.Template.Spec },
	"batch/v1 CronJob":    func(t *templated) corev1.PodSpec { return t.Spec.JobTemplate.Spec.Template.Spec },
}

// ImagesOf returns the images of the Pods that Works would start, by where they would run. What cannot be read is left out: the cluster
// refuses it when it is applied.
func ImagesOf(works []placementv1beta1.Work) (pods []fleetflowv1alpha1.ImagesOfPods, omitted int32) {
	counted := map[string]bool{}
	left := map[string]bool{}
	for i := range works {
		for _, manifest := range works[i].Spec.Workload.Manifests {
			namespace, spec, has := readPods(manifest.Raw)
			if !has {
				continue
			}
			for _, c := range append(slices.Clone(spec.InitContainers), spec.Containers...) {
				if c.Image == "" || c.ImagePullPolicy == corev1.PullNever {
					continue
				}
				key := placedLike(namespace, &spec, c.ImagePullPolicy)
				at := slices.IndexFunc(pods, func(p fleetflowv1alpha1.ImagesOfPods) bool { return alike(p, key) })
				isFull := !counted[c.Image] && len(counted) == maxImages || at < 0 && len(pods) == maxPods || len(c.Image) > maxImageName
				if isFull {
					left[c.Image] = true
					continue
				}
				counted[c.Image] = true
				if at < 0 {
					at = len(pods)
					pods = append(pods, key)
				}
				if !slices.Contains(pods[at].Images, c.Image) {
					pods[at].Images = append(pods[at].Images, c.Image)
				}
			}
		}
	}
	return pods, int32(len(left)) //nolint:gosec // a change has fewer
}

// readPods returns the Pods that an object starts, and their namespace.
func readPods(raw []byte) (namespace string, spec corev1.PodSpec, has bool) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(raw, &kind); err != nil {
		return "", spec, false
	}
	find, known := podsOf[kind.APIVersion+" "+kind.Kind]
	if !known {
		return "", spec, false
	}
	var object templated
	if err := json.Unmarshal(raw, &object); err != nil {
		return "", spec, false
	}
	if namespace = object.Metadata.Namespace; namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return namespace, find(&object), true
}

// placedLike returns where Pods run and who pulls for them, without images.
func placedLike(namespace string, spec *corev1.PodSpec, policy corev1.PullPolicy) fleetflowv1alpha1.ImagesOfPods {
	pods := fleetflowv1alpha1.ImagesOfPods{
		Namespace: namespace, PullPolicy: policy, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations,
	}
	for _, secret := range spec.ImagePullSecrets {
		if secret.Name != "" && !slices.Contains(pods.PullSecrets, secret.Name) {
			pods.PullSecrets = append(pods.PullSecrets, secret.Name)
		}
	}
	if spec.NodeName != "" {
		pods.NodeName = spec.NodeName
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		pods.RequiredNodes = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return pods
}

// alike reports whether Pods run on the same nodes and pull in the same way.
func alike(a, b fleetflowv1alpha1.ImagesOfPods) bool {
	a.Images = nil
	b.Images = nil
	return equality.Semantic.DeepEqual(a, b)
}

// ImageNames returns the images of a question, each once.
func ImageNames(asked *fleetflowv1alpha1.PullImagesQuestion) []string {
	var names []string
	for i := range asked.Pods {
		names = append(names, asked.Pods[i].Images...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readImages returns what a member has answered to a question for images. Of an image that it does not tell nothing is known.
func readImages(question *fleetflowv1alpha1.MemberQuestion) Answer {
	answered := meta.FindStatusCondition(question.Status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered)
	said := question.Status.Images
	asked := question.Spec.PullImages
	switch {
	case answered.Status == metav1.ConditionFalse:
		return UnknownAnswer("the cluster has pulled nothing: " + answered.Message)
	case said == nil || asked == nil:
		return UnknownAnswer("the answer is empty")
	case said.Revision != asked.Revision:
		return UnknownAnswer(fmt.Sprintf("the answer is about revision %s, and revision %s was asked for", said.Revision, asked.Revision))
	}
	told := map[string]*fleetflowv1alpha1.PulledImage{}
	for i := range said.Images {
		told[said.Images[i].Image] = &said.Images[i]
	}
	answer := Answer{Outcome: fleetflowv1alpha1.RehearsalPulled}
	for _, image := range ImageNames(asked) {
		answer.addImage(image, told[image])
	}
	if asked.OmittedImages > 0 {
		answer.add(Line{
			Outcome: fleetflowv1alpha1.RehearsalUnknown,
			Message: fmt.Sprintf("%d more images are not pulled: at most %d are", asked.OmittedImages, maxImages),
		})
		answer.Counts.Unknown += asked.OmittedImages
	}
	if incomplete := question.Annotations[incompleteAnnotation]; incomplete != "" {
		answer.add(Line{Outcome: fleetflowv1alpha1.RehearsalUnknown, Message: Clean(incomplete)})
	}
	return answer
}

// addImage takes up what an answer says about an image. That it was pulled is believed of one that was pulled on some node, and on all that were
// asked.
func (a *Answer) addImage(image string, told *fleetflowv1alpha1.PulledImage) {
	line := Line{Outcome: fleetflowv1alpha1.RehearsalUnknown, Object: clean(image, maxName), Message: "the answer does not tell it"}
	if told != nil {
		line.Message = clean(told.Message, maxRefusal)
		switch {
		case told.Outcome == fleetflowv1alpha1.RehearsalRefused:
			line.Outcome = fleetflowv1alpha1.RehearsalRefused
			line.By, _, _ = strings.Cut(line.Object, "/")
			if !strings.ContainsAny(line.By, ".:") || line.By == line.Object {
				line.By = ""
			}
		case told.Outcome == fleetflowv1alpha1.RehearsalPulled && told.Nodes > 0 && told.Pulled == told.Nodes:
			line.Outcome = fleetflowv1alpha1.RehearsalPulled
		}
	}
	*a.Counts.Of(line.Outcome)++
	a.add(line)
}
