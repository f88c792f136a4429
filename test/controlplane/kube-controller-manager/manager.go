package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/controller-manager/app"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	managerconfig "k8s.io/kubernetes/pkg/controller/apis/config"
)

const (
	// awaitServer is how long an API server is waited for that starts at the same time.
	awaitServer = 10 * time.Second
	// discoverAgain is how old what an API server serves may be.
	discoverAgain = 30 * time.Second
)

// manager has what the controllers share.
type manager struct {
	config managerconfig.KubeControllerManagerConfiguration
	// clients makes clients of the API server, each with a name that its log has.
	clients   clientbuilder.ControllerClientBuilder
	informers informers.SharedInformerFactory
	// anyInformers are these informers, and for kinds they do not know those that watch only the metadata.
	anyInformers informerfactory.InformerFactory
	mapper       *restmapper.DeferredDiscoveryRESTMapper
	// started is closed when the informers run, and controllers may start more of them.
	started chan struct{}
}

func newManager(ctx context.Context, c *config.Config) (*manager, error) {
	m := &manager{
		config: c.ComponentConfig, clients: clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig},
		started: make(chan struct{}),
	}
	client, err := m.client("shared-informers")
	if err != nil {
		return nil, err
	}
	metadataClient, err := m.metadataClient("metadata-informers", 1)
	if err != nil {
		return nil, err
	}
	name, err := cache.NewInformerName("kube-controller-manager")
	if err != nil {
		return nil, fmt.Errorf("naming the informers: %w", err)
	}
	m.informers = informers.NewSharedInformerFactoryWithOptions(client, m.resync(), informers.WithTransform(withoutManagedFields),
		informers.WithInformerName(name))
	m.anyInformers = informerfactory.NewInformerFactory(m.informers,
		metadatainformer.NewSharedInformerFactoryWithOptions(metadataClient, m.resync(), metadatainformer.WithTransform(withoutManagedFields)))
	if err := app.WaitForAPIServer(client, awaitServer); err != nil {
		return nil, fmt.Errorf("waiting for the API server: %w", err)
	}
	discovering, err := m.clients.DiscoveryClient("controller-discovery")
	if err != nil {
		return nil, fmt.Errorf("making the client that discovers: %w", err)
	}
	m.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovering))
	go wait.Until(m.mapper.Reset, discoverAgain, ctx.Done())
	return m, nil
}

// run makes every controller, starts the informers they ask for, then the controllers. It returns when all have ended.
func (m *manager) run(ctx context.Context) error {
	var loops []loop
	for name, c := range known {
		if !m.runs(name) {
			continue
		}
		client, err := m.client(c.client)
		if err != nil {
			return err
		}
		named := klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), name))
		made, err := c.construct(named, m, client)
		if err != nil {
			return fmt.Errorf("making %s: %w", name, err)
		}
		loops = append(loops, made...)
	}
	m.anyInformers.Start(ctx.Done())
	close(m.started)
	var running sync.WaitGroup
	for _, l := range loops {
		running.Go(func() { l(ctx) })
	}
	running.Wait()
	return nil
}

// runs reports whether --controllers names a controller, which upstream does not ask of the one that fills tokens.
func (m *manager) runs(name string) bool {
	return name == names.ServiceAccountTokenController || app.IsControllerEnabled(name, nil, m.config.Generic.Controllers)
}

// resync returns the period after which informers hand out everything again, another each time so that not all do it at once.
func (m *manager) resync() time.Duration {
	return time.Duration(float64(m.config.Generic.MinResyncPeriod.Nanoseconds()) * (rand.Float64() + 1))
}

func (m *manager) client(name string) (kubernetes.Interface, error) {
	client, err := m.clients.Client(name)
	if err != nil {
		return nil, fmt.Errorf("making the client of %s: %w", name, err)
	}
	return client, nil
}

// metadataClient returns a client of the metadata of any kind, which may ask so many times as often as others.
func (m *manager) metadataClient(name string, times float32) (metadata.Interface, error) {
	rest, err := m.clients.Config(name)
	if err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", name, err)
	}
	rest.QPS *= times
	client, err := metadata.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("making the metadata client of %s: %w", name, err)
	}
	return client, nil
}

// withoutManagedFields keeps the caches small.
func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
