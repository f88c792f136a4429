package toolchain

import "syscall"

// ownGroup gives a Go command and its compilers a process group, which is ended as a whole, and ends the command with this
// process however that ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
}
