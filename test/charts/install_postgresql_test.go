//go:build integration

package charts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// postgresql is a server of PostgreSQL, as a provider of databases runs it: whoever calls needs a password.
type postgresql struct {
	t *testing.T
	// programs is the folder with those of PostgreSQL, dir has the data.
	programs, dir string
	port          string
	// owner is who runs the server, which refuses to run as root; nil for the user of the test.
	owner *syscall.Credential
	// end ends the server.
	end func()
}

// superuser is the password of the user postgres.
const superuser = "root-of-databases"

// postgresqlPrograms returns the folder with PostgreSQL's programs, on the word of .ci/needs. Without them the test is skipped where it may be.
func postgresqlPrograms(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, ".ci", "needs"), "find", "postgresql").Output()
	exit := &exec.ExitError{}
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skip(string(exit.Stderr))
	}
	require.NoError(t, err)
	server, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	return filepath.Dir(server)
}

// startPostgreSQL makes a server with the user that the production page asks for.
func startPostgreSQL(t *testing.T, programs, user, password string) *postgresql {
	t.Helper()
	dir, err := os.MkdirTemp("", "postgresql") //nolint:usetesting // another user cannot enter the folder of the test
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &postgresql{t: t, programs: programs, dir: dir, port: freePort(t), owner: databaseOwner(t)}
	passwords := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(passwords, []byte(superuser), 0o600))
	if p.owner != nil {
		require.NoError(t, os.Chown(dir, int(p.owner.Uid), int(p.owner.Gid)))
		require.NoError(t, os.Chown(passwords, int(p.owner.Uid), int(p.owner.Gid)))
	}
	p.run("initdb", "--pgdata", p.data(), "--username", "postgres", "--auth", "scram-sha-256", "--pwfile", passwords, "--no-sync")
	p.start()
	t.Cleanup(func() { p.end() })
	p.run("psql", "--host", "127.0.0.1", "--port", p.port, "--username", "postgres", "--dbname", "postgres",
		"--command", fmt.Sprintf("CREATE ROLE %s LOGIN CREATEDB PASSWORD '%s'", user, password))
	return p
}

// databaseOwner is the user that Debian's package makes, if the test runs as root.
func databaseOwner(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	owner, err := user.Lookup("postgres")
	require.NoError(t, err)
	uid, err := strconv.ParseUint(owner.Uid, 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(owner.Gid, 10, 32)
	require.NoError(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (p *postgresql) data() string { return filepath.Join(p.dir, "data") }

func (p *postgresql) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(p.programs, program), args...)
	command.Dir = p.dir
	command.Env = append(os.Environ(), "PGPASSWORD="+superuser)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner}
	return command
}

func (p *postgresql) run(program string, args ...string) {
	p.t.Helper()
	out, err := p.command(p.t.Context(), program, args...).CombinedOutput()
	require.NoError(p.t, err, "%s: %s", program, out)
}

// start starts the server and waits until it answers. It is told to end as PostgreSQL wants it: with SIGINT it closes its connections.
func (p *postgresql) start() {
	p.t.Helper()
	running, stop := context.WithCancel(context.Background())
	command := p.command(running, "postgres", "-D", p.data(), "-h", "127.0.0.1", "-p", p.port, "-k", p.dir, "-c", "fsync=off")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(p.t, err)
	command.Stdout = log
	command.Stderr = log
	require.NoError(p.t, command.Start())
	ended := false
	p.end = func() {
		if ended {
			return
		}
		ended = true
		stop()
		_ = command.Wait() // it was told to end
		log.Close()
	}
	await(p.t, "PostgreSQL answers", func() bool {
		return p.command(p.t.Context(), "pg_isready", "--host", "127.0.0.1", "--port", p.port).Run() == nil
	})
}
