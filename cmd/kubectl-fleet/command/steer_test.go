package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// waitingAtCanary waits at the approval after its second stage.
func waitingAtCanary() (*placementv1beta1.ClusterStagedUpdateRun, *placementv1beta1.ClusterApprovalRequest) {
	run := soakingRun()
	for i := range run.Status.StagesStatus[1].Clusters {
		run.Status.StagesStatus[1].Clusters[i] = updated(run.Status.StagesStatus[1].Clusters[i].ClusterName, 2*time.Minute, time.Minute)
	}
	run.Status.StagesStatus[1].AfterStageTaskStatus[0].Conditions = []metav1.Condition{
		condition(placementv1beta1.ConditionTypeApprovalRequestCreated, metav1.ConditionTrue, placementv1beta1.ReasonAfterStageTaskApprovalRequestCreated, time.Minute),
	}
	request := &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "web-5-canary", UID: "uid-canary", Generation: 1, Annotations: map[string]string{placementv1beta1.ApprovalRunUIDAnnotation: "run-uid"}},
		Spec:       placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: "web-5", TargetStage: "canary"},
	}
	return run, request
}

func get[T client.Object](c *console, object T, name string) T {
	c.T.Helper()
	require.NoError(c.T, c.Hub.Get(c.T.Context(), client.ObjectKey{Name: name}, object))
	return object
}

func TestApprove(t *testing.T) {
	t.Run("sets the condition, with the comment", func(t *testing.T) {
		run, request := waitingAtCanary()
		c := newConsole(t, run, request)
		require.NoError(t, c.run("approve", "web-5", "--comment", "fine"))
		assert.Equal(t, "stage canary of run/web-5 approved\n", c.Out.String())
		status := get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status
		approved := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeApproved)
		require.NotNil(t, approved)
		assert.Equal(t, &placementv1beta1.ApprovalRecord{
			Username: "jane", At: approved.LastTransitionTime, Channel: placementv1beta1.ApprovalChannelKubectl, Verified: true, Comment: "fine",
		}, status.Approval, "for an API server that cannot note it by itself")
		assert.Equal(t, metav1.ConditionTrue, approved.Status)
		assert.Equal(t, "fine", approved.Message)
		assert.EqualValues(t, 1, approved.ObservedGeneration)

		require.NoError(t, c.run("approve", "web-5"), "approving twice does no harm")
		assert.Contains(t, c.Out.String(), "is approved already")
	})
	t.Run("counts for the plan that it has looked at", func(t *testing.T) {
		run, request := waitingAtCanary()
		run.Status.PlanHash = "sha256:" + strings.Repeat("0123456789abcdef", 4)
		run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-4", Action: placementv1beta1.ClusterActionSkip, Attempt: 1}}
		c := newConsole(t, run, request)
		now := planhash.Effective(run, "canary")
		require.ErrorContains(t, c.run("approve", "web-5", "--plan", run.Status.PlanHash), fmt.Sprintf("the plan of run/web-5 is %q, not %q: look at it again", now, run.Status.PlanHash))
		require.NoError(t, c.run("approve", "web-5", "--plan", now[:len("sha256:")+12]))
		assert.Equal(t, now, get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status.Approval.PlanHash)
	})
	t.Run("by the plan that kubectl fleet plan shows of the run", func(t *testing.T) {
		run, request := waitingAtCanary()
		run.Status.PlanHash = "sha256:" + strings.Repeat("0123456789abcdef", 4)
		run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-4", Action: placementv1beta1.ClusterActionSkip, Attempt: 1}}
		now := planhash.Effective(run, "canary")
		c := newConsole(t, append(release(), run, request)...)
		require.NoError(t, c.run("plan", "web-5"))
		assert.Contains(t, c.Out.String(), "! stage canary waits for an approval of plan "+planhash.Short(now)+": kubectl fleet approve run/web-5 --plan "+planhash.Short(now)+"\n")
		require.NoError(t, c.run("plan", "web-5", "-o", "json"))
		var made struct {
			PlanHash string
			Outline  *planhash.Outline
		}
		require.NoError(t, json.Unmarshal(c.Out.Bytes(), &made))
		assert.Equal(t, now, made.PlanHash)
		assert.Nil(t, made.Outline, "no run can follow it")
		require.NoError(t, c.run("approve", "web-5", "--plan", made.PlanHash))
	})
	t.Run("by the first digits of a plan, as they are shown", func(t *testing.T) {
		run, request := waitingAtCanary()
		run.Status.PlanHash = "sha256:" + strings.Repeat("0123456789abcdef", 4)
		c := newConsole(t, run, request)
		require.ErrorContains(t, c.run("approve", "web-5", "--plan", "0123456789a"), `not "sha256:0123456789a"`)
		require.NoError(t, c.run("approve", "web-5", "--plan", planhash.Short(run.Status.PlanHash)))
	})
	t.Run("by no plan if the hub does not say who approves", func(t *testing.T) {
		run, request := waitingAtCanary()
		run.Status.PlanHash = "sha256:" + strings.Repeat("0123456789abcdef", 4)
		c := newConsole(t, run, request)
		c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
			Create: func(ctx context.Context, hub client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if _, is := object.(*authenticationv1.SelfSubjectReview); is {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectreviews"}, "", nil)
				}
				return hub.Create(ctx, object, options...)
			},
		})
		require.ErrorContains(t, c.run("approve", "web-5", "--plan", run.Status.PlanHash), "the approval cannot name its plan")
		assert.Empty(t, get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status.Conditions)
		require.NoError(t, c.run("approve", "web-5"))
		assert.Contains(t, c.Err.String(), "the approval cannot name its plan")
		assert.Nil(t, get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status.Approval)
	})
	t.Run("takes the name of the request, as KubeFleet's plugin does", func(t *testing.T) {
		for _, args := range [][]string{
			{"approve", "clusterapprovalrequest", "--hub-cluster-context", "", "--name", "web-5-canary", "--timeout", "5m"}, {"approve", "careq/web-5-canary"},
		} {
			run, request := waitingAtCanary()
			c := newConsole(t, run, request)
			require.NoError(t, c.run(args...))
			assert.Equal(t, "stage canary of run/web-5 approved\n", c.Out.String())
		}
		assert.ErrorContains(t, newConsole(t).run("approve", "careq", "--name", "nothing"), `there is no approval request "nothing"`)
		assert.ErrorContains(t, newConsole(t).run("approve", "web-5", "--name", "web-5-canary"), "kubectl fleet approve clusterapprovalrequest --name web-5-canary")
	})
	t.Run("changes nothing on a dry run", func(t *testing.T) {
		run, request := waitingAtCanary()
		c := newConsole(t, run, request)
		require.NoError(t, c.run("approve", "web-5", "--dry-run"))
		assert.Equal(t, "stage canary of run/web-5 approved (dry run)\n", c.Out.String())
		assert.Empty(t, get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status.Conditions)
	})
	t.Run("refuses", func(t *testing.T) {
		run, request := waitingAtCanary()
		leftover := request.DeepCopy()
		leftover.Annotations[placementv1beta1.ApprovalRunUIDAnnotation] = "another"
		over, _ := waitingAtCanary()
		over.Status.Conditions = append(over.Status.Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, "x", 0))
		for sentence, try := range map[string]struct {
			objects []client.Object
			args    []string
			want    string
		}{
			"a stage that the run does not wait at": {[]client.Object{run, request}, []string{"approve", "web-5", "--stage", "staging"}, `does not wait for an approval of stage "staging" but of canary`},
			"a run that does not wait yet":          {[]client.Object{soakingRun()}, []string{"approve", "web-5"}, "it will for stage canary"},
			"a request of an earlier run":           {[]client.Object{run, leftover}, []string{"approve", "web-5"}, "is of an earlier run/web-5"},
			"a request that is gone":                {[]client.Object{run}, []string{"approve", "web-5"}, "is gone"},
			"a run that has ended":                  {[]client.Object{over, request}, []string{"approve", "web-5"}, "has ended (succeeded)"},
		} {
			t.Run(sentence, func(t *testing.T) {
				assert.ErrorContains(t, newConsole(t, try.objects...).run(try.args...), try.want)
			})
		}
	})
}

