package hub_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// Before Kubernetes 1.31 no custom object has a field that is selected by, other than its name.
func TestRecordsOfAPlacementAreFoundOnAHubThatDoesNotChooseThem(t *testing.T) {
	var records []client.Object
	for i, placement := range []string{"web", "api", "web"} {
		record := &fleetflowv1alpha1.AuditRecord{}
		record.Name = fmt.Sprintf("r-%d", i)
		record.Spec.PlacementName = placement
		records = append(records, record)
	}
	older := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(records...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if asked := (&client.ListOptions{}).ApplyOptions(options); asked.FieldSelector != nil {
				return apierrors.NewBadRequest("field label not supported: spec.placementName")
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	reader := hub.Reader{Reader: older}.Of(hub.Ref{Name: "web"})
	found, err := reader.Records(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, []string{"r-0", "r-2"}, []string{found[0].Name, found[1].Name})
}
