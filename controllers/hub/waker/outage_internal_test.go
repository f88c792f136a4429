package waker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"k8s.io/utils/clock"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// outage is a Temporal server that is away.
type outage struct {
	Temporal
	answers   atomic.Bool
	connected chan struct{}
	poked     int
}

func (o *outage) ListOpen(context.Context) (map[string]string, error) {
	if !o.answers.Load() {
		return nil, errors.New("unavailable")
	}
	return nil, nil
}

func (o *outage) ListStuck(context.Context) ([]wf.Stuck, error) { return nil, nil }

func (o *outage) Connected() <-chan struct{} { return o.connected }

func (o *outage) Poke(context.Context, wf.Ref, wf.Poke) error { o.poked++; return nil }

// A bundled server that is killed again and again would never get its workflows otherwise: by the time of the next audit it is away.
func TestWhatAServerHasLostIsStartedSoonAfterItAnswersHoweverLongItWasAway(t *testing.T) {
	for sentence, reconnects := range map[string]bool{"after a connection": true, "over the connection that there was": false} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &outage{connected: make(chan struct{}, 1)}
				a := &Auditor{Temporal: server, Log: logr.Discard(), Clock: clock.RealClock{}, Sources: []Source{
					func(context.Context, bool) ([]wf.Ref, error) {
						return []wf.Ref{{Kind: wf.KindClusterStagedUpdateRun, Name: "run"}}, nil
					},
				}}
				ctx, end := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- a.Start(ctx) }()
				<-time.After(10 * time.Minute)
				within := maxAuditRetry
				if reconnects {
					server.connected <- struct{}{} // it takes connections, and answers a moment later
					within = auditRetry
				}
				synctest.Wait()
				server.answers.Store(true)
				<-time.After(within)
				synctest.Wait()
				assert.Equal(t, 1, server.poked)
				end()
				assert.NoError(t, <-ended)
			})
		})
	}
}