func TestStopAndResume(t *testing.T) {
	c := newConsole(t, soakingRun())
	require.NoError(t, c.run("stop", "run/web-5"))
	assert.Equal(t, placementv1beta1.StateStop, get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.State)
	require.NoError(t, c.run("stop", "web-5"))
	assert.Equal(t, "run/web-5 is stopped already\n", c.Out.String())
	require.NoError(t, c.run("resume", "web-5"))
	assert.Equal(t, placementv1beta1.StateRun, get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.State)
}

func TestPauseAndPartition(t *testing.T) {
	rolling := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web", Generation: 1}}
	c := newConsole(t, rolling)
	stored := func() placementv1beta1.RollingUpdateConfig {
		return rules.RollingUpdateOf(get(c, &placementv1beta1.ClusterResourcePlacement{}, "web"))
	}
	require.NoError(t, c.run("pause", "web", "--dry-run"))
	assert.False(t, stored().Paused)
	require.NoError(t, c.run("pause", "web"))
	assert.Equal(t, "placement/web paused\n", c.Out.String())
	assert.True(t, stored().Paused)
	require.NoError(t, c.run("pause", "placement/web"))
	assert.Equal(t, "placement/web is paused already\n", c.Out.String())

	require.NoError(t, c.run("partition", "web", "50%"))
	assert.Equal(t, "partition of placement/web set to 50%\n", c.Out.String())
	require.NoError(t, c.run("partition", "web", "50%"))
	assert.Equal(t, "the partition of placement/web is 50% already\n", c.Out.String())
	assert.True(t, stored().Paused, "one setting leaves the other")
	require.NoError(t, c.run("partition", "web", "3"))
	assert.Equal(t, "3", stored().Partition.String())
	for _, bad := range []string{"101%", "many", "1.5"} {
		require.ErrorContains(t, c.run("partition", "web", bad), "is no partition: give a number of clusters, or a percentage from 0% to 100%")
	}
	require.ErrorContains(t, c.run("partition", "web"), "as in: kubectl fleet partition web 3")

	require.NoError(t, c.run("resume", "placement/web"))
	assert.Equal(t, "placement/web resumed\n", c.Out.String())
	assert.False(t, stored().Paused)
	require.NoError(t, c.run("resume", "web"))
	assert.Equal(t, "placement/web is not paused\n", c.Out.String())

	c = newConsole(t, externalPlacement())
	require.ErrorContains(t, c.run("pause", "web"), "is rolled out by update runs: stop and resume its run instead")
}

