package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// crash ends an agent after some calls: it receives no answer to later ones.
type crash struct {
	counting  sync.Mutex
	callsLeft int
	// loseAnswer is whether the last call reaches the API server and only its answer is lost.
	loseAnswer bool
}

// runCall makes one call while the agent is alive.
func (d *crash) runCall(do func() error) error {
	gone := &url.Error{Op: "Call", URL: "https://api", Err: errors.New("gone")}
	d.counting.Lock()
	d.callsLeft--
	left := d.callsLeft
	d.counting.Unlock()
	switch {
	case left >= 0:
		return do()
	case left == -1 && d.loseAnswer:
		_ = do() // its answer is lost
	}
	return gone
}

// wrapClient returns a client that counts every call.
func (d *crash) wrapClient(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return d.runCall(func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return d.runCall(func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return d.runCall(func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return d.runCall(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return d.runCall(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return d.runCall(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// restart replaces the agent by one without memory, which crashes as d says.
func (a *agent) restart(t *testing.T, d *crash) {
	t.Helper()
	o := a.Options
	o.Hub = a.hub
	o.HubLive = a.hub
	o.Member = a.member
	if d != nil {
		hub := d.wrapClient(a.hub)
		o.Hub = hub
		o.HubLive = hub
		o.Member = d.wrapClient(a.member)
	}
	a.Reconciler = NewReconciler(o)
	a.mode.mode = ModeApply // without the list of Works that SetMode makes
}

// runLifecycle creates, changes and deletes a Work. It calls check after each step.
func (a *agent) runLifecycle(t *testing.T, strategy placementv1beta1.ApplyStrategy, check func(step string)) {
	t.Helper()
	w := manifestWork("w", "a", "b")
	w.Spec.ApplyStrategy = &strategy
	require.NoError(t, a.hub.Create(t.Context(), w))
	check("created")
	a.setManifests(t, "w", mapManifests("b", "c"))
	check("changed")
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	check("deleted")
}

// describeState lists the objects of hub and member without the values that differ in each run.
func (a *agent) describeState(t *testing.T) string {
	t.Helper()
	var out []string
	objects := &corev1.ConfigMapList{}
	require.NoError(t, a.member.List(t.Context(), objects))
	for _, o := range objects.Items {
		var owners []string
		for _, ref := range o.OwnerReferences {
			owners = append(owners, ref.Name+" "+string(ref.UID))
		}
		out = append(out, fmt.Sprintf("ConfigMap %s %v %v %v", o.Name, o.Data, owners, slices.Sorted(maps.Keys(o.Annotations))))
	}
	inventories := &placementv1beta1.AppliedWorkList{}
	require.NoError(t, a.member.List(t.Context(), inventories))
	for _, o := range inventories.Items {
		out = append(out, "AppliedWork "+o.Name)
		for _, listed := range o.Status.AppliedResources {
			out = append(out, fmt.Sprintf("lists %s %s", listed.Name, listed.UID))
		}
	}
	works := &placementv1beta1.WorkList{}
	require.NoError(t, a.hub.List(t.Context(), works))
	for _, o := range works.Items {
		for _, c := range o.Status.Conditions {
			out = append(out, fmt.Sprintf("Work %s %s %s %d", o.Name, c.Type, c.Reason, c.ObservedGeneration))
		}
	}
	return strings.Join(out, "\n")
}

func TestAnAgentThatDiesAtAnyCallIsMadeUpForByTheNext(t *testing.T) {
	for name, strategy := range map[string]placementv1beta1.ApplyStrategy{
		"client-side":    {Type: placementv1beta1.ApplyStrategyTypeClientSideApply},
		"server-side":    {Type: placementv1beta1.ApplyStrategyTypeServerSideApply},
		"to report only": {Type: placementv1beta1.ApplyStrategyTypeReportDiff},
	} {
		t.Run(name, func(t *testing.T) {
			undisturbed := map[string]string{}
			all := &crash{callsLeft: 1000}
			a := newAgent(t, nil, nil)
			a.restart(t, all)
			a.runLifecycle(t, strategy, func(step string) {
				a.mustReconcile(t, "w")
				undisturbed[step] = a.describeState(t)
			})
			calls := 1000 - all.callsLeft
			require.Greater(t, calls, 10)
			for n := range calls {
				crashAndCompare(t, strategy, undisturbed, n, false, n%2 == 0)
				crashAndCompare(t, strategy, undisturbed, n, true, true) // the hardest to make up for
			}
		})
	}
}

// crashAndCompare runs the lifecycle of a Work with an agent that crashes at a call and one that
// replaces it, at once or one step later.
func crashAndCompare(t *testing.T, strategy placementv1beta1.ApplyStrategy, undisturbed map[string]string, n int, lost, late bool) {
	t.Helper()
	a := newAgent(t, nil, nil)
	d := &crash{callsLeft: n, loseAnswer: lost}
	a.restart(t, d)
	dead := false
	a.runLifecycle(t, strategy, func(step string) {
		if dead {
			a.restart(t, nil)
		}
		_, _, err := a.reconcileByName(t, "w")
		if err != nil {
			require.Negative(t, d.callsLeft)
			dead = true
			if late && step != "deleted" {
				return
			}
			a.restart(t, nil)
			a.mustReconcile(t, "w")
		}
		require.Equal(t, undisturbed[step], a.describeState(t), "%s; died at call %d, lost: %v, late: %v", step, n, lost, late)
	})
	assert.Negative(t, d.callsLeft, "it died at all")
}
