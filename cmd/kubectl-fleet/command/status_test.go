package command

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// bindingTo binds placement web to a cluster.
func bindingTo(cluster string, conditions ...metav1.Condition) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}},
		Spec: placementv1beta1.ResourceBindingSpec{
			State: placementv1beta1.BindingStateBound, TargetCluster: cluster, ResourceSnapshotName: "web-4-snapshot", SchedulingPolicySnapshotName: "web-0",
		},
		Status: placementv1beta1.ResourceBindingStatus{Conditions: conditions},
	}
}

// failing is a binding on which a Deployment does not come up.
func failing(cluster string) *placementv1beta1.ClusterResourceBinding {
	binding := bindingTo(cluster, ok("RolloutStarted"), ok("Overridden"), ok("WorkSynchronized"), ok("Applied"),
		metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "NotAllWorkAreAvailable", Message: "Work web-work is not available", LastTransitionTime: ago(90 * time.Second)})
	binding.Status.FailedPlacements = []placementv1beta1.FailedResourcePlacement{{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Condition:          metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "ManifestNotAvailableYet", Message: "1 of 3 replicas is available"},
	}}
	return binding
}

// waitingRun is soakingRun two minutes later, with one canary under way that does not come up.
func waitingRun() *placementv1beta1.ClusterStagedUpdateRun {
	run := soakingRun()
	staging := &run.Status.StagesStatus[0]
	canary := &run.Status.StagesStatus[1]
	start := ago(4 * time.Minute)
	end := ago(95 * time.Second)
	staging.StartTime = &start
	staging.EndTime = &end
	staging.Conditions = append(staging.Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, 95*time.Second))
	staging.AfterStageTaskStatus[0].Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeWaitTimeElapsed, metav1.ConditionTrue, placementv1beta1.ReasonAfterStageTaskWaitTimeElapsed, 95*time.Second)}
	canary.StartTime = &end
	canary.Conditions = []metav1.Condition{inStage(placementv1beta1.ReasonStageUpdatingStarted, 95*time.Second)}
	canary.Clusters[0].Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue, placementv1beta1.ReasonClusterUpdatingStarted, 95*time.Second)}
	return run
}

// finish ends a run well.
func finish(run *placementv1beta1.ClusterStagedUpdateRun) {
	for i := range run.Status.StagesStatus {
		stage := &run.Status.StagesStatus[i]
		end := ago(0)
		stage.EndTime = &end
		for j := range stage.Clusters {
			stage.Clusters[j] = updated(stage.Clusters[j].ClusterName, time.Minute, 30*time.Second)
		}
		for j := range stage.AfterStageTaskStatus {
			done := placementv1beta1.ConditionTypeApprovalRequestApproved
			if stage.AfterStageTaskStatus[j].Type == placementv1beta1.StageTaskTypeTimedWait {
				done = placementv1beta1.ConditionTypeWaitTimeElapsed
			}
			meta.SetStatusCondition(&stage.AfterStageTaskStatus[j].Conditions, condition(done, metav1.ConditionTrue, "Done", 0))
		}
		meta.SetStatusCondition(&stage.Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, 0))
	}
	meta.SetStatusCondition(&run.Status.Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunSucceeded, 0))
}

func TestStatusOfARunIsATree(t *testing.T) {
	approved := soakingRun()
	finish(approved)
	approval := &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "web-5-canary", Labels: map[string]string{placementv1beta1.TargetUpdateRunLabel: "web-5"}},
		Spec:       placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: "web-5", TargetStage: "canary"},
		Status: placementv1beta1.ApprovalRequestStatus{Approval: &placementv1beta1.ApprovalRecord{
			Username: "alice", At: ago(time.Minute), Channel: placementv1beta1.ApprovalChannelKubectl, Verified: true, Comment: "dashboards are green",
		}},
	}
	for file, objects := range map[string][]client.Object{
		"status-run-soaking.txt":  {soakingRun()},
		"status-run-failing.txt":  {waitingRun(), failing("member-2"), bindingTo("member-1")},
		"status-run-approved.txt": {approved, approval},
	} {
		t.Run(file, func(t *testing.T) {
			c := newConsole(t, objects...)
			require.NoError(t, c.run("status", "run/web-5"))
			c.Golden(file)
		})
	}
}

func TestStatusOfAThousandClustersShowsWhatStandsOut(t *testing.T) {
	run := soakingRun()
	canary := &run.Status.StagesStatus[1]
	canary.Clusters = nil
	for i := range 1000 {
		cluster := placementv1beta1.ClusterUpdatingStatus{ClusterName: fmt.Sprintf("edge-%04d", i)}
		switch {
		case i < 400:
			cluster = updated(cluster.ClusterName, time.Minute, time.Second)
		case i < 440:
			cluster.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue, placementv1beta1.ReasonClusterUpdatingStarted, time.Duration(i)*time.Second)}
		}
		canary.Clusters = append(canary.Clusters, cluster)
	}
	canary.Conditions = []metav1.Condition{inStage(placementv1beta1.ReasonStageUpdatingStarted, 3*time.Minute)}
	c := newConsole(t, run)
	require.NoError(t, c.run("status", "web-5"))
	c.Golden("status-run-thousand.txt")
	require.NoError(t, c.run("status", "web-5", "--all"))
	assert.Contains(t, c.Out.String(), "edge-0999")
}

func TestStatusOfAPlacementIsATree(t *testing.T) {
	objects := append(smallFleet(), bindingTo("member-1", ok("Applied"), ok("Available")), failing("member-2"), failing("member-3"))
	c := newConsole(t, objects...)
	require.NoError(t, c.run("status", "crp/web"))
	c.Golden("status-placement.txt")
	require.NoError(t, c.run("status", "placement/config", "-n", "shop", "-o", "json"))
	assert.Contains(t, c.Out.String(), `"name": "placement/shop/config"`)
}

