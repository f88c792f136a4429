package access

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// refusing returns a client whose first creations are answered by these errors, and how often it was asked.
func refusing(t *testing.T, answers ...error) (user client.Client, asked *int) {
	asked = new(int)
	return builder(t).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			*asked++
			if *asked <= len(answers) {
				return answers[*asked-1]
			}
			return c.Create(ctx, object, options...)
		},
	}).Build(), asked
}

var (
	byPolicy = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "prices",
		errors.New("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: wait for run empty to end"))
	byRights = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "prices", errors.New("user has no right"))
)

func TestAnObjectIsCreatedOnceThePolicyHasSeenWhatChanged(t *testing.T) {
	user, asked := refusing(t, byPolicy, byPolicy)
	require.NoError(t, CreateWhenAdmitted(t.Context(), user, prices("1")))
	assert.Equal(t, 3, *asked)
}

func TestACreationThatLacksRightsIsNotRepeated(t *testing.T) {
	user, asked := refusing(t, byRights)
	require.ErrorIs(t, CreateWhenAdmitted(t.Context(), user, prices("1")), byRights)
	assert.Equal(t, 1, *asked)
}

func TestALastingRefusalIsTheErrorOfTheCreation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	user, _ := refusing(t, byPolicy)
	stops := interceptor.NewClient(user.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			cancel()
			return c.Create(ctx, object, options...)
		},
	})
	require.ErrorIs(t, CreateWhenAdmitted(ctx, stops, prices("1")), byPolicy)
}
