package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// eventful is a placement on two members that the hub has an event about.
func eventful() []client.Object {
	objects := []client.Object{
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web"}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e", UID: "uid-e"}, Type: "Normal", Reason: "PlacementRolloutStarted",
			Message: "Started\nrolling out", InvolvedObject: corev1.ObjectReference{Kind: "ClusterResourcePlacement", Name: "web"}, LastTimestamp: ago(time.Minute)},
	}
	for i, member := range []string{"member-1", "member-3"} {
		w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-" + member, Name: "web-work",
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}}}
		w.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
			Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "shop", Name: "x"},
			Conditions: []metav1.Condition{condition("Applied", metav1.ConditionTrue, "Applied", time.Duration(30-i)*time.Second)},
		}}
		objects = append(objects, w)
	}
	return objects
}

func TestEventsOfAPlacementAreListedByTime(t *testing.T) {
	c := newConsole(t, eventful()...)
	require.NoError(t, c.run("events", "placement/web"))
	assert.Equal(t, `WHEN                   TYPE     REASON                    MESSAGE
2026-01-02T15:03:05Z   Normal   PlacementRolloutStarted   Started rolling out
2026-01-02T15:03:35Z   Normal   Applied                   ConfigMap shop/x applied on member-1
2026-01-02T15:03:36Z   Normal   Applied                   ConfigMap shop/x applied on member-3
`, c.Out.String())
	assert.Empty(t, c.Err.String())

	require.NoError(t, c.run("events", "web", "--limit", "1", "--no-headers", "-o", "wide"))
	assert.Equal(t, "2026-01-02T15:03:36Z   Normal   Applied   ConfigMap shop/x applied on member-3   member-3   ConfigMap shop/x\n", c.Out.String())
	assert.Equal(t, "2 events before these left out: --limit 0 prints all\n", c.Err.String())

	require.NoError(t, c.run("events", "web", "--member", "member-1", "-o", "json"))
	var events []map[string]any
	require.NoError(t, json.Unmarshal(c.Out.Bytes(), &events))
	assert.Equal(t, []map[string]any{{"time": "2026-01-02T15:03:35Z", "type": "Normal", "reason": "Applied", "member": "member-1",
		"message": "ConfigMap shop/x applied on member-1", "object": map[string]any{"kind": "ConfigMap", "namespace": "shop", "name": "x"}}}, events)

	require.NoError(t, c.run("events", "web", "--member", "member-9"))
	assert.Empty(t, c.Out.String())
	assert.Equal(t, "nothing has happened that the hub still knows of\n", c.Err.String())
}

func TestEventsAreBounded(t *testing.T) {
	objects := eventful()
	w := objects[len(objects)-1].(*placementv1beta1.Work)
	for i := range 1000 {
		another := *w.Status.ManifestConditions[0].DeepCopy()
		another.Identifier.Name = fmt.Sprintf("x%d", i)
		w.Status.ManifestConditions = append(w.Status.ManifestConditions, another)
	}
	c := newConsole(t, objects...)
	require.NoError(t, c.run("events", "web"))
	assert.Equal(t, 1+mostEvents, strings.Count(c.Out.String(), "\n"))
	assert.Equal(t, "803 events before these left out: --limit 0 prints all\n", c.Err.String())
	require.NoError(t, c.run("events", "web", "--limit", "0"))
	assert.Equal(t, 1+1003, strings.Count(c.Out.String(), "\n"))
	assert.Empty(t, c.Err.String())
}

func TestWhatMayNotBeReadIsLeftOutOfEvents(t *testing.T) {
	c := newConsole(t, eventful()...)
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		List: func(ctx context.Context, of client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*placementv1beta1.WorkList); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "works"}, "", nil)
			}
			return of.List(ctx, list, options...)
		},
	})
	require.NoError(t, c.run("events", "web", "--no-headers"))
	assert.Equal(t, "2026-01-02T15:03:05Z   Normal   PlacementRolloutStarted   Started rolling out\n", c.Out.String())
	assert.Equal(t, "Warning: what members report left out: you may not read that\n", c.Err.String())
}

// deletedMeanwhile has a hub without the placement, once it was found.
func deletedMeanwhile(of client.WithWatch) client.WithWatch {
	return interceptor.NewClient(of, interceptor.Funcs{
		List: func(ctx context.Context, of client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*placementv1beta1.ClusterResourcePlacementList); is {
				return nil
			}
			return of.List(ctx, list, options...)
		},
	})
}

func TestAWatchOfEventsPrintsWhatThereIsAndEndsWithThePlacement(t *testing.T) {
	c := newConsole(t, eventful()...)
	c.Hub = deletedMeanwhile(c.Hub)
	require.NoError(t, c.run("events", "crp/web", "--watch", "--limit", "1"))
	assert.Equal(t, `WHEN                   TYPE     REASON    MESSAGE
2026-01-02T15:03:36Z   Normal   Applied   ConfigMap shop/x applied on member-3
`, c.Out.String())
	require.NoError(t, c.run("events", "crp/web", "-w", "-o", "json", "--member", "member-1"))
	assert.Equal(t, `{"time":"2026-01-02T15:03:35Z","type":"Normal","reason":"Applied","object":{"kind":"ConfigMap","namespace":"shop","name":"x"},"member":"member-1",`+
		`"message":"ConfigMap shop/x applied on member-1"}`+"\n", c.Out.String())
}

func TestEventsOfAWatchAreLinesBelowTheFirst(t *testing.T) {
	c := newConsole(t)
	_, streams := c.Factory()
	say := (&eventsOptions{Viewing: base.Viewing{Output: cli.Output{}, Streams: streams}}).newPrinter()
	require.NoError(t, say(nil))
	assert.Empty(t, c.Out.String(), "nothing has happened")
	event := []fleetview.Event{{At: now, Type: "Normal", Reason: "Configured", Message: "ConfigMap shop/x configured on member-3"}}
	require.NoError(t, say(event))
	assert.Contains(t, c.Out.String(), "WHEN")
	c.Out.Reset()
	require.NoError(t, say(event))
	assert.Equal(t, "2026-01-02T15:04:05Z   Normal   Configured   ConfigMap shop/x configured on member-3\n", c.Out.String())
}

func TestEventsRefuseWhatIsWrongWithTheirCommandLine(t *testing.T) {
	c := newConsole(t, eventful()...)
	for want, args := range map[string][]string{
		"--limit -1 is no number of events":                           {"web", "--limit", "-1"},
		"--watch prints a line for each event, with --output json":    {"web", "--watch", "-o", "yaml"},
		"events needs the name of a placement, as in: kubectl fleet ": {},
	} {
		err := c.run(append([]string{"events"}, args...)...)
		require.ErrorContains(t, err, want)
		exit := &cli.Exit{}
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, cli.CodeUsage, exit.Code)
	}
	require.ErrorContains(t, c.run("events", "nothing"), "nothing")
}
