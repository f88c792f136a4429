package realnode

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ctrImages are the arguments of ctr for the images of kubelet, which are in a namespace of their own.
var ctrImages = []string{"--namespace", "k8s.io", "images"}

// ctrImport are those for an archive with images.
var ctrImport = append(slices.Clone(ctrImages), "import")

// ImportInto gives a running node the images of archives. The process is the outer one of the node; what is inside is its only child.
func ImportInto(ctx context.Context, ctr string, pid int, archives ...string) error {
	socket, err := socketOf(pid)
	if err != nil {
		return err
	}
	for _, archive := range archives {
		args := append([]string{"--address", socket}, ctrImport...)
		if output, err := exec.CommandContext(ctx, ctr, append(args, archive)...).CombinedOutput(); err != nil {
			return fmt.Errorf("importing %s: %w: %s", filepath.Base(archive), err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}

// ImagesOn returns the names of the images that a running node has. The process is its outer one.
func ImagesOn(ctx context.Context, ctr string, pid int) ([]string, error) {
	socket, err := socketOf(pid)
	if err != nil {
		return nil, err
	}
	output, err := exec.CommandContext(ctx, ctr, append(append([]string{"--address", socket}, ctrImages...), "list", "--quiet")...).Output()
	if err != nil {
		return nil, fmt.Errorf("asking for the images of a node: %w", err)
	}
	return strings.Fields(string(output)), nil
}

// socketOf returns where the containerd of a running node listens.
func socketOf(pid int) (string, error) {
	children, err := childrenOf(pid)
	if err != nil {
		return "", err
	}
	if len(children) == 0 {
		return "", fmt.Errorf("process %d runs no node", pid)
	}
	return filepath.Join("/proc", strconv.Itoa(children[0]), "root/run/containerd/containerd.sock"), nil
}
