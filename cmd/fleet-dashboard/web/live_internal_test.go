package web

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/clock"
)

func TestAPageThatIsMuchWorkIsDrawnNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{Clock: clock.RealClock{}}
		ctx, cancel := context.WithCancel(t.Context())
		changed := make(chan struct{}, 1)
		assert.Equal(t, (<-chan struct{})(changed), s.spaced(ctx, changed, "/runs/web"), "others are drawn as they change")
		spaced := s.spaced(ctx, changed, "/map")
		start := time.Now()
		go func() {
			for ctx.Err() == nil {
				select {
				case changed <- struct{}{}:
				default:
				}
				<-s.Clock.After(wholeEvery / 10)
			}
		}()
		var at []time.Duration
		for range 4 {
			<-spaced
			at = append(at, time.Since(start))
		}
		assert.Equal(t, []time.Duration{0, wholeEvery, 2 * wholeEvery, 3 * wholeEvery}, at, "the first at once, and none is lost")
		cancel()
		synctest.Wait()
		<-s.Clock.After(wholeEvery) // what brings changes ends
	})
}
