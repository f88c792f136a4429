package worksync

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// policy is a hub on which a policy of somebody's refuses patches, as an API server answers by default: with the
// status that a failed test of a patch has, too.
type policy struct {
	*hub
	before  func()
	patches int
}

const denied = "ValidatingAdmissionPolicy 'freeze' denied request: not on Saturdays"

func (p *policy) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	p.patches++
	if p.before != nil {
		p.before()
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: denied}}
}

func TestAWorkThatAPolicyRefusesIsNoLostRace(t *testing.T) {
	h := newHub(t, append(snapshot(0, 1), snapshot(1, 1)...)...)
	require.NoError(t, newSyncer(h).Sync(t.Context(), newBinding(0, 1)))
	refusing := &policy{hub: h}
	s := NewSyncer(refusing, refusing, clocktesting.NewFakePassiveClock(start), noRules)
	require.ErrorContains(t, s.Sync(t.Context(), newBinding(1, 2)), denied)
	assert.Equal(t, 1, refusing.patches, "it is of no use to try it again at once")
}

func TestAWorkThatMustNotBeMarkedIsSaid(t *testing.T) {
	binding := newBinding(0, 1)
	work := func() *placementv1beta1.Work {
		return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: memberNS, Name: "work", UID: "work-uid", Finalizers: []string{placementv1beta1.WorkFinalizer},
			Labels:      map[string]string{placementv1beta1.ParentBindingLabel: binding.Name},
			Annotations: map[string]string{placementv1beta1.BindingUIDAnnotation: string(binding.UID)},
		}}
	}
	t.Run("when a policy refuses it", func(t *testing.T) {
		refusing := &policy{hub: newHub(t, work())}
		_, err := NewSyncer(refusing, refusing, clocktesting.NewFakePassiveClock(start), noRules).Leave(t.Context(), binding)
		require.ErrorContains(t, err, denied)
		assert.True(t, refusing.work(t, "work").DeletionTimestamp.IsZero())
	})
	t.Run("and not when somebody else was faster", func(t *testing.T) {
		raced := &policy{hub: newHub(t, work())}
		raced.before = func() {
			now := raced.work(t, "work")
			now.Annotations[placementv1beta1.DeletePropagationAnnotation] = "Delete"
			require.NoError(t, raced.Update(t.Context(), now))
		}
		remaining, err := NewSyncer(raced, raced, clocktesting.NewFakePassiveClock(start), noRules).Leave(t.Context(), binding)
		require.NoError(t, err)
		assert.Equal(t, 1, remaining, "it is looked at again")
	})
	t.Run("and not when it is gone", func(t *testing.T) {
		gone := &policy{hub: newHub(t, work())}
		gone.before = func() {
			now := gone.work(t, "work")
			now.Finalizers = nil
			require.NoError(t, gone.Update(t.Context(), now))
			require.NoError(t, gone.Delete(t.Context(), now))
		}
		_, err := NewSyncer(gone, gone, clocktesting.NewFakePassiveClock(start), noRules).Leave(t.Context(), binding)
		require.NoError(t, err)
	})
}
