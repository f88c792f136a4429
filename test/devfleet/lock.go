package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	upLock         = "up.lock"
	demoLock       = "demo.lock"
	supervisorLock = "supervisor.lock"
)

// errLocked says that another process holds a lock.
var errLocked = errors.New("locked by another process")

// lock takes a lock file of the fleet's folder for the life of this process, or until the returned function is called,
// and writes the process's id into it. The kernel releases it however the process ends.
func lock(dir, name string) (func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the fleet's folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", name, errLocked)
	}
	if err = file.Truncate(0); err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("writing a lock: %w", err)
	}
	return func() { file.Close() }, nil
}

// describeHolder names the process that holds a lock.
func describeHolder(dir, name string) string {
	if pid, err := lockHolder(dir, name); err == nil && pid != 0 {
		return fmt.Sprintf("another devfleet (process %d)", pid)
	}
	return "another devfleet"
}

// lockHolder returns the process that holds a lock, 0 when none does.
func lockHolder(dir, name string) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
		return 0, nil
	}
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return 0, fmt.Errorf("opening a lock: %w", err)
	}
	defer file.Close()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return 0, nil
	}
	content, err := os.ReadFile(file.Name())
	if err != nil {
		return 0, fmt.Errorf("reading a lock: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, fmt.Errorf("reading the holder of %s: %w", name, err)
	}
	return pid, nil
}
