package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// maxLog is the size at which a log is put aside (once) before the next start of its component.
const maxLog = 64 << 20

// process is a started child.
type process struct {
	pid    int
	cmd    *exec.Cmd
	exited chan struct{} // closed when the child is gone and waited for
	err    error         // how it ended; read after exited
}

// launcher starts children from one thread that lives as long as the supervisor: Linux sends the parent-death signal
// when the starting thread ends, not the process, and Go ends threads as it likes.
type launcher struct {
	jobs chan func()
}

func newLauncher() *launcher {
	l := &launcher{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

func (l *launcher) close() { close(l.jobs) }

func (l *launcher) start(spec Spec) (*process, error) {
	log, err := openLog(spec.LogFile)
	if err != nil {
		return nil, err
	}
	// The child has its own descriptor of the log.
	defer log.Close()
	cmd := exec.Command(spec.Command[0], spec.Command[1:]...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = childAttributes()
	fmt.Fprintf(log, "=== %s starting: %s\n", time.Now().Format(time.RFC3339), strings.Join(spec.Command, " "))

	started := make(chan error)
	l.jobs <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	p := &process{pid: cmd.Process.Pid, cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the log folder: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, fmt.Errorf("putting an old log aside: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	return file, nil
}

// end asks the process to go, and makes it after a while. It returns when the process is gone.
func (p *process) end(grace time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it is gone, which exited tells
	select {
	case <-p.exited:
	case <-time.After(grace):
		p.kill()
		<-p.exited
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone
}

// outcome returns how the process ended, as an error in any case: it was not asked to end.
func (p *process) outcome() error {
	if p.err == nil {
		return errors.New("ended by itself with exit code 0")
	}
	return fmt.Errorf("ended by itself: %w", p.err)
}
