//go:build !linux

package toolchain

import "syscall"

// ownGroup gives a Go command and its compilers a process group, which is ended as a whole.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
