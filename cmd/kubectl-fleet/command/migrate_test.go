package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/test/fixture"
	recording "github.com/fleetflow/fleetflow/test/kubefleet"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// recordedHub has what KubeFleet left on a hub.
func recordedHub(t *testing.T) []client.Object {
	t.Helper()
	recorded, err := recording.Hub()
	require.NoError(t, err)
	scheme := cli.Scheme()
	var objects []client.Object
	for _, from := range recorded {
		kind := from.GroupVersionKind()
		if strings.HasSuffix(kind.Group, "kubernetes-fleet.io") {
			kind = schema.GroupVersionKind{Group: kind.Group, Version: "v1beta1", Kind: kind.Kind}
		}
		into, err := scheme.New(kind)
		require.NoError(t, err)
		from.SetGroupVersionKind(kind)
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into))
		objects = append(objects, into.(client.Object))
	}
	return objects
}

func TestMigrateCheckOfARecordedHub(t *testing.T) {
	t.Run("once KubeFleet's hub agent has ended, nothing is in the way", func(t *testing.T) {
		c := newConsole(t, recordedHub(t)...)
		require.NoError(t, c.run("migrate", "check"))
		c.Golden("migrate-check.txt")
	})
	t.Run("while it runs, it is in the way", func(t *testing.T) {
		c := newConsole(t, append(recordedHub(t), leaseOf(kubefleet.HubAgentLease, "hub-agent-7d"))...)
		exit := &cli.Exit{}
		require.ErrorAs(t, c.run("migrate", "check", "-o", "json"), &exit)
		assert.Equal(t, 2, exit.Code)
		report := &migration.Report{}
		require.NoError(t, json.Unmarshal(c.Out.Bytes(), report))
		assert.Equal(t, "hub-agent-7d", report.Agents.KubeFleet)
		require.Len(t, report.Of(migration.InTheWay), 1)
		assert.Equal(t, "KubeFleetHubAgentRuns", report.Of(migration.InTheWay)[0].Reason)
	})
	t.Run("what has no counterpart counts if that is asked for", func(t *testing.T) {
		networked := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "networked"}}
		networked.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.ServiceExportImportAgent}}
		exit := &cli.Exit{}
		require.ErrorAs(t, newConsole(t, append(recordedHub(t), networked)...).run("migrate", "check", "--strict"), &exit)
		assert.Equal(t, 2, exit.Code)
	})
	t.Run("the way back of what was never changed is open but for the run under way", func(t *testing.T) {
		c := newConsole(t, recordedHub(t)...)
		exit := &cli.Exit{}
		require.ErrorAs(t, c.run("migrate", "check", "--to", "kubefleet"), &exit)
		assert.Equal(t, 2, exit.Code)
		c.Golden("migrate-check-back.txt")
	})
	t.Run("the way back of what fleetflow has placed says what KubeFleet rolls out again", func(t *testing.T) {
		objects := recordedHub(t)
		for _, object := range objects {
			if object.GetName() == "roll-0-snapshot" {
				object.GetAnnotations()[placementv1beta1.ResourceGroupHashAnnotation] = "ours"
			}
		}
		c := newConsole(t, objects...)
		exit := &cli.Exit{}
		require.ErrorAs(t, c.run("migrate", "check", "--to", "kubefleet"), &exit)
		assert.Contains(t, c.Out.String(), "1 placement(s): gets a resource snapshot of KubeFleet's own, with the content that the latest has\n"+
			"  3 binding(s): rolled out again with that snapshot")
		assert.Contains(t, c.Out.String(), "ClusterResourcePlacement/roll: SnapshotHashDiffers: ")
		assert.Equal(t, 1, strings.Count(c.Out.String(), "SnapshotHashDiffers"), "the hashes of what KubeFleet has made are its own")
	})
	t.Run("releases of Helm that would delete definitions, on the hub and on members that are named", func(t *testing.T) {
		c := newConsole(t, append(recordedHub(t), terminal.DefinitionOfRelease("works.placement.kubernetes-fleet.io", "hub-agent"))...)
		c.Contexts = map[string]client.WithWatch{"kind-1": inMemory(terminal.DefinitionOfRelease("appliedworks.placement.kubernetes-fleet.io", "member-agent")), "kind-2": inMemory()}
		exit := &cli.Exit{}
		require.ErrorAs(t, c.run("migrate", "check", "--member-context", "kind-1", "--member-context", "kind-2"), &exit)
		assert.Equal(t, 2, exit.Code)
		assert.Contains(t, c.Out.String(), "release fleet-system/hub-agent: DefinitionsOfRelease: release hub-agent of Helm")
		assert.Contains(t, c.Out.String(), "release fleet-system/member-agent on kind-1: DefinitionsOfRelease: ")
		assert.Contains(t, c.Out.String(), "kubectl --context kind-1 annotate crd --overwrite appliedworks.placement.kubernetes-fleet.io helm.sh/resource-policy=keep;")
	})
	t.Run("a direction that there is not", func(t *testing.T) {
		assert.ErrorContains(t, newConsole(t).run("migrate", "check", "--to", "karmada"), `--to "karmada" is not known`)
	})
}

