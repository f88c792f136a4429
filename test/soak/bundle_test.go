package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// recorded makes a bundle of objects in their order.
func recorded(t *testing.T, objects ...client.Object) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	b, err := newBundle(dir, header{Seed: 7, Commit: "abc", Began: time.Now()})
	require.NoError(t, err)
	resources := map[string]string{}
	for resource, make := range kinds {
		resources[typeOf(make())] = resource
	}
	for i, object := range objects {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		require.NoError(t, b.addWrite(write{Revision: int64(i), At: time.Now(), Resource: resources[typeOf(object)], Object: text}))
	}
	require.NoError(t, b.addStep(step{Verb: "place"}))
	require.NoError(t, b.seal())
	return dir
}

func typeOf(object client.Object) string { return fmt.Sprintf("%T", object) }

func started(name string, on bool) placementv1beta1.ClusterUpdatingStatus {
	c := placementv1beta1.ClusterUpdatingStatus{ClusterName: name}
	if on {
		c.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue}}
	}
	return c
}

func runWith(clusters ...placementv1beta1.ClusterUpdatingStatus) *placementv1beta1.ClusterStagedUpdateRun {
	r := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	r.Status.UpdateStrategySnapshot = &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "s", MaxConcurrency: new(intstr.FromInt32(1))}}}
	r.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "s", Clusters: clusters}}
	return r
}

func TestABundleIsJudgedAgain(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	require.NoError(t, replayBundle(recorded(t, placement, runWith(started("a", true), started("b", false))), io.Discard))

	err := replayBundle(recorded(t, placement, runWith(started("a", true), started("b", true))), io.Discard)
	assert.ErrorContains(t, err, "1 writes break a promise")
}

func TestARecordingThatWasCutOffIsJudgedAsFarAsItGoes(t *testing.T) {
	dir := recorded(t, runWith(started("a", true), started("b", true)))
	path := filepath.Join(dir, writesFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, whole[:len(whole)-4], 0o600))
	assert.ErrorContains(t, replayBundle(dir, io.Discard), "1 writes break a promise")
}

func TestWhatIsNoBundleIsRefused(t *testing.T) {
	assert.ErrorContains(t, replayBundle(t.TempDir(), io.Discard), "is no bundle")

	dir := recorded(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, headerFile), []byte(`{"version": 99, "commit": "abc"}`), 0o600))
	assert.ErrorContains(t, replayBundle(dir, io.Discard), "has version 99, this program reads 1: replay it with the commit that made it, abc")

	require.NoError(t, os.WriteFile(filepath.Join(dir, headerFile), []byte(`nonsense`), 0o600))
	assert.ErrorContains(t, replayBundle(dir, io.Discard), "reading header.json")
}

func TestASoakThatCannotBeIsRefused(t *testing.T) {
	good := options{minutes: 1, size: size{Placements: 1, Hollow: 3, Members: 1}}
	dir := filepath.Join(t.TempDir(), "fleet")
	bad := good
	bad.minutes = 0
	assert.ErrorContains(t, bad.check(dir), "takes some time")
	bad = good
	bad.size.Hollow = 0
	assert.ErrorContains(t, bad.check(dir), "needs 3 simulated members")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "supervisor.lock"), nil, 0o600))
	assert.ErrorContains(t, good.check(dir), "has a fleet already: go run ./test/devfleet --dir")
}

func TestASeedOfNonsenseIsRefused(t *testing.T) {
	for _, nonsense := range []string{"", "seven", "-1", "1.5", "18446744073709551616", "7 8"} {
		_, err := parseSeed(nonsense)
		assert.ErrorContains(t, err, "is no seed: give the whole number that a soak has printed, or 0 for one by chance")
	}
	seed, err := parseSeed("18446744073709551615")
	require.NoError(t, err)
	assert.Equal(t, uint64(18446744073709551615), seed)
	seed, err = parseSeed("0")
	require.NoError(t, err)
	assert.NotZero(t, seed)
	c := command()
	c.SetArgs([]string{"run", "--seed", "seven", "--root", t.TempDir()})
	assert.ErrorContains(t, c.Execute(), `--seed "seven" is no seed`)
}

func TestASoakNeedsSpaceOnDiskForItsLength(t *testing.T) {
	require.NoError(t, checkSpace("/f", 5<<30, 10))
	assert.EqualError(t, checkSpace("/f", 5<<30, 60), "/f has 5120 MiB free, a soak of 60 minutes needs 7936 MiB: free some, or give another folder with --out")
	assert.ErrorContains(t, checkSpace("/f", 1<<30, 1), "needs 4160 MiB")
}
