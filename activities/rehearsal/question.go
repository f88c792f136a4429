package rehearsal

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxPacked is how many bytes of manifests a question has room for once they are compressed: base64 makes 1.4 MB of them, and etcd
// takes no object above 1.5 MiB.
const maxPacked = 1_050_000

// TooLargeError says that a change does not fit into a question.
type TooLargeError struct{ Bytes int }

// Error returns how large the change is.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("too large to ask: the change has %.1f MB once compressed, and a question has room for %.1f MB",
		float64(e.Bytes)*4/3/1e6, float64(maxPacked)*4/3/1e6)
}

// Packer compresses the manifests of Works. Most clusters of a placement are to have the same, so the last ones are kept.
type Packer struct {
	sum    [sha256.Size]byte
	packed []byte
}

// Pack returns what a question says of Works.
func (p *Packer) Pack(works []placementv1beta1.Work) (named []fleetflowv1alpha1.RehearsedWork, packed []byte, err error) {
	lists := make([][]placementv1beta1.Manifest, 0, len(works))
	hash := sha256.New()
	for i := range works {
		manifests := works[i].Spec.Workload.Manifests
		if manifests == nil {
			manifests = []placementv1beta1.Manifest{}
		}
		lists = append(lists, manifests)
		count := int32(len(manifests)) //nolint:gosec // a Work has fewer
		named = append(named, fleetflowv1alpha1.RehearsedWork{Name: works[i].Name, Manifests: count})
		_, _ = fmt.Fprintf(hash, "%d:", len(manifests)) // writing to a hash never fails
		for _, manifest := range manifests {
			_, _ = fmt.Fprintf(hash, "%d:", len(manifest.Raw))
			_, _ = hash.Write(manifest.Raw)
		}
	}
	if len(works) == 0 {
		return nil, nil, nil
	}
	sum := [sha256.Size]byte(hash.Sum(nil))
	if p.packed == nil || sum != p.sum {
		if p.packed, err = compress(lists); err != nil {
			return nil, nil, err
		}
		p.sum = sum
	}
	if len(p.packed) > maxPacked {
		return nil, nil, &TooLargeError{Bytes: len(p.packed)}
	}
	return named, p.packed, nil
}

func compress(value any) ([]byte, error) {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if err := json.NewEncoder(writer).Encode(value); err != nil {
		return nil, fmt.Errorf("writing manifests: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing manifests: %w", err)
	}
	return buffer.Bytes(), nil
}

// Origin names a rehearsal as its questions do.
func Origin(rehearsal fleetflowv1alpha1.RehearsalObject) fleetflowv1alpha1.QuestionOrigin {
	return fleetflowv1alpha1.QuestionOrigin{
		Kind: fleetflowv1alpha1.RehearsalKind(rehearsal.GetNamespace()).Kind, Namespace: rehearsal.GetNamespace(),
		Name: rehearsal.GetName(), UID: rehearsal.GetUID(),
	}
}

// OriginKey returns how questions are found by what they are asked for.
func OriginKey(namespace, name string) string { return namespace + "/" + name }

// NewQuestion returns the question of a rehearsal to a cluster. A rehearsal in no namespace owns it; one of another namespace cannot.
func NewQuestion(rehearsal fleetflowv1alpha1.RehearsalObject, cluster string, deadline metav1.Time,
	asked *fleetflowv1alpha1.RehearseQuestion) *fleetflowv1alpha1.MemberQuestion {
	question := newQuestion(rehearsal, cluster, deadline)
	question.Spec.Type = fleetflowv1alpha1.QuestionRehearse
	question.Spec.Rehearse = asked
	return question
}

// incompleteAnnotation says on a question for images why it does not have all: it is there for any hub agent that counts the answer.
const incompleteAnnotation = "fleetflow.io/incomplete"

// NewImageQuestion returns the question by which a rehearsal has a cluster pull images, with the same owner. Incomplete says why the question
// does not have all images of the change; empty if it has.
func NewImageQuestion(rehearsal fleetflowv1alpha1.RehearsalObject, cluster string, deadline metav1.Time,
	asked *fleetflowv1alpha1.PullImagesQuestion, incomplete string) *fleetflowv1alpha1.MemberQuestion {
	question := newQuestion(rehearsal, cluster, deadline)
	question.Spec.Type = fleetflowv1alpha1.QuestionPullImages
	question.Spec.PullImages = asked
	if incomplete != "" {
		question.Annotations = map[string]string{incompleteAnnotation: Clean(incomplete)}
	}
	return question
}

func newQuestion(rehearsal fleetflowv1alpha1.RehearsalObject, cluster string, deadline metav1.Time) *fleetflowv1alpha1.MemberQuestion {
	question := &fleetflowv1alpha1.MemberQuestion{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: placementv1beta1.MemberNamespace(cluster), Name: fleetflowv1alpha1.RehearsalQuestionName(rehearsal.GetUID()),
			Labels: map[string]string{fleetflowv1alpha1.RehearsalLabel: string(rehearsal.GetUID())},
		},
		Spec: fleetflowv1alpha1.MemberQuestionSpec{Deadline: deadline, AskedFor: Origin(rehearsal)},
	}
	if rehearsal.GetNamespace() == "" {
		kind := fleetflowv1alpha1.RehearsalKind("")
		question.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: rehearsal.GetName(), UID: rehearsal.GetUID(),
		}}
	}
	return question
}

// IsOf reports whether a question is asked for the rehearsal of a UID.
func IsOf(question *fleetflowv1alpha1.MemberQuestion, rehearsal types.UID) bool {
	return question.Spec.AskedFor.UID == rehearsal
}

// RevisionOf returns the index in the name of a master snapshot.
func RevisionOf(placement, snapshot string) string {
	return strings.TrimSuffix(strings.TrimPrefix(snapshot, placement+"-"), "-snapshot")
}
