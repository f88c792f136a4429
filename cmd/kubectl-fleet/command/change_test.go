package command

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
)

// beforeEachPatch has another client write to the object that is about to be patched, so that the patch rests on an
// older version of it. The other client writes the first few times only.
func (c *console) beforeEachPatch(times int, write func(ctx context.Context, hub client.Client, object client.Object)) {
	overtake := func(ctx context.Context, hub client.Client, object client.Object) {
		if times--; times < 0 {
			return
		}
		fresh := object.DeepCopyObject().(client.Object)
		require.NoError(c.T, hub.Get(ctx, client.ObjectKeyFromObject(object), fresh))
		write(ctx, hub, fresh)
	}
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		Patch: func(ctx context.Context, hub client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			overtake(ctx, hub, object)
			return hub.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, hub client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			overtake(ctx, hub, object)
			return hub.SubResource(name).Patch(ctx, object, patch, options...)
		},
	})
}

// writeStatus writes the status of an object, which moves its version and not its generation.
func (c *console) writeStatus(ctx context.Context, hub client.Client, object client.Object) {
	heartbeat := metav1.Condition{Type: "Heartbeat", Status: metav1.ConditionTrue, Reason: "x", LastTransitionTime: ago(0)}
	var conditions *[]metav1.Condition
	switch o := object.(type) {
	case *clusterv1beta1.MemberCluster:
		conditions = &o.Status.Conditions
	case *placementv1beta1.ClusterStagedUpdateRun:
		conditions = &o.Status.Conditions
	case *placementv1beta1.ClusterApprovalRequest:
		conditions = &o.Status.Conditions
	case *placementv1beta1.ClusterResourcePlacement:
		conditions = &o.Status.Conditions
	}
	require.NotNil(c.T, conditions, "%T", object)
	heartbeat.Message = object.GetResourceVersion()
	meta.RemoveStatusCondition(conditions, heartbeat.Type)
	meta.SetStatusCondition(conditions, heartbeat)
	require.NoError(c.T, hub.Status().Update(ctx, object))
}

func TestAWriteOfTheStatusInBetweenDoesNotRefuseAChange(t *testing.T) {
	cordoned := func() *clusterv1beta1.MemberCluster {
		m := member("member-2", time.Second)
		m.Generation = 4
		m.Spec.Taints = []clusterv1beta1.Taint{{Key: "mine", Effect: "NoSchedule"}, steer.CordonTaint}
		return m
	}
	stopped := func() *placementv1beta1.ClusterStagedUpdateRun {
		run := soakingRun()
		run.Spec.State = placementv1beta1.StateStop
		return run
	}
	joined := member("member-2", time.Second)
	run, request := waitingAtCanary()
	for sentence, try := range map[string]struct {
		objects []client.Object
		args    []string
		want    func(c *console) bool
	}{
		"cordon": {[]client.Object{member("member-2", time.Second)}, []string{"cordon", "member-2"}, func(c *console) bool {
			return len(get(c, &clusterv1beta1.MemberCluster{}, "member-2").Spec.Taints) == 1
		}},
		"uncordon": {[]client.Object{cordoned()}, []string{"uncordon", "member-2"}, func(c *console) bool {
			return len(get(c, &clusterv1beta1.MemberCluster{}, "member-2").Spec.Taints) == 1
		}},
		"drain": {[]client.Object{member("member-2", time.Second)}, []string{"drain", "member-2", "--yes"}, func(c *console) bool {
			return len(get(c, &clusterv1beta1.MemberCluster{}, "member-2").Spec.Taints) == 1
		}},
		"stop": {[]client.Object{soakingRun()}, []string{"stop", "web-5"}, func(c *console) bool {
			return get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.State == placementv1beta1.StateStop
		}},
		"resume": {[]client.Object{stopped()}, []string{"resume", "web-5"}, func(c *console) bool {
			return get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.State == placementv1beta1.StateRun
		}},
		"skip": {[]client.Object{soakingRun()}, []string{"skip", "web-5", "member-3", "--yes"}, func(c *console) bool {
			return len(get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.ClusterActions) == 1
		}},
		"retry": {[]client.Object{soakingRun()}, []string{"retry", "web-5", "member-3"}, func(c *console) bool {
			return len(get(c, &placementv1beta1.ClusterStagedUpdateRun{}, "web-5").Spec.ClusterActions) == 1
		}},
		"approve": {[]client.Object{run, request}, []string{"approve", "web-5"}, func(c *console) bool {
			conditions := get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status.Conditions
			return meta.IsStatusConditionTrue(conditions, "Heartbeat") && meta.IsStatusConditionTrue(conditions, placementv1beta1.ConditionTypeApproved)
		}},
		"unjoin, and keep what is placed": {[]client.Object{joined}, []string{"unjoin", "member-2", "--keep-placed", "--yes"}, func(c *console) bool {
			return apierrors.IsNotFound(c.Hub.Get(c.T.Context(), client.ObjectKeyFromObject(joined), joined))
		}},
		"orphaning": {[]client.Object{externalPlacement()}, []string{"orphaning", "enable", "web"}, func(c *console) bool {
			strategy := get(c, &placementv1beta1.ClusterResourcePlacement{}, "web").Spec.Strategy
			return strategy.DeleteStrategy.PropagationPolicy == placementv1beta1.DeletePropagationPolicyAbandon
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, try.objects...)
			c.beforeEachPatch(3, c.writeStatus)
			require.NoError(t, c.run(try.args...))
			assert.True(t, try.want(c))
		})
	}
}

