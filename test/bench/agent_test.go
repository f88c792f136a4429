//go:build bench

package bench

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/cmd/devfleet/control"
	"github.com/fleetflow/fleetflow/cmd/devfleet/controlplane"
)

// ticks is how many units of CPU time Linux counts in a second.
const ticks = 100

// agent is the hub agent's process.
func (f *fleet) agent(t *testing.T) control.Component {
	t.Helper()
	return f.component(t, controlplane.HubAgent)
}

func (f *fleet) component(t *testing.T, name string) control.Component {
	t.Helper()
	status, err := f.Control.Status(t.Context())
	require.NoError(t, err)
	component, found := status.Component(name)
	require.True(t, found)
	return component
}

// cpuOf is how many seconds of CPU time each part of the fleet has had.
func (f *fleet) cpuOf(t *testing.T) map[string]float64 {
	t.Helper()
	used := map[string]float64{"bench": cpuTime(t, os.Getpid())}
	for _, name := range []string{controlplane.HubAgent, controlplane.Temporal, "hub/apiserver", "hub/etcd"} {
		used[name] = cpuTime(t, f.component(t, name).PID)
	}
	return used
}

// cpuSince tells who has used how much since.
func (f *fleet) cpuSince(t *testing.T, before map[string]float64) string {
	t.Helper()
	now := f.cpuOf(t)
	var parts []string
	for _, name := range []string{controlplane.HubAgent, controlplane.Temporal, "hub/apiserver", "hub/etcd", "bench"} {
		parts = append(parts, fmt.Sprintf("%s %.1f s", name, now[name]-before[name]))
	}
	return strings.Join(parts, ", ")
}

// cpuTime is how many seconds of CPU time a process has had.
func cpuTime(t *testing.T, pid int) float64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err, "CPU times are read as Linux tells them")
	// The name of the program stands in brackets and may have spaces; user and system time are the 12th and 13th field
	// after it.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	var user, system float64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	require.NoError(t, err)
	return (user + system) / ticks
}
