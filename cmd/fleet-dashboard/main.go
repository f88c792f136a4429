// Command fleet-dashboard serves the pages of kubectl fleet dashboard to several users from inside the hub. It reads the fleet
// with an account of its own, shows to each user what the user may list, and writes as the user.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
	"github.com/fleetflow/fleetflow/cmd/version"
)

const (
	// headerPatience is how long a browser may take for the head of a request, bodyPatience for all of it.
	headerPatience, bodyPatience = 10 * time.Second, 30 * time.Second
	// idlePatience is how long a connection may be kept that nothing is asked on.
	idlePatience = 2 * time.Minute
	// again is after how long the hub is asked again that did not answer at the start.
	again = 5 * time.Second
	// keyLength is the length of the keys of forms.
	keyLength = 20
	// ending is how long requests under way may take once the dashboard is told to end.
	ending = 10 * time.Second
)

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "fleet-dashboard: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o, err := parseOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	if o.version {
		fmt.Println(version.Of("fleet-dashboard"))
		return nil
	}
	if o.try != "" {
		if err := tryPages(context.Background(), o.try, o.url.Host); err != nil {
			return err
		}
		fmt.Println("the dashboard answers")
		return nil
	}
	log := o.newLogger(os.Stderr)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	ctx, cancel := context.WithCancel(ctrl.SetupSignalHandler())
	defer cancel()
	users, err := newUsers(o, clock.RealClock{})
	if err != nil {
		return err
	}
	sealer, err := newSealer(o, users)
	if err != nil {
		return err
	}
	access, err := newAccess(o, users, sealer, log)
	if err != nil {
		return err
	}
	var ready atomic.Bool
	endHealth, err := serveHealth(ctx, o.healthAddress, &ready)
	if err != nil {
		return err
	}
	defer endHealth()
	log.Info("Reading the fleet", "version", version.Number(), "hub", users.config.Host)
	fleet, err := readFleet(ctx, users, o.namespace, log)
	if err != nil {
		return err
	}
	if o.sessionSecret != "" {
		if err := awaitKeys(ctx, sealer, users, log); err != nil {
			return err
		}
	}
	server := &web.Server{
		Feed: fleet, Access: access, Clock: users.clock, Hub: o.hubName, Temporal: o.temporal,
		ReadOnly: o.anonymous != "", TLS: o.tlsCert != "",
		Key: func() string { return utilrand.String(keyLength) },
		Log: func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...)) },
	}
	return serve(ctx, o, server.Handler(), &ready, log)
}

// readFleet begins to follow the fleet, once the hub answers.
func readFleet(ctx context.Context, users *users, namespace string, log logr.Logger) (*feed.Feed, error) {
	for {
		fleet, err := feed.Start(ctx, users.client, users.clock, namespace)
		if err == nil {
			return fleet, nil
		}
		log.Error(err, "The fleet cannot be read yet")
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-users.clock.After(again):
		}
	}
}

// awaitKeys waits until the hub has given the keys of sessions.
func awaitKeys(ctx context.Context, sealer *session.Sealer, users *users, log logr.Logger) error {
	for {
		err := sealer.Check()
		if err == nil {
			return nil
		}
		log.Error(err, "The key of sessions cannot be read yet")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-users.clock.After(again):
		}
	}
}

// serve answers until the context ends, which is no error. It is ready once it listens, so that no Service sends it a request before.
func serve(ctx context.Context, o *options, handler http.Handler, ready *atomic.Bool, log logr.Logger) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("listening on --bind-address %s: %w", o.address, err)
	}
	ready.Store(true)
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerPatience, ReadTimeout: bodyPatience, IdleTimeout: idlePatience,
		BaseContext: func(net.Listener) context.Context { return ctx }, // streams end with it
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		patience, cancel := context.WithTimeout(context.Background(), ending)
		defer cancel()
		_ = server.Shutdown(patience) // what takes longer is cut off
	})
	log.Info("Serving", "address", listener.Addr().String(), "url", o.url.String())
	if o.tlsCert != "" {
		err = server.ServeTLS(listener, o.tlsCert, o.tlsKey)
	} else {
		err = server.Serve(listener)
	}
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving pages: %w", err)
	}
	<-ended
	return nil
}

// serveHealth serves what probes and Prometheus ask for, on an address of its own.
func serveHealth(ctx context.Context, address string, ready *atomic.Bool) (end func(), err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "the fleet has not been read yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.DefaultGatherer, promhttp.HandlerOpts{}))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on --health-probe-bind-address %s: %w", address, err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerPatience}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return func() { _ = server.Close() }, nil
}

// hostOf returns the host of the dashboard as browsers name it: without the port of the scheme.
func hostOf(o *options) string {
	if port := o.url.Port(); o.url.Scheme == "https" && port == "443" || o.url.Scheme == "http" && port == "80" {
		return strings.TrimSuffix(o.url.Host, ":"+port)
	}
	return o.url.Host
}
