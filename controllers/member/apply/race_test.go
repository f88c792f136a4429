package apply

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// createdMeanwhile lets somebody else create the object after it was found to be absent, once.
func createdMeanwhile(e *Engine, object *corev1.ConfigMap) {
	plain, done := e.Client, false
	e.Client = interceptor.NewClient(plain.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if !done {
				done = true
				if err := plain.Create(ctx, object, client.FieldOwner("kubectl")); err != nil {
					return err
				}
				// The fake begins to count versions at 1, where no API server does.
				if err := plain.Update(ctx, object, client.FieldOwner("kubectl")); err != nil {
					return err
				}
			}
			return err
		},
	})
}

func TestWhatSomebodyCreatesAtTheSameTimeIsTakenOverAsToldTo(t *testing.T) {
	never := placementv1beta1.WhenToTakeOverTypeNever
	force := &placementv1beta1.ServerSideApplyConfig{Force: true}
	for name, strategy := range map[string]placementv1beta1.ApplyStrategy{
		"client-side":          {Type: clientSide, WhenToTakeOver: never},
		"server-side":          {Type: serverSide, WhenToTakeOver: never},
		"server-side by force": {Type: serverSide, WhenToTakeOver: never, ServerSideApplyConfig: force},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(nil)
			createdMeanwhile(e, configMap("9"))
			_, problem, err := e.Apply(t.Context(), with(manifestX1, strategy))
			require.NoError(t, err)
			require.NotNil(t, problem, "it is there, and not to be taken over")
			assert.Equal(t, "NotTakenOver", problem.Reason)
			assert.Equal(t, "9", stored(t, e).Data["x"])
			assert.Empty(t, stored(t, e).OwnerReferences)
		})
	}
}

func TestOfTwoPlacementsThatCreateAtTheSameTimeOneGetsTheObject(t *testing.T) {
	for name, kind := range map[string]placementv1beta1.ApplyStrategyType{"client-side": clientSide, "server-side": serverSide} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine([]Rival{{Name: "other", Placement: "crp-2"}})
			createdMeanwhile(e, configMap("1", OwnerReference("other", "uid-other")))
			_, problem, err := e.Apply(t.Context(), with(manifestX1, placementv1beta1.ApplyStrategy{Type: kind}))
			require.NoError(t, err)
			require.NotNil(t, problem)
			assert.Equal(t, "ApplyConflictBetweenPlacements", problem.Reason)
			assert.Len(t, stored(t, e).OwnerReferences, 1, "the first stays the only owner")
		})
	}
}