func TestEvictAndReplace(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web", Generation: 1},
		Spec:       placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(1))}},
	}
	binding := bindingTo("member-1")
	c := newConsole(t, placement, binding)
	label := func() string {
		return get(c, &placementv1beta1.ClusterResourceBinding{}, binding.Name).Labels[placementv1beta1.SpecifiedDeleteLabel]
	}
	require.ErrorContains(t, c.run("evict", "web", "member-9", "--replace"), "placement/web is not on member-9")
	require.ErrorContains(t, c.run("evict", "web", "member-1", "--replace"), "no terminal to ask on")
	require.NoError(t, c.run("evict", "web", "member-1", "--replace", "--dry-run"))
	assert.Empty(t, label())
	require.NoError(t, c.run("evict", "web", "member-1", "--replace", "--yes"))
	assert.Equal(t, "placement/web on member-1 is to be replaced\n", c.Out.String())
	assert.Equal(t, "true", label())
	require.NoError(t, c.run("evict", "web", "member-1", "--replace"))
	assert.Equal(t, "placement/web on member-1 is to be replaced already\n", c.Out.String())

	placement.Spec.Policy = nil
	placement.ResourceVersion = ""
	c = newConsole(t, placement, bindingTo("member-1"))
	require.ErrorContains(t, c.run("evict", "web", "member-1", "--replace", "--yes"), "wants every matching cluster: use a taint, or an eviction without --replace")
}

func TestOfANamespacedPlacementWhatItHasLeftBehindCanBeEvicted(t *testing.T) {
	placement := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", Generation: 1}}
	of := func(cluster string) *placementv1beta1.ResourceBinding {
		return &placementv1beta1.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-" + cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}},
			Spec:       placementv1beta1.ResourceBindingSpec{State: placementv1beta1.BindingStateBound, TargetCluster: cluster},
		}
	}
	left := of("member-1")
	left.Spec.State = placementv1beta1.BindingStateUnscheduled
	left.Annotations = map[string]string{placementv1beta1.SupersededAnnotation: "2026-01-31T12:00:00Z"}
	c := newConsole(t, placement, left, of("member-2"))
	there := func() (names []string) {
		list := &placementv1beta1.ResourceBindingList{}
		require.NoError(t, c.Hub.List(t.Context(), list))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	require.ErrorContains(t, c.run("evict", "-n", "shop", "web", "member-2", "--yes"), "is namespaced: evictions are for ClusterResourcePlacements, and for what a placement has left behind")
	require.ErrorContains(t, c.run("evict", "-n", "shop", "web", "member-1"), "no terminal to ask on")
	require.NoError(t, c.run("evict", "-n", "shop", "web", "member-1", "--dry-run"))
	assert.Len(t, there(), 2)
	require.NoError(t, c.run("evict", "-n", "shop", "web", "member-1", "--yes"))
	assert.Equal(t, []string{"web-member-2"}, there())
	assert.Equal(t, "what placement/shop/web had left on member-1 is being removed\n", c.Out.String())
}

