package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

const testTimeout = 20 * time.Second

// fleet is a supervisor of shell scripts with a client on its socket.
type fleet struct {
	t      *testing.T
	dir    string
	client *control.Client
	end    context.CancelFunc
	ended  chan error
}

// startFleet runs scripts as components and waits for the socket.
func startFleet(t *testing.T, specs ...Spec) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: shortTempDir(t), ended: make(chan error, 1)}
	for i := range specs {
		specs[i].LogFile = filepath.Join(f.dir, "logs", strings.ReplaceAll(specs[i].Name, "/", "."))
	}
	s, err := New(3, specs)
	require.NoError(t, err)
	s.grace = 200 * time.Millisecond
	var ctx context.Context
	ctx, f.end = context.WithCancel(context.Background())
	go func() { f.ended <- s.Serve(ctx, control.SocketPath(f.dir)) }()
	t.Cleanup(f.end)
	require.Eventually(t, func() bool {
		f.client, err = control.Dial(f.dir)
		return err == nil
	}, testTimeout, 5*time.Millisecond)
	return f
}

// shortTempDir is short enough for a unix socket, which a test's own folder may not be.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sup") //nolint:usetesting // its path is too long
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (f *fleet) component(name string) control.Component {
	f.t.Helper()
	status, err := f.client.Status(f.ctx())
	require.NoError(f.t, err)
	c, found := status.Component(name)
	require.True(f.t, found)
	return c
}

func (f *fleet) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	f.t.Cleanup(cancel)
	return ctx
}

func shell(name, script string) Spec {
	return Spec{Name: name, Command: []string{"/bin/sh", "-c", script}}
}

// trapping runs forever, answers SIGTERM by the command, and is ready once it does.
func trapping(dir, name, command string) Spec {
	ready := filepath.Join(dir, name+".ready")
	spec := shell(name, "trap '"+command+"' TERM; touch "+ready+"; "+forever)
	spec.Probe = func(context.Context) error { _, err := os.Stat(ready); return err }
	return spec
}

const forever = "while :; do sleep 0.05; done"

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAComponentStartsAfterWhatItNeeds(t *testing.T) {
	dir := shortTempDir(t)
	probed := filepath.Join(dir, "first-is-ready")
	first := shell("first", forever)
	first.Probe = func(context.Context) error { return os.WriteFile(probed, nil, 0o600) }
	second := shell("second", "test -e "+probed+" || exit 7; "+forever)
	second.Needs = []string{"first"}

	f := startFleet(t, first, second)
	require.NoError(t, f.client.WaitReady(f.ctx(), "second"))
	assert.Zero(t, f.component("second").Restarts, "it never ran before the first was ready")
}

func TestAKilledComponentStartsAgain(t *testing.T) {
	spec := shell("agent", forever)
	spec.Pause = 10 * time.Millisecond
	f := startFleet(t, spec)
	require.NoError(t, f.client.WaitReady(f.ctx(), "agent"))
	before := f.component("agent").PID

	require.NoError(t, f.client.Do(f.ctx(), control.Kill, "agent"))
	assert.False(t, alive(before), "the process is gone when Kill returns")
	require.NoError(t, f.client.WaitReady(f.ctx(), "agent"))
	after := f.component("agent")
	assert.NotEqual(t, before, after.PID)
	assert.Equal(t, 1, after.Restarts)
}

func TestAStoppedComponentStaysDownUntilItIsStarted(t *testing.T) {
	f := startFleet(t, shell("agent", forever))
	require.NoError(t, f.client.WaitReady(f.ctx(), "agent"))
	pid := f.component("agent").PID

	require.NoError(t, f.client.Do(f.ctx(), control.Stop, "agent"))
	assert.False(t, alive(pid))
	assert.Equal(t, control.Stopped, f.component("agent").State)
	assert.ErrorContains(t, f.client.WaitReady(f.ctx(), "agent"), "stopped", "waiting for it would not end")
	assert.ErrorContains(t, f.client.Do(f.ctx(), control.Kill, "agent"), "no process")

	require.NoError(t, f.client.Do(f.ctx(), control.Start, "agent"))
	assert.Equal(t, control.Ready, f.component("agent").State)
	assert.Zero(t, f.component("agent").Restarts, "an end that was asked for is not a restart")
}

func TestAHeldComponentWaitsToBeStarted(t *testing.T) {
	spec := shell("agent", forever)
	spec.Held = true
	f := startFleet(t, spec)
	assert.Equal(t, control.Stopped, f.component("agent").State)
	require.NoError(t, f.client.Begin(f.ctx(), control.Restart, "agent"))
	require.NoError(t, f.client.WaitReady(f.ctx(), "agent"))
}

