package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/worksync"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// newPullWorld is a hub with a placement of one Pod, and clusters that pull images, except for those that are named.
func newPullWorld(t *testing.T, clusters int, declining ...string) *world {
	t.Helper()
	w := newWorld(t, clusters, "")
	for index := range 2 {
		s := &placementv1beta1.ClusterResourceSnapshot{}
		require.NoError(t, w.Get(t.Context(), types.NamespacedName{Name: placementv1beta1.ResourceSnapshotName("web", index, 0)}, s))
		raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"web","name":"p"},"spec":{"containers":[{"name":"c","image":"web:%d"}]}}`, index)
		s.Spec.SelectedResources = []placementv1beta1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}}
		require.NoError(t, w.Update(t.Context(), s))
	}
	for i := range clusters {
		name := fmt.Sprintf("m%d", i+1)
		if slices.Contains(declining, name) {
			continue
		}
		m := &clusterv1beta1.MemberCluster{}
		require.NoError(t, w.Get(t.Context(), types.NamespacedName{Name: name}, m))
		m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.AgentPullsImagesProperty: {Value: "true"}}
		require.NoError(t, w.Update(t.Context(), m))
	}
	return w
}

func pullSpec(atOnce int32, clusters ...string) fleetflowv1alpha1.RehearsalSpec {
	return fleetflowv1alpha1.RehearsalSpec{
		PlacementName: "web", PullImages: &fleetflowv1alpha1.ImagePull{ClustersAtOnce: atOnce}, Clusters: clusters,
		Timeout: &metav1.Duration{Duration: 10 * time.Minute},
	}
}

// pulled has a member say what became of its one image.
func (w *world) pulled(t *testing.T, cluster string, outcome fleetflowv1alpha1.RehearsalOutcome, message string) {
	t.Helper()
	q := &fleetflowv1alpha1.MemberQuestion{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Namespace: "fleet-member-" + cluster, Name: "rehearsal-uid-r"}, q))
	image := fleetflowv1alpha1.PulledImage{Image: "web:1", Outcome: outcome, Nodes: 2, Message: message}
	if outcome == fleetflowv1alpha1.RehearsalPulled {
		image.Pulled = 2
	}
	q.Status = fleetflowv1alpha1.MemberQuestionStatus{
		Conditions: []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeAnswered, Status: metav1.ConditionTrue, Reason: "Answered"}},
		Images:     &fleetflowv1alpha1.PulledImages{Revision: q.Spec.PullImages.Revision, Images: []fleetflowv1alpha1.PulledImage{image}},
	}
	require.NoError(t, w.Status().Update(t.Context(), q))
}

// asked returns the clusters that have a question.
func (w *world) asked(t *testing.T) []string {
	t.Helper()
	var names []string
	questions := w.questions(t)
	for i := range questions {
		names = append(names, clusterOf(&questions[i]))
	}
	slices.Sort(names)
	return names
}

func TestFewClustersPullAtATimeUntilAllHave(t *testing.T) {
	w := newPullWorld(t, 5)
	r := w.reconciler()
	w.create(t, pullSpec(2))
	look(t, r)
	require.Equal(t, []string{"m1", "m2"}, w.asked(t))
	asked := w.questions(t)[0].Spec
	assert.Equal(t, fleetflowv1alpha1.QuestionPullImages, asked.Type)
	assert.Equal(t, []fleetflowv1alpha1.ImagesOfPods{{Namespace: "web", Images: []string{"web:1"}}}, asked.PullImages.Pods)
	assert.Nil(t, asked.Rehearse)
	w.pass(time.Second)
	look(t, r)
	assert.Equal(t, []string{"m1", "m2"}, w.asked(t), "there is no room")

	w.pulled(t, "m2", fleetflowv1alpha1.RehearsalPulled, "")
	w.pass(time.Second)
	look(t, r)
	assert.Equal(t, []string{"m1", "m2", "m3"}, w.asked(t))
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalAsking, w.completed(t).Reason)
	for i, name := range []string{"m1", "m3", "m4", "m5"} {
		outcome := fleetflowv1alpha1.RehearsalPulled
		if i == 0 {
			outcome = fleetflowv1alpha1.RehearsalRefused
		}
		w.pulled(t, name, outcome, "manifest unknown")
		w.pass(time.Second)
		look(t, r)
	}
	completed := w.completed(t)
	assert.Equal(t, metav1.ConditionTrue, completed.Status)
	assert.Equal(t, "5 of 5 clusters have answered about revision 1: 1 refused, 4 pulled", completed.Message)
	groups := w.status(t).Groups
	require.Len(t, groups, 2)
	assert.Equal(t, "web:1", groups[0].Object)
	assert.Equal(t, "manifest unknown", groups[0].Message)
	assert.Equal(t, []string{"m1"}, groups[0].Clusters)
	assert.EqualValues(t, 4, groups[1].ClusterCount)
	assert.Equal(t, 5, w.writes["create"])
}

func TestAnotherAgentGoesOnWithThoseThatPull(t *testing.T) {
	w := newPullWorld(t, 4)
	w.create(t, pullSpec(2))
	look(t, w.reconciler())
	w.pulled(t, "m1", fleetflowv1alpha1.RehearsalPulled, "")
	w.pass(time.Second)
	r := w.reconciler()
	look(t, r)
	assert.Equal(t, []string{"m1", "m2", "m3"}, w.asked(t))
	for _, name := range []string{"m2", "m3", "m4"} {
		w.pulled(t, name, fleetflowv1alpha1.RehearsalPulled, "")
		w.pass(time.Second)
		look(t, r)
	}
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Pulled: 4}, w.status(t).Clusters)
	assert.Equal(t, 4, w.writes["create"])
}

func TestClustersThatCannotPullAreUnknownAndKeepNoOtherFromIt(t *testing.T) {
	w := newPullWorld(t, 5, "m2")
	silent := &clusterv1beta1.MemberCluster{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Name: "m3"}, silent))
	silent.Status.Conditions = []metav1.Condition{{
		Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterHeartbeatMissed,
		LastTransitionTime: metav1.NewTime(begin),
	}}
	silent.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(begin.Add(-time.Hour))}}
	require.NoError(t, w.Update(t.Context(), silent))
	w.refuse = func(q *fleetflowv1alpha1.MemberQuestion) error {
		if clusterOf(q) == "m4" {
			return apierrors.NewNotFound(fleetflowv1alpha1.GroupVersion.WithResource("namespaces").GroupResource(), q.Namespace)
		}
		return nil
	}
	r := w.reconciler()
	w.create(t, pullSpec(1, "m1", "m2", "m3", "m4", "m5", "m9"))
	look(t, r)
	require.NoError(t, w.Delete(t.Context(), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m5"}}))
	w.pulled(t, "m1", fleetflowv1alpha1.RehearsalPulled, "")
	w.pass(time.Second)
	look(t, r)
	status := w.status(t)
	assert.Equal(t, metav1.ConditionTrue, w.completed(t).Status)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Pulled: 1, Unknown: 5}, status.Clusters)
	said := map[string]string{}
	for _, group := range status.Groups {
		for _, name := range group.Clusters {
			said[name] = group.Message
		}
	}
	assert.Contains(t, said["m2"], "its owner does not let the fleet pull images")
	assert.Equal(t, "its agent has not reported since 2026-01-02T02:04:05Z", said["m3"])
	assert.Equal(t, "it has left the fleet, or is about to", said["m4"])
	assert.Equal(t, "it has left the fleet, or the placement does not pick it any more", said["m5"])
	assert.Equal(t, "it has left the fleet, or the placement does not pick it any more", said["m9"])
}

func TestClustersThatSayNothingAreUnknownOnceTheirTimeIsOverAndOthersHaveTheirTurn(t *testing.T) {
	w := newPullWorld(t, 3)
	r := w.reconciler()
	w.create(t, pullSpec(1))
	assert.LessOrEqual(t, look(t, r).RequeueAfter, 5*time.Minute+time.Second)
	require.Equal(t, []string{"m1"}, w.asked(t))
	w.pass(5*time.Minute + 2*time.Second)
	look(t, r)
	assert.Equal(t, []string{"m1", "m2"}, w.asked(t))
	assert.EqualValues(t, 1, w.status(t).Clusters.Unknown)
	w.pass(5 * time.Minute)
	look(t, r)
	assert.Equal(t, metav1.ConditionTrue, w.completed(t).Status)
	status := w.status(t)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Unknown: 3}, status.Clusters)
	assert.Equal(t, []string{"m1", "m2"}, w.asked(t))
}

func TestAChangeWithoutImagesHasThem(t *testing.T) {
	w := newWorld(t, 2, "")
	for _, name := range []string{"m1", "m2"} {
		m := &clusterv1beta1.MemberCluster{}
		require.NoError(t, w.Get(t.Context(), types.NamespacedName{Name: name}, m))
		m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.AgentPullsImagesProperty: {Value: "true"}}
		require.NoError(t, w.Update(t.Context(), m))
	}
	w.create(t, pullSpec(1))
	look(t, w.reconciler())
	assert.Equal(t, metav1.ConditionTrue, w.completed(t).Status)
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalAllAnswered, w.completed(t).Reason)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Pulled: 2}, w.status(t).Clusters)
	assert.Empty(t, w.questions(t))
}

// The change is as it was resolved first: that an answer comes resolves nothing again.
func TestAnAnswerDoesNotResolveTheChangeAgain(t *testing.T) {
	w := newPullWorld(t, 3)
	r := w.reconciler()
	w.create(t, pullSpec(1))
	look(t, r)
	require.NoError(t, client.IgnoreNotFound(w.Delete(t.Context(), &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}})))
	w.pulled(t, "m1", fleetflowv1alpha1.RehearsalPulled, "")
	w.pass(time.Second)
	look(t, r)
	assert.Equal(t, []string{"m1", "m2"}, w.asked(t))
}

func TestAClusterThatCannotBeAskedKeepsNoOtherFromItsTurnAndIsTriedAgain(t *testing.T) {
	w := newPullWorld(t, 3)
	refused := map[string]int{}
	w.refuse = func(q *fleetflowv1alpha1.MemberQuestion) error {
		name := clusterOf(q)
		if name == "m1" || name == "m2" && refused[name] == 0 {
			refused[name]++
			return apierrors.NewBadRequest("the policy takes no questions")
		}
		return nil
	}
	r := w.reconciler()
	w.create(t, pullSpec(3))
	assert.LessOrEqual(t, look(t, r).RequeueAfter, firstRetry)
	assert.Equal(t, []string{"m3"}, w.asked(t))
	w.pulled(t, "m3", fleetflowv1alpha1.RehearsalPulled, "")
	w.pass(time.Second)
	look(t, r)
	assert.Equal(t, []string{"m2", "m3"}, w.asked(t))
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Pulled: 1}, w.status(t).Clusters, "counts go on")
	w.pulled(t, "m2", fleetflowv1alpha1.RehearsalPulled, "")
	for range 1000 {
		w.pass(look(t, r).RequeueAfter)
		if w.completed(t).Status == metav1.ConditionTrue {
			break
		}
	}
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Pulled: 2, Unknown: 1}, w.status(t).Clusters)
	assert.Contains(t, w.status(t).Groups[0].Message, "it could not be asked: asking cluster m1: the policy takes no questions")
	assert.Less(t, refused["m1"], 30, "it is tried less and less often")
	assert.Greater(t, refused["m1"], 10)
}

func TestNoMoreClustersAreTriedInATurnThanMayPull(t *testing.T) {
	w := newPullWorld(t, 5)
	tried := 0
	w.refuse = func(*fleetflowv1alpha1.MemberQuestion) error {
		tried++
		return apierrors.NewInternalError(fmt.Errorf("the webhook is away"))
	}
	w.create(t, pullSpec(2))
	assert.Equal(t, time.Second, look(t, w.reconciler()).RequeueAfter)
	assert.Equal(t, 2, tried)
}

// partial composes the Works of clusters without a part of the change.
type partial struct {
	Composer
	heldBack, invalid error
}

func (p partial) Compose(ctx context.Context, binding placementv1beta1.BindingObject) (worksync.Composition, error) {
	composed, err := p.Composer.Compose(ctx, binding)
	composed.HeldBack, composed.Invalid = p.heldBack, p.invalid
	return composed, err
}

func TestAClusterOfWhichAPartCannotBeComposedIsUnknown(t *testing.T) {
	for name, part := range map[string]partial{
		"held back": {heldBack: errors.New("override of Pod web/p fails")}, "invalid": {invalid: errors.New("envelope e cannot be unpacked")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPullWorld(t, 1)
			part.Composer = w.reconciler().works
			r := w.reconciler()
			r.works = part
			w.create(t, pullSpec(1))
			look(t, r)
			w.pulled(t, "m1", fleetflowv1alpha1.RehearsalPulled, "")
			w.pass(time.Second)
			look(t, w.reconciler()) // another agent, which composes nothing
			assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Unknown: 1}, w.status(t).Clusters)
			assert.Equal(t, "the images of a part of the change are not known: "+errors.Join(part.heldBack, part.invalid).Error(),
				w.status(t).Groups[0].Message)
		})
	}
}

func TestAClusterWithoutImagesOfWhichAPartCannotBeComposedIsUnknown(t *testing.T) {
	w := newPullWorld(t, 1)
	s := &placementv1beta1.ClusterResourceSnapshot{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Name: placementv1beta1.ResourceSnapshotName("web", 1, 0)}, s))
	s.Spec.SelectedResources = nil
	require.NoError(t, w.Update(t.Context(), s))
	r := w.reconciler()
	r.works = partial{Composer: r.works, heldBack: errors.New("override of Pod web/p fails")}
	w.create(t, pullSpec(1))
	look(t, r)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Unknown: 1}, w.status(t).Clusters)
	assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalSomeUnknown, w.completed(t).Reason)
}

func TestAClusterThatIsNotPickedAnyMoreIsNotAsked(t *testing.T) {
	w := newPullWorld(t, 2)
	r := w.reconciler()
	w.create(t, pullSpec(1))
	look(t, r)
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(t, w.List(t.Context(), list))
	for i := range list.Items {
		if binding := &list.Items[i]; binding.Spec.TargetCluster == "m2" {
			binding.Spec.State = placementv1beta1.BindingStateUnscheduled
			require.NoError(t, w.Update(t.Context(), binding))
		}
	}
	w.pulled(t, "m1", fleetflowv1alpha1.RehearsalPulled, "")
	w.pass(time.Second)
	look(t, r)
	assert.Equal(t, []string{"m1"}, w.asked(t))
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Pulled: 1, Unknown: 1}, w.status(t).Clusters)
	assert.Equal(t, "it has left the fleet, or the placement does not pick it any more", w.status(t).Groups[0].Message)
}

func TestAPullEndsWithItsRun(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*placementv1beta1.ClusterStagedUpdateRun)
		want string
	}{
		"stopped": {func(run *placementv1beta1.ClusterStagedUpdateRun) { run.Spec.State = placementv1beta1.StateStop }, "ClusterStagedUpdateRun web is stopped"},
		"over": {func(run *placementv1beta1.ClusterStagedUpdateRun) {
			run.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse, Reason: "Failed"}}
		}, "ClusterStagedUpdateRun web is over"},
		"the task has ended": {func(run *placementv1beta1.ClusterStagedUpdateRun) {
			run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{BeforeStageTaskStatus: []placementv1beta1.StageTaskStatus{{
				Type: placementv1beta1.StageTaskTypePrePull, Rehearsal: &placementv1beta1.StageRehearsal{Name: "r", CompletionTime: &metav1.Time{Time: begin}},
			}}}}
		}, "ClusterStagedUpdateRun web does not wait for it any more"},
		"gone":                {func(run *placementv1beta1.ClusterStagedUpdateRun) { run.UID = "" }, "ClusterStagedUpdateRun web was deleted"},
		"another of its name": {func(run *placementv1beta1.ClusterStagedUpdateRun) { run.UID = "another" }, "ClusterStagedUpdateRun web was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPullWorld(t, 3)
			run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-run"}}
			require.NoError(t, w.Create(t.Context(), run))
			require.NoError(t, w.Create(t.Context(), &fleetflowv1alpha1.ClusterRehearsal{
				ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "uid-r", CreationTimestamp: metav1.NewTime(begin), OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(run, placementv1beta1.ScopeOf(run).UpdateRunKind()),
				}}, Spec: pullSpec(2),
			}))
			r := w.reconciler()
			look(t, r)
			require.Equal(t, []string{"m1", "m2"}, w.asked(t))
			w.pulled(t, "m1", fleetflowv1alpha1.RehearsalPulled, "")
			before := run.DeepCopy()
			c.end(run)
			assert.Equal(t, name == "stopped" || name == "over", onRunEnd(event.UpdateEvent{ObjectOld: before, ObjectNew: run}))
			if run.UID != before.UID {
				require.NoError(t, w.Delete(t.Context(), before))
				if run.UID != "" {
					run.ResourceVersion = ""
					require.NoError(t, w.Create(t.Context(), run))
				}
			} else {
				require.NoError(t, w.Update(t.Context(), run))
			}
			w.pass(time.Second)
			look(t, r)
			assert.Equal(t, []string{"m1"}, w.asked(t), "a question that nothing waits for is deleted, and no other is asked")
			completed := w.completed(t)
			assert.Equal(t, fleetflowv1alpha1.ReasonRehearsalSomeUnknown, completed.Reason)
			assert.Contains(t, completed.Message, "; it has ended early: "+c.want)
			assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Pulled: 1, Unknown: 2}, w.status(t).Clusters)
		})
	}
}

func TestARunThatEndsHasItsPullsLookedAt(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "canary"}, {StageName: "all"}}
	known := types.NamespacedName{Name: fleetflowv1alpha1.PrePullName("web", "all")}
	looked := &running{byKey: map[types.NamespacedName]*progress{known: {}}}
	assert.Equal(t, []reconcile.Request{{NamespacedName: known}}, looked.pullsOf(t.Context(), run))
}

func TestAQuestionOfAnotherClusterCompletesNothing(t *testing.T) {
	w := newPullWorld(t, 2)
	r := w.reconciler()
	w.create(t, pullSpec(2))
	look(t, r)
	forged := w.questions(t)[0].DeepCopy()
	forged.ObjectMeta = metav1.ObjectMeta{Namespace: "fleet-member-m9", Name: forged.Name, Labels: forged.Labels}
	require.NoError(t, w.Create(t.Context(), forged))
	w.pulled(t, "m9", fleetflowv1alpha1.RehearsalPulled, "")
	w.pulled(t, "m1", fleetflowv1alpha1.RehearsalPulled, "")
	w.pass(time.Second)
	look(t, r)
	assert.Equal(t, metav1.ConditionFalse, w.completed(t).Status, "m2 has not answered")
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Pulled: 1}, w.status(t).Clusters)
}
