package command

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// onDryRun returns a hub that fails the test if a write reaches it which would be stored. It answers the others, which it counts, with what
// it would store, as API servers do and the client in memory does not: it has to store that.
func onDryRun(c *console) (checked *console, sent *int) {
	sent = new(int)
	note := func(verb string, dryRun []string) {
		assert.Equal(c.T, []string{metav1.DryRunAll}, dryRun, verb)
		*sent++
	}
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if object.GetName() != "" { // questions have none
				note("create", (&client.CreateOptions{}).ApplyOptions(options).DryRun)
			}
			return terminal.CreateOrReview(ctx, c, object)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			note("patch", (&client.PatchOptions{}).ApplyOptions(options).DryRun)
			return c.Patch(ctx, object, patch)
		},
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			note("delete", (&client.DeleteOptions{}).ApplyOptions(options).DryRun)
			return nil
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			note("patch of "+sub, (&client.SubResourcePatchOptions{}).ApplyOptions(options).DryRun)
			return c.SubResource(sub).Patch(ctx, object, patch)
		},
	})
	return c, sent
}

// toSteer is a hub on which there is something for every command to write.
func toSteer(t *testing.T) *console {
	t.Helper()
	run, request := waitingAtCanary()
	another := soakingRun()
	another.Name = "web-6"
	another.UID = "uid-web-6"
	placement := func(name string, kind placementv1beta1.PlacementType) client.Object {
		return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
			Spec: placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{PlacementType: kind}}}
	}
	return newConsole(t, run, request, another, externalPlacement(), placement("rolling", placementv1beta1.PickAllPlacementType),
		placement("picked", placementv1beta1.PickNPlacementType), bound("picked", "member-1"), bound("web", "member-1"), member("member-1", time.Second),
		&fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident", UID: "hold-uid"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "storm"}})
}

// shown returns the one object that a dry run prints.
func (c *console) shown(args ...string) *unstructured.Unstructured {
	c.T.Helper()
	require.NoError(c.T, c.run(append(args, "-o", "json")...))
	object := &unstructured.Unstructured{}
	require.NoError(c.T, object.UnmarshalJSON(c.Out.Bytes()), "nothing but the object is on the standard output")
	assert.Contains(c.T, c.Err.String(), "dry run)\n", "what would be done is said beside it")
	return object
}

// written is what of an object a user writes.
func written(object *unstructured.Unstructured) map[string]any {
	content := object.DeepCopy().Object
	for _, field := range []string{"resourceVersion", "generation", "uid", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	return content
}

func TestADryRunShowsWhatWouldBeWritten(t *testing.T) {
	for _, args := range [][]string{
		{"hold", "payments down", "--name", "incident-2", "--for", "2h"},
		{"exempt", "run/web-5", "--from", "hold/incident", "--reason", "CVE-2026-1", "--for", "2h", "--name", "hotfix"},
		{"approve", "web-5", "--comment", "fine"},
		{"pause", "rolling"},
		{"partition", "rolling", "50%"},
		{"stop", "web-5"},
		{"skip", "web-6", "member-3", "--reason", "it is being repaired"},
		{"rollback", "web-5"},
		{"suspend", "rolling"},
		{"reschedule", "rolling"},
		{"cordon", "member-1"},
		{"evict", "picked", "member-1", "--replace"},
		{"disable", "configmaps"},
		{"orphaning", "enable", "rolling"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			c, sent := onDryRun(toSteer(t))
			shown := c.shown(append(args, "--dry-run")...)
			assert.Zero(t, *sent)

			hub := toSteer(t)
			require.NoError(t, hub.run(append(args, "--yes")...))
			stored := &unstructured.Unstructured{}
			stored.SetGroupVersionKind(shown.GroupVersionKind())
			require.NoError(t, hub.Hub.Get(t.Context(), client.ObjectKeyFromObject(shown), stored))
			if shown.Object["status"] == nil { // the client in memory stores the status with which an object is created
				delete(stored.Object, "status")
			}
			assert.Equal(t, written(stored), written(shown))

			assert.Equal(t, written(shown), written(c.shown(append(args, "--dry-run=server")...)), "the hub, which is asked, says the same")
			assert.NotZero(t, *sent)
		})
	}
}

func TestADryRunShowsOneObjectByItselfAndSeveralAsAList(t *testing.T) {
	c := toSteer(t)
	require.NoError(t, c.run("hold", "payments down", "--name", "incident-2", "--for", "2h", "--dry-run", "-o", "yaml"))
	c.Golden("hold.yaml")
	require.NoError(t, c.run("drain", "member-1", "--dry-run", "-o", "json"))
	list := &unstructured.UnstructuredList{}
	require.NoError(t, list.UnmarshalJSON(c.Out.Bytes()))
	var kinds []string
	for _, item := range list.Items {
		kinds = append(kinds, item.GetKind())
	}
	assert.Equal(t, []string{"MemberCluster", "ClusterResourcePlacementEviction", "ClusterResourcePlacementEviction"}, kinds)
}

// A drain fails if something stays; what it would write before is printed nevertheless.
func TestADryRunThatFailsShowsWhatWouldBeWrittenBefore(t *testing.T) {
	fixed := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "fixed", UID: "uid-fixed", Generation: 1},
		Spec: placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"member-1"},
		}}}
	c := newConsole(t, fixed, bound("fixed", "member-1"), member("member-1", time.Second))
	require.ErrorContains(t, c.run("drain", "member-1", "--dry-run", "-o", "json"), "member/member-1 still has")
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(c.Out.Bytes()))
	assert.Equal(t, "MemberCluster", object.GetKind())
}

func TestADryRunShowsNothingOfWhatWouldBeDeletedOrIsSo(t *testing.T) {
	for _, mode := range []string{"client", "server"} {
		c, _ := onDryRun(toSteer(t))
		for _, args := range [][]string{{"release", "incident", "--reason", "payments are back"}, {"enable", "configmaps"}} {
			require.NoError(t, c.run(append(args, "--dry-run="+mode, "-o", "yaml")...))
			assert.Empty(t, c.Out.String())
			assert.NotEmpty(t, c.Err.String())
		}
	}
}

func TestObjectsAreShownOnADryRunOnly(t *testing.T) {
	for want, args := range map[string][]string{
		"--output prints what would be written: give --dry-run with it":  {"-o", "yaml", "--yes"},
		`--output "wide" is not a format of an object: use yaml or json`: {"-o", "wide", "--dry-run"},
		`--dry-run "maybe" is not known: use none, client or server`:     {"-o", "yaml", "--dry-run=maybe"},
	} {
		c := toSteer(t)
		var refused *cli.Exit
		require.ErrorAs(t, c.run(append([]string{"pause", "rolling"}, args...)...), &refused)
		assert.EqualError(t, refused, want)
		assert.Equal(t, cli.CodeUsage, refused.Code)
		assert.Nil(t, get(c, &placementv1beta1.ClusterResourcePlacement{}, "rolling").Spec.Strategy)
	}
}
