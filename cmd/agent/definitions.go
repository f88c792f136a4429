package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/cmd/internal/definitions"
)

// An API server publishes the schemas of a definition some time after it has stored the definition: for publishingTime after a change,
// the agent looks every definitionsPeriod. So it does while it cannot read them.
const (
	definitionsPeriod = 2 * time.Second
	publishingTime    = time.Minute
)

// Definitions keeps an agent from working with objects of which the hub drops fields, as under the definitions of KubeFleet or of an
// older version: what pauses, holds or limits a rollout would be gone. The agent does not start while fields are missing, and ends if
// some go missing later.
type Definitions struct {
	// Lacking returns what the definitions lack.
	Lacking func(context.Context) ([]definitions.Gap, error)
	// Watch calls a function for each definition that there is, and whenever one changes, until the context ends.
	Watch func(ctx context.Context, changed func())
	// HealthAddress is where the agent serves /healthz and /readyz while it waits; empty or 0 for nowhere.
	HealthAddress string
	Log           logr.Logger
	Clock         clock.Clock
}

// AwaitDefinitions waits while the definitions of a hub lack fields of the types of a scheme, and returns what ends the agent's manager
// when they do later. It comes before the manager, which takes the address of the health endpoints.
func (p *Process) AwaitDefinitions(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, log logr.Logger) (*Definitions, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for definitions: %w", err)
	}
	changes, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for changes of definitions: %w", err)
	}
	reader := &definitions.Reader{Client: client.RESTClient(), Scheme: scheme}
	guard := &Definitions{Lacking: reader.Lacking, HealthAddress: p.healthAddress, Log: log.WithName("definitions"), Clock: clock.RealClock{},
		Watch: func(ctx context.Context, changed func()) { watchDefinitions(ctx, changes, changed) }}
	if err := guard.Await(ctx); err != nil {
		return nil, fmt.Errorf("waiting for definitions that lack no field: %w", err)
	}
	return guard, nil
}

// Await waits while definitions lack fields. If they cannot be read, it does not wait: the agent may have to work while its API server
// is away, and Start looks again.
func (d *Definitions) Await(ctx context.Context) error {
	gaps, err := d.Lacking(ctx)
	if err != nil {
		d.Log.Error(err, "Cannot tell whether the definitions lack fields")
	}
	if err != nil || len(gaps) == 0 {
		return nil
	}
	message := definitions.Describe(gaps) + ". This agent does nothing until they have them: " + definitions.Remedy
	d.Log.Info("Standing back", "cause", message)
	closeHealth, err := serveUnready(d.HealthAddress, message)
	if err != nil {
		return err
	}
	defer closeHealth()
	if _, done := d.await(ctx, false); !done {
		return ctx.Err()
	}
	d.Log.Info("Going on: the definitions have all fields")
	return nil
}

// Start looks at the definitions while the agent works, and fails, which ends the agent, when they lack fields.
func (d *Definitions) Start(ctx context.Context) error {
	gaps, done := d.await(ctx, true)
	if !done {
		return nil // the agent was told to end
	}
	return fmt.Errorf("%s. This agent ends, and does nothing until they have them: %s", definitions.Describe(gaps), definitions.Remedy)
}

// NeedLeaderElection reports whether replicas that do not lead look, too: their workers work.
func (d *Definitions) NeedLeaderElection() bool { return false }

// await waits until the definitions lack fields, or do not any more; done is false if the context ended before. While they cannot be
// read, nothing is known, and it waits.
func (d *Definitions) await(ctx context.Context, lack bool) (gaps []definitions.Gap, done bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	go d.Watch(ctx, func() {
		select {
		case changed <- struct{}{}:
		default: // a look is due already
		}
	})
	until := d.Clock.Now().Add(publishingTime)
	for {
		gaps, err := d.Lacking(ctx)
		if err == nil && len(gaps) > 0 == lack {
			return gaps, true
		}
		var again <-chan time.Time
		if err != nil || d.Clock.Now().Before(until) {
			again = d.Clock.After(definitionsPeriod)
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-changed:
			until = d.Clock.Now().Add(publishingTime)
		case <-again:
		}
	}
}

// watchDefinitions watches the metadata of CustomResourceDefinitions until the context ends.
func watchDefinitions(ctx context.Context, client metadata.Interface, changed func()) {
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	informer := metadatainformer.NewFilteredMetadataInformer(client, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // it has not started, so this cannot fail
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(any, any) { changed() },
		DeleteFunc: func(any) { changed() },
	})
	informer.RunWithContext(ctx)
}
