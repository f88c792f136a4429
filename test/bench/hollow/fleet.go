package hollow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/question"
)

const (
	// atOnce is how many statuses are written at the same time.
	atOnce = 16
	// DefaultHeartbeat is how often a member reports: with the longest pauses that the hub accepts before it stops to place
	// anything new on it.
	DefaultHeartbeat = 4 * time.Minute
)

// Behaviour is how a member takes what it is told.
type Behaviour struct {
	// Latency is how long the member takes to apply a Work, or to answer a question.
	Latency time.Duration
	// Fails says that the member cannot apply anything.
	Fails bool
	// Unavailable says that nothing it applies becomes available.
	Unavailable bool
	// Vanished says that the member does not answer and does not report any more.
	Vanished bool
	// Clock is how far the member's clock is ahead of the hub's; behind it if negative.
	Clock time.Duration
}

// Options of a Fleet.
type Options struct {
	// Heartbeat is how often each member reports; 0 is DefaultHeartbeat.
	Heartbeat time.Duration
	// Labels are those of the i-th member, counted from 0; nil gives none.
	Labels func(i int) map[string]string
	// Usual is how members behave unless told otherwise.
	Usual Behaviour
}

// Fleet is a number of simulated members.
type Fleet struct {
	client  client.WithWatch
	cache   cache.Cache
	options Options
	// works, reports and questions are what is to be answered: Works, mailboxes of members, and MemberQuestions.
	works, reports, questions workqueue.TypedRateLimitingInterface[client.ObjectKey]

	mu         sync.Mutex
	members    []string
	behaviours map[string]Behaviour
	reported   map[string]time.Time
	answered   map[client.ObjectKey]seen
	answerers  map[string]*question.Answerer
}

// New makes a fleet that has no members yet, with an administrator's access to the hub.
func New(config *rest.Config, options Options) (*Fleet, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.Burst = -1 // members do not share a budget
	config.UserAgent = "fleetflow-hollow-members"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme, fleetflowv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("collecting the kinds: %w", err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client of the hub: %w", err)
	}
	watched, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("making a cache of the hub: %w", err)
	}
	if options.Heartbeat == 0 {
		options.Heartbeat = DefaultHeartbeat
	}
	return &Fleet{
		client: c, cache: watched, options: options, works: newQueue(), reports: newQueue(), questions: newQueue(),
		answerers: map[string]*question.Answerer{}, behaviours: map[string]Behaviour{}, reported: map[string]time.Time{}, answered: map[client.ObjectKey]seen{},
	}, nil
}

func newQueue() workqueue.TypedRateLimitingInterface[client.ObjectKey] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](100*time.Millisecond,
		5*time.Second))
}

// Start lets the members live until the context ends. It returns when everything is watched.
func (f *Fleet) Start(ctx context.Context) error {
	for _, source := range []struct {
		object  client.Object
		handler func(client.Object)
	}{
		{&placementv1beta1.Work{}, f.workChanged},
		{&clusterv1beta1.InternalMemberCluster{}, f.boxChanged},
		{&fleetflowv1alpha1.MemberQuestion{}, f.questionChanged},
	} {
		informer, err := f.cache.GetInformer(ctx, source.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", source.object, err)
		}
		if _, err := informer.AddEventHandler(eventsTo(source.handler)); err != nil {
			return fmt.Errorf("watching %T: %w", source.object, err)
		}
	}
	go func() { _ = f.cache.Start(ctx) }() // it ends with the context, and with nothing else
	context.AfterFunc(ctx, f.works.ShutDown)
	context.AfterFunc(ctx, f.reports.ShutDown)
	context.AfterFunc(ctx, f.questions.ShutDown)
	if !f.cache.WaitForCacheSync(ctx) {
		return fmt.Errorf("watching the hub: %w", context.Cause(ctx))
	}
	for range atOnce {
		go serve(ctx, f.works, f.answer)
		go serve(ctx, f.questions, f.answerQuestion)
	}
	for range atOnce / 2 {
		go serve(ctx, f.reports, f.report)
	}
	go f.beat(ctx)
	return nil
}

// eventsTo hands additions and updates on.
func eventsTo(handle func(client.Object)) toolscache.ResourceEventHandler {
	see := func(o any) {
		if object, ok := o.(client.Object); ok {
			handle(object)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }}
}

// serve works a queue off.
func serve(ctx context.Context, queue workqueue.TypedRateLimitingInterface[client.ObjectKey],
	do func(context.Context, client.ObjectKey) error) {
	for {
		key, ended := queue.Get()
		if ended {
			return
		}
		if err := do(ctx, key); err != nil && ctx.Err() == nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// Behave changes how members behave from now on. Those that were silent answer what they have missed.
func (f *Fleet) Behave(ctx context.Context, behaviour Behaviour, members ...string) error {
	f.mu.Lock()
	for _, name := range members {
		f.behaviours[name] = behaviour
	}
	f.mu.Unlock()
	for _, name := range members {
		var works placementv1beta1.WorkList
		if err := f.cache.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(name))); err != nil {
			return fmt.Errorf("listing the Works of %s: %w", name, err)
		}
		for i := range works.Items {
			f.works.Add(client.ObjectKeyFromObject(&works.Items[i]))
		}
	}
	return nil
}

// Members returns the names of all members, in their order.
func (f *Fleet) Members() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.members...)
}

func (f *Fleet) behaviour(member string) Behaviour {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b, special := f.behaviours[member]; special {
		return b
	}
	return f.options.Usual
}
