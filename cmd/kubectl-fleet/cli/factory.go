// Package cli has what every command of the plugin shares: how it reaches the hub, prints, asks, and fails.
package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/definitions"
	"github.com/fleetflow/fleetflow/cmd/internal/patience"
)

const (
	// qps and burst are what a person's command may ask of an API server; the server has its own limits.
	qps   = 200
	burst = 400
	// timeoutFlag is kubectl's flag for how long requests may take.
	timeoutFlag = "request-timeout"
)

// Factory makes what commands work with from the flags that all of them have.
type Factory struct {
	// Flags are the usual ones of kubectl: --context, --kubeconfig, --namespace and so on.
	Flags *genericclioptions.ConfigFlags
	// Clock tells the time; tests stop it.
	Clock clock.WithTicker
	// Connect makes a client for a configuration; nil for one that talks to its API server. Tests have one that answers from memory.
	Connect func(config *rest.Config) (client.WithWatch, error)
	// Mapper finds the kind that a word such as ns or clusterroles means on the hub; tests have one of their own.
	Mapper func() (meta.RESTMapper, error)
	// Discover asks the hub which kinds it serves; tests have an answer.
	Discover func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
	// Lacking asks the hub for the fields that its definitions lack of the kinds that commands work with; tests have an answer.
	Lacking func(ctx context.Context) ([]definitions.Gap, error)
	// ServerVersion asks the API server of the hub for its version, such as v1.36.3; tests have an answer.
	ServerVersion func() (string, error)
	// Configure reads the configuration of a context of the kubeconfig, of the current one if it has no name.
	Configure func(kubeContext string) (*rest.Config, error)
	// colour is the value of --color.
	colour string
	// timeout is the value of --request-timeout.
	timeout string
	// patience is for how long requests of all clients wait.
	patience *patience.Patience
}

// AddFlags adds the flags that all commands have.
func (f *Factory) AddFlags(flags *pflag.FlagSet) {
	f.Flags.AddFlags(flags)
	flags.StringVar(&f.timeout, timeoutFlag, f.timeout,
		"How long an API server may keep a read, or the next part of its answer, waiting: 1s, 2m. 0 waits without end.")
	f.addColourFlag(flags)
}

// Validate refuses values that flags of all commands cannot have.
func (f *Factory) Validate() error {
	if _, err := clientcmd.ParseTimeout(f.timeout); err != nil {
		return Usagef("--%s %q is no duration: use a number with its unit, such as 1s or 2m, or seconds", timeoutFlag, f.timeout)
	}
	return f.validateColour()
}

// NewFactory returns the factory that reads kubeconfigs and talks to API servers.
func NewFactory() *Factory {
	f := &Factory{Flags: genericclioptions.NewConfigFlags(true), Clock: clock.RealClock{}}
	// A timeout in the configuration would hide from client-go that nothing else is in it, so that in a Pod its account counts.
	f.Flags.Timeout = nil
	f.timeout = patience.Reads.String()
	f.patience = &patience.Patience{Flag: "--" + timeoutFlag, Now: f.Clock.Now}
	f.Flags.WrapConfigFn = f.boundRequests
	f.Configure = f.configure
	f.Mapper = f.Flags.ToRESTMapper
	f.Discover = f.discoverKinds
	f.Lacking = f.lackingFields
	f.ServerVersion = f.serverVersion
	return f
}

// Scheme knows the kinds that commands work with: KubeFleet's, ours and Kubernetes' own.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1beta1.AddToScheme(scheme))
	utilruntime.Must(placementv1beta1.AddToScheme(scheme))
	utilruntime.Must(fleetflowv1alpha1.AddToScheme(scheme))
	return scheme
}

// Client returns a client for the hub: the context the flags name, or the current one.
func (f *Factory) Client() (client.WithWatch, error) { return f.ClientOf("") }

// ClientOf returns a client for a context of the kubeconfig.
func (f *Factory) ClientOf(kubeContext string) (client.WithWatch, error) {
	config, err := f.Configure(kubeContext)
	if err != nil {
		return nil, err
	}
	connectTo := f.Connect
	if connectTo == nil {
		connectTo = connectWith
	}
	c, err := connectTo(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return c, nil
}

// ClientIn returns a client for a context of another kubeconfig.
func (f *Factory) ClientIn(kubeconfig, kubeContext string) (client.WithWatch, error) {
	other := *f
	other.Flags = genericclioptions.NewConfigFlags(false)
	other.Flags.KubeConfig = &kubeconfig
	other.Flags.Timeout = nil
	other.Flags.CacheDir = f.Flags.CacheDir
	other.Flags.WrapConfigFn = f.boundRequests
	other.Configure = other.configure
	return other.ClientOf(kubeContext)
}

// Namespace returns the namespace to look in, and whether the user named it.
func (f *Factory) Namespace() (string, bool, error) {
	if f.Flags.Namespace != nil && *f.Flags.Namespace != "" {
		return *f.Flags.Namespace, true, nil
	}
	namespace, _, err := f.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, fmt.Errorf("reading the namespace from the kubeconfig: %w", err)
	}
	return namespace, false, nil
}

