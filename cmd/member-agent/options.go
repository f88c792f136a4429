package main

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/agent"
	"github.com/fleetflow/fleetflow/controllers/informer"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/hubtoken"
	"github.com/fleetflow/fleetflow/controllers/member/propertyprovider"
	"github.com/fleetflow/fleetflow/controllers/member/selfupdate"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

// The environment variables the agent reads; their names are KubeFleet's.
const (
	envCluster   = "MEMBER_CLUSTER_NAME"
	envHubURL    = "HUB_SERVER_URL"
	envTokenFile = "CONFIG_PATH"
	envHubCA     = "HUB_CERTIFICATE_AUTHORITY"
	envCABundle  = "CA_BUNDLE"
)

// shutdownTimeout is how long what is under way may take to end when the agent is told to stop.
const shutdownTimeout = 5 * time.Second

const envHelp = `Environment:
  MEMBER_CLUSTER_NAME        name of this cluster in the fleet (required)
  HUB_SERVER_URL             address of the hub's API server, by https (required)
  CONFIG_PATH                file with the bearer token for the hub; read again when it changes, and written when the token is renewed, unless --hub-token-secret says where to (required unless that is given)
  HUB_CERTIFICATE_AUTHORITY  CA of the hub: a PEM file, PEM text, or PEM text in base64
  CA_BUNDLE                  the same, looked at if HUB_CERTIFICATE_AUTHORITY is not set

Flags:
`

type options struct {
	agent.Process
	cluster, hubURL, tokenFile string
	tokenSecret                string
	hubCAFile                  string
	hubCA                      []byte
	insecure                   bool
	kubeconfig                 string
	hubQPS, memberQPS          float64
	hubBurst, memberBurst      int
	try                        bool
	consent                    types.NamespacedName
	pruning                    work.PruningOptions
	veto                       apply.Veto
	namespaces                 bool
	tellsOutput                bool
	answersQuestions           bool
	pullsImages                bool
	provider                   propertyprovider.PropertyProvider
	selfUpdate                 selfupdate.Options
}