func TestSuspendAndUnsuspend(t *testing.T) {
	for _, placement := range []*placementv1beta1.ClusterResourcePlacement{
		{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web", Generation: 1}}, externalPlacement(),
	} {
		c := newConsole(t, placement)
		stored := func() *placementv1beta1.Suspension {
			return rules.StrategyOf(get(c, &placementv1beta1.ClusterResourcePlacement{}, "web")).Suspension
		}
		require.NoError(t, c.run("suspend", "web", "--dry-run"))
		assert.Nil(t, stored())
		require.NoError(t, c.run("suspend", "web", "member-3", "member-1"))
		assert.Equal(t, "placement/web suspended on member-3, member-1\n", c.Out.String())
		require.NoError(t, c.run("suspend", "placement/web", "member-1"))
		assert.Equal(t, "placement/web is suspended already on member-1\n", c.Out.String())
		require.NoError(t, c.run("suspend", "web", "member-1", "member-2"))
		assert.Equal(t, &placementv1beta1.Suspension{ClusterNames: []string{"member-1", "member-2", "member-3"}}, stored())

		require.NoError(t, c.run("unsuspend", "web", "member-9"))
		assert.Equal(t, "placement/web is not suspended on member-9\n", c.Out.String())
		require.NoError(t, c.run("unsuspend", "web", "member-2"))
		assert.Equal(t, &placementv1beta1.Suspension{ClusterNames: []string{"member-1", "member-3"}}, stored())
		require.NoError(t, c.run("suspend", "web"))
		assert.Equal(t, "placement/web suspended on all clusters\n", c.Out.String())
		assert.Equal(t, &placementv1beta1.Suspension{All: true}, stored())
		require.ErrorContains(t, c.run("unsuspend", "web", "member-1"), "is suspended on all clusters: name those that stay suspended instead")
		require.NoError(t, c.run("unsuspend", "web"))
		assert.Equal(t, "placement/web unsuspended on all clusters\n", c.Out.String())
		assert.Nil(t, stored())
		require.ErrorContains(t, c.run("suspend"), "needs a placement, as in: kubectl fleet suspend web member-3")
	}
}

func TestSkipAndRetry(t *testing.T) {
	c := newConsole(t, soakingRun())
	require.ErrorContains(t, c.run("skip", "web-5", "member-9"), `no cluster "member-9"`)
	require.ErrorContains(t, c.run("skip", "web-5", "member-3"), "no terminal to ask on")
	c.Stdin = "n\n"
	require.ErrorIs(t, c.run("skip", "web-5", "member-3"), cli.ErrDeclined)
	require.NoError(t, c.run("skip", "web-5", "member-3", "--yes"))
	require.NoError(t, c.run("retry", "web-5", "member-3", "member-2"))
	require.NoError(t, c.run("retry", "web-5", "member-3"))
	assert.Equal(t, []placementv1beta1.ClusterAction{
		{Cluster: "member-3", Action: placementv1beta1.ClusterActionRetry, Attempt: 3},
		{Cluster: "member-2", Action: placementv1beta1.ClusterActionRetry, Attempt: 1},
	}, get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.ClusterActions)
}

func TestNothingIsAskedForThatARunDoesNotDoAnyMore(t *testing.T) {
	gaveUp := func() client.Object {
		run := soakingRun()
		c := &run.Status.StagesStatus[0].Clusters[0]
		c.Conditions = []metav1.Condition{{Type: "Succeeded", Status: metav1.ConditionFalse, Reason: "ClusterUpdatingFailed"}}
		return run
	}
	for sentence, try := range map[string]struct {
		run  client.Object
		args []string
		want string
	}{
		"a cluster that is updated is not skipped": {soakingRun(), []string{"skip", "web-5", "member-1", "--yes"},
			"run/web-5 has updated member-1 already: there is nothing to skip"},
		"nor retried": {soakingRun(), []string{"retry", "web-5", "member-1"},
			"run/web-5 has updated member-1 already: there is nothing to retry"},
		"nor if it is named twice": {soakingRun(), []string{"retry", "web-5", "member-1", "member-1"},
			"run/web-5 has updated member-1 already: there is nothing to retry"},
		"one that was given up is not retried while its stage soaks": {gaveUp(), []string{"retry", "web-5", "member-1"},
			"run/web-5 has gone on without member-1, as stage staging is over or soaks: what was written to the cluster stays, and " +
				"a new run takes it along, as with kubectl fleet run placement/web"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, try.run)
			require.EqualError(t, c.run(try.args...), try.want)
			assert.Empty(t, get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.ClusterActions)
		})
	}
}

func TestOneClusterThatIsUpdatedMeanwhileDoesNotKeepTheOthersFromAnotherTry(t *testing.T) {
	c := newConsole(t, soakingRun())
	require.NoError(t, c.run("retry", "web-5", "member-1", "member-3"))
	assert.Contains(t, c.Err.String(), "Warning: run/web-5 has updated member-1 already: there is nothing to retry")
	assert.Equal(t, []placementv1beta1.ClusterAction{{Cluster: "member-3", Action: placementv1beta1.ClusterActionRetry, Attempt: 1}},
		get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.ClusterActions)
}

func TestRollback(t *testing.T) {
	c := newConsole(t, soakingRun())
	c.Stdin = "y\n"
	require.NoError(t, c.run("rollback", "web-5"))
	assert.Contains(t, c.Err.String(), "run/web-5 has not ended and will be. Take 1 of 3 clusters")
	back := get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5-rollback")
	assert.Equal(t, placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful", RollbackOf: "web-5", State: placementv1beta1.StateRun}, back.Spec)

	long := soakingRun()
	long.Name = strings.Repeat("w", 63)
	c = newConsole(t, long)
	require.NoError(t, c.run("rollback", long.Name, "--yes"))
	get(c, &placementv1beta1.ClusterStagedUpdateRun{}, placementv1beta1.RollbackName(long.Name, long.UID))

	fresh := soakingRun()
	fresh.Status.StagesStatus = nil
	assert.ErrorContains(t, newConsole(t, fresh).run("rollback", "web-5", "--yes"), "nothing to roll back")

	taken := soakingRun()
	taken.Spec.RollbackOf = "web-4"
	assert.ErrorContains(t, newConsole(t, taken).run("rollback", "web-5", "--yes"), "is a rollback itself, of web-4: kubectl fleet run with --index brings what it took back")
}

func externalPlacement() *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web"},
		Spec:       placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}},
	}
}

