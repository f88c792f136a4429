//go:build bench

package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	temporalclient "go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// memoryTarget is what the chart has the bundled server keep to.
const memoryTarget = "650MiB"

// pod plays a Pod of the chart with temporal.mode=Bundled: a hub agent and a Temporal beside it, of which each is started again after a second
// whenever it has ended.
type pod struct {
	name, address string
	server, agent *kept
}

// kept is a program that is kept running.
type kept struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	process *os.Process
}

// keep runs a program until it is ended.
func keep(t *testing.T, log string, command func(context.Context) *exec.Cmd) *kept {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	k := &kept{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(k.ended)
		defer out.Close()
		for ctx.Err() == nil {
			k.runOnce(command(ctx), out)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(k.end)
	return k
}

func (k *kept) runOnce(c *exec.Cmd, out io.Writer) {
	c.Stdout = out
	c.Stderr = out
	k.mu.Lock()
	if err := c.Start(); err != nil {
		fmt.Fprintln(out, "starting it:", err)
	} else {
		k.process = c.Process
	}
	k.mu.Unlock()
	_ = c.Wait() // it is killed, or has not started
}

// pid is that of what runs.
func (k *kept) pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process.Pid
}

// kill ends what runs; it is started again.
func (k *kept) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.process != nil {
		_ = k.process.Kill() // it may have ended
	}
}

// end ends what runs for good.
func (k *kept) end() {
	k.cancel()
	<-k.ended
}

// takeFleetAgentAway stops the fleet's own hub agent, for the rest of a test or until it is given back, and returns its command line.
func (f *fleet) takeFleetAgentAway(t *testing.T) (commandLine []string, giveBack func()) {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", f.agent(t).PID))
	require.NoError(t, err)
	require.NoError(t, f.Control.Do(t.Context(), control.Stop, controlplane.HubAgent))
	_ = f.hub.Delete(t.Context(), f.lease()) // it may have given it back
	giveBack = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = f.hub.Delete(ctx, f.lease()) // as above
		require.NoError(t, f.Control.Do(ctx, control.Start, controlplane.HubAgent))
		require.NoError(t, f.Control.WaitReady(ctx, controlplane.HubAgent))
	})
	t.Cleanup(giveBack)
	return strings.Split(strings.TrimRight(string(content), "\x00"), "\x00"), giveBack
}

// build compiles a program of the product.
func build(t *testing.T, program string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), program)
	c := exec.Command("go", "build", "-o", path, "./cmd/"+program)
	c.Dir = root
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// pod starts one, with the command line of the fleet's hub agent.
func (f *fleet) pod(t *testing.T, name, server string, commandLine []string) *pod {
	t.Helper()
	p := &pod{name: name, address: freeAddress(t)}
	data := t.TempDir()
	args := []string{"--server=" + f.Fleet.Tools["temporal"], "--data=" + data, "--address=" + p.address, "--http-address=" + freeAddress(t)}
	p.server = keep(t, f.Fleet.Path("logs", "temporal-"+name+".log"), func(ctx context.Context) *exec.Cmd {
		c := exec.CommandContext(ctx, server, args...)
		c.Env = append(os.Environ(), "GOMEMLIMIT="+memoryTarget, "HOME="+data)
		return c
	})
	own := append(slices.Clone(commandLine[1:]), "--temporal-mode=Bundled", "--temporal-address="+p.address,
		"--metrics-bind-address=0", "--health-probe-bind-address="+freeAddress(t), "--enable-pprof=false")
	p.agent = keep(t, f.Fleet.Path("logs", "hub-agent-"+name+".log"), func(ctx context.Context) *exec.Cmd {
		return exec.CommandContext(ctx, commandLine[0], own...)
	})
	return p
}

// temporal is a client of the server of a Pod, for the rest of a test.
func (p *pod) temporal(t *testing.T) temporalclient.Client {
	t.Helper()
	c, err := temporalclient.NewLazyClient(temporalclient.Options{
		HostPort: p.address, Namespace: wf.DefaultNamespace, Logger: temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// use has what asks for workflows ask the Temporal of a Pod, for the rest of a test.
func (f *fleet) use(t *testing.T, p *pod) {
	t.Helper()
	before := f.Temporal
	f.Temporal = p.temporal(t)
	t.Cleanup(func() { f.Temporal = before })
}

// awaitWorkers waits until workers ask the server of a Pod for work, which the agent that leads has.
func (p *pod) awaitWorkers(t *testing.T) {
	t.Helper()
	ctx := within(t, patience)
	c := p.temporal(t)
	for {
		queue, err := c.DescribeTaskQueue(ctx, wf.TaskQueue, enums.TASK_QUEUE_TYPE_WORKFLOW)
		if err == nil && len(queue.GetPollers()) > 0 {
			return
		}
		require.NoError(t, ctx.Err(), "waiting for workers: %v", err)
		pause(200 * time.Millisecond) // who asks for work cannot be watched
	}
}

// end ends a Pod as a node that goes away does, and takes its lease, which would have to run out.
func (p *pod) end(t *testing.T, f *fleet) {
	t.Helper()
	p.agent.end()
	p.server.end()
	_ = client.IgnoreNotFound(f.hub.Delete(t.Context(), f.lease())) // it may not have had it
}

// killServerEvery kills the server now and then until it is told to stop, and returns how often it has.
func (p *pod) killServerEvery(pause time.Duration) (stop func() int) {
	end := make(chan struct{})
	kills := make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-time.After(pause):
				p.server.kill()
				n++
			case <-end:
				kills <- n
				return
			}
		}
	}()
	return func() int { close(end); return <-kills }
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

var residentLine = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// resident is how many bytes of memory a process has.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	match := residentLine.FindSubmatch(content)
	require.NotNil(t, match)
	kilobytes, err := strconv.ParseInt(string(match[1]), 10, 64)
	require.NoError(t, err)
	return kilobytes << 10
}
