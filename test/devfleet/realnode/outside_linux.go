package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	dnsPort = "53"
	// bits is the length of the prefix of a link's network: its two ends.
	bits = "/30"
)

// Run runs a node until the context ends: its group, its link, its DNS, and the process that is inside, which self starts. It removes
// what an earlier one has left.
func Run(ctx context.Context, node *Node, self []string) error {
	// The kernel ends the inner process when the thread ends that has started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := Clean(node.Link, node.Group); err != nil {
		return err
	}
	if err := node.write(); err != nil {
		return err
	}
	if err := makeGroup(node.Group); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inner, started, err := startInside(self)
	if err != nil {
		return errors.Join(err, removeGroup(node.Group))
	}
	ended := make(chan error, 1)
	go func() { ended <- inner.Wait() }()
	err = node.connect(ctx, inner.Process.Pid)
	if err == nil {
		err = started.Close() // the inner process has waited for this
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
			ended <- err
			err = fmt.Errorf("the node ended: %w", errors.Join(err, errors.New("its log says why")))
		}
	}
	_ = inner.Process.Kill() // it may be gone
	<-ended                  //nolint:errcheck // how it ended is said already
	return errors.Join(err, Clean(node.Link, node.Group))
}

// startInside starts the inner process in namespaces of its own, in which it waits until what is returned is closed.
func startInside(self []string) (*exec.Cmd, io.Closer, error) {
	inner := exec.Command(self[0], self[1:]...)
	gate, err := inner.StdinPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("making a pipe to the node: %w", err)
	}
	inner.Stdout = os.Stdout
	inner.Stderr = os.Stderr
	inner.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := inner.Start(); err != nil {
		return nil, nil, fmt.Errorf("starting the node in namespaces of its own: %w", err)
	}
	return inner, gate, nil
}

// connect makes the link to the network of a process, and serves at its end what the node needs of the machine.
func (n *Node) connect(ctx context.Context, pid int) error {
	for _, args := range []string{
		"link add " + n.Link + " type veth peer name eth0 netns " + strconv.Itoa(pid),
		"address add " + n.Host + bits + " dev " + n.Link,
		"link set " + n.Link + " up",
	} {
		if err := n.ip(strings.Fields(args)...); err != nil {
			return err
		}
	}
	for _, port := range n.Forwards {
		listener, err := net.Listen("tcp", net.JoinHostPort(n.Host, strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("listening for the node: %w", err)
		}
		context.AfterFunc(ctx, func() { listener.Close() })
		go forward(listener, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	return n.serveDNS(ctx)
}

func (n *Node) serveDNS(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", n.DNSKubeconfig)
	if err != nil {
		return fmt.Errorf("reading how the DNS reaches the API server: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client of the API server: %w", err)
	}
	connection, err := net.ListenPacket("udp", net.JoinHostPort(n.Host, dnsPort))
	if err != nil {
		return fmt.Errorf("listening for the DNS of the node's Pods: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = connection.Close() })
	go newResolver(client).serve(ctx, connection)
	return nil
}

// forward passes connections on until its listener is closed.
func forward(listener net.Listener, to string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			target, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer target.Close()
			go func() {
				_, _ = io.Copy(target, from) // either end may go
				halfClose(target)
			}()
			_, _ = io.Copy(from, target)
		}()
	}
}

// halfClose says to one end of a connection that the other sends nothing more.
func halfClose(connection net.Conn) {
	if tcp, is := connection.(*net.TCPConn); is {
		_ = tcp.CloseWrite() // it may be gone
	}
}

func (n *Node) ip(args ...string) error { return runProgram(n.Programs["ip"], args...) }

func runProgram(program string, args ...string) error {
	if output, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return nil
}

// Clean removes what is left of a node whose processes were killed: its link, if the kernel has not removed it with the network's
// namespace yet, and its groups.
func Clean(link, group string) error {
	if _, err := net.InterfaceByName(link); err == nil {
		if path, is := lookPath("ip"); is {
			_ = runProgram(path, "link", "delete", link) // it goes with the namespace, too
		}
	}
	return removeGroup(group)
}
