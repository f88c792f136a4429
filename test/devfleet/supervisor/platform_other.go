//go:build !linux

package supervisor

import "syscall"

// childAttributes give each child its own process group; there is no parent-death signal here, so a supervisor that is
// killed leaves its children.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// residentMemory is not told on this platform.
func residentMemory(int) int64 { return 0 }
