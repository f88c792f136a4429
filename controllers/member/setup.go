// Package member wires the member agent: Setup lists everything that runs in it. The agent talks to
// two clusters, its own and the hub, and on the hub to one namespace only.
package member

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/informer"
	"github.com/fleetflow/fleetflow/controllers/joining"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/cause"
	"github.com/fleetflow/fleetflow/controllers/member/consent"
	"github.com/fleetflow/fleetflow/controllers/member/hubtoken"
	"github.com/fleetflow/fleetflow/controllers/member/imagepull"
	"github.com/fleetflow/fleetflow/controllers/member/membership"
	"github.com/fleetflow/fleetflow/controllers/member/propertyprovider"
	"github.com/fleetflow/fleetflow/controllers/member/question"
	"github.com/fleetflow/fleetflow/controllers/member/selfupdate"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

// Scheme has the kinds that the agent reads and writes as Go types. The objects of Works are
// unstructured and need none.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1beta1.AddToScheme(scheme))
	utilruntime.Must(placementv1beta1.AddToScheme(scheme))
	utilruntime.Must(fleetflowv1alpha1.AddToScheme(scheme))
	return scheme
}

// ManagerOptions adds the agent's needs to the options of a manager of the member: a cache of nodes
// and pods that keeps only the fields from which the cluster's resource usage is computed.
func ManagerOptions(options ctrl.Options) ctrl.Options {
	options.Scheme = Scheme()
	options.MapperProvider = fixedMapper(map[runtime.Object]meta.RESTScope{
		&corev1.Node{}:      meta.RESTScopeRoot,
		&corev1.Pod{}:       meta.RESTScopeNamespace,
		&corev1.Namespace{}: meta.RESTScopeRoot, // which is watched if namespaces are reported
	})
	options.Cache = cache.Options{NewInformer: informer.New, ByObject: map[client.Object]cache.ByObject{
		&corev1.Node{}: {Transform: membership.StripNode},
		&corev1.Pod{}: {
			Transform: membership.StripPod,
			Field: fields.AndSelectors(
				fields.OneTermNotEqualSelector("spec.nodeName", ""),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
				fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
			),
		},
	}}
	return options
}

// Options are what an agent needs in addition to a manager of its member.
type Options struct {
	// Name of the member in the fleet.
	Name string
	// Version of this agent, which the member reports.
	Version string
	// Hub is the configuration to reach the hub.
	Hub *rest.Config
	// SelfUpdate says which Deployment is the agent's own, and what the hub may change of it.
	SelfUpdate selfupdate.Options
	// TokenStore is where the member keeps its token for the hub.
	TokenStore hubtoken.Store
	// Consent is the ConfigMap of the member in which its owner asks the fleet to begin nothing; none without a name.
	Consent types.NamespacedName
	// Pruning says how objects that left a Work are removed.
	Pruning work.PruningOptions
	// Veto is what the owner of the member does not let the fleet place.
	Veto apply.Veto
	// Provider reports properties of the member; nil if there is none.
	Provider propertyprovider.PropertyProvider
	// Namespaces has the member report its namespaces.
	Namespaces bool
	// TellsOutput is whether the hub is told what containers that exit, and probes, have written.
	TellsOutput bool
	// AnswersQuestions is whether the agent answers questions of the hub.
	AnswersQuestions bool
	// PullsImages is whether the agent has the nodes pull images before a change, if the hub asks it to.
	PullsImages bool
	// Metrics and Joins are optional.
	Metrics *work.Metrics
	Joins   *joining.Counters
	// Tracer makes spans of passes over Works that the hub has written in a trace. It is optional.
	Tracer trace.Tracer
}

