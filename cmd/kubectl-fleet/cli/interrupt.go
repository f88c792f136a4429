package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace is how long a program that was interrupted may take to end by itself.
const grace = time.Second

// Interruptible returns a context that ends when the user interrupts the program, and what is to be called once its work is done.
// Not everything follows a context: who is asked a question, or waits for a hub that swallows what it is sent, would be kept. So
// the program ends a little later in any case, and at once if it is interrupted again.
func Interruptible() (ctx context.Context, done func()) {
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		restore()
		select {
		case <-over:
		case <-time.After(grace):
			os.Exit(CodeInterrupted)
		}
	}()
	return ctx, func() {
		close(over)
		restore()
	}
}
