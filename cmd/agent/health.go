package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// checkTimeout bounds each check: who asks for an agent's health does not wait for long.
const checkTimeout = 2 * time.Second

// Check tells whether one thing that an agent depends on is there; the error says what is wrong.
type Check struct {
	// Name is that of the endpoint, as in /readyz/<name>.
	Name string
	Run  func(context.Context) error
}

// AddHealth adds the health endpoints to a manager: /healthz, which only says that the process is alive, and /readyz with one
// check for each dependency. /readyz?verbose names those that are missing, /readyz/<name> says what is wrong with one. A
// dependency whose loss an agent survives, because it does what it can without it, is to be left out of the probe of a Pod by
// /readyz?exclude=<name>.
func AddHealth(mgr ctrl.Manager, checks ...Check) error {
	problems := []error{mgr.AddHealthzCheck("alive", healthz.Ping)}
	for _, check := range checks {
		run := check.told(mgr.GetLogger())
		problems = append(problems, mgr.AddReadyzCheck(check.Name, func(request *http.Request) error {
			ctx, cancel := context.WithTimeout(request.Context(), checkTimeout)
			defer cancel()
			return run(ctx)
		}))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("adding the health checks: %w", err)
	}
	return nil
}

// told returns the check with a line in the log when what it checks goes missing, and one when it is back.
func (c Check) told(log logr.Logger) func(context.Context) error {
	var missing atomic.Bool
	return func(ctx context.Context) error {
		err := c.Run(ctx)
		switch before := missing.Swap(err != nil); {
		case err != nil && !before:
			log.Info("Not ready", "name", c.Name, "cause", err.Error())
		case err == nil && before:
			log.Info("Ready again", "name", c.Name)
		}
		return err
	}
}

// CachesAreFilled checks that a cache has all it is to have. It makes no request.
func CachesAreFilled(name string, objects cache.Cache) Check {
	return Check{Name: name, Run: func(ctx context.Context) error {
		// Caches that are not filled stay so for a while: to wait for long would not help.
		ctx, cancel := context.WithTimeout(ctx, checkTimeout/10)
		defer cancel()
		if !objects.WaitForCacheSync(ctx) {
			return errors.New("not everything has been listed yet")
		}
		return nil
	}}
}

// APIServerAnswers checks that an API server says that it is ready to the user of the configuration.
func APIServerAnswers(name string, config *rest.Config) (Check, error) {
	config = rest.CopyConfig(config)
	config.Timeout = checkTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return Check{}, fmt.Errorf("making a client to check %s: %w", name, err)
	}
	return Check{Name: name, Run: func(ctx context.Context) error {
		status := 0
		err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status).Error()
		switch {
		case err == nil:
			return nil
		case status == 0:
			return fmt.Errorf("the API server does not answer: %w", err)
		}
		return fmt.Errorf("the API server at %s answers %d: %w", config.Host, status, err)
	}}, nil
}

// serveUnready answers who asks for the health of an agent that waits before it begins: it is alive, and not ready.
func serveUnready(address, message string) (closeServer func(), err error) {
	if address == "" || address == "0" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for health probes on %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, message, http.StatusServiceUnavailable) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: checkTimeout}
	go func() { _ = server.Serve(listener) }() // it ends when it is closed
	return func() { _ = server.Close() }, nil
}