func TestAChangeInBetweenIsNotLost(t *testing.T) {
	taint := func(member *clusterv1beta1.MemberCluster, taints ...clusterv1beta1.Taint) {
		member.Generation++
		member.Spec.Taints = append(member.Spec.Taints, taints...)
	}
	theirs := clusterv1beta1.Taint{Key: "theirs", Effect: "NoSchedule"}

	t.Run("a member keeps the taint that another client gives it", func(t *testing.T) {
		for _, verb := range []string{"cordon", "uncordon"} {
			m := member("member-2", time.Second)
			m.Generation = 1
			if verb == "uncordon" {
				m.Spec.Taints = []clusterv1beta1.Taint{steer.CordonTaint}
			}
			c := newConsole(t, m)
			c.beforeEachPatch(1, func(ctx context.Context, hub client.Client, object client.Object) {
				taint(object.(*clusterv1beta1.MemberCluster), theirs)
				require.NoError(t, hub.Update(ctx, object))
			})
			require.NoError(t, c.run(verb, "member-2"))
			left := get(c, &clusterv1beta1.MemberCluster{}, "member-2").Spec.Taints
			assert.Contains(t, left, theirs, verb)
			assert.Equal(t, verb == "cordon", len(left) == 2, verb)
		}
	})
	t.Run("a member that another client has cordoned is cordoned once", func(t *testing.T) {
		m := member("member-2", time.Second)
		m.Generation = 1
		c := newConsole(t, m)
		c.beforeEachPatch(1, func(ctx context.Context, hub client.Client, object client.Object) {
			taint(object.(*clusterv1beta1.MemberCluster), steer.CordonTaint)
			require.NoError(t, hub.Update(ctx, object))
		})
		require.NoError(t, c.run("cordon", "member-2"))
		assert.Equal(t, "member/member-2 is cordoned already\n", c.Out.String())
		assert.Equal(t, []clusterv1beta1.Taint{steer.CordonTaint}, get(c, &clusterv1beta1.MemberCluster{}, "member-2").Spec.Taints)
	})
	t.Run("a member that was created anew is left alone", func(t *testing.T) {
		c := newConsole(t, member("member-2", time.Second))
		c.beforeEachPatch(1, func(ctx context.Context, hub client.Client, object client.Object) {
			require.NoError(t, hub.Delete(ctx, object))
			another := member("member-2", time.Second)
			another.UID = "another"
			require.NoError(t, hub.Create(ctx, another))
		})
		require.ErrorContains(t, c.run("cordon", "member-2"), "changing member/member-2: it was deleted and created anew in the meantime")
		assert.Empty(t, get(c, &clusterv1beta1.MemberCluster{}, "member-2").Spec.Taints)
	})
	t.Run("of two approvals the first is kept", func(t *testing.T) {
		run, request := waitingAtCanary()
		c := newConsole(t, run, request)
		c.beforeEachPatch(1, func(ctx context.Context, hub client.Client, object client.Object) {
			request := object.(*placementv1beta1.ClusterApprovalRequest)
			meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
				Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue, Reason: "x", Message: "first",
			})
			require.NoError(t, hub.Status().Update(ctx, request))
		})
		require.NoError(t, c.run("approve", "web-5", "--comment", "second"))
		assert.Contains(t, c.Out.String(), "is approved already")
		approved := meta.FindStatusCondition(get(c, &placementv1beta1.ClusterApprovalRequest{}, "web-5-canary").Status.Conditions, placementv1beta1.ConditionTypeApproved)
		assert.Equal(t, "first", approved.Message)
	})
}
