package command

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// unable is a hub whose user may not list these kinds.
func unable(of client.WithWatch, kinds ...string) client.WithWatch {
	return interceptor.NewClient(of, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			kind, err := apiutil.GVKForObject(list, cli.Scheme())
			if err != nil {
				return err
			}
			for _, refused := range kinds {
				if kind.Kind == refused+"List" {
					return apierrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(refused) + "s"}, "", nil)
				}
			}
			return c.List(ctx, list, options...)
		},
	})
}

// approvers returns a console of a user who may see placements and runs, but no snapshots, which hold Secrets.
func approvers(t *testing.T, told ...placementv1beta1.ResourceSnapshotSummary) *console {
	t.Helper()
	objects := release()
	for _, object := range objects {
		if placement, is := object.(*placementv1beta1.ClusterResourcePlacement); is {
			placement.Status.ObservedResourceIndex = "5"
			placement.Status.ResourceSnapshots = told
		}
	}
	c := newConsole(t, objects...)
	c.Hub = unable(c.Hub, "ClusterResourceSnapshot")
	return c
}

// told is what the status of the placement names.
func told(index string, hours int) placementv1beta1.ResourceSnapshotSummary {
	return placementv1beta1.ResourceSnapshotSummary{Index: index, Name: "web-" + index + "-snapshot", CreationTime: ago(time.Duration(hours) * time.Hour)}
}

func TestWhoApprovesPlansWithoutTheRightToReadSecrets(t *testing.T) {
	whole := newConsole(t, release()...)
	require.NoError(t, whole.run("plan", "web", "--strategy", "careful", "--no-diff"))
	c := approvers(t, told("3", 7), told("4", 6), told("5", 5))
	require.NoError(t, c.run("plan", "web", "--strategy", "careful", "--no-diff"))
	assert.Equal(t, whole.Out.String(), c.Out.String(), "stages, clusters and gates are no secret")

	require.NoError(t, c.run("plan", "web", "--strategy", "careful"))
	assert.Contains(t, c.Out.String(), "! what changes on the clusters is not told here: you may not read resource snapshots, which hold Secrets in clear")
	assert.Contains(t, c.Out.String(), "wave 1")
	assert.NotContains(t, c.Out.String(), "settings")

	require.Error(t, c.run("plan", "web", "--strategy", "careful", "--index", "99"))
	assert.Contains(t, c.Out.String(), "has no resource snapshot 99")
}

func TestWhoApprovesReadsTheHistoryAndTheSnapshotsThereAre(t *testing.T) {
	c := approvers(t, told("4", 6), told("5", 5))
	require.NoError(t, c.run("history", "web", "--only", "snapshot", "--no-headers"))
	lines := strings.Split(strings.TrimSpace(c.Out.String()), "\n")
	require.Len(t, lines, 2, c.Out.String())
	assert.Regexp(t, `6h +snapshot +web-4-snapshot +snapshot 4 taken`, lines[0])
	assert.Regexp(t, `5h +snapshot +web-5-snapshot +snapshot 5 taken, the latest`, lines[1])

	c = approvers(t)
	require.ErrorContains(t, c.run("history", "web"), "clusterresourcesnapshots", "a hub agent that does not tell is not taken for one without snapshots")
}

func TestATeamPlansTheRunThatTheHubHasPutIntoStages(t *testing.T) {
	c := approvers(t, told("5", 5))
	c.Hub = unable(c.Hub, "MemberCluster")
	require.ErrorContains(t, c.run("plan", "web", "--strategy", "careful", "--no-diff"), "create the run with --initialize, and plan that")
}