// parseOptions reads flags and environment. It names everything that is missing, not just the first.
func parseOptions(args []string, lookup func(string) (string, bool)) (*options, error) {
	o := &options{consent: defaultConsent}
	flags := flag.NewFlagSet("member-agent", flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), envHelp)
		flags.PrintDefaults()
	}
	o.Add(flags, agent.Defaults{
		LeaderElect: "let one of several agents of this cluster work", LeaseNamespace: "kube-system",
		LeaseNamespaceUsage: "namespace of the lease by which the agents of this cluster agree who works", ProfilesPort: 6066,
	})
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of this cluster; the Pod's service account is used if empty")
	flags.Float64Var(&o.hubQPS, "hub-api-qps", 50, "requests a second to the hub")
	flags.IntVar(&o.hubBurst, "hub-api-burst", 500, "requests to the hub that may come at once")
	flags.Float64Var(&o.memberQPS, "member-api-qps", 250, "requests a second to this cluster")
	flags.IntVar(&o.memberBurst, "member-api-burst", 1000, "requests to this cluster that may come at once")
	o.pruning.Propagation = metav1.DeletePropagationBackground
	flags.StringVar((*string)(&o.pruning.Propagation), "prune-propagation-policy", string(o.pruning.Propagation),
		"what happens to what depends on a pruned object: Background, Foreground or Orphan. A placement may say otherwise, unless --fix-prune-propagation-policy is set")
	flags.BoolVar(&o.pruning.PropagationFixed, "fix-prune-propagation-policy", false,
		"have --prune-propagation-policy count for all placements, whatever they say")
	flags.DurationVar(&o.pruning.ReconcileTimeout, "reconcile-timeout", 0,
		"if set, what left a placement is pruned only once the rest is available; if it is not after this time, the condition RemovalPending says so. A placement may say otherwise")
	flags.DurationVar(&o.pruning.PruneTimeout, "prune-timeout", 0,
		"after this time the condition RemovalPending says which pruned objects are still there; 0 is 10s. A placement may say otherwise")
	o.addVeto(flags)
	pod := o.addSelfUpdate(flags)
	scope := flags.String("scope", scopeCluster, "Cluster, or Namespaced if the agent may only write to the namespaces of --namespaces, which have to exist")
	only := flags.String("namespaces", "", "with --scope=Namespaced, the namespaces that the agent may write to, separated by commas; anything else of a placement is refused")
	flags.BoolVar(&o.try, "try", false, "ask the hub whether the agent of this cluster has joined and reports, and end, with 0 if it does within a minute, as helm test does")
	flags.BoolVar(&o.insecure, "tls-insecure", false, "do not verify the hub's certificate")
	flags.StringVar(&o.tokenSecret, tokenSecretFlag, "", "Secret of this cluster, as <namespace>/<name>, whose entry \"token\" has the bearer token for the hub; a renewed one is written there. It is read if "+envTokenFile+" is not set, or else is what that file is mounted from")
	flags.Func("busy-config-map", "ConfigMap of this cluster, as <namespace>/<name>, in which its owner asks the fleet to begin nothing: until has a time such as 2026-12-01T06:00:00Z, message says why (default "+defaultConsent.String()+")", o.readConsent)
	provider := flags.String("property-provider", noProvider, "who reports properties of this cluster: none for the agent itself, or the name of a provider that is built into it")
	flags.BoolVar(&o.namespaces, "enable-namespace-collection-in-property-provider", false,
		"report the namespaces of this cluster to the hub, so that placements in a namespace go to clusters only that have it")
	flags.BoolVar(&o.tellsOutput, "report-last-words", true,
		"tell the hub the end of what a container wrote before it exited, 256 bytes, and what its probes print; never of a Pod that reads Secrets")
	flags.BoolVar(&o.answersQuestions, "answer-questions", true,
		"answer what the hub asks before anything changes: what a change would do on this cluster, by dry runs, at most 20 requests a second")
	flags.BoolVar(&o.pullsImages, "pull-images", false,
		"have the nodes pull the images of a change before it, if a strategy has a task of type PrePull: by short Pods that run nothing, in the namespaces of the change. Needs --answer-questions")
	if err := flags.Parse(args); err != nil || o.Version {
		return o, err
	}
	problems := []error{o.Check(), o.restrictTo(*scope, *only), o.readSelfUpdate(*pod)}
	switch o.pruning.Propagation {
	case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
	default:
		problems = append(problems, fmt.Errorf("--prune-propagation-policy is %q; it must be Background, Foreground or Orphan",
			o.pruning.Propagation))
	}
	var err error
	if o.provider, err = newProvider(*provider); err != nil {
		problems = append(problems, err)
	}
	if o.tokenSecret != "" {
		if _, _, err := splitSecret(o.tokenSecret); err != nil {
			problems = append(problems, fmt.Errorf("--%s is %q: %w", tokenSecretFlag, o.tokenSecret, err))
		}
	}
	problems = append(problems, o.readEnvironment(lookup)...)
	o.selfUpdate.Allowed.Pinned = !o.insecure && (o.hubCAFile != "" || len(o.hubCA) > 0)
	return o, errors.Join(problems...)
}

// defaultConsent is the ConfigMap in which the owner of a cluster asks the fleet to begin nothing.
var defaultConsent = types.NamespacedName{Namespace: clusterv1beta1.SystemNamespace, Name: "member-busy"}

// readConsent reads in which ConfigMap the owner of this cluster asks the fleet to begin nothing.
func (o *options) readConsent(text string) (err error) {
	o.consent.Namespace, o.consent.Name, err = splitSecret(text)
	return err
}

// Values of the flag --scope.
const (
	scopeCluster    = "Cluster"
	scopeNamespaced = "Namespaced"
)

