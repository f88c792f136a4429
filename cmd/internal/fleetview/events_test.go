package fleetview

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// after is noon and some seconds.
func after(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

func webPlacement() hub.Placement {
	return hub.PlacementOf(&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
}

func said(kind string, status metav1.ConditionStatus, reason, message string, at metav1.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at}
}

// reportOf is the Work of a placement on member-3, of which the member reports on a ConfigMap with some content.
func reportOf(content string, conditions ...metav1.Condition) *placementv1beta1.Work {
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-member-3", Name: "web-work", Generation: 2,
		Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}}}
	manifest := placementv1beta1.Manifest{}
	manifest.Raw = []byte(content)
	w.Spec.Workload.Manifests = []placementv1beta1.Manifest{manifest}
	w.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied, ObservedGeneration: 2}}
	w.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "shop", Name: "x"}, Conditions: conditions,
	}}
	return w
}

// tell writes events as a table has them.
func tell(events []Event) (out []string) {
	for _, e := range events {
		line := ""
		for _, column := range EventColumns[:4] {
			line += column.TextOf(e) + "  "
		}
		out = append(out, line[len("2026-01-02T"):len(line)-2])
	}
	return out
}

func TestEventsOfMembers(t *testing.T) {
	applied := said("Applied", "True", "Applied", "done", after(1))
	refused := said("Applied", "False", "ManifestApplyFailed", "quota\nexceeded", after(2))
	for name, tc := range map[string]struct {
		work *placementv1beta1.Work
		want []string
	}{
		"an object that is there at once is applied": {
			reportOf("", applied, said("Available", "True", "Available", "", after(1))), []string{"12:00:01Z  Normal  Applied  ConfigMap shop/x applied on member-3"}},
		"one that comes up later is available then": {
			reportOf("", applied, said("Available", "True", "Available", "", after(9))), []string{
				"12:00:01Z  Normal  Applied  ConfigMap shop/x applied on member-3", "12:00:09Z  Normal  Available  ConfigMap shop/x available on member-3"}},
		"nothing is told of what cannot be tracked": {
			reportOf("", applied, said("Available", "True", "NotTrackable", "", after(9))), []string{"12:00:01Z  Normal  Applied  ConfigMap shop/x applied on member-3"}},
		"one that is refused says why, in a line": {
			reportOf("", refused), []string{"12:00:02Z  Warning  ManifestApplyFailed  ConfigMap shop/x not applied on member-3: quota exceeded"}},
		"one that makes no progress says why": {
			reportOf("", applied, said("Available", "False", "ManifestNotAvailableYet", "wait", after(1)), said("Stalled", "True", "Stalled", "late", after(5))), []string{
				"12:00:01Z  Normal  Applied  ConfigMap shop/x applied on member-3",
				"12:00:01Z  Normal  ManifestNotAvailableYet  ConfigMap shop/x not available yet on member-3",
				"12:00:05Z  Warning  Stalled  ConfigMap shop/x stalled on member-3: late"}},
		"one that has failed for good says why": {
			reportOf("", said("Available", "False", "ManifestFailed", "over", after(3))), []string{"12:00:03Z  Warning  ManifestFailed  ConfigMap shop/x not available on member-3: over"}},
		"one that is another than its manifest says why": {
			reportOf("", said("Applied", "True", "AppliedWithDifference", "a webhook", after(3))), []string{
				"12:00:03Z  Warning  AppliedWithDifference  ConfigMap shop/x applied with a difference on member-3: a webhook"}},
		"one that is compared is the same": {
			reportOf("", said("DiffReported", "True", "NoDiffFound", "", after(3))), []string{"12:00:03Z  Normal  NoDiffFound  ConfigMap shop/x compared on member-3"}},
		"or not": {
			reportOf("", said("DiffReported", "True", "FoundDiff", "differs", after(3))), []string{"12:00:03Z  Warning  FoundDiff  ConfigMap shop/x compared on member-3: differs"}},
		"or cannot be": {
			reportOf("", said("DiffReported", "False", "FailedToReportDiff", "no kind", after(3))), []string{
				"12:00:03Z  Warning  FailedToReportDiff  ConfigMap shop/x not compared on member-3: no kind"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tell(Events(webPlacement(), []client.Object{tc.work})))
		})
	}

	drifted := reportOf("")
	drifted.Status.ManifestConditions[0].DriftDetails = &placementv1beta1.DriftDetails{FirstDriftedObservedTime: after(4),
		ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/a"}, {Path: "/b"}, {Path: "/c"}, {Path: "/d"}, {Path: "/e"}, {Path: "/f"}}}
	drifted.Status.Conditions = append(drifted.Status.Conditions,
		said(placementv1beta1.ConditionTypeRemovalPending, "True", placementv1beta1.ReasonInUse, "Namespace old is not removed", after(7)))
	drifted.DeletionTimestamp = new(after(8))
	assert.Equal(t, []string{
		"12:00:04Z  Warning  Drifted  ConfigMap shop/x was changed on member-3: /a, /b, /c, /d, /e, and 1 more",
		"12:00:07Z  Warning  InUse  member-3: Namespace old is not removed",
		"12:00:08Z  Normal  Removing  what Work web-work has is being removed from member-3",
	}, tell(Events(webPlacement(), []client.Object{drifted})))

	unreadable := reportOf("", said("Applied", "False", "DecodingErred", "no kind", after(1)))
	unreadable.Status.ManifestConditions[0].Identifier = placementv1beta1.WorkResourceIdentifier{Ordinal: 3}
	assert.Equal(t, []string{"12:00:01Z  Warning  DecodingErred  manifest 3 of Work web-work not applied on member-3: no kind"},
		tell(Events(webPlacement(), []client.Object{unreadable})))
	other := reportOf("", applied)
	other.Labels[placementv1beta1.ParentNamespaceLabel] = "shop"
	assert.Empty(t, Events(webPlacement(), []client.Object{other}), "it is of a placement of that name in a namespace")
}

