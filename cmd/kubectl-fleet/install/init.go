package install

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/document"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/cmd/version"
	"github.com/fleetflow/fleetflow/deploy/charts"
)

// hubRelease is the Helm release of the hub agent.
const hubRelease = "hub-agent"

const initTimeout = 5 * time.Minute

// initOptions are what `init` was asked for.
type initOptions struct {
	installing
	temporal string
	chart    string
	files    []string
	values   []string
	timeout  time.Duration
	hub      client.WithWatch
}

// NewInit returns `kubectl fleet init`.
func NewInit(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return newInit(f, streams, installedHelm())
}

func newInit(f *cli.Factory, streams genericiooptions.IOStreams, h helm) *cobra.Command {
	o := &initOptions{installing: installing{Steering: base.Steering{Factory: f, Streams: streams}, helm: h}}
	cmd := &cobra.Command{
		Use:   "init [--temporal ADDRESS]",
		Short: "Make a cluster the hub of a fleet, or upgrade the hub",
		Long: `Make the cluster of the current context (or of --context) the hub of a fleet: applies the definitions of the fleet's kinds,
installs the hub agent with helm into the namespace fleet-system, and waits until it leads. On a hub it upgrades both; values
that were given before are kept, Temporal's address among them. Before it changes anything, it looks whether the cluster can be a
hub, whether you may make it one, and whether the chart refuses it.

The namespace, if it is not there, is made so that only Pods which Pod Security calls restricted start there, as the agent is.

A Temporal comes with the agent, beside it, and needs no operation. A fleet of more than 500 clusters, or with more than 300
rollouts at a time, needs a Temporal of your own, named by --temporal. A cluster on which other Pods run is refused; the message names the value that lets them go on.

The agent's image is that of the plugin's version. A plugin that is of no release needs --set image.repository=… and
--set image.tag=…`,
		Example: `  # With the Temporal that comes with the agent
  kubectl fleet init

  # With a Temporal that is there; the chart has more values
  kubectl fleet init --temporal temporal-frontend.temporal:7233 --values values-production.yaml

  # On kind, with images that were loaded
  kubectl fleet init --set image.repository=hub-agent --set temporal.bundled.image.repository=bundled-temporal \
    --set image.tag=dev --set 'workloadNamespaces={local-path-storage}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return o.initHub(cmd.Context())
		},
	}
	o.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.temporal, "temporal", "", "Address of the frontend of a Temporal that is there, as host:port. (default: that of the values, else the one that comes with the agent)")
	flags.StringVar(&o.chart, "chart", "", "Folder or archive of the hub agent's chart. (default: the one built in)")
	flags.StringArrayVarP(&o.files, "values", "f", nil, "A file with values of the chart, as for helm; may be given several times.")
	flags.StringArrayVar(&o.values, "set", nil, "A value of the chart, as for helm; may be given several times.")
	flags.DurationVar(&o.timeout, "timeout", initTimeout, "How long to wait until the hub agent leads.")
	return cmd
}

func (o *initOptions) complete() (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	switch {
	case o.chart == "" && !version.IsRelease() && !o.givesValue("image.tag"):
		return cli.Usagef("this plugin (%s) is of no release, so that there is no image of its version: give --set image.repository=… --set image.tag=…, or a chart with --chart", version.Number())
	case !o.Dry() && !o.helm.there():
		return errors.New("helm is not installed, which installs the hub agent: nothing was changed. Install helm, or install the chart deploy/charts/hub-agent otherwise")
	}
	o.hub, err = o.Factory.Client()
	return err
}

// givesValue reports whether a value of the chart is given. What files have is not looked at: they count as giving it.
func (o *initOptions) givesValue(value string) bool {
	if len(o.files) > 0 {
		return true
	}
	for _, given := range o.values {
		if strings.Contains(given, value) {
			return true
		}
	}
	return false
}

func (o *initOptions) initHub(ctx context.Context) error {
	return o.takeSteps(ctx, []step{
		{title: "looking at the cluster", looks: true, do: o.checkCluster},
		{title: "asking helm what the chart makes of it", looks: true, do: o.tryInstall},
		{title: "making namespace " + agentNamespace, do: func(ctx context.Context) error { return o.makeNamespace(ctx, o.hub) }},
		{title: "applying the definitions of the fleet's kinds", checked: true, do: o.applyDefinitions},
		{title: "installing the hub agent with helm", do: o.installChart},
		{title: "waiting until it leads", do: o.awaitLeader},
	})
}

// checkCluster refuses a cluster that cannot be a hub, before anything is changed.
func (o *initOptions) checkCluster(ctx context.Context) error {
	kubernetes, err := o.Factory.ServerVersion()
	if err != nil {
		return err
	}
	if err := diagnosis.CanBeHub(kubernetes); err != nil {
		return err
	}
	facts, err := diagnosis.Read(ctx, o.hub, o.Factory.Discover)
	if err != nil {
		return err
	}
	if len(facts.Unanswered) > 0 {
		return errors.New(facts.Unanswered[0]) // another hub agent may be among it
	}
	now := o.Factory.Clock.Now()
	if hold := (kubefleet.Hold{}).Observe(facts.KubeFleetLease, now); hold.IsHeld(now) {
		return fmt.Errorf("KubeFleet's hub agent (%s) runs here: end it first. kubectl fleet migrate check says what a move would make of this hub", hold.Holder)
	}
	if err := migration.RefuseReleases(ctx, o.hub, o.contextFlag()); err != nil {
		return err
	}
	for i := range facts.Deployments {
		if d := &facts.Deployments[i]; d.Namespace != agentNamespace || d.Labels["app.kubernetes.io/instance"] != hubRelease {
			return fmt.Errorf("another release of the hub agent is installed: Deployment %s/%s of release %s. Two undo each other's work: upgrade that one with helm, or uninstall it first",
				d.Namespace, d.Name, d.Labels["app.kubernetes.io/instance"])
		}
	}
	return o.checkRights(ctx)
}

// checkRights refuses a user who would get stuck half-way.
func (o *initOptions) checkRights(ctx context.Context) error {
	for _, need := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
		{Verb: "create", Group: "apps", Resource: "deployments", Namespace: agentNamespace},
		{Verb: "create", Resource: "secrets", Namespace: agentNamespace}, // what helm notes of its releases
	} {
		answer, err := as.Ask(ctx, o.hub, need)
		if err != nil {
			return fmt.Errorf("asking what you may do: %w", err)
		}
		if !answer.Allowed {
			resource := schema.GroupResource{Group: need.Group, Resource: need.Resource}
			return fmt.Errorf("you may not %s %s here: the hub agent is installed by an administrator of the cluster (%s)", need.Verb, resource,
				cmp.Or(answer.Reason, "no role allows it"))
		}
	}
	return nil
}

// applyDefinitions applies the definitions of the kinds: helm installs them, and never upgrades them. A hub agent waits for those of its
// version.
func (o *initOptions) applyDefinitions(ctx context.Context) error {
	texts, err := o.readDefinitions(ctx)
	if err != nil {
		return err
	}
	write := o.Writer(o.hub)
	for _, text := range texts {
		definition := &unstructured.Unstructured{}
		data, err := document.ToJSON(text)
		if err == nil && string(data) == "null" {
			continue // a document of comments
		}
		if err == nil {
			err = definition.UnmarshalJSON(data)
		}
		if err != nil {
			return fmt.Errorf("reading a definition of the chart: %w", err)
		}
		if err := write.Apply(ctx, client.ApplyConfigurationFromUnstructured(definition), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s: %w", definition.GetName(), err)
		}
	}
	return nil
}

// readDefinitions returns the definitions of the chart, each as YAML.
func (o *initOptions) readDefinitions(ctx context.Context) (texts [][]byte, err error) {
	if o.chart == "" {
		return builtInDefinitions()
	}
	if o.Dry() && !o.helm.there() {
		return nil, nil
	}
	all, err := o.helm.definitions(ctx, o.chart)
	if err != nil {
		return nil, fmt.Errorf("asking for the definitions of the chart: %w", err)
	}
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(all))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the definitions of the chart: %w", err)
		}
		texts = append(texts, text)
	}
}

// builtInDefinitions returns the definitions of the chart that is built in.
func builtInDefinitions() (texts [][]byte, err error) {
	folder := path.Join(charts.HubAgentFolder, "crds")
	entries, err := fs.ReadDir(charts.HubAgent, folder)
	if err != nil {
		return nil, fmt.Errorf("reading the definitions: %w", err)
	}
	for _, entry := range entries {
		text, err := fs.ReadFile(charts.HubAgent, path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", entry.Name(), err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// tryInstall has helm render the chart with what it looks up on the cluster, so that what the chart refuses is refused before
// anything is changed.
func (o *initOptions) tryInstall(ctx context.Context) error {
	if o.Dry() && !o.helm.there() {
		return nil
	}
	return o.runHelm(ctx, "--dry-run=server")
}

// installChart has helm install the hub agent's chart, or upgrade it.
func (o *initOptions) installChart(ctx context.Context) error { return o.runHelm(ctx) }

func (o *initOptions) runHelm(ctx context.Context, additional ...string) error {
	args := []string{"--namespace", agentNamespace, "--create-namespace", "--reset-then-reuse-values"}
	if named := o.contextFlag(); named != "" {
		args = append(args, "--kube-context", named)
	}
	args = append(args, o.helmKubeconfig("")...)
	if o.temporal != "" {
		args = append(args, "--set-string", "temporal.address="+o.temporal)
	}
	args = slices.Concat(args, imageTag(o.chart), flagForEach("--values", o.files), flagForEach("--set", o.values), additional)
	return o.helm.installChart(ctx, hubRelease, o.chart, unpacked{charts.HubAgent, charts.HubAgentFolder}, args...)
}

// awaitLeader waits until a hub agent holds its lease; what keeps it from that is part of the error.
func (o *initOptions) awaitLeader(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	lease.Namespace = clusterv1beta1.SystemNamespace
	lease.Name = migration.HubAgentLease.Name
	leads := func(lease *coordinationv1.Lease, there bool) bool {
		now := o.Factory.Clock.Now()
		return there && (kubefleet.Hold{}).Observe(lease, now).IsHeld(now)
	}
	err := steer.Await(ctx, o.hub, lease, &coordinationv1.LeaseList{}, o.timeout, leads, steer.ByName(lease)...)
	if err == nil {
		return nil
	}
	facts, readErr := diagnosis.Read(ctx, o.hub, o.Factory.Discover)
	if readErr != nil {
		return err
	}
	for _, finding := range diagnosis.Check(facts, o.Factory.Clock.Now()).Findings {
		if finding.Weight == diagnosis.Error && finding.Pod != "" {
			return fmt.Errorf("%s; %s (%w)", finding.Message, finding.Remedy, err)
		}
	}
	return fmt.Errorf("%w; kubectl fleet check says what is wrong", err)
}