// restrictTo reads which namespaces the agent may write to.
func (o *options) restrictTo(scope, namespaces string) error {
	for entry := range splitEntries(namespaces) {
		if invalid := validation.NameIsDNSLabel(entry, false); len(invalid) > 0 {
			return fmt.Errorf("--namespaces: %q is no name of a namespace: %s", entry, strings.Join(invalid, "; "))
		}
		o.veto.Namespaces = append(o.veto.Namespaces, entry)
	}
	switch {
	case scope != scopeCluster && scope != scopeNamespaced:
		return fmt.Errorf("--scope is %q; it must be %s or %s", scope, scopeCluster, scopeNamespaced)
	case scope == scopeNamespaced && len(o.veto.Namespaces) == 0:
		return errors.New("--scope is Namespaced and --namespaces is empty: name the namespaces that the agent may write to")
	case scope == scopeCluster && len(o.veto.Namespaces) > 0:
		return errors.New("--namespaces are named and --scope is Cluster: set it to Namespaced, or leave them out")
	}
	return nil
}

// addVeto adds the flags by which the owner of this cluster bounds what the fleet may place on it.
func (o *options) addVeto(flags *flag.FlagSet) {
	kinds := func(into *[]apply.KindPattern) func(string) error {
		return func(text string) error {
			for entry := range splitEntries(text) {
				pattern, err := apply.ParseKindPattern(entry)
				if err != nil {
					return fmt.Errorf("%q: %w", entry, err)
				}
				*into = append(*into, pattern)
			}
			return nil
		}
	}
	const form = ", separated by commas: Kind, Kind.group, *.group or *"
	flags.Func("allowed-kinds", "if set, the only kinds of objects that the fleet may place on this cluster"+form, kinds(&o.veto.AllowedKinds))
	flags.Func("denied-kinds", "kinds of objects that the fleet may not place on this cluster, even if they are allowed"+form,
		kinds(&o.veto.DeniedKinds))
	flags.Func("denied-namespaces", "namespaces that the fleet may not place, nor anything in them, separated by commas; one that ends with * stands for all that begin so", func(text string) error {
		for entry := range splitEntries(text) {
			if invalid := validation.NameIsDNSLabel(strings.TrimSuffix(entry, "*"), strings.HasSuffix(entry, "*")); len(invalid) > 0 &&
				entry != "*" {
				return fmt.Errorf("%q is no name of a namespace: %s", entry, strings.Join(invalid, "; "))
			}
			o.veto.DeniedNamespaces = append(o.veto.DeniedNamespaces, entry)
		}
		return nil
	})
}

// addSelfUpdate adds the flags by which the owner of this cluster lets the hub change the agent itself.
func (o *options) addSelfUpdate(flags *flag.FlagSet) (pod *string) {
	list := func(into *[]string) func(string) error {
		return func(text string) error {
			*into = append(*into, slices.Collect(splitEntries(text))...)
			return nil
		}
	}
	flags.StringVar(&o.selfUpdate.Deployment, "self-update-deployment", "",
		"the agent's own Deployment, in the namespace of its Pod, which the agent changes as the hub asks; the hub may change nothing if empty")
	flags.Func("self-update-repositories", "repositories whose images the hub may have the agent run, separated by commas",
		list(&o.selfUpdate.Allowed.Repositories))
	flags.Func("self-update-hub-addresses", "addresses of the hub that the hub may send the agent to, separated by commas; any that shows a certificate of HUB_CERTIFICATE_AUTHORITY if empty", list(&o.selfUpdate.Allowed.HubURLs))
	flags.DurationVar(&o.selfUpdate.Timeout, "self-update-timeout", selfupdate.DefaultTimeout,
		"how long an agent that the hub has asked for may take to report; then the former one is back")
	return flags.String("pod", "", "the Pod that the agent runs in, as <namespace>/<name>, of which it reports the image")
}

