package analyses

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	"github.com/fleetflow/fleetflow/activities/analysis/metricsource"
	"github.com/fleetflow/fleetflow/activities/outbound"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/manifest"
)

// tryOptions are what `analysis try` was asked for.
type tryOptions struct {
	base.Viewing
	files    []string
	args     map[string]string
	clusters []string
	// run, with stage, or placement say what is measured; both may be empty.
	run, stage, placement string
	// url is asked in place of the sources' own.
	url string
	// secrets is the namespace of the sources' Secrets and ConfigMaps.
	secrets string
	// webhooks are called, too.
	webhooks bool
}

func newTry(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &tryOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "try [TEMPLATE]",
		Short: "Take one measurement of each metric of a template now, before a rollout depends on it, and say the result",
		Long: `Measure each metric of a StageAnalysis once, from this machine and with your rights, and say the result: the value, the
bound, and whether the measurement would be good. Nothing is written, and no rollout sees it.

The template is on the hub, or in a manifest. It is measured for the clusters of a run's stage, for those of --clusters, or for
all members. A source is asked at its own address, with the credential in its Secret, which you have to be allowed to read; with
--url another address is asked without credentials, such as that of kubectl port-forward, and the source need not be on the hub
yet; only so is something asked that is on this machine. $(control) are the clusters that the run has not updated yet or, without
a run, all members but those that are measured. Webhooks are called with --webhooks only, for what they do is theirs; Jobs are not run.`,
		Example: `  # A template on the hub, for all members
  kubectl fleet analysis try error-ratio --arg app=web

  # A manifest, at a Prometheus that is forwarded to this machine
  kubectl fleet analysis try -f error-ratio.yaml --arg app=web --url http://localhost:9090

  # As the stage of a run would measure it
  kubectl fleet analysis try error-ratio --arg app=web --run web-17 --stage canary`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.tryTemplates(cmd.Context(), args)
		},
	}
	o.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Files or folders of manifests; - is the standard input.")
	flags.StringToStringVar(&o.args, "arg", nil, "An argument of the template, as in --arg app=web.")
	flags.StringSliceVar(&o.clusters, "clusters", nil, "The clusters to measure; all members without it.")
	flags.StringVar(&o.run, "run", "", "Measure for this update run: its placement, snapshot and clusters.")
	flags.StringVar(&o.stage, "stage", "", "With --run: for this stage of it.")
	flags.StringVar(&o.placement, "placement", "", "Measure for this placement, which is in the namespace of -n if that is given, where there is no run yet.")
	flags.StringVar(&o.url, "url", "", "Ask this address in place of the sources' own, without credentials.")
	flags.StringVar(&o.secrets, "source-namespace", "fleet-system", "The namespace of the sources' Secrets and ConfigMaps: that of the hub agent.")
	flags.BoolVar(&o.webhooks, "webhooks", false, "Call webhooks, too.")
	return cmd
}

// trial is one measurement as it is printed.
type trial struct {
	Template string                            `json:"template"`
	Metric   string                            `json:"metric"`
	Outcome  fleetflowv1alpha1.AnalysisOutcome `json:"outcome,omitempty"`
	Value    string                            `json:"value,omitempty"`
	Wanted   string                            `json:"wanted,omitempty"`
	Message  string                            `json:"message,omitempty"`
	Query    string                            `json:"query,omitempty"`
}

