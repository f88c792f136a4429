//go:build integration

package takeover

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// quiet is how long nothing has to be written until what the agents make of the hub counts as done: longer than the ten seconds
// after which Temporal gives a task to another worker if the first one lost it.
const quiet = 15 * time.Second

func TestALiveKubeFleetIsTakenOver(t *testing.T) {
	r := newRig(t, 3)
	writes := r.takeOver()

	for sentence, check := range map[string]func(*testing.T, *recorder){
		"no object on a member is written":                 nothingOnMembers,
		"no object is deleted":                             nothingDeleted,
		"no binding changes its spec, and none is created": bindingsStay,
		"no snapshot is made for content that has one":     noSnapshots,
		"a placement is as available as before all along":  placementsStayAvailable,
		"a ResourcePlacement is adopted where it is":       namespacedIsAdopted,
		"a run that has ended stays as it is":              endedRunStays,
		"at most two writes are made for each binding":     fewWrites,
		"a placement tells what is true by its first look": fewStatusWrites,
	} {
		t.Run(sentence, func(t *testing.T) { check(t, writes) })
	}
	t.Run("the agents report no errors", func(t *testing.T) { r.requireNoErrors(t) })
	t.Run("a run under way goes on once its request is approved under its old name", r.approveWaitingRun)
	t.Run("a member agent of KubeFleet that begins to work has ours stand back until it ends", func(t *testing.T) { r.beginMemberAgentOfKubeFleet(t, writes) })
	t.Run("what is deleted afterwards goes, here and on the members", r.deletePlacement)
}

// none fails with the writes that should not have been made.
func none(t *testing.T, writes []write) {
	t.Helper()
	for _, w := range writes {
		assert.Fail(t, "an unwanted write", "%s", w)
	}
}

func nothingOnMembers(t *testing.T, r *recorder) {
	none(t, r.matching(func(w write) bool { return w.cluster != state.Hub }))
}

func nothingDeleted(t *testing.T, r *recorder) {
	none(t, r.matching(func(w write) bool {
		return w.event == watch.Deleted || w.before != nil && w.before.GetDeletionTimestamp() == nil && w.after.GetDeletionTimestamp() != nil
	}))
}

func bindingsStay(t *testing.T, r *recorder) {
	none(t, r.matching(func(w write) bool {
		return strings.HasSuffix(w.after.GetKind(), "ResourceBinding") && (w.before == nil || !equality.Semantic.DeepEqual(w.before.Object["spec"], w.after.Object["spec"]))
	}))
}

func noSnapshots(t *testing.T, r *recorder) {
	none(t, r.matching(func(w write) bool { return w.event == watch.Added && strings.HasSuffix(w.after.GetKind(), "Snapshot") }))
}

// placementsStayAvailable compares every status that a placement had meanwhile: what was True stays True. That a member that
// is named has just been heard of nobody knows before its agent reports.
func placementsStayAvailable(t *testing.T, r *recorder) {
	none(t, r.matching(func(w write) bool {
		return isPlacement(w.after) && !isSubset(trueConditions(w.before), trueConditions(w.after))
	}))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, object := range r.objects {
		if isPlacement(object) && object.GetName() != "web" { // of two versions nothing is told
			assert.True(t, trueConditions(object)[object.GetKind()+"Available"], object.GetName())
			assert.True(t, trueConditions(object)[object.GetKind()+"Scheduled"], object.GetName())
		}
	}
}

// isPlacement says whether an object is a placement of either scope.
func isPlacement(object *unstructured.Unstructured) bool {
	return strings.HasSuffix(object.GetKind(), "ResourcePlacement")
}

func isSubset(a, b map[string]bool) bool {
	for key := range a {
		if !b[key] && !strings.HasSuffix(key, "ResourcePlacementScheduled") {
			return false
		}
	}
	return true
}

// trueConditions are the types of the conditions that are True.
func trueConditions(object *unstructured.Unstructured) map[string]bool {
	found := map[string]bool{}
	if object == nil {
		return found
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		if condition := item.(map[string]any); condition["status"] == "True" {
			found[condition["type"].(string)] = true
		}
	}
	return found
}

