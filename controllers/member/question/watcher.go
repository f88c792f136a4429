package question

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/informer"
)

const (
	// concurrentQuestions is how many questions are answered at a time.
	concurrentQuestions = 2
	// concurrentPulls is how many questions are answered at a time for which images are pulled: they take long, and keep no others waiting.
	concurrentPulls = 1
	// firstLook and lastLook are the pauses between two looks whether the hub has questions: an older one does not know the kind.
	firstLook, lastLook = time.Second, 30 * time.Minute
	// minRetry and maxRetry are the pauses after answers that could not be written.
	minRetry, maxRetry = 500 * time.Millisecond, 10 * time.Second
)

// Watcher watches the questions to a member, as long as the hub has the kind and lets the agent read it. It has a cache of its own: that
// an older hub refuses it is no reason to say that the hub does not let the agent in.
type Watcher struct {
	WatcherOptions

	mu    sync.Mutex
	cache client.Reader
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// pulls has the questions for which images are pulled.
	pulls workqueue.TypedRateLimitingInterface[reconcile.Request]
	wakes chan struct{}
}

// WatcherOptions are what a Watcher needs.
type WatcherOptions struct {
	// Config, Client and Scheme are for the cache.
	Config *rest.Config
	Client *http.Client
	Mapper meta.RESTMapper
	Scheme *runtime.Scheme
	// Live reads past any cache.
	Live      client.Reader
	Namespace string
	Clock     clock.Clock
	Log       logr.Logger
}

// NewWatcher returns a Watcher.
func NewWatcher(o WatcherOptions) *Watcher {
	return &Watcher{WatcherOptions: o, wakes: make(chan struct{}, 1)}
}

// SetupWithManager adds what answers the questions, and the watcher itself, to the manager of the member.
func (w *Watcher) SetupWithManager(mgr ctrl.Manager, answerer *Answerer) error {
	answerer.Questions = w.Read
	for _, of := range []struct {
		name       string
		concurrent int
		queue      *workqueue.TypedRateLimitingInterface[reconcile.Request]
	}{
		{"question", concurrentQuestions, &w.queue},
		{"image-pull", concurrentPulls, &w.pulls},
	} {
		c, err := controller.New(of.name, mgr, controller.Options{
			Reconciler:              answerer,
			MaxConcurrentReconciles: of.concurrent,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
		})
		if err != nil {
			return fmt.Errorf("creating the controller %s: %w", of.name, err)
		}
		if err := c.Watch(source.Func(w.attachTo(of.queue))); err != nil {
			return fmt.Errorf("watching questions for the controller %s: %w", of.name, err)
		}
	}
	return mgr.Add(w)
}

// attachTo returns a source that has the watcher fill a queue.
func (w *Watcher) attachTo(
	attached *workqueue.TypedRateLimitingInterface[reconcile.Request],
) func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		*attached = queue
		return nil
	}
}

// Wake has the watcher look at once whether the hub has questions.
func (w *Watcher) Wake() {
	select {
	case w.wakes <- struct{}{}:
	default:
	}
}

// Read reads a question as it was seen last.
func (w *Watcher) Read(ctx context.Context, key types.NamespacedName, into *fleetflowv1alpha1.MemberQuestion) error {
	w.mu.Lock()
	reader := w.cache
	w.mu.Unlock()
	if reader == nil {
		return apierrors.NewNotFound(fleetflowv1alpha1.GroupVersion.WithResource("memberquestions").GroupResource(), key.Name)
	}
	return reader.Get(ctx, key, into)
}

// Start watches questions until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	for w.awaitKind(ctx) {
		if err := w.watch(ctx); err != nil && ctx.Err() == nil {
			w.Log.Error(err, "The questions of the hub cannot be watched")
		}
	}
	return nil
}

// awaitKind returns once the hub has questions, and false if ctx ends before. It says once what the hub answers.
func (w *Watcher) awaitKind(ctx context.Context) bool {
	wait := firstLook
	for told := false; ; {
		err := w.Live.List(ctx, &fleetflowv1alpha1.MemberQuestionList{}, client.InNamespace(w.Namespace), client.Limit(1))
		if err == nil {
			return true
		}
		if refusesQuestions(err) && !told && wait >= lastLook {
			w.Log.Info("The hub has no questions for the agent; it is of an earlier version, or does not let the agent read them", "cause", err.Error())
			told = true
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.wakes:
			wait = firstLook
		case <-w.Clock.After(wait + time.Duration(rand.Int64N(int64(wait/4)))): //nolint:gosec // spreading load needs no secrecy
			wait = min(2*wait, lastLook)
		}
	}
}

// refusesQuestions reports whether the hub does not have the kind, or does not let the agent read it.
func refusesQuestions(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || meta.IsNoMatchError(err)
}

// watch enqueues every question that comes, until ctx ends or the hub does not have the kind any more.
func (w *Watcher) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	questions, err := cache.New(w.Config, cache.Options{
		HTTPClient: w.Client, Scheme: w.Scheme, Mapper: w.Mapper, NewInformer: informer.New,
		DefaultNamespaces: map[string]cache.Config{w.Namespace: {}},
		DefaultTransform:  stripQuestion,
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			if refusesQuestions(err) {
				cancel()
				return
			}
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		},
	})
	if err != nil {
		return fmt.Errorf("creating the cache of questions: %w", err)
	}
	watched, err := questions.GetInformer(ctx, &fleetflowv1alpha1.MemberQuestion{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("creating the informer of questions: %w", err)
	}
	if _, err := watched.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: w.enqueue, UpdateFunc: func(_, object any) { w.enqueue(object) },
	}); err != nil {
		return fmt.Errorf("adding the handler of questions: %w", err)
	}
	w.use(questions)
	defer w.use(nil)
	return questions.Start(ctx)
}

func (w *Watcher) use(reader client.Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cache = reader
}

func (w *Watcher) enqueue(object any) {
	question, ok := object.(*fleetflowv1alpha1.MemberQuestion)
	if !ok || isAnswered(question) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := w.queue
	if question.Spec.Type == fleetflowv1alpha1.QuestionPullImages {
		queue = w.pulls
	}
	if queue != nil {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(question)})
	}
}

// stripQuestion drops from the cache what an answered question is about, and which fields are whose.
func stripQuestion(object any) (any, error) {
	question, ok := object.(*fleetflowv1alpha1.MemberQuestion)
	if !ok {
		return object, nil
	}
	question.ManagedFields = nil
	if isAnswered(question) {
		question.Spec.Rehearse = nil
		question.Status.Rehearsal = nil
		question.Spec.PullImages = nil
		question.Status.Images = nil
	}
	return question, nil
}