// Setup adds the whole agent of a member to a manager of that member. Neither cluster needs to be
// reachable yet.
func Setup(mgr ctrl.Manager, o Options) error {
	name := o.Name
	admission := informer.NewAdmission(clock.RealClock{})
	hub, err := newHubCluster(o.Hub, name, admission)
	if err != nil {
		return err
	}
	works, err := newWorkReconciler(mgr, hub, o)
	if err != nil {
		return err
	}
	properties, err := addPropertyProvider(mgr, o.Provider)
	if err != nil {
		return err
	}
	surveyor, err := membership.NewSurveyor(mgr.GetConfig(), mgr.GetClient(), properties)
	if err != nil {
		return err
	}
	members := membership.NewReconciler(name, hub.GetClient(), surveyor, clock.RealClock{})
	members.Applier = works
	members.Joins = o.Joins
	surveyor.Namespaces = o.Namespaces
	members.WatchNamespaces = o.Namespaces
	works.Removed = members.Wake
	questions := newQuestionWatcher(mgr, hub, o)
	admission.LetIn = func() {
		members.Wake()
		questions.Wake()
	}
	members.Unwatched = admission.Refused
	issue, err := hubtoken.IssuerAt(o.Hub)
	if err != nil {
		return err
	}
	renewer := hubtoken.New(o.TokenStore, issue, clock.RealClock{}, mgr.GetLogger().WithName("hub-token"))
	updater, err := addSelfUpdate(mgr, o, members, renewer, hub.GetAPIReader())
	if err != nil {
		return err
	}
	if err := addConsent(mgr, o, members); err != nil {
		return err
	}
	surveyor.Agent = members.Agent
	members.Findings = func() []metav1.Condition { return append(renewer.Findings(), updater.Findings()...) }
	renewer.Changed = func() {
		members.Wake()
		updater.Wake()
	}

	for _, add := range []func() error{
		func() error {
			return mgr.Add(&hubConnection{hub: hub})
		},
		func() error { return mgr.Add(renewer) },
		func() error { return membership.WatchPods(mgr) },
		func() error { return members.SetupWithManager(mgr, hub) },
		func() error { return works.SetupWithManager(mgr, hub) },
		func() error { return addQuestions(mgr, hub, questions, o) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// addConsent has the hub told what the owner of the member asks of the fleet.
func addConsent(mgr ctrl.Manager, o Options, members *membership.Reconciler) error {
	if o.Consent.Name == "" {
		return nil
	}
	own, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating the client for what the owner of the cluster asks: %w", err)
	}
	asked := consent.NewWatch(own, o.Consent.Namespace, o.Consent.Name)
	asked.Changed = members.Wake
	members.Busy = asked.Request
	if err := mgr.Add(asked); err != nil {
		return fmt.Errorf("adding the watch of what the owner of the cluster asks: %w", err)
	}
	return nil
}

// addSelfUpdate has the agent do what the hub asks of the agent itself, and say what it is.
func addSelfUpdate(mgr ctrl.Manager, o Options, members *membership.Reconciler, renewer *hubtoken.Renewer, hub client.Reader,
) (*selfupdate.Updater, error) {
	cluster, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating the client for the agent's own Deployment: %w", err)
	}
	o.SelfUpdate.HubURL = o.Hub.Host
	updater := selfupdate.New(cluster, renewer, clock.RealClock{}, mgr.GetLogger().WithName("self-update"), o.SelfUpdate)
	updater.TryReport = func(ctx context.Context) error { return members.TryReport(ctx, hub) }
	updater.Changed = members.Wake
	members.Requested = updater.Request
	members.Reported = updater.Reported
	members.Agent = func() map[clusterv1beta1.PropertyName]string {
		own := updater.Properties()
		own[clusterv1beta1.AgentVersionProperty] = o.Version
		if o.PullsImages && o.AnswersQuestions {
			own[clusterv1beta1.AgentPullsImagesProperty] = "true"
		}
		if ends := renewer.Ends(); !ends.IsZero() {
			own[clusterv1beta1.AgentTokenEndProperty] = ends.UTC().Format(time.RFC3339)
		}
		return own
	}
	if err := mgr.AddReadyzCheck("on-trial", updater.Ready); err != nil {
		return nil, fmt.Errorf("adding the readiness check of an agent that was asked for: %w", err)
	}
	if err := mgr.Add(updater); err != nil {
		return nil, fmt.Errorf("adding what changes the agent's own Deployment: %w", err)
	}
	return updater, nil
}

// addPropertyProvider starts a provider with the agent; it returns nil if there is none.
func addPropertyProvider(mgr ctrl.Manager, provider propertyprovider.PropertyProvider) (*propertyprovider.Runner, error) {
	if provider == nil {
		return nil, nil // no provider is a choice, not a failure
	}
	runner := propertyprovider.NewRunner(provider)
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		runner.Start(ctx, mgr.GetConfig())
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("adding the property provider: %w", err)
	}
	return runner, nil
}

// newHubCluster returns the cached part of the hub: the Works of the agent's namespace and its own
// InternalMemberCluster.
func newHubCluster(config *rest.Config, name string, admission *informer.Admission) (cluster.Cluster, error) {
	hub, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = Scheme()
		o.MapperProvider = fixedMapper(map[runtime.Object]meta.RESTScope{
			&placementv1beta1.Work{}:                meta.RESTScopeNamespace,
			&clusterv1beta1.InternalMemberCluster{}: meta.RESTScopeNamespace,
			&fleetflowv1alpha1.MemberQuestion{}:     meta.RESTScopeNamespace,
		})
		o.Cache = cache.Options{
			NewInformer:       admission.New,
			DefaultNamespaces: map[string]cache.Config{clusterv1beta1.MemberNamespace(name): {}},
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&clusterv1beta1.InternalMemberCluster{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
			},
		}
	})
	if err != nil {
		return nil, fmt.Errorf("creating the client of the hub: %w", err)
	}
	return hub, nil
}