func TestMigrateAcceptLetsGoWhatIsHeld(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "crp-uid", Generation: 3}}
	held := rules.NewHeldRemovals(placement, []rules.HeldRemoval{{Binding: "crp-a", Cluster: "a", Why: "it is gone"}})
	placement.Annotations = map[string]string{placementv1beta1.RemovalsHeldAnnotation: held.Encode()}
	orphan := fixture.Binding("lost", 1)
	orphan.Labels[placementv1beta1.ParentPlacementLabel] = "elsewhere"
	stored := func(c *console) *placementv1beta1.ClusterResourcePlacement {
		found := &placementv1beta1.ClusterResourcePlacement{}
		require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "crp"}, found))
		return found
	}

	c := newConsole(t, placement.DeepCopy(), orphan.DeepCopy())
	require.Error(t, c.run("migrate", "accept"), "there is no terminal to ask on")
	assert.Contains(t, c.Out.String(), "crp: binding crp-a on a: it is gone")
	require.NoError(t, c.run("migrate", "accept", "--dry-run"))
	assert.False(t, held.IsAccepted(stored(c)))

	require.NoError(t, c.run("migrate", "accept", "crp", "--yes"))
	assert.Contains(t, c.Out.String(), "1 removal(s) of placement crp accepted")
	assert.True(t, held.IsAccepted(stored(c)))
	assert.NoError(t, c.Hub.Get(t.Context(), client.ObjectKeyFromObject(orphan), &placementv1beta1.ClusterResourceBinding{}), "it was not asked for")

	require.NoError(t, c.run("migrate", "accept", "--yes"))
	assert.Contains(t, c.Out.String(), "binding/crp-lost deleted")
	assert.Error(t, c.Hub.Get(t.Context(), client.ObjectKeyFromObject(orphan), &placementv1beta1.ClusterResourceBinding{}))
	require.NoError(t, newConsole(t).run("migrate", "accept"))
}

// losing is a placement whose latest snapshot, of index 4, keeps so many ConfigMaps that are selected no more.
func losing(name string, configMaps int) (*placementv1beta1.ClusterResourcePlacement, *snapshot.Loss) {
	var ids []snapshot.Identity
	for i := range configMaps {
		ids = append(ids, snapshot.Identity{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "web", Name: fmt.Sprint("c", i)})
	}
	lost := snapshot.NewLoss(placementv1beta1.ReasonSelectionShrunk, configMaps+1, ids)
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid"), Generation: 3}}
	placement.Annotations = map[string]string{placementv1beta1.SelectionVerdictAnnotation: snapshot.Verdict{Generation: 3, Index: 4, Lost: lost}.Encode()}
	return placement, lost
}

func TestMigrateAcceptLetsGoWhatASelectionHasLost(t *testing.T) {
	web, lost := losing("web", 7)
	shop, lostOfShop := losing("shop", 6)
	stored := func(c *console, name string) *placementv1beta1.ClusterResourcePlacement {
		return get(c, &placementv1beta1.ClusterResourcePlacement{}, name)
	}

	c := newConsole(t, web.DeepCopy(), shop.DeepCopy())
	require.Error(t, c.run("migrate", "accept", "web"), "there is no terminal to ask on")
	assert.Contains(t, c.Out.String(), "web: ConfigMap web/c4 is no longer selected\nweb: and 2 more\n")
	assert.False(t, lost.IsAccepted(stored(c, "web"), 4))
	require.NoError(t, c.run("migrate", "accept", "web", "--dry-run"))
	assert.False(t, lost.IsAccepted(stored(c, "web"), 4))

	require.NoError(t, c.run("migrate", "accept", "web", "--yes"))
	assert.Contains(t, c.Out.String(), "7 removal(s) of placement web accepted")
	assert.True(t, lost.IsAccepted(stored(c, "web"), 4))
	assert.False(t, lost.IsAccepted(stored(c, "web"), 5), "the next snapshot's loss is another one")
	assert.False(t, lostOfShop.IsAccepted(stored(c, "shop"), 4), "it was not asked for")

	require.NoError(t, c.run("migrate", "accept", "--yes"))
	assert.True(t, lostOfShop.IsAccepted(stored(c, "shop"), 4))
}

func TestMigrateAcceptLetsGoClustersAndObjectsOfOnePlacement(t *testing.T) {
	web, lost := losing("web", 1)
	held := rules.NewHeldRemovals(web, []rules.HeldRemoval{{Binding: "web-a", Cluster: "a", Why: "it is gone"}})
	web.Annotations[placementv1beta1.RemovalsHeldAnnotation] = held.Encode()
	c := newConsole(t, web)
	require.NoError(t, c.run("migrate", "accept", "web", "--yes"))
	accepted := get(c, &placementv1beta1.ClusterResourcePlacement{}, "web")
	assert.True(t, held.IsAccepted(accepted))
	assert.True(t, lost.IsAccepted(accepted, 4))
}

func TestMigrateAcceptPassesOverAVerdictThatCannotBeRead(t *testing.T) {
	web, lost := losing("web", 1)
	broken, _ := losing("broken", 1)
	broken.Annotations[placementv1beta1.SelectionVerdictAnnotation] = "{"
	c := newConsole(t, web, broken)
	require.NoError(t, c.run("migrate", "accept", "--yes"))
	assert.True(t, lost.IsAccepted(get(c, &placementv1beta1.ClusterResourcePlacement{}, "web"), 4))
}
