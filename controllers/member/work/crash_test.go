package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// doom ends an agent after some calls: nothing it asks for afterwards is answered.
type doom struct {
	left int
	// lost is whether the last call reaches the API server, and only its answer does not come back.
	lost bool
}

// call makes one call, as long as the agent is alive.
func (d *doom) call(do func() error) error {
	gone := &url.Error{Op: "Call", URL: "https://api", Err: errors.New("gone")}
	d.left--
	switch {
	case d.left >= 0:
		return do()
	case d.left == -1 && d.lost:
		_ = do() // it does not hear of it
	}
	return gone
}

// over returns a client whose every call counts.
func (d *doom) over(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return d.call(func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return d.call(func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return d.call(func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return d.call(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return d.call(func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return d.call(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

// restart replaces the agent by one that knows nothing, and dies as it is told to.
func (a *agent) restart(t *testing.T, d *doom) {
	t.Helper()
	o := a.Options
	o.Hub, o.HubLive, o.Member = a.hub, a.hub, a.member
	if d != nil {
		hub := d.over(a.hub)
		o.Hub, o.HubLive, o.Member = hub, hub, d.over(a.member)
	}
	a.Reconciler = NewReconciler(o)
	a.mode = ModeApply // without a look at the Works, which is no part of the story
}

// story is what happens to a Work: it comes, is changed, and goes. It calls look after each step
// with what has come of it.
func (a *agent) story(t *testing.T, strategy placementv1beta1.ApplyStrategy, look func(step string)) {
	t.Helper()
	w := manifestWork("w", "a", "b")
	w.Spec.ApplyStrategy = &strategy
	require.NoError(t, a.hub.Create(t.Context(), w))
	look("created")
	a.edit(t, "w", mapManifests("b", "c"))
	look("changed")
	require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
	look("deleted")
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
			undisturbed, all := map[string]string{}, &doom{left: 1000}
			a := newAgent(t, nil, nil)
			a.restart(t, all)
			a.story(t, strategy, func(step string) {
				a.mustLook(t, "w")
				undisturbed[step] = a.describeState(t)
			})
			calls := 1000 - all.left
			require.Greater(t, calls, 10)
			for n := range calls {
				dieAndCompare(t, strategy, undisturbed, n, false, n%2 == 0)
				dieAndCompare(t, strategy, undisturbed, n, true, true) // the hardest to make up for
			}
		})
	}
}

// dieAndCompare takes a Work through its story with an agent that dies at a call and one that makes
// up for it, at once or after something more has happened.
func dieAndCompare(t *testing.T, strategy placementv1beta1.ApplyStrategy, undisturbed map[string]string, n int, lost, late bool) {
	t.Helper()
	a := newAgent(t, nil, nil)
	d := &doom{left: n, lost: lost}
	a.restart(t, d)
	dead := false
	a.story(t, strategy, func(step string) {
		if dead {
			a.restart(t, nil)
		}
		_, _, err := a.look(t, "w")
		if err != nil {
			require.Negative(t, d.left)
			if dead = true; late && step != "deleted" {
				return
			}
			a.restart(t, nil)
			a.mustLook(t, "w")
		}
		require.Equal(t, undisturbed[step], a.describeState(t), "%s; died at call %d, lost: %v, late: %v", step, n, lost, late)
	})
	assert.Negative(t, d.left, "it died at all")
}
