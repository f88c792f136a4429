package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

// echo answers every line with itself.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewReader(c); ; {
					line, err := lines.ReadBytes('\n')
					if err != nil {
						return
					}
					_, _ = c.Write(line)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestACutLinkLetsNothingPassUntilItIsWhole(t *testing.T) {
	l, err := newLink()
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.close() })
	l.lead(echo(t))
	c, err := net.Dial("tcp", l.address())
	require.NoError(t, err)
	defer c.Close()
	answers := bufio.NewReader(c)
	say := func(what string) {
		_, err := c.Write([]byte(what + "\n"))
		require.NoError(t, err)
	}
	say("before")
	line, err := answers.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "before\n", line)

	ctx, mend := context.WithCancel(t.Context())
	whole := make(chan struct{})
	go func() { l.cut(ctx, time.Hour); close(whole) }()
	require.Eventually(t, func() bool {
		free := l.gate.TryRLock()
		if free {
			l.gate.RUnlock()
		}
		return !free
	}, 10*time.Second, time.Millisecond)
	say("during")
	require.NoError(t, c.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = answers.ReadString('\n')
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	assert.True(t, timeout.Timeout())

	mend()
	<-whole
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	line, err = answers.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "during\n", line, "what was sent meanwhile arrives")
}

func TestALinkThatLeadsNowhereEndsConnections(t *testing.T) {
	l, err := newLink()
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.close() })
	c, err := net.Dial("tcp", l.address())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = c.Read(make([]byte, 1))
	assert.ErrorContains(t, err, "EOF")
}

func TestTheFilesOfAProcessWhoseDiskIsFullDoNotGrow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(file, make([]byte, leastFile), 0o600))
	command := exec.Command("sh", "-c", `trap "" XFSZ; while read -r line; do echo "$line" >>"$1" && echo stored || echo full; done`, "sh", file)
	command.Stderr = io.Discard
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	answers := bufio.NewReader(out)
	store := func() string {
		_, err := in.Write([]byte("line\n"))
		require.NoError(t, err)
		answer, err := answers.ReadString('\n')
		require.NoError(t, err)
		return answer
	}
	assert.Equal(t, "stored\n", store())

	ctx, empty := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- fillDisk(ctx, command.Process.Pid, time.Hour, file) }()
	require.Eventually(t, func() bool { return store() == "full\n" }, 10*time.Second, time.Millisecond)
	empty()
	require.NoError(t, <-ended)
	assert.Equal(t, "stored\n", store(), "there is space again")
	require.NoError(t, in.Close())
	require.NoError(t, command.Wait())
	assert.NoError(t, fillDisk(t.Context(), command.Process.Pid, time.Hour, file), "a process that has ended needs no space")
}

func TestASoakWaitsForWhatRanWhenItBegan(t *testing.T) {
	assert.Equal(t, []string{"hub", "agent"}, runningOf(&control.Status{Components: []control.Component{
		{Name: "hub", State: control.Ready}, {Name: "agent", State: control.Starting}, {Name: "prometheus", State: control.Stopped},
	}}))
}
