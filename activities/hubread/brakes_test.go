package hubread_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/hubread"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Every look at what closes clusters reads the gate: of a fleet of 5,000 clusters it takes those that are busy.
func TestAGateTakesTheBusyClustersAlone(t *testing.T) {
	const clusters = 5000
	members := make([]client.Object, clusters)
	for i := range members {
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("member-%d", i)}}
		if i%1000 == 7 {
			member.Status.Busy = &clusterv1beta1.Busy{Since: metav1.NewTime(now), Until: metav1.NewTime(now.Add(time.Hour))}
		}
		members[i] = member
	}
	taken := 0
	cached := interceptor.NewClient(fixture.APIServer(t, members...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			taken += meta.LenList(list)
			return err
		},
	})
	gate, err := hubread.Brakes(t.Context(), cached, cached, hubread.ExemptionRule{}, brake.Subject{Placement: "crp"}, now)
	require.NoError(t, err)
	assert.Equal(t, 5, taken)
	for name, busy := range map[string]bool{"member-7": true, "member-8": false, "member-4007": true} {
		_, closed := gate.Closed(brake.Cluster{Name: name}, fleetflowv1alpha1.StartUpdates, now)
		assert.Equal(t, busy, closed, name)
	}
}
