package question

import (
	"context"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// declinesPulls says how the owner of the cluster lets the agent pull images.
const declinesPulls = "the owner of the cluster does not let the fleet pull images before a change (--pull-images of the member agent, " +
	"pullImages in the values of its chart)"

// pullImages has the nodes of the cluster pull the images of a change, and answers which they have.
func pullImages(ctx context.Context, a *Answerer, question *fleetflowv1alpha1.MemberQuestion, status *fleetflowv1alpha1.MemberQuestionStatus) error {
	asked := question.Spec.PullImages
	switch {
	case asked == nil:
		return invalid("pullImages is missing")
	case a.Pull == nil:
		return declinedError{declinesPulls}
	}
	images, err := a.Pull(ctx, question.UID, question.Spec.Deadline.Sub(a.Clock.Now()), asked.Pods)
	if err != nil {
		return err
	}
	status.Images = &fleetflowv1alpha1.PulledImages{Revision: asked.Revision, Images: images}
	return nil
}
