package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
)

func TestMemberCount(t *testing.T) {
	for name, tc := range map[string]struct {
		remembered int
		options    upOptions
		want       int
		fails      bool
	}{
		"a new fleet has the default":                {0, upOptions{}, 3, false},
		"a new fleet has what is asked":              {0, upOptions{members: 5}, 5, false},
		"a remembered fleet keeps its own":           {4, upOptions{}, 4, false},
		"a fleet can grow":                           {2, upOptions{members: 3}, 3, false},
		"a fleet cannot shrink":                      {3, upOptions{members: 2}, 0, true},
		"a new fleet can do without members":         {0, upOptions{withoutMembers: true}, 0, false},
		"a fleet of members cannot do without them":  {3, upOptions{withoutMembers: true}, 0, true},
		"a fleet without members can get them later": {0, upOptions{members: 3}, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := memberCount(tc.remembered, tc.options)
			assert.Equal(t, tc.fails, err != nil)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestFleetDirPrefersTheFlagThenTheEnvironment(t *testing.T) {
	workDir, err := os.Getwd()
	require.NoError(t, err)
	pathOf := func(flag string) string {
		dir := &fleetDir{flag: flag}
		require.NoError(t, dir.resolve())
		return dir.path
	}
	t.Setenv(fleetEnv, "")
	assert.Equal(t, filepath.Join(workDir, ".fleet"), pathOf(""))
	t.Setenv(fleetEnv, "/env")
	assert.Equal(t, "/env", pathOf(""))
	assert.Equal(t, "/flag", pathOf("/flag"))
	assert.Equal(t, "go run ./test/devfleet", callOf("/env"), "advice leaves out what is the default anyway")
	assert.Equal(t, "go run ./test/devfleet --dir /flag", callOf("/flag"))
}

func TestUpRefusesAnImpossibleNumberOfMembers(t *testing.T) {
	for _, members := range []int{-1, 11} {
		_, err := up(t.Context(), upOptions{dir: t.TempDir(), members: members}, progress.New(&bytes.Buffer{}))
		assert.ErrorContains(t, err, "1 to 10")
	}
}

func TestALockIsHeldUntilReleased(t *testing.T) {
	dir := t.TempDir()
	holder, err := lockHolder(dir, upLock)
	require.NoError(t, err)
	assert.Zero(t, holder, "nobody has ever held it")

	release, err := lock(dir, upLock)
	require.NoError(t, err)
	_, err = lock(dir, upLock)
	assert.True(t, errors.Is(err, errLocked))
	holder, err = lockHolder(dir, upLock)
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), holder)

	release()
	holder, err = lockHolder(dir, upLock)
	require.NoError(t, err)
	assert.Zero(t, holder)
}

func TestASecondDevfleetSaysForWhomItWaits(t *testing.T) {
	dir := t.TempDir()
	for name, start := range map[string]func() error{
		upLock: func() error {
			_, err := up(t.Context(), upOptions{dir: dir}, progress.New(&bytes.Buffer{}))
			return err
		},
		demoLock: func() error { return runDemo(t.Context(), demoOptions{dir: dir}) },
	} {
		release, err := lock(dir, name)
		require.NoError(t, err)
		err = start()
		assert.ErrorContains(t, err, fmt.Sprintf("another devfleet (process %d) is ", os.Getpid()))
		assert.ErrorContains(t, err, dir+": wait for it, or name another folder with --dir")
		release()
	}
}

func TestUpRefusesAPlaceThatProgramsCannotComeFrom(t *testing.T) {
	for _, tool := range []string{"up", "demo", "tools"} {
		root := rootCommand()
		root.SetArgs([]string{tool, "--programs=fetch", "--dir", t.TempDir()})
		assert.EqualError(t, root.ExecuteContext(t.Context()), "--programs=fetch is not known: it is auto, build or download")
	}
}

func TestDownWithPurgeLeavesAForeignFolderAlone(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "thesis.txt")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	var out bytes.Buffer
	require.NoError(t, down(t.Context(), dir, true, progress.New(&out)))
	assert.FileExists(t, kept)
	assert.Contains(t, out.String(), "holds no fleet")
}

func TestLastLines(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte("a\nb\nc\n"), 0o600))
	assert.Equal(t, "b\nc", tailOf(log, 2))
	assert.Equal(t, "a\nb\nc", tailOf(log, 20))
	assert.Contains(t, tailOf(log+"s", 20), "logs")
}

func TestPrintReport(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 15, 0, time.UTC)
	r := &report{
		Kubeconfig: "/f/kubeconfig", Temporal: "127.0.0.1:1", TemporalUI: "http://127.0.0.1:2", Dashboard: "http://127.0.0.1:3/open?t=4", Prometheus: "http://127.0.0.1:5",
		Components: []control.Component{
			{Name: "hub/etcd", State: control.Ready, PID: 7, Started: now.Add(-time.Minute), Memory: 50 << 20},
			{Name: "hub-agent", State: control.BackOff, Restarts: 2, Reason: "ended by itself: exit status 1"},
		},
		Members: []controlplane.Membership{{Name: "member-1", Joined: "True", Healthy: "Unknown", Heartbeat: now.Add(-2 * time.Second)}},
	}
	var out bytes.Buffer
	require.NoError(t, printReport(&out, r, now))
	assert.Regexp(t, `hub/etcd +ready +7 +1m0s +0 +50 MiB`, out.String())
	assert.Regexp(t, `hub-agent +back-off +- +- +2 +- +ended by itself: exit status 1`, out.String())
	assert.Regexp(t, `member-1 +True +Unknown +2\.0s ago`, out.String())
	assert.Regexp(t, `dashboard +http://127\.0\.0\.1:3/open\?t=4`, out.String())
	assert.Regexp(t, `prometheus +http://127\.0\.0\.1:5`, out.String())
}