// tryTemplates measures the metrics of templates and prints what they come to.
func (o *tryOptions) tryTemplates(ctx context.Context, args []string) error {
	if (len(args) == 0) == (len(o.files) == 0) {
		return cli.Usagef("kubectl fleet analysis try needs a template: its name, as in kubectl fleet analysis try error-ratio, or --filename with its manifest")
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	templates, err := o.readTemplates(ctx, c, args)
	if err != nil {
		return err
	}
	subject, err := o.readSubject(ctx, c)
	if err != nil {
		return err
	}
	var trials []trial
	for _, template := range templates {
		measured, err := o.measureTemplate(ctx, c, template, subject)
		if err != nil {
			return err
		}
		trials = append(trials, measured...)
	}
	return o.printTrials(trials)
}

func (o *tryOptions) readTemplates(ctx context.Context, c client.Client, args []string) ([]*fleetflowv1alpha1.StageAnalysis, error) {
	if len(args) == 0 {
		return manifest.Of[fleetflowv1alpha1.StageAnalysis](o.Streams.In, o.files, "StageAnalysis")
	}
	template := &fleetflowv1alpha1.StageAnalysis{}
	if err := c.Get(ctx, types.NamespacedName{Name: args[0]}, template); err != nil {
		return nil, fmt.Errorf("reading StageAnalysis %s: %w", args[0], err)
	}
	return []*fleetflowv1alpha1.StageAnalysis{template}, nil
}

// tried is what is measured; control are the clusters to compare with, nil if no run says which.
type tried struct {
	analysis.Subject
	control []string
}

// readSubject returns what is measured: what --run or --placement say, for the clusters of --clusters, of the run, or of the fleet.
func (o *tryOptions) readSubject(ctx context.Context, c client.Client) (tried, error) {
	of := tried{Subject: analysis.Subject{Run: "try", Placement: o.placement, Stage: "try", Position: fleetflowv1alpha1.PositionAfter,
		Snapshot: "0", Clusters: o.clusters}}
	namespace, named, err := o.Factory.Namespace()
	if err != nil {
		return of, err
	}
	if named {
		of.Namespace = namespace
	}
	if o.run != "" {
		return of, o.readRun(ctx, c, &of)
	}
	if len(of.Clusters) == 0 {
		of.Clusters, err = listMembers(ctx, c)
	}
	return of, err
}

// listMembers lists the names of the members.
func listMembers(ctx context.Context, c client.Client) ([]string, error) {
	var members clusterv1beta1.MemberClusterList
	if err := c.List(ctx, &members); err != nil {
		return nil, fmt.Errorf("listing the members: %w", err)
	}
	var names []string
	for i := range members.Items {
		names = append(names, members.Items[i].Name)
	}
	return names, nil
}

// readRun reads what the analysis of a stage of the run is about, or of all its stages.
func (o *tryOptions) readRun(ctx context.Context, c client.Client, of *tried) error {
	run := placementv1beta1.Scope{Namespace: of.Namespace}.NewUpdateRun(o.run)
	if err := c.Get(ctx, client.ObjectKeyFromObject(run), run); err != nil {
		return fmt.Errorf("reading run %s: %w", o.run, err)
	}
	status := run.GetUpdateRunStatus()
	of.Run = o.run
	of.Placement = run.GetUpdateRunSpec().PlacementName
	of.Snapshot = status.ResourceSnapshotIndexUsed
	found := o.stage == ""
	for i := range status.StagesStatus {
		stage := status.StagesStatus[i].StageName
		if o.stage != "" && stage != o.stage {
			continue
		}
		measured, _ := updaterun.MeasuredIn(status, stage)
		found = true
		of.Stage = stage
		of.control = measured.Control
		if len(o.clusters) == 0 {
			of.Clusters = append(of.Clusters, measured.Clusters...)
		}
	}
	if !found {
		return fmt.Errorf("run %s has no stage %q: kubectl fleet status shows its stages", o.run, o.stage)
	}
	return nil
}

// controlOf returns the clusters to compare with: those that the run has not come to or, without a run, all members but those that are
// measured.
func (o *tryOptions) controlOf(ctx context.Context, c client.Client, of tried,
	metrics []fleetflowv1alpha1.AnalysisRunMetric) ([]string, error) {
	if o.run != "" || !analysis.NeedsControl(metrics) {
		return of.control, nil
	}
	members, err := listMembers(ctx, c)
	return slices.DeleteFunc(members, func(name string) bool { return slices.Contains(of.Clusters, name) }), err
}

// measureTemplate measures the metrics of one template.
func (o *tryOptions) measureTemplate(ctx context.Context, c client.Client, template *fleetflowv1alpha1.StageAnalysis, of tried) ([]trial, error) {
	sources, err := o.readSources(ctx, c, template)
	if err != nil {
		return nil, err
	}
	checked := analysis.Template{Object: template, Sources: sources, Reach: analysis.Anywhere}
	if problem := analysis.CheckTemplate(checked); problem != nil {
		return nil, fmt.Errorf("%s: %s: %s", template.Name, problem.Reason, problem.Text)
	}
	spec, problem := analysis.Resolve(of.Subject, []analysis.Template{checked}, o.args, false)
	if problem != nil {
		return nil, fmt.Errorf("%s: %s: %s", template.Name, problem.Reason, problem.Text)
	}
	control, err := o.controlOf(ctx, c, of, spec.Metrics)
	if err != nil {
		return nil, err
	}
	// Who has written a source does not get at what listens on the user's machine.
	asks := asker{
		sources: metricsource.NewSources(c, o.secrets, outbound.Guard{AllowLoopback: o.url != ""}),
		objects: metricsource.Objects{Live: c, Reach: analysis.Anywhere}, by: sources, webhooks: o.webhooks,
	}
	var trials []trial
	for i := range spec.Metrics {
		q := metricsource.Question{
			Metric: spec.Metrics[i], Of: triedAs(of.Namespace, spec), Placement: of.Placement, Clusters: of.Clusters, Control: control, Sequence: 1,
		}
		t, err := asks.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		t.Template = template.Name
		trials = append(trials, t)
	}
	return trials, nil
}

// readSources reads the sources of a template. With --url they are asked there, and need not be on the hub.
func (o *tryOptions) readSources(ctx context.Context, c client.Client,
	template *fleetflowv1alpha1.StageAnalysis) (map[string]*fleetflowv1alpha1.MetricSource, error) {
	sources := assumedSources(template)
	for name, assumed := range sources {
		source := &fleetflowv1alpha1.MetricSource{}
		err := c.Get(ctx, types.NamespacedName{Name: name}, source)
		switch {
		case apierrors.IsNotFound(err) && o.url == "":
			delete(sources, name)
			continue
		case apierrors.IsNotFound(err):
			source = assumed
		case err != nil:
			return nil, fmt.Errorf("reading MetricSource %s: %w", name, err)
		}
		if o.url != "" {
			source.Spec.URL = o.url
			source.Spec.Auth = nil
			if !strings.HasPrefix(strings.ToLower(o.url), "https://") {
				source.Spec.TLS = nil // the user need not be allowed to read a Secret for nothing
			}
		}
		sources[name] = source
	}
	return sources, nil
}

// asker takes measurements.
type asker struct {
	sources  *metricsource.Sources
	objects  metricsource.Objects
	by       map[string]*fleetflowv1alpha1.MetricSource
	webhooks bool
}

// ask takes one measurement.
func (a asker) ask(ctx context.Context, q metricsource.Question) (trial, error) {
	t := trial{Metric: q.Metric.Name, Wanted: analysis.FilledBound(q.Metric), Query: q.Query()}
	judge, problem := analysis.NewJudge(q.Metric)
	if problem != "" {
		return t, errors.New(problem)
	}
	if t.Message = a.leavesOut(q); t.Message != "" {
		return t, nil
	}
	var reading analysis.Reading
	var err error
	if q.Metric.Objects != nil {
		reading, err = a.objects.Read(ctx, q)
	} else {
		name, _ := analysis.SourceOf(q.Metric.AnalysisMetric)
		reading, _, err = a.sources.Ask(ctx, a.by[name], q)
	}
	if err != nil {
		return t, fmt.Errorf("measuring %s: %w", q.Metric.Name, err)
	}
	taken := judge.Judge(ctx, reading, q.Clusters)
	t.Outcome = taken.Outcome
	t.Value = taken.Value
	t.Message = taken.Message
	return t, nil
}

// leavesOut returns why a metric is not tried; empty if it is.
func (a asker) leavesOut(q metricsource.Question) string {
	switch of := q.Metric; {
	case of.Job != nil:
		return "not tried: a Job runs in a rollout only"
	case of.Webhook != nil && !a.webhooks:
		return "not tried: --webhooks calls it"
	case of.Objects != nil && of.Objects.From == fleetflowv1alpha1.ObjectsFromWorks && q.Placement == "":
		return "not tried: --run or --placement says of which placement"
	}
	return ""
}

// printTrials prints what was measured, and fails if a rollout would not get past it.
func (o *tryOptions) printTrials(trials []trial) error {
	bad := len(slices.DeleteFunc(slices.Clone(trials), func(t trial) bool {
		return t.Outcome != fleetflowv1alpha1.OutcomeFailure && t.Outcome != fleetflowv1alpha1.OutcomeError
	}))
	if o.Structured() {
		if err := o.Encode(o.Streams.Out, trials); err != nil {
			return err
		}
	} else {
		columns := []cli.Column{{Name: "Template"}, {Name: "Metric"}, {Name: "Outcome"}, {Name: "Value"}, {Name: "Wanted"}, {Name: "Message"},
			{Name: "Query", Wide: true}}
		var rows [][]string
		for _, t := range trials {
			rows = append(rows, []string{t.Template, t.Metric, string(t.Outcome), t.Value, t.Wanted, t.Message, t.Query})
		}
		if err := o.PrintTable(o.Streams.Out, columns, rows); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d metrics are bad now, or cannot be measured", bad, len(trials))
	}
	return nil
}

// triedAs returns the analysis that a run in a namespace, or in none, would have.
func triedAs(namespace string, spec fleetflowv1alpha1.StageAnalysisRunSpec) fleetflowv1alpha1.StageAnalysisRunObject {
	run := fleetflowv1alpha1.NewStageAnalysisRun(namespace, "try")
	*run.GetStageAnalysisRunSpec() = spec
	return run
}
