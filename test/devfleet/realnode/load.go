package realnode

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// ctrImport are the arguments of ctr for an archive in the namespace that kubelet's images are in.
var ctrImport = []string{"--namespace", "k8s.io", "images", "import"}

// ImportInto gives a running node the images of archives. The process is the outer one of the node; what is inside is its only child.
func ImportInto(ctx context.Context, ctr string, pid int, archives ...string) error {
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	if len(children) == 0 {
		return fmt.Errorf("process %d runs no node", pid)
	}
	socket := filepath.Join("/proc", strconv.Itoa(children[0]), "root/run/containerd/containerd.sock")
	for _, archive := range archives {
		args := append([]string{"--address", socket}, ctrImport...)
		if output, err := exec.CommandContext(ctx, ctr, append(args, archive)...).CombinedOutput(); err != nil {
			return fmt.Errorf("importing %s: %w: %s", filepath.Base(archive), err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}