func TestEventsOfTheHub(t *testing.T) {
	about := func(kind, name, reason string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: after(1)}, InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name},
			Reason: reason, Type: "Normal", Message: reason + " it is"}
	}
	often := about("ClusterResourceBinding", "web-member-3", "Often")
	often.Series = &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(after(9).Time)}
	often.Related = &corev1.ObjectReference{Kind: "MemberCluster", Name: "member-3"}
	older := about("ClusterStagedUpdateRun", "web-1", "Older")
	older.LastTimestamp = after(5)
	older.Count = 2
	exact := about("ClusterApprovalRequest", "web-1-canary", "Exact")
	exact.EventTime = metav1.NewMicroTime(after(3).Time)
	run := func(name, placement string) *placementv1beta1.ClusterStagedUpdateRun {
		return &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: placement}}
	}
	request := func(name, run string) *placementv1beta1.ClusterApprovalRequest {
		return &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: run}}
	}
	eviction := func(name, placement string) *placementv1beta1.ClusterResourcePlacementEviction {
		return &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: placementv1beta1.PlacementEvictionSpec{PlacementName: placement}}
	}
	events := Events(webPlacement(), []client.Object{
		about("ClusterResourcePlacement", "web", "Placed"), often, older, exact, about("ClusterResourcePlacementEviction", "gone", "Evicted"),
		about("ClusterResourcePlacement", "api", "Other"), about("ClusterStagedUpdateRun", "api-1", "Other"), about("Pod", "web", "Other"),
		about("ClusterApprovalRequest", "api-1-canary", "Other"), about("ClusterResourcePlacementEviction", "stays", "Other"),
		run("web-1", "web"), run("api-1", "api"), request("web-1-canary", "web-1"), request("api-1-canary", "api-1"),
		eviction("gone", "web"), eviction("stays", "api"), &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-member-3"}},
	})
	assert.ElementsMatch(t, []string{
		"12:00:01Z  Normal  Placed  Placed it is", "12:00:01Z  Normal  Evicted  Evicted it is", "12:00:03Z  Normal  Exact  Exact it is",
		"12:00:05Z  Normal  Older  Older it is (2 times)", "12:00:09Z  Normal  Often  Often it is (3 times)",
	}, tell(events))
	assert.Equal(t, "member-3", events[len(events)-1].Member, "the latest comes last")
}

