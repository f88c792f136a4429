//go:build integration

package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// TestAHundredClustersThatFailAtOnceAreAHundredEvents emits the events of a placement with the recorder of the hub agent, and reads what a
// real API server has of them.
func TestAHundredClustersThatFailAtOnceAreAHundredEvents(t *testing.T) {
	mgr, err := ctrl.NewManager(admin.config, ctrl.Options{Scheme: admin.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	recorder := mgr.GetEventRecorder("placement-controller")
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "fails-everywhere", UID: "fails-everywhere"}}
	want := map[string]string{}
	for i := range 100 {
		cluster := fmt.Sprintf("failing-%d", i)
		want[cluster] = "Cluster " + cluster + " fails"
		recorder.Eventf(placement, clusterv1beta1.ReferTo(cluster), corev1.EventTypeWarning, "PlacementFailedOnCluster", "Applied", "%s", want[cluster])
	}
	told := func() map[string]string {
		var list eventsv1.EventList
		require.NoError(t, admin.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault)))
		found := map[string]string{}
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Name == placement.Name && e.Related != nil {
				found[e.Related.Name] = e.Note
			}
		}
		return found
	}
	require.Eventually(t, func() bool { return len(told()) == len(want) }, 2*time.Minute, 100*time.Millisecond)
	require.Equal(t, want, told())
}
