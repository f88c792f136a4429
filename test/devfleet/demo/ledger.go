package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// entry is one write that was seen: a cluster got another value.
type entry struct {
	at             time.Time
	cluster, value string
}

// ledger has every change of a value per cluster, in the order in which one API server reported them. Objects of one
// kind on one API server are reported in the order they were written in.
type ledger struct {
	mu      sync.Mutex
	values  map[string]string
	entries []entry
	// ready is closed once the state before the first write is known, changed at the next write.
	ready, changed chan struct{}
}

// note compares what is there now with what was there before.
func (l *ledger) note(values map[string]string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.values == nil {
		l.values = values
		close(l.ready)
		return
	}
	for cluster, value := range values {
		if l.values[cluster] != value {
			l.entries = append(l.entries, entry{at: now, cluster: cluster, value: value})
		}
	}
	l.values = values
	close(l.changed)
	l.changed = make(chan struct{})
}

// atLeast returns what was written, once that many writes were seen or the context has ended: the news of a write may
// come a little later than the news of what followed from it.
func (l *ledger) atLeast(ctx context.Context, n int) []entry {
	for {
		l.mu.Lock()
		entries := append([]entry(nil), l.entries...)
		changed := l.changed
		l.mu.Unlock()
		if len(entries) >= n {
			return entries
		}
		select {
		case <-ctx.Done():
			return entries
		case <-changed:
		}
	}
}

// record keeps a ledger of the objects until the context ends; it returns once the state before is known.
func record[T any, P access.Object[T]](ctx context.Context, c client.WithWatch, of func(P) (cluster, value string),
	options ...client.ListOption) (*ledger, error) {
	l := &ledger{ready: make(chan struct{}), changed: make(chan struct{})}
	failed := make(chan error, 1)
	go func() {
		_, err := access.AwaitAll(ctx, c, func(objects []P) string {
			values := make(map[string]string, len(objects))
			for _, object := range objects {
				cluster, value := of(object)
				values[cluster] = value
			}
			l.note(values, time.Now())
			return "still recording"
		}, options...)
		failed <- err
	}()
	select {
	case <-l.ready:
		return l, nil
	case err := <-failed:
		return nil, fmt.Errorf("recording what is written: %w", err)
	}
}

// misplaced returns what is wrong with the writes of a run that was to bring every cluster to a value, each once and in
// this order; "" when nothing is. It is pure.
func misplaced(entries []entry, order []string, value string) string {
	written := make([]string, len(entries))
	for i, e := range entries {
		written[i] = e.cluster
		if e.value != value {
			return fmt.Sprintf("write %d took %s to %q", i+1, e.cluster, e.value)
		}
	}
	if got, want := strings.Join(written, ", "), strings.Join(order, ", "); got != want {
		return fmt.Sprintf("the clusters were written in the order %s", got)
	}
	return ""
}

// firstWrite returns when the first of the clusters was written, zero when none was. It is pure.
func firstWrite(entries []entry, clusters []string) time.Time {
	for _, e := range entries {
		if slices.Contains(clusters, e.cluster) {
			return e.at
		}
	}
	return time.Time{}
}