func TestALogTellsWhatIsNew(t *testing.T) {
	log := &EventLog{}
	now := noon.Add(time.Minute)
	look := func(works ...client.Object) []string {
		return tell(log.News(Events(webPlacement(), works), ReportsAreComplete(works), now))
	}
	applied := said("Applied", "True", "Applied", "done", after(1))
	assert.Equal(t, []string{"12:00:01Z  Normal  Applied  ConfigMap shop/x applied on member-3"}, look(reportOf("blue", applied)))
	assert.Empty(t, look(reportOf("blue", applied)), "nothing has happened")

	changed := reportOf("green", applied)
	changed.Generation = 3
	assert.Empty(t, look(changed), "the member has not reported on it yet")
	changed.Status.Conditions[0].ObservedGeneration = 3
	assert.Equal(t, []string{"12:01:00Z  Normal  Configured  ConfigMap shop/x configured on member-3"}, look(changed))
	assert.Empty(t, look(changed))

	failed := reportOf("green", said("Applied", "False", "ManifestApplyFailed", "no", after(70)))
	assert.Equal(t, []string{"12:01:10Z  Warning  ManifestApplyFailed  ConfigMap shop/x not applied on member-3: no"}, look(failed))
	again := reportOf("green", said("Applied", "True", "Applied", "done", after(80)))
	assert.Equal(t, []string{"12:01:20Z  Normal  Applied  ConfigMap shop/x applied on member-3"}, look(again))

	trimmed := reportOf("green")
	trimmed.Status.ManifestConditions = nil
	trimmed.Status.Conditions = append(trimmed.Status.Conditions, said(placementv1beta1.ConditionTypeStatusTrimmed, "True", "OversizedStatus", "", after(90)))
	assert.Empty(t, look(trimmed), "there was no room for it")
	assert.Empty(t, look(again))
	assert.Equal(t, []string{"12:01:00Z  Normal  Pruned  ConfigMap shop/x no longer placed on member-3"}, look(), "its Work is gone")
	assert.Empty(t, look())
}

func TestEventsOfAnEarlierObjectOfTheSameName(t *testing.T) {
	about := func(kind, name, uid, reason string, at metav1.Time) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at}, Reason: reason, Type: "Normal", Message: reason,
			InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name, UID: types.UID(uid)}}
	}
	placement := hub.PlacementOf(&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web-2", CreationTimestamp: after(10)}})
	binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "web-member-3", UID: "binding-2"}}
	assert.Equal(t, []string{
		"12:00:11Z  Normal  Bound  Bound (an earlier ClusterResourceBinding of that name)",
		"12:00:12Z  Normal  Bound  Bound",
		"12:00:13Z  Normal  Picked  Picked",
		"12:00:14Z  Normal  Told  Told",
	}, tell(Events(placement, []client.Object{
		binding,
		about("ClusterResourcePlacement", "web", "web-1", "Picked", after(9)),
		about("ClusterResourcePlacement", "web", "web-1", "Late", after(20)),
		about("ClusterResourceBinding", "web-member-3", "binding-0", "Bound", after(8)),
		about("ClusterResourceBinding", "web-member-3", "binding-1", "Bound", after(11)),
		about("ClusterResourceBinding", "web-member-3", "binding-2", "Bound", after(12)),
		about("ClusterResourcePlacement", "web", "web-2", "Picked", after(13)),
		about("ClusterResourcePlacement", "web", "", "Told", after(14)),
	})))
}
