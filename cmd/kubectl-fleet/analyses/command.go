// Package analyses has the commands about analyses: they show what was measured, check templates, and try them.
package analyses

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/manifest"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// options are what `analysis` was asked for.
type options struct {
	base.Viewing
	files []string
}

// New returns `kubectl fleet analysis`.
func New(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "analysis",
		Short: "Show what analyses of stages have measured, against which bounds",
		Long: `Show the analyses of update runs: how far each is, and what it has measured against which bounds. An analysis is a
ClusterStageAnalysisRun, or a StageAnalysisRun in the namespace of its run. The hub makes one for each task of type Analysis.`,
		Example: `  # How do all of them stand?
  kubectl fleet analysis

  # What has a run measured?
  kubectl fleet analysis show web-17

  # Is a template right?
  kubectl fleet analysis lint -f error-ratio.yaml

  # What does it measure now?
  kubectl fleet analysis try -f error-ratio.yaml`,
		Args:              base.RefuseUnknown,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.printList(cmd.Context())
		},
	}
	o.AddFlags(cmd)
	cmd.AddCommand(newShow(f, streams), newLint(f, streams), newTry(f, streams))
	return cmd
}

func newShow(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show what the analyses of an update run have measured: values, bounds, counts",
		Example: `  # A ClusterStagedUpdateRun
  kubectl fleet analysis show web-17

  # A StagedUpdateRun
  kubectl fleet analysis show web-17 -n team`,
		Args:              base.ExactlyOne("an update run", "kubectl fleet analysis show web-17"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.printRun(cmd.Context(), strings.TrimPrefix(args[0], "run/"))
		},
	}
	o.AddFlags(cmd)
	return cmd
}

func newLint(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &options{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "lint -f FILE",
		Short: "Check the templates of a manifest, without the hub: expressions, arguments, how long they measure",
		Long: `Check the StageAnalyses of a manifest without the hub: that the expressions are CEL, give true or false, and use only what
their source answers; that every argument and variable that something names is there; that a source is used as one type. It
prints what would be measured, and for how long. What the hub's API server checks, kubectl apply --dry-run=server tells;
whether the sources are there, the condition Accepted does.`,
		Example: `  # A file
  kubectl fleet analysis lint -f error-ratio.yaml

  # What a chart renders
  helm template web | kubectl fleet analysis lint -f -`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.lintTemplates()
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().StringSliceVarP(&o.files, "filename", "f", nil, "Files or folders of manifests; - is the standard input.")
	return cmd
}

// readAnalyses reads the analyses of the hub, by run and stage; all of them without the name of a run.
func (o *options) readAnalyses(ctx context.Context, namespace, run string) ([]fleetflowv1alpha1.StageAnalysisRunObject, error) {
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	found, err := hub.Reader{Reader: c}.Analyses(ctx, namespace, run)
	return found, listingError(err)
}

// listingError returns what the error of a list of analyses means.
func listingError(err error) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return errors.New("the hub has no analyses: have its operator install the CustomResourceDefinitions of the hub agent's chart")
	}
	return err
}

// printList prints a table of all analyses.
func (o *options) printList(ctx context.Context) error {
	found, err := o.readAnalyses(ctx, "", "")
	if err != nil {
		return err
	}
	views := make([]fleetview.Analysis, 0, len(found))
	for i := range found {
		views = append(views, fleetview.AnalysisOf(found[i]))
	}
	return base.Show(&o.Viewing, views, fleetview.AnalysisColumns, views, "There are no analyses: no run has a task of type Analysis.")
}

