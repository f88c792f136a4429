package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// fileOfClusters writes a file of clusters.
func fileOfClusters(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clusters.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

const threeClusters = `
clusters:
  - {name: one, labels: {region: west}}
  - {name: two, context: kind-two, set: [logVerbosity=1]}
  - {name: three}
`

// hubWithThree returns a console with a hub and the clusters of threeClusters, of which the context of the second leads to the first.
func hubWithThree(t *testing.T) *console {
	t.Helper()
	c := newConsole(t)
	c.Contexts = map[string]client.WithWatch{"one": terminal.InMemory(clusterWith("uid-1")), "three": terminal.InMemory(clusterWith("uid-3"))}
	c.Contexts["kind-two"] = terminal.InMemory(clusterWith("uid-1"))
	hubThatWorks(c)
	return c
}

func (c *console) member(name string) *clusterv1beta1.MemberCluster {
	c.T.Helper()
	member := &clusterv1beta1.MemberCluster{}
	require.NoError(c.T, c.Hub.Get(c.T.Context(), client.ObjectKey{Name: name}, member))
	return member
}

func TestAllClustersOfAFileJoin(t *testing.T) {
	c := hubWithThree(t)
	h := &recordedHelm{}
	file := fileOfClusters(t, threeClusters)
	join := []string{"join", "--from-file", file, "--parallel", "1", "--set", "image.tag=dev"}
	err := c.runWithHelm(h, join...)
	require.ErrorContains(t, err, "1 of 3 clusters have not joined: two. The same command tries these again", "one that fails does not hold up the others")
	assert.Contains(t, c.Out.String(), "[1/3] one has joined")
	assert.Contains(t, c.Out.String(), "[3/3] three has joined")
	assert.Contains(t, c.Err.String(), "[2/3] two: looking at kind-two: it is the cluster of one in the same file, which has the same uid uid-1")
	assert.Equal(t, map[string]string{"region": "west"}, c.member("one").Labels)

	c.Contexts["kind-two"] = terminal.InMemory(clusterWith("uid-2"))
	h.args = nil
	require.NoError(t, c.runWithHelm(h, join...))
	assert.Contains(t, c.Out.String(), "2 of 3 have joined before and are left as they are")
	assert.Contains(t, c.Out.String(), "[1/1] two has joined")
	assert.Contains(t, strings.Join(h.args, " "), "--kube-context kind-two ")
	assert.True(t, strings.HasSuffix(strings.Join(h.args, " "), "--set image.tag=dev --set logVerbosity=1"), "values of the file come last")

	token := func() string {
		secret := &corev1.Secret{}
		require.NoError(t, c.Contexts["one"].Get(t.Context(), client.ObjectKey{Namespace: "fleet-system", Name: "hub-kubeconfig-secret"}, secret))
		return string(secret.Data["token"])
	}
	before := token()
	file = fileOfClusters(t, strings.ReplaceAll(threeClusters, "region: west", "tier: gold"))
	require.NoError(t, c.runWithHelm(h, "join", "--from-file", file, "--parallel", "1", "--all"))
	assert.NotEqual(t, before, token())
	assert.Equal(t, map[string]string{"region": "west", "tier": "gold"}, c.member("one").Labels, "labels that others have given stay")
}

func TestADryRunOfAFileChangesNothing(t *testing.T) {
	c := hubWithThree(t)
	require.Error(t, c.runWithHelm(&recordedHelm{missing: true}, "join", "--from-file", fileOfClusters(t, threeClusters), "--parallel", "1", "--dry-run"))
	assert.Contains(t, c.Err.String(), "one: inviting one (dry run)")
	require.Error(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "one"}, &clusterv1beta1.MemberCluster{}))
}

func TestAFileOfClustersIsCheckedBeforeAnythingIsChanged(t *testing.T) {
	for text, want := range map[string]string{
		"clusters: []":                                                "has no clusters",
		"members: [{name: a}]":                                        `unknown field "members"`,
		"clusters: [{name: A_b}]":                                     `clusters[0].name: "A_b" is no name of a member`,
		"clusters: [{name: a}, {name: a, context: b}]":                "clusters[1].name: a is there twice",
		"clusters: [{name: a}, {name: b, context: a}]":                "clusters[1].context: a is the context of a, too",
		"clusters: [{name: a, labels: {region: 'east and west'}}]":    "clusters[0].labels: Invalid value",
		"clusters: [{name: a, labels: {region: west}, heartbeat: 1}]": "unknown field",
	} {
		t.Run(text, func(t *testing.T) {
			c := hubWithThree(t)
			h := &recordedHelm{}
			require.ErrorContains(t, c.runWithHelm(h, "join", "--from-file", fileOfClusters(t, text)), want)
			assert.Empty(t, h.args)
		})
	}
	for _, args := range [][]string{{"one", "--from-file", "f"}, {"--member-context", "x", "--from-file", "f"}, {"--from-file", "f", "--parallel", "0"}, {"one", "--all", "--member-context", "one"}} {
		require.Error(t, hubWithThree(t).runWithHelm(&recordedHelm{}, append([]string{"join"}, args...)...), args)
	}
}

func TestAClusterOfAFileMayHaveAKubeconfigOfItsOwn(t *testing.T) {
	file := fileOfClusters(t, "clusters: [{name: a, kubeconfig: a.yaml}, {name: b, kubeconfig: b.yaml, context: a}]")
	entries, err := readClusters(file)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(filepath.Dir(file), "a.yaml"), entries[0].Kubeconfig, "relative to the file")
	assert.Equal(t, "a", entries[0].Context)
}