func TestRun(t *testing.T) {
	rolling := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "rolling"}}
	careful := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "careful"}}
	c := newConsole(t, externalPlacement(), rolling, soakingRun(), careful, snapshotOf(3))
	require.NoError(t, c.run("run", "web", "--strategy", "careful", "--index", "3"))
	assert.Contains(t, c.Err.String(), "Warning: run/web-5 of the same placement is not over")
	assert.Equal(t, "run/web-6 created\n", c.Out.String())
	assert.Equal(t, placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful", ResourceSnapshotIndex: "3", State: placementv1beta1.StateRun},
		get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-6").Spec)
	require.NoError(t, c.run("run", "web", "--strategy", "careful", "--initialize", "--name", "later"))
	assert.Equal(t, placementv1beta1.StateInitialize, get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "later").Spec.State)
	require.EqualError(t, c.run("run", "web", "--strategy", "reckless", "--name", "typo"), `there is no ClusterStagedUpdateStrategy named "reckless": nothing was created`)
	require.EqualError(t, c.run("run", "web", "--strategy", "careful", "--index", "99", "--name", "typo"),
		"a run would fail, and was not created: placement/web has no resource snapshot 99: kubectl fleet history placement/web lists them")
	require.Error(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "typo"}, &placementv1beta1.ClusterStagedUpdateRun{}))
	require.ErrorContains(t, c.run("run", "web"), "--strategy is missing")
	require.ErrorContains(t, c.run("run", "rolling", "--strategy", "careful"), "rolls out by itself")
}

func TestCordonAndUncordon(t *testing.T) {
	other := member("member-2", time.Second)
	other.Spec.Taints = []clusterv1beta1.Taint{{Key: "mine", Effect: "NoSchedule"}}
	c := newConsole(t, other)
	require.NoError(t, c.run("cordon", "member-2"))
	require.NoError(t, c.run("cordon", "member-2"))
	assert.Equal(t, "member/member-2 is cordoned already\n", c.Out.String())
	assert.Len(t, get(c, &clusterv1beta1.MemberCluster{}, "member-2").Spec.Taints, 2)
	require.NoError(t, c.run("uncordoncluster", "--hub-cluster-context", "", "--cluster-name", "member-2", "--timeout", "5m"), "as KubeFleet's plugin has it")
	assert.Equal(t, other.Spec.Taints, get(c, &clusterv1beta1.MemberCluster{}, "member-2").Spec.Taints)
	assert.ErrorContains(t, c.run("cordon"), "needs the name of a member")
}

func bound(placement, cluster string) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: placement + "-" + cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement}},
		Spec:       placementv1beta1.ResourceBindingSpec{State: placementv1beta1.BindingStateBound, TargetCluster: cluster},
	}
}

func TestAReasonIsKeptOnRecord(t *testing.T) {
	run := soakingRun()
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident", UID: "hold-uid"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"}}
	c := newConsole(t, append(release(), run, hold)...)
	reasonOn := func(object client.Object) string { return object.GetAnnotations()[placementv1beta1.ReasonAnnotation] }
	for _, refused := range []string{"", " ", strings.Repeat("x", rules.MaxReason+1)} {
		require.ErrorContains(t, c.run("skip", "web-5", "member-3", "--yes", "--reason", refused), "kept on record")
	}
	require.NoError(t, c.run("skip", "web-5", "member-3", "--yes", "--reason", " it is being repaired "))
	assert.Equal(t, "it is being repaired", reasonOn(get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5")))
	require.NoError(t, c.run("rollback", "web-5", "--yes", "--reason", "errors"))
	assert.Equal(t, "errors", reasonOn(get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5-rollback")))

	require.NoError(t, c.run("evict", "web", "member-1", "--yes", "--timeout", "0", "--reason", "errors"))
	var evictions placementv1beta1.ClusterResourcePlacementEvictionList
	require.NoError(t, c.Hub.List(t.Context(), &evictions))
	require.Len(t, evictions.Items, 1)
	assert.Equal(t, "errors", reasonOn(&evictions.Items[0]))
	require.EqualError(t, c.run("evict", "web", "member-1", "--yes", "--replace", "--reason", "errors"), "--replace marks a binding, on which no reason is kept: leave out --reason")

	require.NoError(t, c.run("release", "incident", "--yes", "--reason", "errors", "--dry-run"))
	assert.Empty(t, reasonOn(get(c, &fleetflowv1alpha1.RolloutHold{}, "incident")))
	noted := ""
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{Delete: func(ctx context.Context, in client.WithWatch, o client.Object, options ...client.DeleteOption) error {
		noted = reasonOn(get(c, &fleetflowv1alpha1.RolloutHold{}, o.GetName()))
		return in.Delete(ctx, o, options...)
	}})
	require.NoError(t, c.run("release", "incident", "--yes", "--reason", "payments are back"))
	assert.Equal(t, "payments are back", noted, "it is written before the hold goes, for the audit log")
	assert.Error(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "incident"}, hold))
}

// decide gives every eviction an outcome as it is created.
func decide(c *console, conditions ...metav1.Condition) {
	watcher, err := c.Hub.Watch(c.T.Context(), &placementv1beta1.ClusterResourcePlacementEvictionList{})
	require.NoError(c.T, err)
	c.T.Cleanup(watcher.Stop)
	go func() {
		for event := range watcher.ResultChan() {
			eviction, is := event.Object.(*placementv1beta1.ClusterResourcePlacementEviction)
			if !is || eviction.Ended() {
				continue
			}
			eviction = eviction.DeepCopy()
			eviction.Status.Conditions = conditions
			_ = c.Hub.Update(c.T.Context(), eviction)
		}
	}()
}

