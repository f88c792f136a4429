// Package feed keeps a picture of the whole fleet up to date by one watch a kind, whatever the number of pages that are
// open, and tells all of them when it has changed.
package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	// askTimeout bounds that question, and those for rights.
	askTimeout = 5 * time.Second
	// rightsEvery is the number of beats after which it is asked again what may be listed: a watch goes on for minutes after the right to
	// it is withdrawn, and one that was refused does not begin by itself.
	rightsEvery = 4
	// leaseOfHubAgent is what tells whether a hub agent works.
	leaseOfHubAgent = "the lease of the hub agent"
)

// Feed follows a fleet.
type Feed struct {
	clock   clock.WithTicker
	sources []hub.Source
	kinds   []*kind
	// denied are those kinds that may not be listed.
	denied  map[string]bool
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
	// end has it followed no longer.
	end context.CancelFunc
	// stale says that something has changed since objects was taken.
	stale   atomic.Bool
	objects []client.Object
}

// Start begins to follow a fleet until the context ends, and returns once all is read. What may not be listed is left out.
func Start(ctx context.Context, c client.WithWatch, clock clock.WithTicker, namespace string) (*Feed, error) {
	f := &Feed{clock: clock, sources: hub.WholeSources(namespace), denied: map[string]bool{}, changed: make(chan struct{}, 1),
		followers: map[chan struct{}]bool{}}
	if err := f.followAll(ctx, c, f.sources); err != nil {
		return nil, err
	}
	f.askForHubAgent(ctx, c)
	f.draw()
	go f.run(ctx, c)
	return f, nil
}

// followAll follows kinds.
func (f *Feed) followAll(ctx context.Context, c client.WithWatch, sources []hub.Source) (failed error) {
	var wait sync.WaitGroup
	for _, source := range sources {
		wait.Go(func() {
			if err := f.follow(ctx, c, source); err != nil {
				f.mutex.Lock()
				failed = errors.Join(failed, err)
				f.mutex.Unlock()
			}
		})
	}
	wait.Wait()
	return failed
}

// follow follows one kind, and notes that it may not be listed.
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
		f.denied[source.What()] = true
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", source.What(), err)
	}
	delete(f.denied, source.What())
	k := &kind{Feed: of, what: source.What(), end: cancel}
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

// askForHubAgent finds out whether a hub agent works, and whether that may be asked. While none does, or while the hub has lost its etcd,
// nothing changes, and so no watch shows it.
func (f *Feed) askForHubAgent(ctx context.Context, c client.Reader) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var denied bool
	f.standstill, denied = diagnosis.ReadDoubt(ctx, c, f.clock.Now())
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.denied, leaseOfHubAgent)
	if denied {
		f.denied[leaseOfHubAgent] = true
	}
}

// askForRights finds out again which kinds may be listed: those that no longer may are left out, and those that now may are followed. It
// reports whether anything has changed.
func (f *Feed) askForRights(ctx context.Context, c client.WithWatch) (changed bool) {
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var wait sync.WaitGroup
	allowed := make([]bool, len(f.sources))
	for i, source := range f.sources {
		wait.Go(func() { allowed[i] = hub.Reader{Reader: c}.MayRead(asked, source) })
	}
	wait.Wait()
	var given []hub.Source
	f.mutex.Lock()
	for i, source := range f.sources {
		switch {
		case allowed[i] && f.denied[source.What()]:
			given = append(given, source)
		case !allowed[i] && !f.denied[source.What()]:
			f.leaveOut(source.What())
			changed = true
		}
	}
	f.mutex.Unlock()
	// What cannot be followed now is asked for again.
	_ = f.followAll(ctx, c, given)
	return changed || len(given) > 0
}

// leaveOut follows a kind no longer.
func (f *Feed) leaveOut(what string) {
	f.denied[what] = true
	f.kinds = slices.DeleteFunc(f.kinds, func(k *kind) bool {
		if k.what == what {
			k.end()
		}
		return k.what == what
	})
}

// run makes a picture after every change, at most five a second.
func (f *Feed) run(ctx context.Context, c client.WithWatch) {
	beats := f.clock.NewTicker(beat)
	defer beats.Stop()
	for count := 1; ; {
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
			if f.standstill != "" {
				f.askForHubAgent(ctx, c) // what has changed may be that one works again
			}
		case <-beats.C():
			before := f.standstill
			f.askForHubAgent(ctx, c) // what may not be asked is said at the foot of each page
			rights := count%rightsEvery == 0 && f.askForRights(ctx, c)
			count++
			if before == f.standstill && !rights && !f.isFollowed() {
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
	fleet.Trouble = cmp.Or(trouble, f.standstill)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	fleet.Denied = slices.Sorted(maps.Keys(f.denied))
	f.current.Store(fleet)
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
