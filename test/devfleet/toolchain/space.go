package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// enoughSpace is more than a linker writes at once.
const enoughSpace = 256 << 20

// spaceAdvice returns which of the folders that a build writes to have no room.
func spaceAdvice(ctx context.Context, cache string, free func(folder string) (int64, error)) string {
	if ctx.Err() != nil {
		return ""
	}
	folders := []string{cache, os.TempDir()}
	if output, err := exec.CommandContext(ctx, "go", "env", "GOCACHE", "GOMODCACHE", "GOTMPDIR").Output(); err == nil {
		folders = append(folders, strings.Fields(string(output))...)
	}
	slices.Sort(folders)
	return describeSpace(slices.Compact(folders), free)
}

// describeSpace names the folders with too little room, on lines of their own.
func describeSpace(folders []string, free func(folder string) (int64, error)) string {
	var advice strings.Builder
	for _, folder := range folders {
		if left, err := free(folder); err == nil && left < enoughSpace {
			fmt.Fprintf(&advice, "\nOnly %d MB are free in %s: make room there.", left>>20, folder)
		}
	}
	return advice.String()
}

func freeSpace(folder string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(folder, &disk); err != nil {
		return 0, fmt.Errorf("asking for the space in %s: %w", folder, err)
	}
	return int64(disk.Bavail) * int64(disk.Bsize), nil
}