func connectWith(config *rest.Config) (client.WithWatch, error) {
	return client.NewWithWatch(config, client.Options{Scheme: Scheme()})
}

// discoverKinds returns what can be read: a group whose server is away must not keep the others from being seen. Those of the fleet are the API
// server's own, and what it does not say of them is not taken for kinds that it does not serve.
func (f *Factory) discoverKinds() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	c, err := f.Flags.ToDiscoveryClient()
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	c.Invalidate() // kubectl keeps for hours what was served once; kinds come and go
	groups, lists, err := c.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, nil, fmt.Errorf("asking the hub for the kinds it serves: %w", err)
	}
	failed, _ := discovery.GroupDiscoveryFailedErrorGroups(err)
	for _, of := range definitions.Versions {
		if err := failed[of]; err != nil {
			return nil, nil, fmt.Errorf("asking the hub for the kinds it serves of %s: %w", of, err)
		}
	}
	return groups, lists, nil
}

func (f *Factory) lackingFields(ctx context.Context) ([]definitions.Gap, error) {
	c, err := f.Flags.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	reader := definitions.Reader{Client: c.RESTClient(), Scheme: Scheme()}
	return reader.Lacking(ctx)
}

func (f *Factory) serverVersion() (string, error) {
	c, err := f.Flags.ToDiscoveryClient()
	if err != nil {
		return "", fmt.Errorf("connecting to the hub: %w", err)
	}
	answer, err := c.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the hub's API server for its version: %w", err)
	}
	return answer.GitVersion, nil
}

// boundRequests has what is made with a configuration wait for as long as the user says, and else for longer with writes: what becomes of one
// that is given up is not known.
func (f *Factory) boundRequests(config *rest.Config) *rest.Config {
	limit, err := clientcmd.ParseTimeout(f.timeout)
	if err != nil { // Validate has refused it
		limit = patience.Reads
	}
	f.patience.Reads = limit
	f.patience.Writes = limit
	if limit == patience.Reads {
		f.patience.Writes = patience.Writes
	}
	return f.patience.Wrap(config)
}

func (f *Factory) configure(kubeContext string) (*rest.Config, error) {
	flags := f.Flags
	if kubeContext != "" {
		other := f.Flags
		// The loader that ConfigFlags keeps is bound to the first context it was asked for.
		flags = genericclioptions.NewConfigFlags(false)
		flags.KubeConfig = other.KubeConfig
		flags.Context = &kubeContext
		flags.Timeout = nil
		flags.CacheDir = other.CacheDir
		flags.WrapConfigFn = f.boundRequests
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		if kubeContext != "" {
			return nil, fmt.Errorf("reading context %q of the kubeconfig: %w; kubectl config get-contexts lists what there is", kubeContext, err)
		}
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := checkNamesCluster(flags); err != nil {
		return nil, err
	}
	config.QPS = qps
	config.Burst = burst
	config.UserAgent = "kubectl-fleet"
	return config, nil
}

// checkNamesCluster refuses what client-go takes without a kubeconfig, outside a Pod: an API server on this machine.
func checkNamesCluster(flags *genericclioptions.ConfigFlags) error {
	if _, inPod := os.LookupEnv("KUBERNETES_SERVICE_HOST"); inPod || flags.APIServer != nil && *flags.APIServer != "" {
		return nil
	}
	loader := flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil || len(raw.Clusters) > 0 {
		return nil //nolint:nilerr // what cannot be read has been said before
	}
	return fmt.Errorf("%s names no cluster: set KUBECONFIG, or name the hub's kubeconfig with --kubeconfig",
		strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), ", "))
}

// Arguments returns what to run for a command line. Under the name kubectl_complete-fleet, which kubectl calls to
// complete `kubectl fleet`, it asks for completions.
func Arguments(args []string) []string {
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if name == "kubectl_complete-fleet" {
		return append([]string{"__complete"}, args[1:]...)
	}
	return args[1:]
}
