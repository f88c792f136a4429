package agent

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// serverRetry is how long to wait before an API server that does not answer is asked again: the agent works soon after it is back.
	serverRetry = time.Second
	// refusalPatience is how long an API server may refuse the agent once it answers: one that starts does not know its roles yet.
	refusalPatience = 10 * time.Second
)

// APIServer waits for the API server that an agent cannot begin without.
type APIServer struct {
	// Host is its address, for messages.
	Host string
	// Ask asks it whether it is ready. The status is 0 if it does not answer.
	Ask func(context.Context) (status int, err error)
	// HealthAddress is where the agent serves /healthz and /readyz while it waits; empty or 0 for nowhere.
	HealthAddress string
	Log           logr.Logger
	Clock         clock.Clock
}

// AwaitAPIServer waits until the API server of the configuration answers. An agent that ended instead would be started again after ever
// longer pauses, and would not work for minutes after the API server is back. It comes before the manager, which takes the address of
// the health endpoints.
func (p *Process) AwaitAPIServer(ctx context.Context, config *rest.Config, log logr.Logger) error {
	config = rest.CopyConfig(config)
	config.Timeout = checkTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client to wait for the API server: %w", err)
	}
	server := &APIServer{
		Host: config.Host, HealthAddress: p.healthAddress, Log: log.WithName("api-server"), Clock: clock.RealClock{},
		Ask: func(ctx context.Context) (status int, err error) {
			err = client.RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).StatusCode(&status).Error()
			return status, err
		},
	}
	if err := server.Await(ctx); err != nil {
		return fmt.Errorf("waiting for the API server at %s: %w", config.Host, err)
	}
	return nil
}

// Await waits until the API server answers. One that goes on refusing the agent is not waited for: what the agent asks for next says
// what it lacks.
func (s *APIServer) Await(ctx context.Context) error {
	began := s.Clock.Now()
	status, err := s.Ask(ctx)
	refused := s.refusedSince(status, time.Time{})
	if s.isThere(status, refused) {
		return nil
	}
	message := fmt.Sprintf("this agent waits for the API server at %s and does nothing until it answers: %v", s.Host, err)
	s.Log.Info("Waiting for the API server", "hub", s.Host, "cause", err.Error())
	closeHealth, err := serveUnready(s.HealthAddress, message)
	if err != nil {
		return err
	}
	defer closeHealth()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Clock.After(serverRetry):
		}
		status, _ := s.Ask(ctx)
		refused = s.refusedSince(status, refused)
		if s.isThere(status, refused) {
			s.Log.Info("Going on: the API server answers", "hub", s.Host, "took", s.Clock.Since(began).String())
			return nil
		}
	}
}

// refusedSince returns since when an API server refuses the agent without a break, by its last answer; zero if it does not.
func (s *APIServer) refusedSince(status int, before time.Time) time.Time {
	switch {
	case status != http.StatusUnauthorized && status != http.StatusForbidden:
		return time.Time{}
	case before.IsZero():
		return s.Clock.Now()
	}
	return before
}

// isThere reports whether an API server serves requests, by the status of its answer and since when it refuses the agent.
func (s *APIServer) isThere(status int, refused time.Time) bool {
	switch {
	case !refused.IsZero():
		return s.Clock.Since(refused) >= refusalPatience
	case status == http.StatusTooManyRequests:
		return false
	}
	return status > 0 && status < http.StatusInternalServerError
}