// printRun prints the analyses of one run.
func (o *options) printRun(ctx context.Context, run string) error {
	namespace, named, err := o.Factory.Namespace()
	if err != nil {
		return err
	}
	if !named {
		namespace = ""
	}
	found, err := o.readAnalyses(ctx, namespace, run)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("run %s has no analyses, or is not there; kubectl fleet analysis lists them all, -n NAMESPACE finds those of a StagedUpdateRun", run)
	}
	views := make([]fleetview.Analysis, 0, len(found))
	for i := range found {
		views = append(views, fleetview.AnalysisOf(found[i]))
	}
	if o.Structured() {
		return o.Encode(o.Streams.Out, views)
	}
	for i, v := range views {
		if i > 0 {
			cli.Printf(o.Streams.Out, "\n")
		}
		if err := o.printAnalysis(v); err != nil {
			return err
		}
	}
	return nil
}

// printAnalysis prints one analysis.
func (o *options) printAnalysis(v fleetview.Analysis) error {
	cli.Printf(o.Streams.Out, "%s %s: %s, attempt %d", v.When, v.Stage, v.State, v.Attempt)
	if v.DryRun {
		cli.Printf(o.Streams.Out, ", a dry run")
	}
	if v.State == string(fleetflowv1alpha1.AnalysisStopped) { // no metric says why
		cli.Printf(o.Streams.Out, ". %s", v.Message)
	}
	cli.Printf(o.Streams.Out, "\n")
	return base.PrintRows(&o.Viewing, fleetview.MeasuredColumns, v.Metrics)
}

// lintTemplates checks the templates of manifests, all of them, and fails if one is wrong.
func (o *options) lintTemplates() error {
	if len(o.files) == 0 {
		return cli.Usagef("kubectl fleet analysis lint needs manifests: --filename names files or folders, - is the standard input")
	}
	templates, err := manifest.Of[fleetflowv1alpha1.StageAnalysis](o.Streams.In, o.files, "StageAnalysis")
	if err != nil {
		return err
	}
	wrong := 0
	columns := []cli.Column{{Name: "Template"}, {Name: "Metric"}, {Name: "Source"}, {Name: "Count"}, {Name: "Every"}, {Name: "Takes"},
		{Name: "Wanted"}}
	var rows [][]string
	for _, template := range templates {
		if problem := analysis.CheckTemplate(analysis.Template{Object: template, Sources: assumedSources(template),
			Reach: analysis.Anywhere}); problem != nil {
			cli.Printf(o.Streams.ErrOut, "%s: %s: %s\n", template.Name, problem.Reason, problem.Text)
			wrong++
			continue
		}
		for i := range template.Spec.Metrics {
			rows = append(rows, lintRow(template.Name, template.Spec.Metrics[i]))
		}
	}
	if len(rows) > 0 {
		if err := o.PrintTable(o.Streams.Out, columns, rows); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d templates cannot be used", wrong, len(templates))
	}
	return nil
}

// assumedSources returns the sources that a template names, of the type it takes them for where it names them first.
func assumedSources(template *fleetflowv1alpha1.StageAnalysis) map[string]*fleetflowv1alpha1.MetricSource {
	sources := map[string]*fleetflowv1alpha1.MetricSource{}
	for i := range template.Spec.Metrics {
		name, kind := analysis.SourceOf(template.Spec.Metrics[i])
		if sources[name] == nil && name != "" {
			sources[name] = &fleetflowv1alpha1.MetricSource{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: fleetflowv1alpha1.MetricSourceSpec{Type: kind}}
		}
	}
	return sources
}

func lintRow(template string, metric fleetflowv1alpha1.AnalysisMetric) []string {
	source, _ := analysis.SourceOf(metric)
	source = cmp.Or(source, analysis.ProviderOf(metric))
	count := max(metric.Count, 1)
	every := ""
	takes := time.Duration(0)
	if metric.Interval != nil {
		every = tree.Elapsed(metric.Interval.Duration)
		takes = time.Duration(count-1) * metric.Interval.Duration
	}
	if metric.InitialDelay != nil {
		takes += metric.InitialDelay.Duration
	}
	return []string{template, metric.Name, source, strconv.Itoa(int(count)), every, tree.Elapsed(takes),
		analysis.FilledBound(fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: metric})}
}
