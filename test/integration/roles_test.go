//go:build integration

package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
)

// agentStop bounds how long an agent may take to hand over what it does.
const agentStop = 30 * time.Second

// agent starts a program as a process of the spec; it is ended with the spec. Its log is printed if the spec fails.
func (s *spec) agent(name, program string, env []string, args ...string) *exec.Cmd {
	s.Helper()
	path := filepath.Join(s.TempDir(), name+".log")
	log, err := os.Create(path)
	require.NoError(s, err)
	command := exec.Command(program, args...)
	command.Env = append(os.Environ(), env...)
	command.Stdout = log
	command.Stderr = log
	require.NoError(s, command.Start())
	s.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		ended := time.AfterFunc(agentStop, func() { _ = command.Process.Kill() })
		_ = command.Wait()
		require.True(s, ended.Stop(), "%s does not end when it is told to", name)
		log.Close()
		if s.Failed() {
			s.Logf("===== last lines of the log of %s\n%s", name, lastLines(path, logLines))
		}
	})
	return command
}

// freeAddress returns an address that nothing listens on.
func (s *spec) freeAddress() string {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s, err)
	defer listener.Close()
	return listener.Addr().String()
}

// role starts a hub agent that runs only one role and returns the address of its health endpoints.
func (s *spec) role(role string) string {
	s.Helper()
	health := s.freeAddress()
	s.agent(role, s.Fleet.Binary(hubAgent), nil,
		"--role="+role, "--kubeconfig="+s.Fleet.HubAgentKubeconfig(), "--temporal-address="+s.Fleet.Address("temporal"), "--temporal-approvals=any",
		"--metrics-bind-address=0", "--health-probe-bind-address="+health, "--leader-election-lease-duration=4s",
		"--leader-election-renew-deadline=3s", "--leader-election-retry-period=500ms")
	return health
}

// rolesShareTheWork runs controllers and workers in processes of their own: neither does the other's part.
func rolesShareTheWork(s *spec) {
	s.stop(hubAgent)
	s.role("controllers")
	s.namespaceWithConfigMap()
	s.place()
	// The controllers wake the workflow, which nobody takes up.
	require.Eventually(s, func() bool {
		own := s.ownExecutions()
		return len(own) == 1 && own[0].open
	}, patience, visibilityEvery, "an open workflow of the placement")
	s.during(nil, quietFor)
	require.Empty(s, s.bindings(), "without workers nothing is decided")

	s.role("worker")
	s.requireAvailable(s.awaitAvailable("0"), "0", "", allMembers...)
	s.changeTo(value2)
	s.awaitValue(value2, allMembers...)
	s.requireAvailable(s.awaitAvailable("1"), "1", "", allMembers...)
}
