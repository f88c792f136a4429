package stagedupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// Events that differ in their note only become one series with the first note. Five clusters that fail have five events.
func TestEveryClusterAndStageHasItsOwnEvent(t *testing.T) {
	scheme := fixture.Scheme(t)
	clientset := kubernetesfake.NewClientset()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	defer broadcaster.Shutdown()
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	store := runStore{events: broadcaster.NewRecorder(scheme, "hub-agent")}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run", UID: "uid"}}

	clusters := []string{"member-1", "member-2", "member-3", "member-4", "member-5"}
	var want []string
	for _, name := range clusters {
		store.emitClusterWarning(run, name, placementv1beta1.ReasonClusterUpdatingFailed, "Cluster "+name+" in stage canary: it is broken")
		want = append(want, name+": Cluster "+name+" in stage canary: it is broken")
		store.emitClusterEvent(run, name, placementv1beta1.ReasonWaitingForHook, "Cluster %s waits", name)
		want = append(want, name+": Cluster "+name+" waits")
	}
	for _, stage := range []string{"canary", "prod"} {
		store.emitStageEvent(run, stage, placementv1beta1.ReasonStageUpdatingSucceeded, "Stage %s is complete", stage)
		task := taskHub{&Activities{Events: store.events}, run, stage}
		task.Report(placementv1beta1.ReasonAfterStageTaskApprovalRequestCreated, "Stage "+stage+" waits for approval")
		task.ReportWarning("AnalysisFailed", "Stage "+stage+" is bad")
		want = append(want, ": Stage "+stage+" is complete", ": Stage "+stage+" waits for approval", ": Stage "+stage+" is bad")
	}
	told := func() []string {
		list, err := clientset.EventsV1().Events(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		var all []string
		for _, event := range list.Items {
			related := ""
			if event.Related != nil {
				require.Equal(t, "MemberCluster", event.Related.Kind)
				related = event.Related.Name
			}
			all = append(all, related+": "+event.Note)
		}
		return all
	}
	require.Eventually(t, func() bool { return len(told()) == len(want) }, 2*time.Minute, 10*time.Millisecond)
	require.ElementsMatch(t, want, told())
}