func TestEvict(t *testing.T) {
	executed := func(status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: placementv1beta1.ConditionTypeExecuted, Status: status, Reason: "x", Message: message}
	}
	t.Run("that is executed", func(t *testing.T) {
		c := newConsole(t, externalPlacement())
		decide(c, executed(metav1.ConditionTrue, "Eviction is allowed"))
		require.NoError(t, c.run("evict", "web", "member-1", "--yes"))
		assert.Contains(t, c.Out.String(), "Eviction is allowed")
	})
	t.Run("that is blocked fails", func(t *testing.T) {
		c := newConsole(t, externalPlacement())
		decide(c, executed(metav1.ConditionFalse, "Eviction is blocked"))
		var exit *cli.Exit
		require.ErrorAs(t, c.run("evict", "web", "member-1", "--yes"), &exit)
		assert.Equal(t, cli.CodeFailed, exit.Code)
		assert.Contains(t, c.Out.String(), "Eviction is blocked")
	})
	t.Run("that nobody decides", func(t *testing.T) {
		c := newConsole(t, externalPlacement())
		var exit *cli.Exit
		require.ErrorAs(t, c.run("evict", "web", "member-1", "--yes", "--timeout", "1ms"), &exit)
		assert.Equal(t, cli.CodeTimeout, exit.Code)
		assert.Regexp(t, `has no outcome after 1ms: it stays pending and may still be executed; kubectl delete crpe \S+ withdraws it$`, exit.Error())
	})
}

func TestDrain(t *testing.T) {
	fixed := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "fixed"},
		Spec:       placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType}},
	}
	objects := []client.Object{member("member-1", time.Second), externalPlacement(), bound("web", "member-1"), bound("elsewhere", "member-2")}
	allowed := metav1.Condition{Type: placementv1beta1.ConditionTypeExecuted, Status: metav1.ConditionTrue, Reason: "x", Message: "allowed"}
	t.Run("evicts what is there", func(t *testing.T) {
		c := newConsole(t, objects...)
		decide(c, allowed)
		require.NoError(t, c.run("drain", "member-1", "--yes"))
		assert.Equal(t, "member/member-1 cordoned\nplacement/web evicted\nmember/member-1 drained\n", c.Out.String())
		assert.Len(t, get(c, &clusterv1beta1.MemberCluster{}, "member-1").Spec.Taints, 1)
	})
	t.Run("says what cannot be evicted", func(t *testing.T) {
		c := newConsole(t, append(objects, fixed, bound("fixed", "member-1"))...)
		decide(c, allowed)
		assert.ErrorContains(t, c.run("draincluster", "--hub-cluster-context", "", "--cluster-name", "member-1", "--yes"), "placement/fixed: it names its clusters (PickFixed)")
	})
	t.Run("asks, unless it is called as KubeFleet's plugin is", func(t *testing.T) {
		for sentence, line := range map[string]struct {
			args []string
			asks bool
		}{
			"our verb":                       {[]string{"drain", "member-1"}, true},
			"our verb with KubeFleet's flag": {[]string{"drain", "--cluster-name", "member-1"}, true},
			"KubeFleet's verb in our way":    {[]string{"draincluster", "member-1"}, true},
			"KubeFleet's verb":               {[]string{"draincluster", "--hub-cluster-context", "", "--cluster-name", "member-1", "--timeout", "5m"}, false},
			"with its flags in camel case":   {[]string{"draincluster", "--hubClusterContext", "", "--clusterName", "member-1"}, false},
		} {
			t.Run(sentence, func(t *testing.T) {
				c := newConsole(t, objects...)
				decide(c, allowed)
				err := c.run(line.args...)
				if line.asks {
					require.ErrorContains(t, err, "there is no terminal to ask on")
					assert.Empty(t, get(c, &clusterv1beta1.MemberCluster{}, "member-1").Spec.Taints)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, "member/member-1 cordoned\nplacement/web evicted\nmember/member-1 drained\n", c.Out.String())
			})
		}
	})
	t.Run("changes nothing on a dry run", func(t *testing.T) {
		c := newConsole(t, objects...)
		require.NoError(t, c.run("drain", "member-1", "--dry-run"))
		assert.Equal(t, "member/member-1 cordoned (dry run)\nplacement/web evicted (dry run)\nmember/member-1 drained (dry run)\n", c.Out.String())
		assert.Empty(t, get(c, &clusterv1beta1.MemberCluster{}, "member-1").Spec.Taints)
	})
}

// The status of a run that is under way is written all the time: between a look and a write, too.
func TestASteeredRunMayGetAheadButNotBecomeAnother(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*placementv1beta1.ClusterStagedUpdateRun)
		err    string
	}{
		"its status was written":  {change: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Annotations = map[string]string{"as": "good as"} }},
		"another user changed it": {change: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Generation++ }, err: "changing run/web-5: it has been changed in the meantime"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, soakingRun())
			first := true
			c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{Patch: func(ctx context.Context, hub client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if first {
					first = false
					run := &placementv1beta1.ClusterStagedUpdateRun{}
					require.NoError(t, hub.Get(ctx, client.ObjectKeyFromObject(object), run))
					test.change(run)
					require.NoError(t, hub.Update(ctx, run))
				}
				return hub.Patch(ctx, object, patch, options...)
			}})
			err := c.run("skip", "web-5", "member-3", "--yes")
			actions := get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.ClusterActions
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				assert.Empty(t, actions)
				return
			}
			require.NoError(t, err)
			assert.Len(t, actions, 1)
		})
	}
}

