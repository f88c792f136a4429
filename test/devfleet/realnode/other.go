//go:build !linux

package realnode

import (
	"context"
	"errors"
)

var errLinux = errors.New("real nodes need Linux")

// Run runs a node, on Linux.
func Run(context.Context, *Node, []string) error { return errLinux }

// Inside is process 1 of a node, on Linux.
func Inside(*Node) error { return errLinux }

// Clean removes what is left of a node; elsewhere than on Linux there is never one.
func Clean(_, _ string) error { return nil }

func childrenOf(int) ([]int, error) { return nil, errLinux }