func TestARestartedComponentHasANewProcess(t *testing.T) {
	f := startFleet(t, shell("agent", forever))
	require.NoError(t, f.client.WaitReady(f.ctx(), "agent"))
	before := f.component("agent").PID
	require.NoError(t, f.client.Do(f.ctx(), control.Restart, "agent"))
	assert.NotEqual(t, before, f.component("agent").PID)
}

func TestAWipedComponentStartsWithoutItsData(t *testing.T) {
	data := filepath.Join(shortTempDir(t), "data.db")
	spec := shell("temporal", "test -e "+data+" && exit 7; "+forever)
	spec.Data = []string{data}
	f := startFleet(t, spec, shell("other", forever))
	require.NoError(t, f.client.WaitReady(f.ctx(), "temporal"))
	for _, file := range []string{data, data + "-wal"} {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}

	require.NoError(t, f.client.Do(f.ctx(), control.Wipe, "temporal"))
	assert.NoFileExists(t, data)
	assert.NoFileExists(t, data+"-wal")
	assert.ErrorContains(t, f.client.Begin(f.ctx(), control.Wipe, "other"), "no data")
}

func TestShutdownEndsEveryProcessInReverseOrder(t *testing.T) {
	dir := shortTempDir(t)
	order := filepath.Join(dir, "order")
	server := trapping(dir, "server", "echo server >> "+order+"; exit 0")
	agent := trapping(dir, "agent", "echo agent >> "+order+"; exit 0")
	agent.Needs = []string{"server"}
	f := startFleet(t, server, agent)
	require.NoError(t, f.client.WaitReady(f.ctx(), "agent"))

	require.NoError(t, f.client.Shutdown(f.ctx()))
	require.NoError(t, <-f.ended)
	content, err := os.ReadFile(order)
	require.NoError(t, err)
	assert.Equal(t, "agent\nserver\n", string(content))
}

func TestAProcessThatIgnoresSIGTERMIsKilled(t *testing.T) {
	f := startFleet(t, trapping(shortTempDir(t), "stubborn", ""))
	require.NoError(t, f.client.WaitReady(f.ctx(), "stubborn"))
	pid := f.component("stubborn").PID
	f.end()
	require.NoError(t, <-f.ended)
	assert.False(t, alive(pid))
}

func TestACrashingComponentSaysHowItEnded(t *testing.T) {
	f := startFleet(t, shell("broken", "echo out of luck; exit 3"))
	require.Eventually(t, func() bool { return f.component("broken").State == control.BackOff }, testTimeout, 5*time.Millisecond)
	assert.Contains(t, f.component("broken").Reason, "exit status 3")
	content, err := os.ReadFile(f.component("broken").LogFile)
	require.NoError(t, err)
	assert.Contains(t, string(content), "out of luck")
}

func TestABusyPortIsNamedAndWaitedFor(t *testing.T) {
	listener := listen(t)
	spec := shell("server", forever)
	spec.Ports = []int{listener.port}
	f := startFleet(t, spec)
	want := "port " + strconv.Itoa(listener.port) + " is in use by another process"
	require.Eventually(t, func() bool { return f.component("server").Reason == want }, testTimeout, 5*time.Millisecond)
	listener.close()
	require.NoError(t, f.client.WaitReady(f.ctx(), "server"))
}

func TestAnUnknownComponentIsRefused(t *testing.T) {
	f := startFleet(t, shell("agent", forever))
	assert.ErrorContains(t, f.client.Do(f.ctx(), control.Restart, "agnet"), `no component "agnet"`)
}

func TestNewRefusesWrongLists(t *testing.T) {
	_, err := New(1, []Spec{shell("a", ""), shell("a", "")})
	assert.ErrorContains(t, err, "twice")
	_, err = New(1, []Spec{{Name: "a", Needs: []string{"b"}}, shell("b", "")})
	assert.ErrorContains(t, err, "not listed before it")
}

func TestPauseAfter(t *testing.T) {
	assert.Equal(t, time.Second, pauseAfter(5, time.Second), "a fixed pause does not grow")
	assert.Equal(t, time.Second, pauseAfter(1, 0))
	assert.Equal(t, 4*time.Second, pauseAfter(3, 0))
	assert.Equal(t, longestPause, pauseAfter(50, 0))
}

func TestDialOfAFolderWithoutSupervisor(t *testing.T) {
	_, err := control.Dial(shortTempDir(t))
	assert.True(t, errors.Is(err, control.ErrNotRunning))
}
