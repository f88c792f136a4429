package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// link carries connections from one process to another. While it is cut nothing passes, and neither end is told: what was sent
// arrives afterwards, as TCP sees to when a network is whole again.
type link struct {
	listener net.Listener
	// gate is held for reading by what passes, and for writing while the link is cut.
	gate sync.RWMutex

	mu sync.Mutex
	to string
}

// newLink listens on a free port of this machine. Connections are closed as long as it is not known where they lead to.
func newLink() (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for what is to be cut off: %w", err)
	}
	l := &link{listener: listener}
	go l.accept()
	return l, nil
}

func (l *link) address() string { return l.listener.Addr().String() }

// lead has connections lead to an address from now on.
func (l *link) lead(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

// cut lets nothing pass for a while.
func (l *link) cut(ctx context.Context, d time.Duration) {
	l.gate.Lock()
	defer l.gate.Unlock()
	rest(ctx, d)
}

func (l *link) close() error { return l.listener.Close() }

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		go l.carry(near)
	}
}

func (l *link) carry(near net.Conn) {
	defer near.Close()
	l.gate.RLock()
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	far, err := net.Dial("tcp", to)
	l.gate.RUnlock()
	if err != nil {
		return // the other process is down, and the client sees a connection that ends
	}
	defer far.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(gated{way[1], &l.gate}, way[0]) // an end that goes away ends both ways
			ended <- struct{}{}
		}()
	}
	<-ended
}

// gated writes only while its gate is open.
type gated struct {
	io.Writer
	gate *sync.RWMutex
}

func (g gated) Write(b []byte) (int, error) {
	g.gate.RLock()
	defer g.gate.RUnlock()
	return g.Writer.Write(b)
}
