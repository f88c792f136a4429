//go:build integration

package takeover

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/kubefleet"
)

// interrupt has KubeFleet's agent end in the middle: run web-2 has passed stage canary and has just written the binding of
// member-2, whose Work is as before; a snapshot lacks a part; and all bindings have lost their labels.
func interrupt(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	set := func(object *unstructured.Unstructured, value any, path ...string) {
		_ = unstructured.SetNestedField(object.Object, value, path...)
	}
	for _, object := range objects {
		switch object.GetKind() + "/" + object.GetName() {
		case "ClusterStagedUpdateRun/web-2":
			status := object.Object["status"].(map[string]any)
			canary := status["stagesStatus"].([]any)[0].(map[string]any)
			prod := status["stagesStatus"].([]any)[1].(map[string]any)
			approval := canary["afterStageTaskStatus"].([]any)[1].(map[string]any)
			approval["conditions"] = append(approval["conditions"].([]any), condition("ApprovalRequestApproved", "StageTaskApprovalRequestApproved"))
			canary["conditions"] = []any{condition("Succeeded", "StageUpdatingSucceeded")}
			canary["endTime"] = recordedAt
			prod["startTime"] = recordedAt
			prod["conditions"] = []any{condition("Progressing", "StageUpdatingStarted")}
			prod["clusters"].([]any)[0].(map[string]any)["conditions"] = []any{condition("Started", "ClusterUpdatingStarted")}
		case "ClusterApprovalRequest/web-2-after-canary":
			set(object, []any{condition("Approved", "lgtm")}, "status", "conditions")
		case "ClusterResourceBinding/web-member-2-053e6e70":
			set(object, "web-1-snapshot", "spec", "resourceSnapshotName")
		case "ClusterResourceSnapshot/some-0-snapshot":
			annotations := object.GetAnnotations()
			annotations[placementv1beta1.NumberOfResourceSnapshotsAnnotation] = "2"
			object.SetAnnotations(annotations)
		}
	}
	for _, binding := range kubefleet.OfKinds(objects, "ClusterResourceBinding") {
		binding.SetLabels(nil)
	}
	return objects
}

const recordedAt = "2026-11-22T20:31:30Z"

// condition is one as KubeFleet has stored it.
func condition(kind, reason string) map[string]any {
	return map[string]any{"type": kind, "status": "True", "reason": reason, "message": "", "observedGeneration": int64(2), "lastTransitionTime": recordedAt}
}

func TestAHubThatKubeFleetLeftInTheMiddle(t *testing.T) {
	r := newRig(t, 0)
	writes := r.takeOver(interrupt)

	t.Run("bindings without labels get theirs back, and no cluster gets a second one", func(t *testing.T) {
		none(t, writes.matching(func(w write) bool { return w.event == watch.Added && w.after.GetKind() == "ClusterResourceBinding" }))
		bindings := &placementv1beta1.ClusterResourceBindingList{}
		require.NoError(t, r.hub().List(r.ctx, bindings))
		for i := range bindings.Items {
			assert.Equal(t, rules.PlacementNameOf(&bindings.Items[i]), bindings.Items[i].Labels[placementv1beta1.ParentPlacementLabel], bindings.Items[i].Name)
		}
	})
	t.Run("no object is deleted", func(t *testing.T) { nothingDeleted(t, writes) })
	t.Run("a snapshot that lacks a part is replaced by one of the same content, and no member has anything to do", func(t *testing.T) {
		for _, cluster := range []string{"member-2", "member-3"} {
			work := r.workOf(t, cluster, "some-work")
			assert.Equal(t, int64(1), work.Generation, cluster)
			assert.True(t, rules.IsSigned(work), cluster)
		}
	})
	t.Run("a run with a cluster in flight goes on with it, and with no other", func(t *testing.T) {
		assert.Contains(t, string(r.workOf(t, "member-2", "web-work").Spec.Workload.Manifests[1].Raw)+string(r.workOf(t, "member-2", "web-work").Spec.Workload.Manifests[0].Raw), "green")
		stage := r.runNamed(t, "web-2").Status.StagesStatus[1]
		assert.Equal(t, []updaterun.Phase{updaterun.PhaseRunning, updaterun.PhasePending}, []updaterun.Phase{updaterun.ClusterPhase(&stage.Clusters[0]), updaterun.ClusterPhase(&stage.Clusters[1])})
		for _, cluster := range []string{"member-2", "member-3"} {
			r.answerForMember(t, cluster, "web-work")
		}
		_, err := access.Await(r.ctx, r.hub(), client.ObjectKey{Name: "web-2"}, func(run *placementv1beta1.ClusterStagedUpdateRun) string {
			if meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded) {
				return ""
			}
			return fmt.Sprintf("%+v", run.Status)
		})
		require.NoError(t, err)
	})
	t.Run("no call for the run was refused", func(t *testing.T) {
		list := &corev1.EventList{}
		require.NoError(t, r.hub().List(r.ctx, list))
		for i := range list.Items {
			assert.NotEqual(t, "CallFromTemporalRefused", list.Items[i].Reason, list.Items[i].Message)
		}
	})
}

