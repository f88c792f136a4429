package informer

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// doorkeeper is an API server that lets kinds in by name, and counts how often each is asked for.
type doorkeeper struct {
	mu    sync.Mutex
	lets  map[string]bool
	asked map[string]int
	deny  error
}

func (d *doorkeeper) let(kinds ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, kind := range kinds {
		d.lets[kind] = true
	}
}

func (d *doorkeeper) askedIn(kinds ...string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := 0
	for _, kind := range kinds {
		sum += d.asked[kind]
	}
	return sum
}

func (d *doorkeeper) source(a *Admission, kind string) *retryingSource {
	answer := func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.asked[kind]++
		if d.lets[kind] {
			return nil
		}
		return d.deny
	}
	s := newRetryingSource(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return &corev1.PodList{}, answer() },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewEmptyWatch(), answer()
		},
	}, kind, clock.RealClock{})
	s.admission = a
	return s
}

func TestOneKindAsksForAllThatAreRefusedAndAllGoOnOnceItIsLetIn(t *testing.T) {
	for sentence, deny := range map[string]error{"without rights": forbidden, "with an unknown token": apierrors.NewUnauthorized("who?")} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hub := &doorkeeper{lets: map[string]bool{}, asked: map[string]int{}, deny: deny}
				a := NewAdmission(clock.RealClock{})
				letIn := 0
				a.LetIn = func() { letIn++ }
				done := make(chan error, 2)
				for _, kind := range []string{"mailbox", "work"} {
					source := hub.source(a, kind)
					go func() {
						_, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
						done <- err
					}()
				}
				<-time.After(20 * time.Minute)
				assert.Equal(t, []string{"mailbox", "work"}, a.Refused())
				assert.LessOrEqual(t, hub.askedIn("mailbox", "work"), 20*60/4+10, "one asks, every five seconds, give or take a quarter")
				assert.Empty(t, done, "client-go learns nothing of it, and so does not ask ever more seldom")
				hub.let("mailbox", "work")
				began := time.Now()
				require.NoError(t, <-done)
				require.NoError(t, <-done)
				assert.LessOrEqual(t, time.Since(began), 2*maxAdmissionDelay)
				assert.Empty(t, a.Refused())
				assert.Equal(t, 1, letIn)
			})
		})
	}
}

func TestAKindThatIsRefusedAloneIsAskedForByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &doorkeeper{lets: map[string]bool{"mailbox": true}, asked: map[string]int{}, deny: forbidden}
		a := NewAdmission(clock.RealClock{})
		_, err := hub.source(a, "mailbox").ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() {
			_, err := hub.source(a, "work").ListWithContext(t.Context(), metav1.ListOptions{})
			done <- err
		}()
		<-time.After(time.Minute)
		assert.Equal(t, []string{"work"}, a.Refused())
		hub.let("work")
		require.NoError(t, <-done)
		assert.Empty(t, a.Refused())
	})
}

func TestAnotherKindAsksIfTheOneThatAskedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &doorkeeper{lets: map[string]bool{}, asked: map[string]int{}, deny: forbidden}
		a := NewAdmission(clock.RealClock{})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		done := make(chan error, 1)
		first := hub.source(a, "first")
		second := hub.source(a, "second")
		go func() {
			_, err := first.ListWithContext(ctx, metav1.ListOptions{})
			ended <- err
		}()
		synctest.Wait()
		go func() {
			_, err := second.ListWithContext(t.Context(), metav1.ListOptions{})
			done <- err
		}()
		synctest.Wait()
		end()
		require.Equal(t, forbidden, <-ended)
		hub.let("second")
		require.NoError(t, <-done)
	})
}
