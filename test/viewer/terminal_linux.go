package viewer

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Terminal is a terminal for a program to draw on. It keeps all that it is sent.
type Terminal struct {
	// Screen is the side of the program.
	Screen *os.File

	master *os.File
	read   chan struct{}
	mu     sync.Mutex
	sent   []byte
}

// OpenTerminal makes a terminal of some width and height.
func OpenTerminal(width, height int) (*Terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	var locked, number int32
	size := struct{ rows, columns, x, y uint16 }{rows: uint16(height), columns: uint16(width)} //nolint:gosec // it is small
	for _, set := range []struct {
		what    uintptr
		pointer unsafe.Pointer
	}{
		{syscall.TIOCSPTLCK, unsafe.Pointer(&locked)}, {syscall.TIOCGPTN, unsafe.Pointer(&number)}, {syscall.TIOCSWINSZ, unsafe.Pointer(&size)},
	} {
		if _, _, problem := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), set.what, uintptr(set.pointer)); problem != 0 {
			return nil, errors.Join(fmt.Errorf("setting a terminal up: %w", problem), master.Close())
		}
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the screen of a terminal: %w", err), master.Close())
	}
	t := &Terminal{Screen: screen, master: master, read: make(chan struct{})}
	go t.keep()
	return t, nil
}

// keep reads until the program and Close have released the screen.
func (t *Terminal) keep() {
	defer close(t.read)
	buffer := make([]byte, 64<<10)
	for {
		n, err := t.master.Read(buffer)
		t.mu.Lock()
		t.sent = append(t.sent, buffer[:n]...)
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Sent returns what the program has sent so far.
func (t *Terminal) Sent() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.sent)
}

// Close ends the terminal, and returns all that a program which has ended has sent.
func (t *Terminal) Close() (string, error) {
	err := t.Screen.Close()
	<-t.read
	return t.Sent(), errors.Join(err, t.master.Close())
}
