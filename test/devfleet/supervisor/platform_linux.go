package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// childAttributes make the kernel kill a child whose supervisor is gone, so that a killed supervisor leaves none.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// residentMemory returns the resident memory of a process in bytes, 0 if it is unknown.
func residentMemory(pid int) int64 {
	if pid == 0 {
		return 0
	}
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(content)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