func TestDisableAndEnableAKind(t *testing.T) {
	holding := func(name string, kinds ...string) client.Object {
		p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, kind := range kinds {
			p.Status.SelectedResources = append(p.Status.SelectedResources, placementv1beta1.ResourceIdentifier{Version: "v1", Kind: kind, Name: name})
		}
		return p
	}
	c := newConsole(t, holding("a", "Namespace", "ConfigMap", "ConfigMap"), holding("b", "Namespace"), holding("c", "ConfigMap"))
	stored := func() fleetflowv1alpha1.Propagation {
		return get(c, &fleetflowv1alpha1.PropagatedType{}, "configmaps").Spec.Propagation
	}
	require.NoError(t, c.run("enable", "configmaps"))
	assert.Equal(t, "propagation of configmaps is enabled already\n", c.Out.String())
	require.ErrorContains(t, c.run("disable", "configmaps"), "no terminal to ask on")
	assert.Contains(t, c.Err.String(), "Disable the propagation of configmaps? 3 object(s) in 2 placement(s) stay on members as they are")
	c.Stdin = "n\n"
	require.ErrorIs(t, c.run("disable", "ConfigMap"), cli.ErrDeclined)
	require.NoError(t, c.run("disable", "configmap", "--dry-run"))
	require.NoError(t, c.run("disable", "configmap", "--yes"))
	assert.Equal(t, "propagation of configmaps disabled: 3 object(s) in 2 placement(s) stay as they are\n", c.Out.String())
	assert.Equal(t, fleetflowv1alpha1.PropagationDisabled, stored())
	require.NoError(t, c.run("disable", "configmaps"))
	assert.Equal(t, "propagation of configmaps is disabled already\n", c.Out.String())

	c = newConsole(t, &fleetflowv1alpha1.PropagatedType{
		ObjectMeta: metav1.ObjectMeta{Name: "configmaps", UID: "uid", Generation: 1}, Spec: fleetflowv1alpha1.PropagatedTypeSpec{Propagation: fleetflowv1alpha1.PropagationDisabled},
	})
	require.NoError(t, c.run("enable", "configmaps", "--dry-run"))
	assert.Equal(t, fleetflowv1alpha1.PropagationDisabled, stored())
	require.NoError(t, c.run("enable", "configmaps"))
	assert.Equal(t, "propagation of configmaps enabled: placements take up what has changed, as their rollout strategies allow\n", c.Out.String())
	assert.Equal(t, fleetflowv1alpha1.PropagationEnabled, stored())
	require.NoError(t, c.run("disable", "configmaps", "--yes"))
	assert.Equal(t, fleetflowv1alpha1.PropagationDisabled, stored())

	gone := newConsole(t, &fleetflowv1alpha1.PropagatedType{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", UID: "uid", Generation: 1}, Spec: fleetflowv1alpha1.PropagatedTypeSpec{Propagation: fleetflowv1alpha1.PropagationDisabled},
	})
	require.NoError(t, gone.run("enable", "widgets.example.com"), "a kind whose definition is gone")
	require.ErrorContains(t, gone.run("disable", "gadgets.example.com"), `the hub has no type "gadgets.example.com"`)
	require.ErrorContains(t, gone.run("disable", "nodes"), "nodes are not placed as other kinds are: there is nothing to disable")
	require.ErrorContains(t, gone.run("disable"), "as in: kubectl fleet disable configmaps")
}

func TestReschedule(t *testing.T) {
	before := "2999-01-01T00:00:00Z"
	for name, placement := range map[string]client.Object{
		"web": &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web", Generation: 1}},
		"rp/web": &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "uid-web", Generation: 1, Annotations: map[string]string{placementv1beta1.RescheduleAtAnnotation: before},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t, placement)
			args := []string{"reschedule", name}
			if placement.GetNamespace() != "" {
				args = append(args, "-n", placement.GetNamespace())
			}
			asked := func() string {
				fresh := placement.DeepCopyObject().(client.Object)
				require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKeyFromObject(placement), fresh))
				return fresh.GetAnnotations()[placementv1beta1.RescheduleAtAnnotation]
			}
			was := asked()
			require.NoError(t, c.run(append(args, "--yes", "--dry-run")...))
			assert.Equal(t, was, asked())
			require.NoError(t, c.run(append(args, "--yes")...))
			assert.Contains(t, c.Out.String(), "is scheduled afresh: kubectl fleet status")
			if was != "" {
				assert.Equal(t, "2999-01-01T00:00:01Z", asked(), "it is later than the request before, whatever the clocks say")
			} else {
				assert.Equal(t, now.UTC().Format(time.RFC3339), asked())
			}
		})
	}
	c := newConsole(t)
	require.ErrorContains(t, c.run("reschedule"), "as in: kubectl fleet reschedule web")
}

