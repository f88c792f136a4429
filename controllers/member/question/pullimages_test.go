package question

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func askedToPull() *fleetflowv1alpha1.MemberQuestion {
	return asked(func(q *fleetflowv1alpha1.MemberQuestion) {
		q.Spec.Type = fleetflowv1alpha1.QuestionPullImages
		q.Spec.Rehearse = nil
		q.Spec.PullImages = &fleetflowv1alpha1.PullImagesQuestion{
			Revision: "7", Pods: []fleetflowv1alpha1.ImagesOfPods{{Namespace: "web", Images: []string{"a:1"}}},
		}
	})
}

func TestImagesArePulledOnlyWhereTheOwnerOfTheClusterLetsTheAgent(t *testing.T) {
	q := askedToPull()
	d := newDesk(t, q)
	said := meta.FindStatusCondition(d.status(q).Conditions, fleetflowv1alpha1.ConditionTypeAnswered)
	require.NotNil(t, said)
	assert.Equal(t, metav1.ConditionFalse, said.Status)
	assert.Equal(t, fleetflowv1alpha1.ReasonQuestionDeclined, said.Reason)
	assert.Contains(t, said.Message, "--pull-images")

	d = newDesk(t, q)
	d.Pull = func(_ context.Context, uid types.UID, left time.Duration, pods []fleetflowv1alpha1.ImagesOfPods) ([]fleetflowv1alpha1.PulledImage, error) {
		assert.Equal(t, q.UID, uid)
		assert.Equal(t, time.Minute, left)
		assert.Equal(t, q.Spec.PullImages.Pods, pods)
		return []fleetflowv1alpha1.PulledImage{{Image: "a:1", Outcome: fleetflowv1alpha1.RehearsalPulled, Nodes: 1, Pulled: 1}}, nil
	}
	status := d.status(q)
	assert.True(t, meta.IsStatusConditionTrue(status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered))
	require.NotNil(t, status.Images)
	assert.Equal(t, "7", status.Images.Revision)
	require.Len(t, status.Images.Images, 1)
	assert.Nil(t, status.Rehearsal)
}

func TestWhatCannotBePulledForIsSaid(t *testing.T) {
	q := askedToPull()
	d := newDesk(t, q)
	d.Pull = func(context.Context, types.UID, time.Duration, []fleetflowv1alpha1.ImagesOfPods) ([]fleetflowv1alpha1.PulledImage, error) {
		return nil, errors.New("nodes is forbidden")
	}
	said := meta.FindStatusCondition(d.status(q).Conditions, fleetflowv1alpha1.ConditionTypeAnswered)
	require.NotNil(t, said)
	assert.Equal(t, metav1.ConditionFalse, said.Status)
	assert.Contains(t, said.Message, "nodes is forbidden")
}
