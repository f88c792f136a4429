package analysis

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Variables that queries, paths and bodies may have beside arguments.
const (
	VariableRun       = "run"
	VariablePlacement = "placement"
	VariableStage     = "stage"
	VariableSnapshot  = "snapshot"
	// VariableClusters is replaced when a query is sent: it may be long.
	VariableClusters = "clusters"
	// VariableControl has the clusters that the run has not come to.
	VariableControl = "control"
)

// Bounds of what an analysis may be.
const (
	maxSpec    = 32 << 10
	maxMetrics = 20
	// maxShown is how much is shown of a value that is refused.
	maxShown = 60
	// MaxQuery is how long a query may be with all variables replaced.
	MaxQuery = 64 << 10
)

var (
	variableInText = regexp.MustCompile(`\$\(([^()]*)\)`)
	// valueOfArgument is what the API server takes for the value of an argument. It cannot end a text in a query, nor name a variable.
	valueOfArgument      = regexp.MustCompile(`^[A-Za-z0-9._:/@ -]{0,256}$`)
	argumentInExpression = regexp.MustCompile(`\bargs\.([a-zA-Z][a-zA-Z0-9_]*)`)
)

// Problem is why a template, or an analysis made of templates, cannot be used; Reason is one of the condition Accepted.
type Problem struct{ Reason, Text string }

func invalid(reason, format string, args ...any) *Problem {
	return &Problem{reason, fmt.Sprintf(format, args...)}
}

// Template is a template with the sources that there are for it, by name, and what its metrics may reach on the hub.
type Template struct {
	Object  *fleetflowv1alpha1.StageAnalysis
	Sources map[string]*fleetflowv1alpha1.MetricSource
	Reach   Reach
}

// SourceOf returns the source that a metric names, and the type that it has to have.
func SourceOf(metric fleetflowv1alpha1.AnalysisMetric) (name string, kind fleetflowv1alpha1.MetricSourceType) {
	if metric.Webhook != nil {
		return metric.Webhook.SourceRef.Name, fleetflowv1alpha1.MetricSourceWebhook
	}
	if metric.Prometheus != nil {
		return metric.Prometheus.SourceRef.Name, fleetflowv1alpha1.MetricSourcePrometheus
	}
	return "", ""
}

// ProviderOf returns what a metric is measured at: Prometheus, Webhook, Job, or the objects of Works or Hub.
func ProviderOf(metric fleetflowv1alpha1.AnalysisMetric) string {
	switch {
	case metric.Objects != nil:
		return string(metric.Objects.From)
	case metric.Job != nil:
		return providerJob
	}
	_, kind := SourceOf(metric)
	return string(kind)
}

// providerJob is a metric that is measured by a Job.
const providerJob = "Job"

// Providers returns all that ProviderOf can say.
func Providers() []string {
	return []string{
		string(fleetflowv1alpha1.MetricSourcePrometheus), string(fleetflowv1alpha1.MetricSourceWebhook), providerJob,
		string(fleetflowv1alpha1.ObjectsFromWorks), string(fleetflowv1alpha1.ObjectsFromHub),
	}
}

// CheckTemplate returns why no analysis can be made of a template; nil if one can.
func CheckTemplate(t Template) *Problem {
	known := map[string]bool{}
	for _, arg := range t.Object.Spec.Args {
		known[arg.Name] = true
	}
	for i := range t.Object.Spec.Metrics {
		metric := t.Object.Spec.Metrics[i]
		if problem := checkSource(t, metric); problem != nil {
			return problem
		}
		judge, problem := NewJudge(fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: metric})
		if problem != "" {
			return invalid(fleetflowv1alpha1.ReasonInvalidExpression, "metric %s: %s", metric.Name, problem)
		}
		for _, e := range []*expression{judge.success, judge.failure} {
			if e == nil {
				continue
			}
			for _, name := range e.arguments {
				if !known[name] {
					return invalid(fleetflowv1alpha1.ReasonUnknownArgument, "metric %s: the expression %q names args.%s, which is none of the template",
						metric.Name, e.text, name)
				}
			}
		}
		if problem := checkVariables(metric, known); problem != nil {
			return problem
		}
	}
	return nil
}

