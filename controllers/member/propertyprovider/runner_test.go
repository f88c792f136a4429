package propertyprovider_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/propertyprovider"
)

const (
	started   = "ClusterPropertyProviderStarted"
	collected = "ClusterPropertyCollectionSucceeded"
)

// provider returns what a test sets.
type provider struct {
	start   func(context.Context, *rest.Config) error
	collect func(context.Context) propertyprovider.PropertyCollectionResponse
	calls   atomic.Int32
}

func (p *provider) Start(ctx context.Context, config *rest.Config) error {
	if p.start == nil {
		return nil
	}
	return p.start(ctx, config)
}

func (p *provider) Collect(ctx context.Context) propertyprovider.PropertyCollectionResponse {
	p.calls.Add(1)
	return p.collect(ctx)
}

func nodes(context.Context) propertyprovider.PropertyCollectionResponse {
	return propertyprovider.PropertyCollectionResponse{
		Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"example.com/racks": {Value: "3"}},
		Conditions: []metav1.Condition{{Type: "CloudReachable", Status: metav1.ConditionTrue, Reason: "Reachable"}},
	}
}

// run starts a provider in a synctest bubble.
func run(t *testing.T, p *provider, then func(t *testing.T, r *propertyprovider.Runner)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := propertyprovider.NewRunner(p)
		r.Start(t.Context(), &rest.Config{Host: "https://member"})
		then(t, r)
	})
}

// said asserts the reasons of the conditions of starting and collecting.
func said(t *testing.T, conditions []metav1.Condition, startReason, collectReason string) {
	t.Helper()
	for kind, reason := range map[string]string{started: startReason, collected: collectReason} {
		c := meta.FindStatusCondition(conditions, kind)
		require.NotNil(t, c, kind)
		assert.Equal(t, reason, c.Reason)
		assert.Equal(t, reason == propertyprovider.ReasonStarted || reason == propertyprovider.ReasonCollected, c.Status == metav1.ConditionTrue)
	}
}

func TestWhatAProviderReportsIsTaken(t *testing.T) {
	var host string
	p := &provider{collect: nodes, start: func(_ context.Context, c *rest.Config) error {
		host = c.Host
		return nil
	}}
	run(t, p, func(t *testing.T, r *propertyprovider.Runner) {
		response, conditions := r.Collect(t.Context())
		require.NotNil(t, response)
		assert.Equal(t, "3", response.Properties["example.com/racks"].Value)
		said(t, conditions, propertyprovider.ReasonStarted, propertyprovider.ReasonCollected)
		assert.True(t, meta.IsStatusConditionTrue(conditions, "CloudReachable"), "its own conditions are told, too")
		assert.Equal(t, "https://member", host)
	})
}

func TestAProviderThatCannotStartIsNotAsked(t *testing.T) {
	for sentence, start := range map[string]func(context.Context, *rest.Config) error{
		"it ends with an error": func(context.Context, *rest.Config) error { return errors.New("no cloud here") },
		"it panics":             func(context.Context, *rest.Config) error { panic("no cloud here") },
	} {
		t.Run(sentence, func(t *testing.T) {
			p := &provider{start: start, collect: nodes}
			run(t, p, func(t *testing.T, r *propertyprovider.Runner) {
				for range 2 {
					response, conditions := r.Collect(t.Context())
					assert.Nil(t, response)
					said(t, conditions, propertyprovider.ReasonStartFailed, propertyprovider.ReasonNotStarted)
					assert.Contains(t, conditions[0].Message, "no cloud here; the member agent reports what it finds itself")
				}
				assert.Zero(t, p.calls.Load())
			})
		})
	}
}

