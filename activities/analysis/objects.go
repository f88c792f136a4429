package analysis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// HubKind is a kind of which metrics may read objects of the hub, in one namespace, or in all and outside of them.
type HubKind struct {
	Kind      schema.GroupKind
	Namespace string
}

// HubKinds are the kinds of which metrics may read objects of the hub. The hub agent reads everything, and an expression tells what
// is in an object. So a user who may write templates reads the objects of these kinds, and of no others.
type HubKinds []HubKind

// Reach is what the operator of the hub agent lets metrics reach on the hub.
type Reach struct {
	// Works says that objects may be read that placements have put on clusters.
	Works bool
	// HubKinds are those of which objects of the hub may be read, JobNamespaces those in which Jobs may run.
	HubKinds      HubKinds
	JobNamespaces []string
}

// Anywhere is no bound but that nothing reads what holds Secrets: where templates are checked of which nothing is measured.
var Anywhere = Reach{true, HubKinds{{Kind: schema.GroupKind{Kind: anything}}}, []string{anything}}

const anything = "*"

// Refuse returns why a metric is not measured on the hub; empty if it may be. It is asked of templates, and again of every measurement,
// with the arguments filled in.
func (r Reach) Refuse(metric fleetflowv1alpha1.AnalysisMetric) string {
	switch {
	case metric.Objects != nil:
		return r.refuseObject(metric.Objects)
	case metric.Job != nil && !slices.Contains(r.JobNamespaces, metric.Job.Namespace) && !slices.Contains(r.JobNamespaces, anything):
		return fmt.Sprintf("no Jobs for metrics run in namespace %s: have the operator of the hub agent add it to --analysis-job-namespaces",
			metric.Job.Namespace)
	}
	return ""
}

// ParseHubKinds reads kinds like Deployment.apps, Node, or web/ConfigMap, which is in a namespace.
func ParseHubKinds(texts []string) (HubKinds, error) {
	var kinds HubKinds
	for _, text := range texts {
		namespace, kind, namespaced := strings.Cut(text, "/")
		if !namespaced {
			namespace = ""
			kind = text
		}
		parsed := HubKind{schema.ParseGroupKind(kind), namespace}
		switch first := strings.ToUpper(parsed.Kind.Kind[:min(1, len(parsed.Kind.Kind))]); {
		case first == "" || !strings.HasPrefix(parsed.Kind.Kind, first) || strings.ContainsAny(kind, "/*"):
			return nil, fmt.Errorf("%q names no kind: write it like Deployment.apps, or web/Deployment.apps for one namespace", text)
		case fleetflowv1alpha1.HoldsSecrets(parsed.Kind):
			return nil, fmt.Errorf("%q cannot be allowed: objects of this kind are Secrets, or hold copies of Secrets", text)
		}
		kinds = append(kinds, parsed)
	}
	return kinds, nil
}

// refuseObject returns why no metric reads an object; empty if one may.
func (r Reach) refuseObject(of *fleetflowv1alpha1.ObjectReading) string {
	kind := of.GroupKind()
	switch {
	case fleetflowv1alpha1.HoldsSecrets(kind):
		return fmt.Sprintf("no metric reads a %s: objects of this kind are Secrets, or hold copies of Secrets", kind)
	case of.From == fleetflowv1alpha1.ObjectsFromWorks && !r.Works:
		return "no metric looks at what is placed: have the operator of the hub agent set --analysis-works, beside a guard rail that says who writes such metrics"
	case of.From == fleetflowv1alpha1.ObjectsFromWorks:
		return ""
	}
	if slices.ContainsFunc(r.HubKinds, func(allowed HubKind) bool {
		return allowed.Kind.Kind == anything || allowed.Kind == kind && (allowed.Namespace == "" || allowed.Namespace == of.Namespace)
	}) {
		return ""
	}
	where := ""
	if of.Namespace != "" {
		where = " in namespace " + of.Namespace
	}
	return fmt.Sprintf("objects of kind %s%s are not for metrics: have the operator of the hub agent add them to --analysis-hub-kinds",
		kind, where)
}

var statusInExpression = regexp.MustCompile(`\bobject\s*\.\s*\??\s*status\b|\bobject\s*\[`)

// UsesStatus reports whether the expressions of a metric look at the status of its object.
func UsesStatus(metric fleetflowv1alpha1.AnalysisMetric) bool {
	return statusInExpression.MatchString(metric.Success) || statusInExpression.MatchString(metric.Failure)
}