// namespacedIsAdopted asserts that the Works of the placement in a namespace name their bindings now, and that its selection is
// known. That nothing else is written is what the other checks say of both scopes.
func namespacedIsAdopted(t *testing.T, r *recorder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	signed := 0
	selected := 0
	for _, object := range r.objects {
		switch {
		case object.GetKind() == "Work" && object.GetLabels()[placementv1beta1.ParentNamespaceLabel] == "team":
			assert.NotEmpty(t, object.GetAnnotations()[placementv1beta1.BindingUIDAnnotation], object.GetName())
			signed++
		case object.GetKind() == "ResourcePlacement":
			assert.NotEmpty(t, object.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation], object.GetName())
			selected++
		}
	}
	assert.Equal(t, 3, signed)
	assert.Equal(t, 1, selected)
}

func endedRunStays(t *testing.T, r *recorder) {
	none(t, r.matching(func(w write) bool {
		return w.after.GetKind() == "ClusterStagedUpdateRun" && w.after.GetName() == "web-1"
	}))
}

// fewStatusWrites says that what a placement reports does not come about step by step. How soon it does on a busy machine is
// told, and not judged.
func fewStatusWrites(t *testing.T, r *recorder) {
	began := r.matching(func(write) bool { return true })[0].at
	perPlacement := map[string]int{}
	var last time.Duration
	for _, w := range r.matching(func(w write) bool {
		return isPlacement(w.after) && !equality.Semantic.DeepEqual(w.before.Object["status"], w.after.Object["status"])
	}) {
		perPlacement[w.after.GetName()]++
		last = w.at.Sub(began)
	}
	for _, placement := range slices.Sorted(maps.Keys(perPlacement)) {
		assert.LessOrEqual(t, perPlacement[placement], 3, placement)
	}
	t.Logf("writes of the status of each placement: %v, the last one %s after the first write of all", perPlacement, last)
}

func fewWrites(t *testing.T, r *recorder) {
	perBinding := map[string]int{}
	for _, w := range r.matching(func(w write) bool { return w.cluster == state.Hub }) {
		switch w.after.GetKind() {
		case "ClusterResourceBinding", "ResourceBinding":
			perBinding[w.after.GetName()]++
		case "Work":
			perBinding[w.after.GetLabels()[placementv1beta1.ParentBindingLabel]]++
		}
	}
	for _, binding := range slices.Sorted(maps.Keys(perBinding)) {
		assert.LessOrEqual(t, perBinding[binding], 2, binding)
	}
	t.Log("writes for each binding and its Works:", perBinding)
}

// harmless are errors that say only that an agent was there before another one.
var harmless = []string{"is forbidden", "Failed to watch", "Unauthorized"}

// requireNoErrors reads the logs of the agents.
func (r *rig) requireNoErrors(t *testing.T) {
	for _, agent := range controlplane.AgentNames(r.fleet) {
		file, err := os.Open(r.fleet.LogFile(agent))
		require.NoError(t, err)
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			line := lines.Text()
			if strings.Contains(strings.ToLower(line), `"level":"error"`) && !slices.ContainsFunc(harmless, func(text string) bool { return strings.Contains(line, text) }) {
				assert.Fail(t, "an error in a log", "%s: %s", agent, line)
			}
		}
	}
}

func (r *rig) approveWaitingRun(t *testing.T) {
	request := &placementv1beta1.ClusterApprovalRequest{}
	require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Name: "web-2-after-canary"}, request))
	require.Empty(t, request.Status.Conditions)
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Name: "web-2"}, run))
	require.Nil(t, meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded), "it is under way")

	meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue, Reason: "lgtm", Message: "lgtm", ObservedGeneration: request.Generation,
	})
	require.NoError(t, r.hub().Status().Update(r.ctx, request))
	_, err := access.Await(r.ctx, r.hub(), client.ObjectKey{Name: "web-2"}, func(run *placementv1beta1.ClusterStagedUpdateRun) string {
		if meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded) {
			return ""
		}
		return fmt.Sprintf("%+v", run.Status.Conditions)
	})
	require.NoError(t, err)
	for _, member := range r.fleet.MemberNames() {
		settings := &corev1.ConfigMap{}
		require.NoError(t, r.clients[member].Get(r.ctx, client.ObjectKey{Namespace: "web", Name: "settings"}, settings))
		assert.Equal(t, "green", settings.Data["color"], member)
	}
}

