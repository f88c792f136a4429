package realnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	// A group is busy until the kernel has ended the last of its processes.
	releaseEvery = 50 * time.Millisecond
	releaseLimit = 10 * time.Second
)

// hierarchies returns the folders in which a group of a node's own is made: one for each hierarchy of cgroup v1, and that of v2,
// wherever it lies.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() { // links are other names of the same
			folders = append(folders, filepath.Join(cgroupRoot, entry.Name()))
		}
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("%s is empty", cgroupRoot)
	}
	return folders, nil
}

// cgroupsWritable reports why no group can be made.
func cgroupsWritable() error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	trial := filepath.Join(folders[0], "devfleet-trial-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(trial, 0o755); err != nil {
		return err
	}
	return os.Remove(trial)
}

// makeGroup makes a group in each hierarchy.
func makeGroup(name string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		group := filepath.Join(folder, name)
		if err := os.MkdirAll(group, 0o755); err != nil {
			return fmt.Errorf("making the node's cgroup: %w", err)
		}
		// A group of cpuset v1 takes no process before it has these.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil || strings.TrimSpace(string(content)) == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(group, file), content, 0o644); err != nil {
				return fmt.Errorf("setting up the node's cgroup: %w", err)
			}
		}
	}
	return enableControllers(folders, name)
}

// enableControllers has the groups below a group of cgroup v2 count what kubelet limits. Those of v1 do anyway.
func enableControllers(folders []string, name string) error {
	if !slices.Equal(folders, []string{cgroupRoot}) {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading the controllers of cgroups: %w", err)
	}
	for _, folder := range []string{cgroupRoot, filepath.Join(cgroupRoot, name)} {
		for controller := range strings.FieldsSeq(string(content)) {
			// One that cannot be given is missed by kubelet, which names it.
			_ = os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
		}
	}
	return nil
}

// removeGroup ends what is left in a group, and removes it with all below it.
func removeGroup(name string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for end := time.Now().Add(releaseLimit); ; time.Sleep(releaseEvery) {
		var failed error
		for _, folder := range folders {
			failed = errors.Join(failed, removeTree(filepath.Join(folder, name)))
		}
		if failed == nil || time.Now().After(end) {
			return failed
		}
	}
}

// removeTree removes the folders of a group, the deepest first, and kills their processes.
func removeTree(group string) error {
	var folders []string
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("looking for the node's cgroups: %w", err)
	}
	for _, folder := range slices.Backward(folders) {
		content, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		for pid := range strings.FieldsSeq(string(content)) {
			if number, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(number, syscall.SIGKILL) // fails if it is gone
			}
		}
		if err == nil {
			err = syscall.Rmdir(folder)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the cgroup %s: %w", folder, err)
		}
	}
	return nil
}
