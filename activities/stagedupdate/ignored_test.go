package stagedupdate

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Events that are alike but for their note become one series, which keeps the first note: each signal that does nothing
// must have its own event all the same.
func TestEveryIgnoredSignalIsToldOfInItsOwnWords(t *testing.T) {
	scheme := fixture.Scheme(t)
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run", UID: "uid"}}
	clientset := kubernetesfake.NewClientset()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	defer broadcaster.Shutdown()
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	a := &Activities{
		Live: fixture.NewClientBuilder(scheme).WithObjects(run).Build(), Events: broadcaster.NewRecorder(scheme, "hub-agent"),
	}
	reports := []wf.SignalReport{
		{Reason: wf.SignalNotWaiting, Stage: "canary", Waiting: "staging"},
		{Reason: wf.SignalNotWaiting, Stage: "staging", Waiting: "canary"},
		{Reason: wf.SignalUnknownStage, Stage: "nosuch", Waiting: "staging"},
		{Reason: wf.SignalMalformed, Waiting: "staging"},
	}
	var want []string
	for _, report := range reports {
		report.Run = wf.Ref{Name: run.Name, UID: string(run.UID)}
		told, err := a.ReportSignal(context.Background(), report)
		require.NoError(t, err)
		require.True(t, told)
		want = append(want, ignoredNote(report))
	}
	require.Eventually(t, func() bool {
		list, err := clientset.EventsV1().Events(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(notes(list.Items)) == len(reports)
	}, 2*time.Minute, 10*time.Millisecond)
	list, err := clientset.EventsV1().Events(corev1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.ElementsMatch(t, want, notes(list.Items))
}

func notes(items []eventsv1.Event) []string {
	var all []string
	for i := range items {
		all = append(all, items[i].Note)
	}
	return all
}

func TestTheActionOfAnIgnoredSignalFitsIntoAnEvent(t *testing.T) {
	long := make([]byte, 1000)
	for i := range long {
		long[i] = 'x'
	}
	require.LessOrEqual(t, len(ignoredAction(wf.SignalReport{Reason: wf.SignalUnknownStage, Stage: string(long)})), maxAction)
	require.LessOrEqual(t, len(ignoredNote(wf.SignalReport{Reason: wf.SignalUnknownStage, Stage: string(long)})), maxNote)
}