// readSelfUpdate reads which Pod is the agent's own.
func (o *options) readSelfUpdate(pod string) (err error) {
	switch {
	case o.selfUpdate.Timeout <= 0:
		return fmt.Errorf("--self-update-timeout is %s; it must be longer than nothing, such as 10m", o.selfUpdate.Timeout)
	case pod == "" && o.selfUpdate.Deployment != "":
		return errors.New("--self-update-deployment is given and --pod is not: name the Pod that the agent runs in, as <namespace>/<name>")
	case pod == "":
		return nil
	}
	if o.selfUpdate.Namespace, o.selfUpdate.Pod, err = splitSecret(pod); err != nil {
		return fmt.Errorf("--pod is %q; it must be <namespace>/<name>, such as fleet-system/member-agent-0", pod)
	}
	return nil
}

// splitEntries yields the entries of a list that commas separate, without spaces and empty ones.
func splitEntries(list string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for entry := range strings.SplitSeq(list, ",") {
			if entry = strings.TrimSpace(entry); entry != "" && !yield(entry) {
				return
			}
		}
	}
}

func (o *options) readEnvironment(lookup func(string) (string, bool)) []error {
	var problems []error
	for _, required := range []struct {
		name, meaning string
		into          *string
	}{
		{envCluster, "the name of this cluster in the fleet", &o.cluster},
		{envHubURL, "the address of the hub's API server", &o.hubURL},
		{envTokenFile, "the file with the bearer token for the hub", &o.tokenFile},
	} {
		value, _ := lookup(required.name)
		if *required.into = strings.TrimSpace(value); *required.into == "" && (required.name != envTokenFile || o.tokenSecret == "") {
			problems = append(problems, fmt.Errorf("environment variable %s is not set; it must be %s", required.name, required.meaning))
		}
	}
	if o.hubURL != "" {
		switch u, err := url.Parse(o.hubURL); {
		case err != nil || u.Scheme == "" || u.Host == "":
			problems = append(problems, fmt.Errorf("environment variable %s is %q; it must be a URL such as https://hub.example.com:6443",
				envHubURL, o.hubURL))
		case u.Scheme != "https":
			problems = append(problems, fmt.Errorf("environment variable %s is %q, which is not https: the agent shows its token there, and every machine on the way could read it; use an address such as https://hub.example.com:6443", envHubURL, o.hubURL))
		}
	}
	for _, name := range []string{envHubCA, envCABundle} {
		value, _ := lookup(name)
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		if err := o.readAuthority(value); err != nil {
			problems = append(problems, fmt.Errorf("environment variable %s: %w", name, err))
		}
		break
	}
	return problems
}

// readAuthority takes the hub's CA as a file, as PEM text or as base64 of PEM text.
func (o *options) readAuthority(value string) error {
	const pemStart = "-----BEGIN"
	if strings.HasPrefix(value, pemStart) {
		o.hubCA = []byte(value)
		return nil
	}
	if _, err := os.Stat(value); err == nil {
		o.hubCAFile = value
		return nil
	}
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil || !strings.HasPrefix(string(decoded), pemStart) {
		return errors.New("it is neither a file that exists, nor PEM text, nor PEM text in base64")
	}
	o.hubCA = decoded
	return nil
}

// hubConfig returns how the agent reaches the hub. A file is what the token is read from, if there is one: it is there while this
// cluster's API server is away.
func (o *options) hubConfig(tokens hubtoken.Store) *rest.Config {
	config := &rest.Config{
		Host:      o.hubURL,
		QPS:       float32(o.hubQPS),
		Burst:     o.hubBurst,
		UserAgent: "member-agent/" + o.cluster,
	}
	config.Insecure = o.insecure
	if !o.insecure {
		config.CAFile = o.hubCAFile
		config.CAData = o.hubCA
	}
	config.BearerTokenFile = o.tokenFile
	if o.tokenFile == "" {
		useStore(config, tokens)
	}
	informer.AskOnce(config)
	return config
}

// memberConfig returns how the agent reaches its own cluster.
func (o *options) memberConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding this cluster's API server (--kubeconfig, or the Pod's service account): %w", err)
	}
	config.QPS = float32(o.memberQPS)
	config.Burst = o.memberBurst
	config.UserAgent = "member-agent/" + o.cluster
	return config, nil
}
