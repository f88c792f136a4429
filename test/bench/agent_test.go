//go:build bench

package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
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

// measured are the processes whose CPU time is told.
var measured = []string{controlplane.HubAgent, controlplane.Temporal, "hub/apiserver", "hub/etcd"}

// cpu is how many seconds of CPU time each part of the fleet has had; "members" is this process.
type cpu map[string]float64

func (f *fleet) cpu(t *testing.T) cpu {
	t.Helper()
	used := cpu{"members": cpuTime(t, os.Getpid())}
	for _, name := range measured {
		used[name] = cpuTime(t, f.component(t, name).PID)
	}
	return used
}

// cpuSince is what was used since.
func (f *fleet) cpuSince(t *testing.T, before cpu) cpu {
	t.Helper()
	now := f.cpu(t)
	for name := range now {
		now[name] -= before[name]
	}
	return now
}

func (c cpu) total() float64 {
	sum := 0.0
	for _, seconds := range c {
		sum += seconds
	}
	return sum
}

func (c cpu) String() string {
	var parts []string
	for _, name := range append(slices.Clone(measured), "members") {
		parts = append(parts, fmt.Sprintf("%s %.2f s", name, c[name]))
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
