package install

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// fleetOfTwo is a hub with an agent that leads and two members, of which one has a context.
func fleetOfTwo(t *testing.T, objects ...client.Object) *console {
	t.Helper()
	for name, uid := range map[string]string{"one": "uid-1", "two": "uid-2"} {
		objects = append(objects, &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("object-" + uid), Annotations: map[string]string{clusterv1beta1.ClusterUIDAnnotation: uid}},
			Spec:       clusterv1beta1.MemberClusterSpec{Identity: joinedIdentity(name)},
		}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "connect-to-fleet", Name: name + "-hub-cluster-access"}})
	}
	c := newConsole(t, append(objects, terminal.Lease(migration.HubAgentLease, "hub-agent-7f"))...)
	c.Contexts = map[string]client.WithWatch{"kind-one": terminal.InMemory(clusterWith("uid-1"))}
	return c
}

func placementNamed(name string) client.Object {
	return &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestUninstallDissolvesTheFleetFromTheEdgeToTheCentre(t *testing.T) {
	c := fleetOfTwo(t)
	h := &recordedHelm{}
	file := fileOfClusters(t, "clusters: [{name: one, context: kind-one}]")
	c.Stdin = "n\n"
	require.ErrorIs(t, c.runWithHelm(h, "uninstall", "--from-file", file), cli.ErrDeclined)
	assert.Empty(t, h.runs)

	require.NoError(t, c.runWithHelm(h, "uninstall", "--from-file", file, "--yes"))
	require.Len(t, h.runs, 2)
	assert.Equal(t, "uninstall member-agent --kube-context kind-one --namespace fleet-system --ignore-not-found", h.runs[0])
	assert.Equal(t, "uninstall hub-agent --namespace fleet-system --ignore-not-found --wait", h.runs[1])
	for _, gone := range []client.Object{
		&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "two"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "connect-to-fleet", Name: "two-hub-cluster-access"}},
		terminal.Lease(migration.HubAgentLease, ""),
	} {
		assert.True(t, apierrors.IsNotFound(c.Hub.Get(t.Context(), client.ObjectKeyFromObject(gone), gone)), "%T %s", gone, gone.GetName())
	}
	assert.Contains(t, c.Out.String(), "These stay on the hub:\n  the definitions of the fleet's kinds")
	assert.Contains(t, c.Out.String(), "The member agent stays on two: helm uninstall member-agent")
}

func TestUninstallRefusesAFleetThatIsInUse(t *testing.T) {
	c := fleetOfTwo(t, placementNamed("web"))
	h := &recordedHelm{}
	require.ErrorContains(t, c.runWithHelm(h, "uninstall", "--yes"), "there are placements, 1 of them, the first is placement/web: delete them first, or give --placements-stay")
	require.NoError(t, c.runWithHelm(h, "uninstall", "--yes", "--placements-stay", "--keep-placed", "--dry-run"))
	assert.Empty(t, h.runs)
	require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "one"}, &clusterv1beta1.MemberCluster{}))

	require.NoError(t, c.runWithHelm(h, "uninstall", "--yes", "--placements-stay", "--keep-placed"))
	require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "web"}, &placementv1beta1.ClusterResourcePlacement{}))
	assert.Contains(t, c.Out.String(), "What was placed stays on the members")
}

func TestUninstallLooksBeforeItChangesAnything(t *testing.T) {
	for want, change := range map[string]struct {
		objects []client.Object
		helm    recordedHelm
		file    string
	}{
		"helm is not installed":                         {helm: recordedHelm{missing: true}},
		"kind-one is not member/two":                    {file: "clusters: [{name: two, context: kind-one}]"},
		"has 1 definition(s) of the fleet's kinds":      {objects: []client.Object{terminal.DefinitionOfRelease("works.placement.kubernetes-fleet.io", "hub-agent")}},
		"which kubectl fleet join --help shows":         {file: "members: []"},
		"there are placements, 1 of them, the first is": {objects: []client.Object{placementNamed("web")}},
	} {
		t.Run(want, func(t *testing.T) {
			c := fleetOfTwo(t, change.objects...)
			args := []string{"uninstall", "--yes"}
			if change.file != "" {
				args = append(args, "--from-file", fileOfClusters(t, change.file))
			}
			require.ErrorContains(t, c.runWithHelm(&change.helm, args...), want)
			assert.Empty(t, strings.Join(change.helm.runs, ""))
			require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "two"}, &clusterv1beta1.MemberCluster{}))
		})
	}
}
