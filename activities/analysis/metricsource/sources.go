package metricsource

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// maxRequests is how many requests one process has under way.
const maxRequests = 32

// Sources asks the servers of MetricSources.
type Sources struct {
	outbound.Client

	mu     sync.Mutex
	all    chan struct{}
	limits map[string]*limit
}

// limit is what one source may be asked by this process.
type limit struct {
	of     fleetflowv1alpha1.MetricSourceLimits
	slots  chan struct{}
	paced  *rate.Limiter
	common chan struct{}
}

// NewSources asks sources whose Secrets and ConfigMaps are in a namespace.
func NewSources(live client.Reader, namespace string, guard outbound.Guard) *Sources {
	return &Sources{
		Client: outbound.Client{
			Caller: outbound.Caller{Guard: guard}, Live: live, Namespace: namespace, Clock: clock.RealClock{},
			Of: "source", Label: fleetflowv1alpha1.MetricSourceLabel, URLAnnotation: fleetflowv1alpha1.MetricSourceURLAnnotation,
		},
		all: make(chan struct{}, maxRequests), limits: map[string]*limit{},
	}
}

func (s *Sources) limitOf(source *fleetflowv1alpha1.MetricSource) *limit {
	wanted := source.EffectiveLimits()
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.limits[source.Name]; l != nil && l.of.MaxConcurrent == wanted.MaxConcurrent &&
		l.of.RequestsPerSecond == wanted.RequestsPerSecond {
		return l
	}
	l := &limit{
		of: wanted, slots: make(chan struct{}, wanted.MaxConcurrent), common: s.all,
		paced: rate.NewLimiter(rate.Limit(wanted.RequestsPerSecond), int(wanted.RequestsPerSecond)),
	}
	s.limits[source.Name] = l
	return l
}

// takeTurn waits for its turn; release gives it back.
func (l *limit) takeTurn(ctx context.Context) (release func(), err error) {
	for _, slots := range []chan struct{}{l.slots, l.common} {
		select {
		case slots <- struct{}{}:
			defer func() {
				if err != nil {
					<-slots
				}
			}()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := l.paced.Wait(ctx); err != nil {
		return nil, fmt.Errorf("waiting for the turn of a request: %w", err)
	}
	return func() { <-l.slots; <-l.common }, nil
}

// serverOf returns the server of a source.
func serverOf(source *fleetflowv1alpha1.MetricSource) outbound.Server {
	return outbound.Server{Object: source.Name, URL: source.Spec.URL, Auth: source.Spec.Auth, TLS: source.Spec.TLS}
}

// Check returns why a source cannot be used; nil if it can, as far as that is known without calling it.
func (s *Sources) Check(ctx context.Context, source *fleetflowv1alpha1.MetricSource) (*analysis.Problem, error) {
	return s.Client.Check(ctx, serverOf(source))
}

// callSource sends a request to a source. Without an answer there is a reading that says why; an error is trouble with the hub, or the end
// of the context.
func (s *Sources) callSource(ctx context.Context, source *fleetflowv1alpha1.MetricSource,
	sent outbound.Request) (got *outbound.Answer, none analysis.Reading, err error) {
	limit := s.limitOf(source)
	release, err := limit.takeTurn(ctx)
	if err != nil {
		return nil, none, err
	}
	defer release()
	bounds := source.EffectiveLimits()
	got, failure, err := s.Post(ctx, serverOf(source), sent, outbound.Bounds{
		Timeout: bounds.Timeout.Duration, MaxBytes: bounds.MaxResponseBytes, LongerAt: "maxResponseBytes",
	})
	if failure != nil {
		none = analysis.Reading{Problem: failure.Text, Silent: failure.Silent, Answered: failure.Answered}
	}
	return got, none, err
}

// redactValue takes credentials out of all texts of a value that was read from JSON: what an expression says about them tells what they
// are.
func redactValue(value any, credentials []string) any {
	switch value := value.(type) {
	case string:
		return outbound.Redact(value, credentials)
	case []any:
		for i := range value {
			value[i] = redactValue(value[i], credentials)
		}
	case map[string]any:
		redacted := make(map[string]any, len(value))
		for key, of := range value {
			redacted[outbound.Redact(key, credentials)] = redactValue(of, credentials)
		}
		return redacted
	}
	return value
}