func newWorkReconciler(mgr ctrl.Manager, hub cluster.Cluster, o Options) (*work.Reconciler, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating the mapper of the member's kinds: %w", err)
	}
	live, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating the live client of the member: %w", err)
	}
	watches, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating the metadata client of the member: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating the discovery client of the member: %w", err)
	}
	typed, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating the client by which causes are looked for: %w", err)
	}
	causes := cause.NewFinder(cause.Options{
		Member: typed, Clock: clock.RealClock{}, Log: mgr.GetLogger().WithName("cause"), TellsOutput: o.TellsOutput,
	})
	return work.NewReconciler(work.Options{
		Namespace: clusterv1beta1.MemberNamespace(o.Name),
		Hub:       hub.GetClient(), HubLive: hub.GetAPIReader(),
		Member: live, Mapper: mapper, Metadata: watches, Discovery: kinds,
		Pruning: o.Pruning, Veto: o.Veto, Causes: causes, Metrics: o.Metrics, Tracer: o.Tracer,
		Clock: clock.RealClock{}, Log: mgr.GetLogger().WithName("work"),
	}), nil
}

// newQuestionWatcher returns what watches the questions of the hub.
func newQuestionWatcher(mgr ctrl.Manager, hub cluster.Cluster, o Options) *question.Watcher {
	return question.NewWatcher(question.WatcherOptions{
		Config: hub.GetConfig(), Client: hub.GetHTTPClient(), Mapper: hub.GetRESTMapper(), Scheme: hub.GetScheme(), Live: hub.GetAPIReader(),
		Namespace: clusterv1beta1.MemberNamespace(o.Name), Clock: clock.RealClock{}, Log: mgr.GetLogger().WithName("question"),
	})
}

// addQuestions has the agent answer the questions of the hub. All that it asks of the member for them goes through one gate.
func addQuestions(mgr ctrl.Manager, hub cluster.Cluster, watcher *question.Watcher, o Options) error {
	through := question.NewGate(clock.RealClock{}).Through(mgr.GetConfig())
	transport, err := rest.HTTPClientFor(through)
	if err != nil {
		return fmt.Errorf("creating the connection by which questions are answered: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(through, transport)
	if err != nil {
		return fmt.Errorf("creating the mapper of the member's kinds for questions: %w", err)
	}
	live, err := client.New(through, client.Options{HTTPClient: transport, Scheme: mgr.GetScheme(), Mapper: mapper})
	if err != nil {
		return fmt.Errorf("creating the client of the member for questions: %w", err)
	}
	contents, err := metadata.NewForConfigAndClient(through, transport)
	if err != nil {
		return fmt.Errorf("creating the metadata client of the member for questions: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(through, transport)
	if err != nil {
		return fmt.Errorf("creating the discovery client of the member for questions: %w", err)
	}
	rehearser := &work.Rehearser{Options: work.Options{
		Namespace: watcher.Namespace, Hub: hub.GetClient(), Member: live, Mapper: mapper, Metadata: contents, Discovery: kinds,
		Pruning: o.Pruning, Veto: o.Veto, Clock: clock.RealClock{},
	}}
	answerer := &question.Answerer{
		Namespace: watcher.Namespace, Hub: hub.GetClient(), Rehearse: rehearser.Rehearse, Declines: !o.AnswersQuestions, Clock: clock.RealClock{},
	}
	if o.PullsImages && o.AnswersQuestions {
		if answerer.Pull, err = addPuller(mgr); err != nil {
			return err
		}
	}
	return watcher.SetupWithManager(mgr, answerer)
}

// pull has the nodes of the member pull images for a question.
type pull = func(context.Context, types.UID, time.Duration, []fleetflowv1alpha1.ImagesOfPods) ([]fleetflowv1alpha1.PulledImage, error)

// addPuller adds what pulls images. Its client writes nothing but the Pods for that.
func addPuller(mgr ctrl.Manager) (pull, error) {
	through := imagepull.Through(mgr.GetConfig())
	pods, err := kubernetes.NewForConfig(through)
	if err != nil {
		return nil, fmt.Errorf("creating the client by which images are pulled: %w", err)
	}
	puller := imagepull.New(pods, clock.RealClock{}, mgr.GetLogger().WithName("image-pull"))
	if err := mgr.Add(puller); err != nil {
		return nil, fmt.Errorf("adding what pulls images: %w", err)
	}
	return puller.Pull, nil
}

// fixedMapper knows the given kinds without asking the API server, which may not be reachable.
func fixedMapper(kinds map[runtime.Object]meta.RESTScope) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
		mapper := meta.NewDefaultRESTMapper(nil)
		for object, scope := range kinds {
			gvk, err := apiutil.GVKForObject(object, Scheme())
			if err != nil {
				return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
			}
			mapper.Add(gvk, scope)
			mapper.Add(gvk.GroupVersion().WithKind(gvk.Kind+"List"), scope) // caches ask for lists too
		}
		return mapper, nil
	}
}
