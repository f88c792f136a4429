// Package feed keeps a picture of the whole fleet up to date by one watch a kind, whatever the number of pages that are
// open, and tells all of them when it has changed.
package feed

import (
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

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// Frame is the least time between two pictures: there are at most five a second.
	Frame = 200 * time.Millisecond
	// beat is how often a picture is made anew for the sake of its waits alone, while it is looked at.
	beat = 15 * time.Second
)

// Feed follows a fleet.
type Feed struct {
	clock   clock.WithTicker
	kinds   []*kind
	denied  []string
	changed chan struct{}
	current atomic.Pointer[Fleet]
	maker   maker

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
	slices.Sort(f.denied)
	f.draw()
	go f.run(ctx)
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

// run makes a picture after every change, at most five a second.
func (f *Feed) run(ctx context.Context) {
	beats := f.clock.NewTicker(beat)
	defer beats.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
		case <-beats.C():
			if !f.isFollowed() {
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
	fleet.Trouble = trouble
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
