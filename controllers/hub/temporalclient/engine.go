// Package temporalclient is the hub's side of Temporal: it pokes workflows when their
// objects change, and audits that no object that needs work is without one.
// Nothing here carries state to a workflow.
package temporalclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/stats"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// pokeTimeout bounds one poke: a controller's worker must not hang on Temporal.
const pokeTimeout = 5 * time.Second

// checkTimeout bounds the question whether Temporal is well: who asks for an agent's health does not wait for long.
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
	// Metrics are reported to if they are given.
	Metrics *Metrics
	// Tracer, if it is given, makes spans of pokes and of what comes of them.
	Tracer trace.Tracer
}

// Engine pokes workflows.
type Engine struct {
	// Client is lazy: it connects at the first call and again whenever it must.
	Client client.Client
	// Ensure makes sure that the namespace has what starting a workflow needs.
	Ensure func(context.Context) error

	address   string
	metrics   *Metrics
	tracer    trace.Tracer
	connected chan struct{}
}

// New returns an engine for a Temporal server that need not be up yet.
func New(o Options) (*Engine, error) {
	e := &Engine{connected: make(chan struct{}, 1), address: o.Address, metrics: o.Metrics}
	if e.metrics == nil {
		e.metrics = NewMetrics()
	}
	options := client.Options{
		HostPort: o.Address, Namespace: o.Namespace, Identity: o.Identity, Logger: o.Logger,
		MetricsHandler: e.metrics.SDK(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{
			grpc.WithStatsHandler(&connections{began: e.noteConnect, ended: e.noteEnd}),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: pokeTimeout,
			}),
		}},
	}
	o.Security.protect(&options)
	if err := e.traced(o.Tracer, &options); err != nil {
		return nil, err
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("preparing the Temporal client for %s: %w", o.Address, err)
	}
	e.Client = c
	return e, nil
}

// Poke makes the workflow of an object look at it again, starting one if none
// is running.
func (e *Engine) Poke(ctx context.Context, ref wf.Ref, poke wf.Poke) error {
	ctx, cancel := context.WithTimeout(ctx, pokeTimeout)
	defer cancel()
	ctx, span := e.startPoke(ctx, ref, poke)
	err := e.poke(ctx, ref, poke)
	endPoke(span, err)
	e.metrics.poked(err)
	return err
}

func (e *Engine) poke(ctx context.Context, ref wf.Ref, poke wf.Poke) error {
	err := e.signal(ctx, ref, poke)
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) && e.Ensure != nil {
		// A namespace that has lost its search attributes refuses the start.
		if err := e.Ensure(ctx); err != nil {
			return fmt.Errorf("poking workflow %s: %w", ref.ID(), err)
		}
		err = e.signal(ctx, ref, poke)
	}
	if err != nil {
		return fmt.Errorf("poking workflow %s: %w", ref.ID(), err)
	}
	return nil
}

func (e *Engine) signal(ctx context.Context, ref wf.Ref, poke wf.Poke) error {
	kind, attribute := wf.PlacementWorkflow, wf.PlacementAttribute
	if ref.Kind == wf.KindClusterStagedUpdateRun {
		kind, attribute = wf.UpdateRunWorkflow, wf.RunAttribute
	}
	_, err := e.Client.SignalWithStartWorkflow(ctx, ref.ID(), wf.PokeSignal, poke, client.StartWorkflowOptions{
		ID: ref.ID(), TaskQueue: wf.TaskQueue,
		WorkflowTaskTimeout:   wf.TaskTimeout,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         fmt.Sprintf("%s %s", ref.Kind, ref.Key()),
		TypedSearchAttributes: temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword(attribute).ValueSet(ref.Key())),
	}, kind, ref)
	return err
}

// Check asks Temporal whether it is well; the error says what is wrong.
func (e *Engine) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if _, err := e.Client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return fmt.Errorf("asking Temporal at %s whether it is well: %w", e.address, err)
	}
	return nil
}

// noteConnect remembers that a connection was made; one is enough.
func (e *Engine) noteConnect() {
	e.metrics.open.Add(1)
	select {
	case e.connected <- struct{}{}:
	default:
	}
}

// noteEnd remembers that a connection is gone.
func (e *Engine) noteEnd() { e.metrics.open.Add(-1) }

// connections tells when gRPC has connected, and when a connection ends. Calls are of no interest.
type connections struct{ began, ended func() }

func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC ignores calls.
func (c *connections) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn leaves the context as it is.
func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn reports each connection.
func (c *connections) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		c.began()
	case *stats.ConnEnd:
		c.ended()
	}
}