// checkSource returns why a metric cannot be measured where it is to be.
func checkSource(t Template, metric fleetflowv1alpha1.AnalysisMetric) *Problem {
	if why := t.Reach.Refuse(metric); why != "" {
		return invalid(fleetflowv1alpha1.ReasonObjectRefused, "metric %s: %s", metric.Name, why)
	}
	if metric.Objects != nil || metric.Job != nil {
		return nil
	}
	name, kind := SourceOf(metric)
	source := t.Sources[name]
	switch {
	case source == nil:
		return invalid(fleetflowv1alpha1.ReasonUnknownSource, "metric %s: there is no MetricSource %s", metric.Name, name)
	case source.Spec.Type != kind:
		return invalid(fleetflowv1alpha1.ReasonUnknownSource, "metric %s: MetricSource %s is of type %s, not %s", metric.Name, name,
			source.Spec.Type, kind)
	case !source.Allows(t.Object):
		return invalid(fleetflowv1alpha1.ReasonUnknownSource, "metric %s: MetricSource %s does not allow the template: see its allowedTemplates",
			metric.Name, name)
	}
	return nil
}

// texts returns the texts of a metric in which variables are replaced; query says that $(clusters) may be among them.
func texts(metric fleetflowv1alpha1.AnalysisMetric) (all []string, query bool) {
	if metric.Prometheus != nil {
		return []string{metric.Prometheus.Query, metric.Prometheus.BaselineQuery, metric.Prometheus.SamplesQuery}, true
	}
	if metric.Objects != nil {
		return []string{metric.Objects.Namespace, metric.Objects.Name}, false
	}
	if metric.Webhook == nil {
		return nil, false
	}
	all = append(all, metric.Webhook.Path)
	for _, key := range slices.Sorted(maps.Keys(metric.Webhook.Body)) {
		all = append(all, metric.Webhook.Body[key])
	}
	return all, false
}

func checkVariables(metric fleetflowv1alpha1.AnalysisMetric, arguments map[string]bool) *Problem {
	all, query := texts(metric)
	for _, text := range all {
		for _, found := range variableInText.FindAllStringSubmatch(text, -1) {
			name := found[1]
			argument, isArgument := strings.CutPrefix(name, "args.")
			known := name == VariableRun || name == VariablePlacement || name == VariableStage || name == VariableSnapshot ||
				query && (name == VariableClusters || name == VariableControl) || isArgument && arguments[argument]
			if !known {
				return invalid(fleetflowv1alpha1.ReasonUnknownArgument, "metric %s: there is no variable $(%s)", metric.Name, name)
			}
		}
	}
	return nil
}

// Subject is what an analysis is about.
type Subject struct {
	Namespace, Run, Placement, Stage, Position, Snapshot string
	// RunUID is the UID of the run.
	RunUID types.UID
	// Clusters are those of the stage.
	Clusters []string
}

