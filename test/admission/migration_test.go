//go:build integration

package admission

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/docs"
	recording "github.com/fleetflow/fleetflow/test/kubefleet"
)

const (
	migrationGuide = "deploy/docs/migration.md"
	// onRecordedHub is why other tests skip the blocks of the guide that are run here.
	onRecordedHub = "on a recorded hub"
)

// TestTheGuideToMigrationOnARecordedHub runs the commands of the guide on a hub with what KubeFleet has left on one.
func TestTheGuideToMigrationOnARecordedHub(t *testing.T) {
	fleet := recordedHub(t)
	tools := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(tools, "kubectl-fleet"), "./cmd/kubectl-fleet")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	content, err := os.ReadFile(filepath.Join(root, migrationGuide))
	require.NoError(t, err)
	steps, err := docs.Parse(string(content))
	require.NoError(t, err)
	ran := 0
	for _, step := range steps {
		if step.Skipped != onRecordedHub {
			continue
		}
		ran++
		if strings.HasPrefix(step.Command, "kubectl delete validatingwebhookconfiguration") {
			endLease(t, fleet) // the step before scales KubeFleet's hub agent to zero
		}
		command := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", step.Command)
		command.Env = append(os.Environ(), "KUBECONFIG="+fleet.Kubeconfig(),
			"PATH="+tools+string(os.PathListSeparator)+filepath.Dir(fleet.Tools["kubectl"])+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		assert.True(t, docs.Matches(step.Output, string(out)), "line %d: %s\n%v\n--- actual\n%s", step.Line, step.Command, err, out)
	}
	assert.GreaterOrEqual(t, ran, 6, "commands of the guide")
}

// endLease ends the lease of KubeFleet's hub agent, as happens after it has ended.
func endLease(t *testing.T, fleet *state.Fleet) {
	t.Helper()
	config, err := controlplane.RESTConfig(fleet, state.Hub)
	require.NoError(t, err)
	hub, err := newSession(config)
	require.NoError(t, err)
	lease := theirLease()
	require.NoError(t, hub.Get(t.Context(), client.ObjectKeyFromObject(lease), lease))
	lease = heldBy(lease, time.Now().Add(-time.Second))
	lease.Spec.LeaseDurationSeconds = new(int32(1))
	require.NoError(t, hub.Update(t.Context(), lease))
}

// recordedHub starts a hub of its own, with KubeFleet's objects and with its hub agent holding its lease.
func recordedHub(t *testing.T) *state.Fleet {
	t.Helper()
	fleet, down, err := start(t.TempDir())
	t.Cleanup(down)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	require.NoError(t, controlplane.SetUpHub(ctx, fleet, root))
	config, err := controlplane.RESTConfig(fleet, state.Hub)
	require.NoError(t, err)
	config.QPS = -1
	config.Burst = 0
	objects, err := recording.Hub()
	require.NoError(t, err)
	require.NoError(t, recording.Load(ctx, config, objects))
	hub, err := newSession(config)
	require.NoError(t, err)
	held := heldBy(theirLease(), time.Now().Add(time.Hour)) // as if it were renewed all the time
	require.NoError(t, hub.Create(ctx, held))
	return fleet
}
