package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

// beside is the hub agent that runs beside that of the fleet.
const beside = "hub-agent/beside"

// peer is the hub agent beside that of the fleet: while one is killed, frozen or cut off, the other takes over.
type peer struct {
	// kubeconfig is that with which it reaches the hub, over no link that is cut.
	kubeconfig string

	mu sync.Mutex
	// program is what runs from its next start on, process what runs now.
	program string
	process *os.Process
}

// exchange has another program run from now on.
func (p *peer) exchange(program string) error {
	p.mu.Lock()
	p.program = program
	p.mu.Unlock()
	return p.kill()
}

// kill ends what runs; it is started again.
func (p *peer) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return nil
	}
	if err := p.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing the second hub agent: %w", err)
	}
	return nil
}

// pid is that of what runs, 0 if nothing does.
func (p *peer) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil {
		return 0
	}
	return p.process.Pid
}

// keep runs the second hub agent, and starts it again whenever it has ended.
func (p *peer) keep(ctx context.Context, w *world, logs string) error {
	out, err := os.Create(filepath.Join(logs, "hub-agent-beside.log"))
	if err != nil {
		return fmt.Errorf("making the log of the second hub agent: %w", err)
	}
	defer out.Close()
	for ctx.Err() == nil {
		if err := p.run(ctx, w, out); err != nil {
			return err
		}
		rest(ctx, time.Second)
	}
	return nil
}

func (p *peer) run(ctx context.Context, w *world, out io.Writer) error {
	commandLine, err := commandLineOf(ctx, w)
	if err != nil || commandLine == nil {
		return err
	}
	p.mu.Lock()
	command := exec.CommandContext(ctx, p.program, besideArguments(commandLine, p.kubeconfig)...)
	command.Stdout = out
	command.Stderr = out
	if err := command.Start(); err != nil {
		p.mu.Unlock()
		return fmt.Errorf("starting the second hub agent: %w", err)
	}
	p.process = command.Process
	p.mu.Unlock()
	_ = command.Wait() // it is killed, or ends when it loses its lease
	p.mu.Lock()
	p.process = nil
	p.mu.Unlock()
	return nil
}

// commandLineOf is that of the fleet's hub agent, nil while it is down.
func commandLineOf(ctx context.Context, w *world) ([]string, error) {
	status, err := w.Control.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the supervisor: %w", err)
	}
	component, _ := status.Component(controlplane.HubAgent)
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", component.PID))
	if err != nil || len(content) == 0 {
		return nil, nil //nolint:nilerr // it is down just now
	}
	return strings.Split(strings.TrimRight(string(content), "\x00"), "\x00"), nil
}

// besideArguments returns those of a command line of the fleet's hub agent, with another kubeconfig, ports that are free, and
// without the links that are cut.
func besideArguments(commandLine []string, kubeconfig string) []string {
	args := slices.Clone(commandLine[1:])
	for i, arg := range args {
		switch {
		case i > 0 && slices.Contains([]string{"--metrics-bind-address", "--health-probe-bind-address"}, args[i-1]):
			args[i] = "127.0.0.1:0"
		case i > 0 && args[i-1] == "--kubeconfig":
			args[i] = kubeconfig
		case strings.HasPrefix(arg, "--pprof-port=") || arg == "--enable-pprof":
			args[i] = "--enable-pprof=false"
		}
	}
	return slices.DeleteFunc(args, func(arg string) bool { return strings.HasPrefix(arg, temporalFlag) })
}