func TestReplace(t *testing.T) {
	const old, by = "member-1", "member-2"
	one := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(int32(1))}},
	}
	fixed := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "fixed"},
		Spec:       placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{old}}},
	}
	objects := func() []client.Object {
		objects := []client.Object{member(old, time.Second), member(by, time.Second), member("member-3", time.Second), one, fixed}
		for _, placement := range []string{"one", "fixed"} {
			binding := bound(placement, old)
			binding.Spec.ClusterDecision = placementv1beta1.ClusterDecision{ClusterName: old, Selected: true}
			objects = append(objects, binding)
		}
		return objects
	}
	const plan = "placement/one moves to member-2\n" +
		"placement/fixed stays: it is not replaced by member-2: the placement names its clusters (PickFixed): put member-2 in the list in place of member-1\n"
	const asked = "member/member-1 is being replaced by member-2: kubectl wait --for=condition=Replaced mc/member-1"
	replacedBy := func(c *console) string {
		return get(c, &clusterv1beta1.MemberCluster{}, old).Annotations[clusterv1beta1.ReplacedByAnnotation]
	}
	t.Run("tells what moves, and asks for it", func(t *testing.T) {
		c := newConsole(t, objects()...)
		require.NoError(t, c.run("replace", old, by, "--yes"))
		assert.Equal(t, plan+asked+"\n", c.Out.String())
		assert.Equal(t, by, replacedBy(c))
		require.NoError(t, c.run("replace", old, by, "--yes"))
		require.ErrorContains(t, c.run("replace", old, "member-3", "--yes"), "member/member-1 is being replaced by member-2 already: give that up first")
		require.ErrorContains(t, c.run("replace", "member-3", by, "--yes"), "member-2 is to replace member-1 already: one cluster replaces one other at a time")
		require.ErrorContains(t, c.run("replace", by, "member-3", "--yes"), "member-2 is itself to replace member-1")
		require.NoError(t, c.run("replace", old, "--cancel", "--yes"))
		assert.Empty(t, replacedBy(c))
	})
	t.Run("gives the alias to the new member, unless that has one", func(t *testing.T) {
		for has, want := range map[string]string{"": "shop", "till": "till"} {
			all := objects()
			all[0].SetLabels(map[string]string{clusterv1beta1.ClusterAliasLabel: "shop"})
			if has != "" {
				all[1].SetLabels(map[string]string{clusterv1beta1.ClusterAliasLabel: has})
			}
			c := newConsole(t, all...)
			require.NoError(t, c.run("replace", old, by, "--dry-run=client"))
			assert.Equal(t, has, get(c, &clusterv1beta1.MemberCluster{}, by).Labels[clusterv1beta1.ClusterAliasLabel])
			require.NoError(t, c.run("replace", old, by, "--yes"))
			assert.Equal(t, has == "", strings.Contains(c.Out.String(), "member/member-2 gets the alias shop\n"))
			assert.Equal(t, want, get(c, &clusterv1beta1.MemberCluster{}, by).Labels[clusterv1beta1.ClusterAliasLabel])
			assert.Equal(t, "shop", get(c, &clusterv1beta1.MemberCluster{}, old).Labels[clusterv1beta1.ClusterAliasLabel])
		}
	})
	t.Run("tells what moves with the alias, which a user who may not replace the member does not give", func(t *testing.T) {
		all := objects()
		all[0].SetLabels(map[string]string{clusterv1beta1.ClusterAliasLabel: "shop"})
		chosen := one.DeepCopy()
		chosen.Spec.Policy.Affinity = &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{clusterv1beta1.ClusterAliasLabel: "shop"}}}}}}}
		all[3] = chosen
		c := newConsole(t, all...)
		require.NoError(t, c.run("replace", old, by, "--dry-run=client"))
		assert.Contains(t, c.Out.String(), "placement/one moves to member-2 (dry run)\n")
		c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if object.GetName() == old {
					return errors.New("he may not")
				}
				return c.Patch(ctx, object, patch, options...)
			},
		})
		require.ErrorContains(t, c.run("replace", old, by, "--yes"), "he may not")
		assert.Empty(t, get(c, &clusterv1beta1.MemberCluster{}, by).Labels[clusterv1beta1.ClusterAliasLabel])
	})
	t.Run("changes nothing in a dry run", func(t *testing.T) {
		c := newConsole(t, objects()...)
		require.NoError(t, c.run("replace", old, by, "--dry-run=client"))
		assert.Equal(t, strings.ReplaceAll(plan+asked+"\n", "\n", " (dry run)\n"), c.Out.String())
		assert.Empty(t, replacedBy(c))
	})
	t.Run("refuses what cannot be", func(t *testing.T) {
		c := newConsole(t, objects()...)
		require.ErrorContains(t, c.run("replace", old, old, "--yes"), "a cluster cannot replace itself")
		require.ErrorContains(t, c.run("replace", old, "member-9", "--yes"), "there is no member cluster member-9")
		require.ErrorContains(t, c.run("replace", old, "--yes"), "name the new member")
		require.ErrorContains(t, c.run("replace", old, by, "--cancel", "--yes"), "name the new member")
		assert.Empty(t, replacedBy(c))
	})
}