// Resolve puts templates and arguments together. The templates have been checked.
func Resolve(of Subject, templates []Template, given map[string]string, dryRun bool) (fleetflowv1alpha1.StageAnalysisRunSpec, *Problem) {
	spec := fleetflowv1alpha1.StageAnalysisRunSpec{RunRef: fleetflowv1alpha1.UpdateRunReference{Name: of.Run, UID: of.RunUID}, Stage: of.Stage,
		Position: of.Position, Attempt: 1, DryRun: dryRun}
	from := map[string]string{}
	taken := map[string]bool{}
	for _, t := range templates {
		args, problem := arguments(t.Object, given, taken)
		if problem != nil {
			return spec, problem
		}
		spec.Templates = append(spec.Templates, fleetflowv1alpha1.AnalysisTemplateUsed{Name: t.Object.Name, Generation: t.Object.Generation})
		for i := range t.Object.Spec.Metrics {
			metric := *t.Object.Spec.Metrics[i].DeepCopy()
			if other, twice := from[metric.Name]; twice {
				return spec, invalid("DuplicateMetric", "StageAnalyses %s and %s both have a metric %s: rename one", other, t.Object.Name, metric.Name)
			}
			from[metric.Name] = t.Object.Name
			fillIn(&metric, of, args)
			if problem := checkFilledIn(metric, of); problem != nil {
				return spec, problem
			}
			spec.Metrics = append(spec.Metrics, fleetflowv1alpha1.AnalysisRunMetric{AnalysisMetric: metric, Args: args})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !taken[name] {
			return spec, invalid(fleetflowv1alpha1.ReasonUnknownArgument, "no template of the analysis takes an argument %s", name)
		}
	}
	text, err := json.Marshal(spec)
	if err != nil || len(text) > maxSpec || len(spec.Metrics) > maxMetrics {
		return spec, invalid("AnalysisTooLarge", "the templates of the analysis have %d metrics in %d bytes: there may be %d, in %d",
			len(spec.Metrics), len(text), maxMetrics, maxSpec)
	}
	return spec, nil
}

// checkFilledIn returns what arguments have made of a metric that cannot be asked.
func checkFilledIn(metric fleetflowv1alpha1.AnalysisMetric, of Subject) *Problem {
	switch {
	case metric.Prometheus != nil && len(Query(metric.Prometheus.Query, of.Clusters, nil)) > MaxQuery:
		return invalid("QueryTooLong", "the query of metric %s is longer than 64 KiB with the names of all clusters: use by (cluster) and no $(clusters)", metric.Name)
	case metric.Webhook != nil && strings.Contains(metric.Webhook.Path, ".."):
		return invalid(fleetflowv1alpha1.ReasonUnknownArgument, "the path of metric %s has .. in it with the arguments filled in", metric.Name)
	case metric.Objects != nil && (!isName(metric.Objects.Name) || metric.Objects.Namespace != "" && !isName(metric.Objects.Namespace)):
		return invalid(fleetflowv1alpha1.ReasonUnknownArgument, "metric %s: with the arguments filled in, %q in namespace %q is no name of an object", metric.Name, metric.Objects.Name, metric.Objects.Namespace)
	}
	return nil
}

// arguments returns the values of the arguments of a template.
func arguments(template *fleetflowv1alpha1.StageAnalysis, given map[string]string, taken map[string]bool) (map[string]string, *Problem) {
	var args map[string]string
	for _, parameter := range template.Spec.Args {
		value, is := given[parameter.Name]
		taken[parameter.Name] = true
		if !is && parameter.Default == nil {
			return nil, invalid(fleetflowv1alpha1.ReasonUnknownArgument, "StageAnalysis %s needs an argument %s, which the task does not give",
				template.Name, parameter.Name)
		}
		if !is {
			value = *parameter.Default
		}
		if !valueOfArgument.MatchString(value) {
			return nil, invalid(fleetflowv1alpha1.ReasonUnknownArgument,
				"StageAnalysis %s: the value %q of argument %s is none: up to 256 letters, digits, spaces and ._:/@-", template.Name,
				Shorten(value, maxShown), parameter.Name)
		}
		if args == nil {
			args = map[string]string{}
		}
		args[parameter.Name] = value
	}
	return args, nil
}

// fillIn replaces all variables but $(clusters) and $(control).
func fillIn(metric *fleetflowv1alpha1.AnalysisMetric, of Subject, args map[string]string) {
	values := map[string]string{VariableRun: of.Run, VariablePlacement: of.Placement, VariableStage: of.Stage, VariableSnapshot: of.Snapshot}
	for name, value := range args {
		values["args."+name] = value
	}
	if metric.Prometheus != nil {
		metric.Prometheus.Query = replace(metric.Prometheus.Query, values)
		metric.Prometheus.BaselineQuery = replace(metric.Prometheus.BaselineQuery, values)
		metric.Prometheus.SamplesQuery = replace(metric.Prometheus.SamplesQuery, values)
	}
	if metric.Objects != nil {
		metric.Objects.Namespace, metric.Objects.Name = replace(metric.Objects.Namespace, values), replace(metric.Objects.Name, values)
	}
	if metric.Webhook != nil {
		metric.Webhook.Path = replace(metric.Webhook.Path, values)
		for key, text := range metric.Webhook.Body {
			metric.Webhook.Body[key] = replace(text, values)
		}
	}
}

// replace replaces the variables that have values in one pass: what is put in is not looked at again.
func replace(text string, values map[string]string) string {
	return variableInText.ReplaceAllStringFunc(text, func(found string) string {
		if value, is := values[found[2:len(found)-1]]; is {
			return value
		}
		return found
	})
}

// Query returns a query with the names of clusters in it, and of those to compare with, each as an alternation in a regular expression
// within quotation marks.
func Query(query string, clusters, control []string) string {
	return replace(query, map[string]string{VariableClusters: alternation(clusters), VariableControl: alternation(control)})
}

// isName reports whether a text can be the name of an object: it is one segment of a path.
func isName(text string) bool { return text != "" && len(content.IsPathSegmentName(text)) == 0 }

func alternation(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strings.ReplaceAll(regexp.QuoteMeta(name), `\`, `\\`)
	}
	return strings.Join(quoted, "|")
}

// NeedsControl reports whether metrics compare with clusters that the run has not come to.
func NeedsControl(metrics []fleetflowv1alpha1.AnalysisRunMetric) bool {
	return slices.ContainsFunc(metrics, func(m fleetflowv1alpha1.AnalysisRunMetric) bool {
		return m.Prometheus != nil && strings.Contains(m.Prometheus.Query+m.Prometheus.BaselineQuery+m.Prometheus.SamplesQuery, "$("+
			VariableControl+")")
	})
}
