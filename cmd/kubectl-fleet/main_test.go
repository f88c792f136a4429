package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// asProgram in the environment of a test binary has it be the plugin.
const asProgram = "TEST_AS_KUBECTL_FLEET"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program prepares the plugin with a kubeconfig whose hub is at an address.
func program(t *testing.T, address string, args ...string) *exec.Cmd {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, current-context: hub, clusters: [{name: hub, cluster: {server: '" + address + "'}}], " +
		"users: [{name: me, user: {}}], contexts: [{name: hub, context: {cluster: hub, user: me}}]}"
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, os.Args[0], append(args, "--kubeconfig", config, "--cache-dir", t.TempDir())...) //nolint:gosec // the test itself
	command.Env = append(os.Environ(), asProgram+"=1")
	return command
}

// requireInterrupted interrupts a program once something has happened, and expects it to end soon.
func requireInterrupted(t *testing.T, command *exec.Cmd, happened func()) {
	t.Helper()
	require.NoError(t, command.Start())
	happened()
	begin := time.Now()
	require.NoError(t, command.Process.Signal(syscall.SIGINT))
	exit := &exec.ExitError{}
	require.True(t, errors.As(command.Wait(), &exit))
	assert.Equal(t, cli.CodeInterrupted, exit.ExitCode())
	assert.Less(t, time.Since(begin), 8*time.Second, "discovery alone would take half a minute")
}

func TestAHubThatDoesNotAnswerKeepsNobodyWhoInterrupts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	requireInterrupted(t, program(t, "http://"+listener.Addr().String(), "get", "members"), func() {
		connection, err := listener.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { connection.Close() })
	})
}

func TestAQuestionKeepsNobodyWhoInterrupts(t *testing.T) {
	hub := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case request.URL.Path == "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"placement.kubernetes-fleet.io","versions":[{"groupVersion":"placement.kubernetes-fleet.io/v1beta1","version":"v1beta1"}]}]}`)
		case request.URL.Path == "/apis/placement.kubernetes-fleet.io/v1beta1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"placement.kubernetes-fleet.io/v1beta1","resources":[{"name":"clusterresourceplacements","kind":"ClusterResourcePlacement","namespaced":false,"verbs":["get"]}]}`)
		case strings.HasSuffix(request.URL.Path, "/clusterresourceplacements/web"):
			_, _ = io.WriteString(w, `{"kind":"ClusterResourcePlacement","apiVersion":"placement.kubernetes-fleet.io/v1beta1","metadata":{"name":"web"}}`)
		default:
			http.NotFound(w, request)
		}
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = hub.Serve(listener) }()
	t.Cleanup(func() { _ = hub.Close() })

	command := program(t, "http://"+listener.Addr().String(), "evict", "web", "member-1")
	_, err = command.StdinPipe() // somebody who does not answer
	require.NoError(t, err)
	said, err := command.StderrPipe()
	require.NoError(t, err)
	requireInterrupted(t, command, func() {
		question, err := bufio.NewReader(said).ReadString('?')
		require.NoError(t, err, question)
		require.Contains(t, question, "Take what placement/web has placed off member-1?")
	})
}