func TestStatusOfAPlacementNamesTheClustersThatLeave(t *testing.T) {
	leaving := bindingTo("member-9", ok("Applied"), ok("Available"))
	leaving.Spec.State = placementv1beta1.BindingStateUnscheduled
	objects := append(smallFleet(), bindingTo("member-1", ok("Applied"), ok("Available")), leaving)
	for _, object := range objects {
		if p, isPlacement := object.(*placementv1beta1.ClusterResourcePlacement); isPlacement && p.Name == "web" {
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
				Type: placementv1beta1.ConditionTypeClustersLeaving, Status: metav1.ConditionTrue, ObservedGeneration: p.Generation,
				Reason: placementv1beta1.ReasonCleaningUp, Message: "What was placed is removed from member-9",
			})
		}
	}
	c := newConsole(t, objects...)
	require.NoError(t, c.run("status", "crp/web"))
	assert.Contains(t, c.Out.String(), "1/2", "a cluster that leaves does not count")
	assert.NotContains(t, c.Out.String(), "─ ✓ member-9", "it is not one of the placement's clusters")
	assert.Regexp(t, `▶ ClustersLeaving +Running +What was placed is removed from member-9`, c.Out.String())
}

func TestStatusOfAPlacementTellsOfWhatIsHeld(t *testing.T) {
	objects := append(smallFleet(), bindingTo("member-1", ok("Applied"), ok("Available")))
	for _, object := range objects {
		if p, isPlacement := object.(*placementv1beta1.ClusterResourcePlacement); isPlacement && p.Name == "web" {
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
				Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: metav1.ConditionTrue, ObservedGeneration: p.Generation,
				Reason: placementv1beta1.ReasonSelectionEmptied, Message: "2 of 2 objects are no longer selected: kubectl fleet migrate accept web",
			})
		}
	}
	c := newConsole(t, objects...)
	require.NoError(t, c.run("status", "crp/web"))
	assert.Regexp(t, `RemovalsHeld +Waiting +2 of 2 objects are no longer selected: kubectl fleet migrate accept web`, c.Out.String())
}

// A pipeline must not go on as if everything were where it should be.
func TestWatchingAPlacementDoesNotEndWhileRemovalsAreHeld(t *testing.T) {
	for held, over := range map[metav1.ConditionStatus]bool{metav1.ConditionTrue: false, metav1.ConditionFalse: true} {
		p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}
		p.Status.Conditions = []metav1.Condition{
			ok("ClusterResourcePlacementScheduled"), ok("ClusterResourcePlacementAvailable"),
			{Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: held, Reason: placementv1beta1.ReasonSelectionEmptied, ObservedGeneration: 1},
		}
		o := &statusOptions{Viewing: base.Viewing{Factory: &cli.Factory{Clock: clock.RealClock{}}}}
		picture := o.makePicture(hub.Found{Placement: new(hub.PlacementOf(p))}, []client.Object{p})
		assert.Equal(t, over, picture.Over, "held: %s", held)
	}
}

func TestStatusSaysWhichObjectItMisses(t *testing.T) {
	twin := soakingRun()
	twin.Name = "web"
	c := newConsole(t, append(smallFleet(), twin)...)
	for sentence, line := range map[string]struct {
		args []string
		err  string
	}{
		"a name of nothing":         {[]string{"status", "shop"}, `there is no run or placement "shop"; kubectl fleet get lists what there is`},
		"a name of two":             {[]string{"status", "web"}, `"web" is ambiguous: say run/web or placement/web`},
		"another kind":              {[]string{"status", "pod/web"}, `"pod/web": "pod" is not a kind this command is about; use run/NAME or placement/NAME`},
		"no name":                   {[]string{"status"}, `kubectl fleet status needs the name of a run or placement, as in: kubectl fleet status run/web-17`},
		"a namespace without it":    {[]string{"status", "run/web", "-n", "shop"}, `there is no run "web" in namespace "shop"; kubectl fleet get lists what there is`},
		"watching as YAML":          {[]string{"status", "run/web", "-w", "-o", "yaml"}, "--watch shows a tree, or with --output json the tree in a line for every change: --output yaml has no lines"},
		"watching for nothing":      {[]string{"status", "run/web", "--until", "stage"}, `--until "stage" is not known: use approval, stage=NAME or done`},
		"an approval of placements": {[]string{"status", "crp/web", "--until", "approval"}, `--until approval is for runs: placement/web is a placement; kubectl fleet get runs lists the runs`},
		"a prefix without its name": {[]string{"status", "run/"}, `"run/": the name is missing behind the slash`},
	} {
		t.Run(sentence, func(t *testing.T) { assert.EqualError(t, c.run(line.args...), line.err) })
	}
}

func TestWatchEndsWithTheRun(t *testing.T) {
	done := soakingRun()
	finish(done)
	c := newConsole(t, done)
	require.NoError(t, c.run("status", "run/web-5", "--watch"))
	c.Golden("status-watch-done.txt")

	failed := soakingRun()
	failed.Status.Conditions = append(failed.Status.Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonUpdateRunFailed, Message: "the policy has changed",
	})
	c = newConsole(t, failed)
	err := c.run("status", "run/web-5", "--watch")
	exit, isExit := errors.AsType[*cli.Exit](err)
	require.True(t, isExit, "%v", err)
	assert.Equal(t, cli.CodeFailed, exit.Code)
	assert.Empty(t, exit.Error(), "the tree has said it")
	assert.Contains(t, c.Out.String(), "the policy has changed")
}
