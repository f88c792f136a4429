// Package temporalclient is the hub's connection to Temporal: how it is secured, measured and traced, and the few
// calls that controllers make through it. Nothing here carries state to a workflow.
package temporalclient

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/stats"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// pokeTimeout bounds one poke: a controller's worker must not hang on Temporal.
const pokeTimeout = 5 * time.Second

// checkTimeout bounds a health check: the kubelet, which asks for it, does not wait for long.
const checkTimeout = 2 * time.Second

// Options of the connection to Temporal.
type Options struct {
	// Address is host:port of the frontend, Namespace the Temporal namespace.
	Address   string
	Namespace string
	// Identity names this process in histories.
	Identity string
	Logger   log.Logger
	// Security of the connection.
	Security Security
	// Bundled says that the server is for this process alone.
	Bundled bool
	// Metrics are reported to if they are given.
	Metrics *Metrics
	// Tracer, if it is given, makes spans of pokes and of the workflows and activities that follow.
	Tracer trace.Tracer
}

// Client is the hub's connection to Temporal.
type Client struct {
	// SDK is lazy: it connects at the first call and again whenever it must.
	SDK client.Client
	// Converter is that of the SDK client: it reads the payloads of histories.
	Converter converter.DataConverter
	// Ensure makes sure that the namespace exists with the search attributes that starting a workflow needs.
	Ensure func(context.Context) error
	// Priority is the priority key of the workflow of an object: of workflows that wait, those with the lowest come first. Without
	// it, all are alike.
	Priority func(context.Context, wf.Ref) int

	address   string
	namespace string
	metrics   *Metrics
	tracer    trace.Tracer
	connected chan struct{}
	takeover  takeover
}

// New returns a client of a Temporal server that need not be up yet.
func New(o Options) (*Client, error) {
	c := &Client{
		Converter: converter.GetDefaultDataConverter(),
		connected: make(chan struct{}, 1), address: o.Address, namespace: o.Namespace, metrics: o.Metrics,
		takeover: takeover{turn: make(chan struct{}, 1), done: !o.Bundled},
	}
	if c.metrics == nil {
		c.metrics = NewMetrics()
	}
	c.metrics.tellMode(o.Bundled)
	options := client.Options{
		HostPort: o.Address, Namespace: o.Namespace, Identity: o.Identity, Logger: o.Logger,
		MetricsHandler: c.metrics.SDK(), DataConverter: c.Converter,
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{
			grpc.WithStatsHandler(&connectionHandler{onBegin: c.recordConnection, onEnd: c.recordConnectionEnd}),
			ReconnectSoon(),
		}},
	}
	o.Security.addCredentials(&options)
	if err := c.addTracing(o.Tracer, &options); err != nil {
		return nil, err
	}
	sdk, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("preparing the Temporal client for %s: %w", o.Address, err)
	}
	c.SDK = sdk
	return c, nil
}

// ReconnectSoon returns the option by which a lost connection is tried again within about a second. The SDK would wait for up to ten
// seconds between two attempts: after an outage of ten seconds, heartbeats would arrive later than call.HeartbeatTimeout allows.
func ReconnectSoon() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		MinConnectTimeout: pokeTimeout,
	})
}

// Check asks Temporal whether it is well; the error says what is wrong.
func (c *Client) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if _, err := c.SDK.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return fmt.Errorf("asking Temporal at %s whether it is well: %w", c.address, err)
	}
	return nil
}

// RecordAnswer notes in the metrics whether Temporal has answered the agent that leads, and returns the error that says why not.
func (c *Client) RecordAnswer(err error) error {
	c.metrics.recordAnswer(err)
	return err
}

// Connected receives a value when a connection has been made.
func (c *Client) Connected() <-chan struct{} { return c.connected }

// recordConnection notes a new connection. The channel holds one: the audit asks only whether there was any.
func (c *Client) recordConnection() {
	c.metrics.open.Add(1)
	select {
	case c.connected <- struct{}{}:
	default:
	}
}

func (c *Client) recordConnectionEnd() { c.metrics.open.Add(-1) }

// connectionHandler hears from gRPC of connections. It ignores calls.
type connectionHandler struct{ onBegin, onEnd func() }

// TagRPC leaves the context as it is.
func (h *connectionHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return ctx
}

// HandleRPC ignores calls.
func (h *connectionHandler) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn leaves the context as it is.
func (h *connectionHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn reports each connection.
func (h *connectionHandler) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		h.onBegin()
	case *stats.ConnEnd:
		h.onEnd()
	}
}