func TestAProviderThatIsSlowToStartHasADeadlineAndIsTakenLater(t *testing.T) {
	p := &provider{collect: nodes, start: func(context.Context, *rest.Config) error {
		<-time.After(time.Minute)
		return nil
	}}
	run(t, p, func(t *testing.T, r *propertyprovider.Runner) {
		began := time.Now()
		_, conditions := r.Collect(t.Context())
		assert.Equal(t, propertyprovider.StartDeadline, time.Since(began))
		said(t, conditions, propertyprovider.ReasonStartTimedOut, propertyprovider.ReasonNotStarted)

		began = time.Now()
		_, conditions = r.Collect(t.Context())
		assert.Zero(t, time.Since(began), "it is waited for once")
		said(t, conditions, propertyprovider.ReasonStartTimedOut, propertyprovider.ReasonNotStarted)

		<-time.After(time.Minute)
		synctest.Wait()
		response, conditions := r.Collect(t.Context())
		assert.NotNil(t, response)
		said(t, conditions, propertyprovider.ReasonStarted, propertyprovider.ReasonCollected)
	})
}

func TestAProviderThatHangsIsAskedOnceAndTakenWhenItIsBack(t *testing.T) {
	hang := true
	p := &provider{}
	p.collect = func(ctx context.Context) propertyprovider.PropertyCollectionResponse {
		if hang {
			<-time.After(time.Minute) // whatever its context says
		}
		return nodes(ctx)
	}
	run(t, p, func(t *testing.T, r *propertyprovider.Runner) {
		began := time.Now()
		response, conditions := r.Collect(t.Context())
		assert.Nil(t, response)
		assert.Equal(t, propertyprovider.CollectDeadline, time.Since(began))
		said(t, conditions, propertyprovider.ReasonStarted, propertyprovider.ReasonCollectionTimedOut)

		began = time.Now()
		response, conditions = r.Collect(t.Context())
		assert.Nil(t, response)
		assert.Zero(t, time.Since(began), "a heartbeat does not wait for it again")
		assert.EqualValues(t, 1, p.calls.Load(), "there is no second call while the first has not returned")
		said(t, conditions, propertyprovider.ReasonStarted, propertyprovider.ReasonCollectionTimedOut)

		<-time.After(time.Minute)
		synctest.Wait()
		hang = false
		response, conditions = r.Collect(t.Context())
		assert.NotNil(t, response)
		said(t, conditions, propertyprovider.ReasonStarted, propertyprovider.ReasonCollected)
	})
}

func TestAnAnswerThatTheHubWouldRefuseIsNotTaken(t *testing.T) {
	for sentence, c := range map[string]metav1.Condition{
		"a condition without a status": {Type: "CloudReachable", Reason: "Reachable"},
		"a condition without a reason": {Type: "CloudReachable", Status: metav1.ConditionTrue},
		"a condition without a type":   {Status: metav1.ConditionTrue, Reason: "Reachable"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := &provider{collect: func(context.Context) propertyprovider.PropertyCollectionResponse {
				return propertyprovider.PropertyCollectionResponse{Conditions: []metav1.Condition{c}}
			}}
			run(t, p, func(t *testing.T, r *propertyprovider.Runner) {
				response, conditions := r.Collect(t.Context())
				assert.Nil(t, response)
				said(t, conditions, propertyprovider.ReasonStarted, propertyprovider.ReasonCollectionFailed)
			})
		})
	}
}

func TestAProviderThatPanicsCostsNothingElse(t *testing.T) {
	p := &provider{collect: func(context.Context) propertyprovider.PropertyCollectionResponse { panic("nil map") }}
	run(t, p, func(t *testing.T, r *propertyprovider.Runner) {
		response, conditions := r.Collect(t.Context())
		assert.Nil(t, response)
		said(t, conditions, propertyprovider.ReasonStarted, propertyprovider.ReasonCollectionFailed)
		assert.Contains(t, meta.FindStatusCondition(conditions, collected).Message, "nil map")
	})
}

func TestAProviderCannotSpeakForTheAgent(t *testing.T) {
	p := &provider{collect: func(context.Context) propertyprovider.PropertyCollectionResponse {
		return propertyprovider.PropertyCollectionResponse{Conditions: []metav1.Condition{{Type: collected, Status: metav1.ConditionFalse, Reason: "Lie"}}}
	}}
	run(t, p, func(t *testing.T, r *propertyprovider.Runner) {
		_, conditions := r.Collect(t.Context())
		said(t, conditions, propertyprovider.ReasonStarted, propertyprovider.ReasonCollected)
	})
}
