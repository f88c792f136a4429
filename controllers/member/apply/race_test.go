package apply

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// createdMeanwhile lets another client create the object after it was found to be absent, once.
func createdMeanwhile(e *Engine, object *corev1.ConfigMap) {
	plain := e.Client
	done := false
	e.Client = interceptor.NewClient(plain.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if !done {
				done = true
				if err := plain.Create(ctx, object, client.FieldOwner("kubectl")); err != nil {
					return err
				}
				// The fake client's versions begin at 1; those of API servers begin higher.
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
	force := &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}
	for name, strategy := range map[string]placementv1beta1.ApplyStrategy{
		"client-side":          {Type: clientSide, WhenToTakeOver: never},
		"server-side":          {Type: serverSide, WhenToTakeOver: never},
		"server-side by force": {Type: serverSide, WhenToTakeOver: never, ServerSideApplyConfig: force},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(nil)
			createdMeanwhile(e, configMap("9"))
			_, problem, err := e.Apply(t.Context(), requestWith(manifestX1, strategy))
			require.NoError(t, err)
			require.NotNil(t, problem, "it is there, and not to be taken over")
			assert.Equal(t, "NotTakenOver", problem.Reason)
			assert.Equal(t, "9", storedConfigMap(t, e).Data["x"])
			assert.Empty(t, storedConfigMap(t, e).OwnerReferences)
		})
	}
}

func TestOfTwoPlacementsThatCreateAtTheSameTimeOneGetsTheObject(t *testing.T) {
	for name, kind := range map[string]placementv1beta1.ApplyStrategyType{"client-side": clientSide, "server-side": serverSide} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine([]Rival{{Name: "other", Placement: "crp-2"}})
			createdMeanwhile(e, configMap("1", OwnerReference("other", "uid-other")))
			_, problem, err := e.Apply(t.Context(), requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: kind}))
			require.NoError(t, err)
			require.NotNil(t, problem)
			assert.Equal(t, "ApplyConflictBetweenPlacements", problem.Reason)
			assert.Len(t, storedConfigMap(t, e).OwnerReferences, 1, "the first stays the only owner")
		})
	}
}

func TestAKindThatHasVanishedIsNamed(t *testing.T) {
	for name, answer := range map[string]error{
		"the client does not know the kind any more": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, SearchedVersions: []string{"v1"}},
		"the API server does not know the path": apierrors.NewGenericServerResponse(404, "get",
			schema.GroupResource{Resource: "configmaps"}, "a", "404 page not found", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			e, writes := newEngine(nil)
			plain := e.Client.(client.WithWatch)
			e.Client = interceptor.NewClient(plain, interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return answer
				},
			})
			_, problem, err := e.Apply(t.Context(), request(manifestX1))
			require.NoError(t, err)
			require.NotNil(t, problem)
			assert.Contains(t, problem.Message, "The cluster has no kind ConfigMap in v1")
			assert.Contains(t, problem.Message, "CustomResourceDefinition")
			assert.False(t, problem.NoRetry, "it may come back")
			assert.Zero(t, *writes)

			result, problem, err := e.Diff(t.Context(), request(manifestX1))
			require.NoError(t, err)
			require.NotNil(t, problem, "where there is no kind, nothing can be compared")
			assert.Contains(t, problem.Message, "The cluster has no kind ConfigMap in v1")
			assert.False(t, problem.NoRetry, "it may come back")
			assert.Empty(t, result.Findings.Details)

			e.Client = interceptor.NewClient(plain, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return answer },
			})
			_, problem, err = e.Apply(t.Context(), request(manifestX1))
			require.NoError(t, err)
			require.NotNil(t, problem)
			assert.Contains(t, problem.Message, "The cluster has no kind ConfigMap in v1", "also if it vanishes right before the write")
		})
	}
}