func (r *rig) runNamed(t *testing.T, name string) *placementv1beta1.ClusterStagedUpdateRun {
	t.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Name: name}, run))
	return run
}

func (r *rig) workOf(t *testing.T, cluster, name string) *placementv1beta1.Work {
	t.Helper()
	work := &placementv1beta1.Work{}
	require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Namespace: placementv1beta1.MemberNamespace(cluster), Name: name}, work))
	return work
}

// answerForMember reports, once a Work has what run web-2 brings, that all of it is available.
func (r *rig) answerForMember(t *testing.T, cluster, name string) {
	t.Helper()
	key := types.NamespacedName{Namespace: placementv1beta1.MemberNamespace(cluster), Name: name}
	work, err := access.Await(r.ctx, r.hub(), key, func(work *placementv1beta1.Work) string {
		if work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel] == "1" {
			return ""
		}
		return "it is of snapshot " + work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel]
	})
	require.NoError(t, err)
	for _, kind := range []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable} {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "AnsweredByTheTest", ObservedGeneration: work.Generation,
		})
	}
	require.NoError(t, r.hub().Status().Update(r.ctx, work))
}

// withoutMembers takes the clusters off the hub, as if they had not been restored with it, and the labels off its bindings.
func withoutMembers(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var left []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == "ClusterResourceBinding" {
			object.SetLabels(nil)
		}
		if object.GetKind() != "MemberCluster" && object.GetKind() != "InternalMemberCluster" {
			left = append(left, object)
		}
	}
	return left
}

func TestAHubThatHasLostItsClustersAndLabels(t *testing.T) {
	r := newRig(t, 0)
	r.restored = true
	writes := r.takeOver(withoutMembers)

	t.Run("no binding is let go, and none is created", func(t *testing.T) {
		bindingsStay(t, writes)
		nothingDeleted(t, writes)
	})
	t.Run("each placement says what it waits for", func(t *testing.T) {
		for _, name := range []string{"web", "roll", "fixed", "some", "team-namespace"} {
			// A placement says it once its workflow has looked. A task of a workflow that is lost comes again after ten seconds.
			_, err := access.Await(r.ctx, r.hub(), client.ObjectKey{Name: name}, func(p *placementv1beta1.ClusterResourcePlacement) string {
				held := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld)
				if held == nil || !strings.Contains(held.Message, "kubectl fleet migrate accept "+name) {
					return fmt.Sprintf("%+v", p.Status.Conditions)
				}
				return ""
			})
			require.NoError(t, err, name)
		}
	})
	t.Run("the check names them, and its exit code says so", func(t *testing.T) {
		out, code := r.kubectlFleet(t, "migrate", "check")
		assert.Equal(t, 2, code)
		assert.Equal(t, 6, strings.Count(out, "RemovalsHeld: "), out)
		assert.Contains(t, out, "ResourcePlacement/team/mine: RemovalsHeld: the hub agent would let 3 binding(s) go, "+
			"and nothing explains it: put back what is missing, or kubectl fleet migrate accept mine -n team\n")
	})
	t.Run("what is accepted goes, and nothing else", func(t *testing.T) {
		out, code := r.kubectlFleet(t, "migrate", "accept", "team-namespace", "--yes")
		require.Zero(t, code, out)
		for _, binding := range []string{"team-namespace-member-1-31cb2932"} {
			require.NoError(t, access.AwaitGone[placementv1beta1.ClusterResourceBinding](r.ctx, r.hub(), client.ObjectKey{Name: binding}))
		}
		writes.awaitQuiet(r, quiet)
		none(t, writes.matching(func(w write) bool {
			return w.event == watch.Deleted && !strings.HasPrefix(w.after.GetName(), "team-namespace")
		}))
	})
	t.Run("clusters that are put back end the hold of their placements", func(t *testing.T) {
		objects, err := kubefleet.Hub()
		require.NoError(t, err)
		members := identifyAgents(kubefleet.OfKinds(objects, "MemberCluster"))
		require.NoError(t, kubefleet.Restore(r.ctx, r.configs[state.Hub], members))
		for _, name := range []string{"web", "roll", "fixed", "some"} {
			_, err := access.Await(r.ctx, r.hub(), client.ObjectKey{Name: name}, func(p *placementv1beta1.ClusterResourcePlacement) string {
				if held := placementv1beta1.FindTrue(p.Status.Conditions, placementv1beta1.ConditionTypeRemovalsHeld); held != nil {
					return held.Message
				}
				return ""
			})
			require.NoError(t, err)
		}
		none(t, writes.matching(func(w write) bool {
			return w.event == watch.Deleted && !strings.HasPrefix(w.after.GetName(), "team-namespace")
		}))
	})
}

func TestTheFlagLetsGoWhatNothingExplains(t *testing.T) {
	r := newRig(t, 0, "--hold-unexplained-removals=false")
	r.restored = true
	r.load(withoutMembers)
	r.startAgents()
	objects, err := kubefleet.Hub()
	require.NoError(t, err)
	for _, binding := range kubefleet.OfKinds(objects, "ClusterResourceBinding") {
		require.NoError(t, access.AwaitGone[placementv1beta1.ClusterResourceBinding](r.ctx, r.hub(), client.ObjectKey{Name: binding.GetName()}))
	}
}
