package realnode

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	socketDir     = "/run/containerd/containerd.sock"
	answerEvery   = 50 * time.Millisecond
	answerLimit   = time.Minute
	bridgedTables = "/proc/sys/net/bridge/bridge-nf-call-iptables"
)

// kernelSettings are those that kubelet writes, with the values that it wants: it finds them as it wants them, and leaves the
// machine's as they are.
var kernelSettings = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// Inside is process 1 of a node. It returns when one of the node's programs has ended, and with it ends all others.
func Inside(node *Node) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil { // the link is there when this ends
		return fmt.Errorf("waiting for the node's link: %w", err)
	}
	if err := node.mount(); err != nil {
		return err
	}
	if err := node.setNetwork(); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(node.Name)); err != nil {
		return fmt.Errorf("naming the node: %w", err)
	}
	return node.run()
}

// mount gives the node its own view of the folders that its programs write to.
func (n *Node) mount() error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"", "/", "", syscall.MS_REC | syscall.MS_PRIVATE}, // nothing of this reaches the machine
		{"", "/", "", syscall.MS_REC | syscall.MS_SHARED},
		{"proc", "/proc", "proc", 0},
	} {
		if err := mount(m.source, m.target, m.kind, m.flags); err != nil {
			return err
		}
	}
	if err := n.keep(); err != nil {
		return err
	}
	for _, folder := range []string{"/var/lib", "/var/log"} {
		if err := mount("tmpfs", folder, "tmpfs", 0); err != nil {
			return err
		}
	}
	for name, value := range kernelSettings {
		file := filepath.Join("/run/settings", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("making a folder for settings: %w", err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("writing a setting: %w", err)
		}
		if err := mount(file, filepath.Join("/proc/sys", name), "", syscall.MS_BIND); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return mount(inside+"/resolv.conf", "/etc/resolv.conf", "", syscall.MS_BIND)
}

// keep binds what the node needs of the machine below /run, before other mounts hide it.
func (n *Node) keep() error {
	const staging = "/mnt" // exists everywhere, and takes a mount of the node's own
	if err := mount("tmpfs", staging, "tmpfs", 0); err != nil {
		return err
	}
	wanted := map[string]string{"node": n.Dir, "plugins": n.Plugins}
	for name, program := range n.Programs {
		wanted["bin/"+name] = program
	}
	for _, image := range n.Images {
		wanted["images/"+filepath.Base(image)] = image
	}
	for name, source := range wanted {
		if err := bindTo(filepath.Join(staging, name), source); err != nil {
			return err
		}
	}
	if err := mount(staging, "/run", "", syscall.MS_BIND|syscall.MS_REC); err != nil {
		return err
	}
	return nil
}

// bindTo makes a mount point and binds a file or a folder to it.
func bindTo(target, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("looking for what the node needs: %w", err)
	}
	folder := target
	if !info.IsDir() {
		folder = filepath.Dir(target)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making a mount point: %w", err)
	}
	if !info.IsDir() {
		if err := os.WriteFile(target, nil, 0o644); err != nil {
			return fmt.Errorf("making a mount point: %w", err)
		}
	}
	return mount(source, target, "", syscall.MS_BIND)
}

func mount(source, target, kind string, flags uintptr) error {
	if err := syscall.Mount(source, target, kind, flags, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", source, target, err)
	}
	return nil
}

// setNetwork takes the node's end of the link into use.
func (n *Node) setNetwork() error {
	for _, args := range []string{
		"link set lo up", "address add " + n.Address + bits + " dev eth0", "link set eth0 up", "route add default via " + n.Host,
	} {
		if err := runProgram("/run/bin/ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("letting Pods out: %w", err)
	}
	// A kernel that does not have it does not pass what goes over a bridge to iptables, and then a Pod does not reach itself by a Service.
	if err := os.WriteFile(bridgedTables, []byte("1"), 0o644); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("passing what Pods send each other to iptables: %w", err)
	}
	return nil
}

// run starts the programs of the node, and returns when one of them has ended. Process 1 has all processes as children whose
// parents are gone.
func (n *Node) run() error {
	path := "PATH=/run/bin:" + os.Getenv("PATH") + ":" + search
	if err := os.Setenv("PATH", strings.TrimPrefix(path, "PATH=")); err != nil {
		return fmt.Errorf("setting the path of the node's programs: %w", err)
	}
	running := map[int]string{}
	for _, command := range n.commands() {
		pid, err := start(command)
		if err != nil {
			return err
		}
		running[pid] = command.program
		if command.program != "containerd" {
			continue
		}
		if err := awaitContainerd(); err != nil {
			return err
		}
		if err := n.importImages(); err != nil {
			return err
		}
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for the node's programs: %w", err)
		}
		if program, is := running[pid]; is {
			return fmt.Errorf("%s ended (exit code %d, signal %d)", program, status.ExitStatus(), status.Signal())
		}
	}
}

// start starts a program that writes into the node's log.
func start(c command) (pid int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("opening the input of the node's programs: %w", err)
	}
	defer null.Close()
	program := filepath.Join("/run/bin", c.program)
	pid, err = syscall.ForkExec(program, append([]string{program}, c.args...), &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), os.Stdout.Fd(), os.Stderr.Fd()},
	})
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", c.program, err)
	}
	return pid, nil
}

func awaitContainerd() error {
	for end := time.Now().Add(answerLimit); ; time.Sleep(answerEvery) {
		connection, err := net.Dial("unix", socketDir)
		if err == nil {
			return connection.Close()
		}
		if time.Now().After(end) {
			return fmt.Errorf("containerd does not answer after %s: %w", answerLimit, err)
		}
	}
}

// importImages gives the node the images that it is to have.
func (n *Node) importImages() error {
	for _, image := range n.Images {
		args := append(slices.Clip(ctrImport), filepath.Join("/run/images", filepath.Base(image)))
		if err := runProgram("/run/bin/ctr", args...); err != nil {
			return fmt.Errorf("importing an image: %w", err)
		}
	}
	return nil
}
