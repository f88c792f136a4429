// Package feed keeps a picture of the whole fleet up to date by one watch a kind, whatever the number of pages that are
// open, and tells all of them when it has changed.
package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// Frame is the least time between two pictures: there are at most five a second.
	Frame = 200 * time.Millisecond
	// beat is how often a picture is made anew for the sake of its waits alone, while it is looked at, and how often it is asked whether a
	// hub agent works.
	beat = 15 * time.Second
	// askTimeout bounds that question.
	askTimeout = 5 * time.Second
)

// Feed follows a fleet.
type Feed struct {
	clock   clock.WithTicker
	kinds   []*kind
	denied  []string
	changed chan struct{}
	current atomic.Pointer[Fleet]
	maker   maker
	// standstill says that no hub agent keeps what is shown up to date; empty if one does.
	standstill string

	mutex     sync.Mutex
	followers map[chan struct{}]bool
}

// kind is a kind of objects that is followed.
type kind struct {
	*hub.Feed
	what string
	// stale says that something has changed since objects was taken.
	stale   atomic.Bool
	objects []client.Object
}

// Start begins to follow a fleet until the context ends, and returns once all is read. What may not be listed is left out.
func Start(ctx context.Context, c client.WithWatch, clock clock.WithTicker, namespace string) (*Feed, error) {
	f := &Feed{clock: clock, changed: make(chan struct{}, 1), followers: map[chan struct{}]bool{}}
	var wait sync.WaitGroup
	var failed error
	for _, source := range hub.WholeSources(namespace) {
		wait.Go(func() {
			if err := f.follow(ctx, c, source); err != nil {
				f.mutex.Lock()
				failed = errors.Join(failed, err)
				f.mutex.Unlock()
			}
		})
	}
	wait.Wait()
	if failed != nil {
		return nil, failed
	}
	if f.askForHubAgent(ctx, c) {
		f.denied = append(f.denied, "the lease of the hub agent")
	}
	slices.Sort(f.denied)
	f.draw()
	go f.run(ctx, c)
	return f, nil
}

// follow follows one kind. One that may not be listed is not asked for again.
func (f *Feed) follow(ctx context.Context, c client.WithWatch, source hub.Source) error {
	ctx, cancel := context.WithCancel(ctx)
	of, err := hub.Follow(ctx, c, []hub.Source{source})
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		f.denied = append(f.denied, source.What())
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", source.What(), err)
	}
	k := &kind{Feed: of, what: source.What()}
	k.stale.Store(true)
	f.kinds = append(f.kinds, k)
	go k.pass(ctx, f.changed)
	return nil
}

// pass tells the feed of changes of a kind.
func (k *kind) pass(ctx context.Context, changed chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.Changed():
		}
		k.stale.Store(true)
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// askForHubAgent finds out whether a hub agent works, and reports whether that may not be asked. While none does, or while the hub has lost
// its etcd, nothing changes, and so no watch shows it.
func (f *Feed) askForHubAgent(ctx context.Context, c client.Reader) (denied bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	f.standstill, denied = diagnosis.ReadDoubt(ctx, c, f.clock.Now())
	return denied
}

// run makes a picture after every change, at most five a second.
func (f *Feed) run(ctx context.Context, c client.Reader) {
	beats := f.clock.NewTicker(beat)
	defer beats.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			if f.standstill != "" {
				_ = f.askForHubAgent(ctx, c) // what has changed may be that one works again
			}
		case <-beats.C():
			before := f.standstill
			_ = f.askForHubAgent(ctx, c) // what may not be asked is said at the foot of each page
			if before == f.standstill && !f.isFollowed() {
				continue
			}
		}
		f.draw()
		select {
		case <-ctx.Done():
			return
		case <-f.clock.After(Frame):
		}
	}
}

func (f *Feed) isFollowed() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.followers) > 0
}

// draw makes a picture of now and tells all who follow.
func (f *Feed) draw() {
	trouble := ""
	for _, k := range f.kinds {
		if k.stale.Swap(false) {
			k.objects = k.Objects()
		}
		if said := k.Trouble(); said != "" && trouble == "" {
			trouble = said
		}
	}
	fleet := f.maker.fleet(f.kinds, f.clock.Now())
	fleet.Denied = f.denied
	fleet.Trouble = cmp.Or(trouble, f.standstill)
	f.current.Store(fleet)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for follower := range f.followers {
		select {
		case follower <- struct{}{}:
		default:
		}
	}
}

// Fleet returns the latest picture. It must not be changed.
func (f *Feed) Fleet() *Fleet { return f.current.Load() }

// Follow returns what receives after every new picture, and what ends that.
func (f *Feed) Follow() (changed <-chan struct{}, end func()) {
	follower := make(chan struct{}, 1)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.followers[follower] = true
	return follower, func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		delete(f.followers, follower)
	}
}
