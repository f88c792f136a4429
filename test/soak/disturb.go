package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	// linkToHub and linkToTemporal are what the fleet's hub agent is cut off from.
	linkToHub, linkToTemporal = "hub-agent/to-hub", "hub-agent/to-temporal"
	// A process that is slow is stopped for stopped of every stopped and running.
	stopped, running = 45 * time.Millisecond, 15 * time.Millisecond
	// leastFile is to how many bytes the files of a process may grow at least whose disk is full.
	leastFile = 1 << 20
)

// kill ends a process at once; it is started again.
func kill(ctx context.Context, w *world, now step) error {
	if now.Target == beside {
		return w.peer.kill()
	}
	return w.Control.Do(ctx, control.Kill, now.Target)
}

// pidOf returns the process of a component, 0 if it is down just now.
func (w *world) pidOf(ctx context.Context, component string) (int, error) {
	if component == beside {
		return w.peer.pid(), nil
	}
	status, err := w.Control.Status(ctx)
	if err != nil {
		return 0, fmt.Errorf("asking the supervisor: %w", err)
	}
	found, _ := status.Component(component)
	return found.PID, nil
}

// freeze stops a process for a while, as a machine that is overloaded or suspended does.
func freeze(ctx context.Context, w *world, now step) error {
	pid, err := w.pidOf(ctx, now.Target)
	if err != nil || pid == 0 {
		return err
	}
	return stopFor(ctx, pid, now.For)
}

func stopFor(ctx context.Context, pid int, d time.Duration) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return ignoreEnded(err)
	}
	rest(ctx, d)
	return ignoreEnded(syscall.Kill(pid, syscall.SIGCONT))
}

// slow has a process run a quarter of the time, as one does whose disk or processor others use.
func slow(ctx context.Context, w *world, now step) error {
	pid, err := w.pidOf(ctx, now.Target)
	if err != nil || pid == 0 {
		return err
	}
	for end := time.Now().Add(now.For); time.Now().Before(end); rest(ctx, running) {
		if err := stopFor(ctx, pid, stopped); err != nil {
			return err
		}
	}
	return nil
}

func ignoreEnded(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// cut keeps a component down for a while.
func cut(ctx context.Context, w *world, now step) error {
	if now.Target == "" {
		return nil
	}
	if err := w.Control.Do(ctx, control.Stop, now.Target); err != nil {
		return err
	}
	rest(ctx, now.For)
	return w.Control.Do(context.WithoutCancel(ctx), control.Start, now.Target)
}

// partition cuts the fleet's hub agent off from the hub or from Temporal, while the second one reaches both.
func partition(ctx context.Context, w *world, now step) error {
	w.links[now.Target].cut(ctx, now.For)
	return nil
}

// fill has the disk of a component be full for a while: etcd refuses what it would have to store, as it does when it has reached
// its quota; no file of Temporal's can grow.
func fill(ctx context.Context, w *world, now step) error {
	if now.Target == controlplane.Temporal {
		pid, err := w.pidOf(ctx, now.Target)
		if err != nil || pid == 0 {
			return err
		}
		return fillDisk(ctx, pid, now.For, w.Fleet.TemporalDatabase(), w.Fleet.TemporalDatabase()+"-wal")
	}
	return fillEtcd(ctx, w.Fleet.Address(now.Target), now.For)
}

// fillDisk keeps the files of a process from growing for a while, beyond the size of the largest of those named.
func fillDisk(ctx context.Context, pid int, d time.Duration, files ...string) error {
	limit := uint64(leastFile)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			limit = max(limit, uint64(info.Size()))
		}
	}
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &before); err != nil {
		return ignoreEnded(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: before.Max}, nil); err != nil {
		return ignoreEnded(err)
	}
	rest(ctx, d)
	return ignoreEnded(unix.Prlimit(pid, unix.RLIMIT_FSIZE, &before, nil))
}

// fillEtcd raises the alarm that etcd raises when its quota is used up, and ends it after a while.
func fillEtcd(ctx context.Context, address string, d time.Duration) error {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + address}, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { _ = etcd.Close() }()
	set := func(action etcdserverpb.AlarmRequest_AlarmAction) error {
		return retry(ctx, func() error {
			status, err := etcd.Status(ctx, etcd.Endpoints()[0])
			if err != nil {
				return err
			}
			_, err = etcdserverpb.NewMaintenanceClient(etcd.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
				Action: action, MemberID: status.Header.MemberId, Alarm: etcdserverpb.AlarmType_NOSPACE,
			})
			return err
		})
	}
	if err := set(etcdserverpb.AlarmRequest_ACTIVATE); err != nil {
		return fmt.Errorf("filling etcd: %w", err)
	}
	rest(ctx, d)
	if err := set(etcdserverpb.AlarmRequest_DEACTIVATE); err != nil {
		return fmt.Errorf("emptying etcd: %w", err)
	}
	return nil
}

// temporalFlag is that of the hub agent's flags which leads it over a link.
const temporalFlag = "--temporal-address="

// newLinks returns those of the fleet's hub agent, which lead nowhere yet.
func newLinks() (map[string]*link, error) {
	links := map[string]*link{}
	for _, name := range []string{linkToHub, linkToTemporal} {
		l, err := newLink()
		if err != nil {
			return nil, err
		}
		links[name] = l
	}
	return links, nil
}

// useLinks has the fleet's hub agent reach the hub and Temporal over the links; the second one, which is not there yet, will
// have a kubeconfig of its own.
func (w *world) useLinks(ctx context.Context) error {
	direct := w.Fleet.HubAgentKubeconfig()
	hub := w.Fleet.Address("hub/apiserver")
	content, err := os.ReadFile(direct)
	if err != nil {
		return fmt.Errorf("reading the hub agent's kubeconfig: %w", err)
	}
	if err := os.WriteFile(w.peer.kubeconfig, content, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig of the second hub agent: %w", err)
	}
	over := strings.ReplaceAll(string(content), hub, w.links[linkToHub].address())
	if over == string(content) {
		return fmt.Errorf("%s does not lead to %s", direct, hub)
	}
	if err := os.WriteFile(direct, []byte(over), 0o600); err != nil {
		return fmt.Errorf("writing the hub agent's kubeconfig: %w", err)
	}
	w.links[linkToHub].lead(hub)
	w.links[linkToTemporal].lead(w.Fleet.Address(controlplane.Temporal))
	return w.Control.Do(ctx, control.Restart, controlplane.HubAgent)
}