// deletePlacement deletes a placement on two of the members, where Kubernetes' own controllers run from now on.
func (r *rig) deletePlacement(t *testing.T) {
	members := []string{"member-1", "member-3"}
	for _, member := range members {
		require.NoError(t, r.processes.Do(r.ctx, control.Request{Verb: control.Start, Component: member + "/controller-manager"}))
	}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}
	require.NoError(t, r.hub().Delete(r.ctx, placement))
	require.NoError(t, access.AwaitGone[placementv1beta1.ClusterResourcePlacement](r.ctx, r.hub(), client.ObjectKeyFromObject(placement)))
	of := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "fixed"}
	for _, list := range []client.ObjectList{
		&placementv1beta1.ClusterResourceBindingList{}, &placementv1beta1.WorkList{},
		&placementv1beta1.ClusterResourceSnapshotList{}, &placementv1beta1.ClusterSchedulingPolicySnapshotList{},
	} {
		require.NoError(t, r.hub().List(r.ctx, list, of))
		assert.Zero(t, meta.LenList(list), "%T", list)
	}
	for _, member := range members {
		require.NoError(t, access.AwaitGone[corev1.Namespace](r.ctx, r.clients[member], client.ObjectKey{Name: "fixed"}))
		require.NoError(t, access.AwaitGone[placementv1beta1.AppliedWork](r.ctx, r.clients[member], client.ObjectKey{Name: "fixed-work"}))
	}
}

// beginMemberAgentOfKubeFleet has KubeFleet's agent take its lease on a member, then changes what is placed there.
func (r *rig) beginMemberAgentOfKubeFleet(t *testing.T, writes *recorder) {
	const member = "member-2"
	renewed := metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: kubefleet.MemberAgentLease.Namespace, Name: kubefleet.MemberAgentLease.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("member-agent-0"), RenewTime: &renewed, LeaseDurationSeconds: new(int32(3600))},
	}
	require.NoError(t, r.clients[member].Create(r.ctx, lease))
	require.Eventually(t, func() bool {
		return strings.Contains(r.readyz(controlplane.MemberAgent(member)), "KubeFleet's member agent (member-agent-0) runs here")
	}, patience, 100*time.Millisecond, "it ends, and stands back when it is started again")

	stoodBack := time.Now()
	settings := &corev1.ConfigMap{}
	require.NoError(t, r.hub().Get(r.ctx, client.ObjectKey{Namespace: "roll", Name: "settings"}, settings))
	settings.Data["size"] = "large"
	require.NoError(t, r.hub().Update(r.ctx, settings))
	_, err := access.Await(r.ctx, r.hub(), client.ObjectKey{Namespace: placementv1beta1.MemberNamespace(member), Name: "roll-work"}, func(work *placementv1beta1.Work) string {
		if work.Generation > 1 {
			return ""
		}
		return "it is as it was"
	})
	require.NoError(t, err)
	wentOn := time.Now()
	require.NoError(t, r.clients[member].Delete(r.ctx, lease))
	_, err = access.Await(r.ctx, r.clients[member], client.ObjectKeyFromObject(settings), func(placed *corev1.ConfigMap) string {
		if placed.Data["size"] == "large" {
			return ""
		}
		return "it is as it was"
	})
	require.NoError(t, err)
	none(t, writes.matching(func(w write) bool {
		ofMember := w.cluster == member || w.after.GetKind() == "InternalMemberCluster" && w.after.GetName() == member
		return ofMember && w.at.After(stoodBack) && w.at.Before(wentOn)
	}))
}

// readyz is what an agent says of its readiness; empty if it does not answer.
func (r *rig) readyz(agent string) string {
	response, err := http.Get("http://" + r.fleet.Address(agent+"/health") + "/readyz")
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body) // what is cut off is looked at again
	return string(body)
}
