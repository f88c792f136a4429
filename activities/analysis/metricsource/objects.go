package metricsource

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// worksAtOnce is of how many clusters a measurement reads Works at the same time.
const worksAtOnce = 8

// Objects reads the objects that metrics look at.
type Objects struct {
	// Live reads past every cache: caches have no manifests, and not every kind.
	Live client.Reader
	// Reach is what metrics may reach on the hub.
	Reach analysis.Reach
}

// Read reads the object of a question, or that of each cluster. Whether it may be read is asked here once more: a StageAnalysisRun
// has a copy of its template, and since then the hub agent may have been told otherwise.
func (o Objects) Read(ctx context.Context, q Question) (analysis.Reading, error) {
	if why := o.Reach.Refuse(q.Metric.AnalysisMetric); why != "" {
		return analysis.Reading{Problem: why}, nil
	}
	if q.Metric.Objects.From == fleetflowv1alpha1.ObjectsFromWorks {
		return o.readWorks(ctx, q)
	}
	return o.readHub(ctx, q.Metric.Objects)
}

func (o Objects) readHub(ctx context.Context, wanted *fleetflowv1alpha1.ObjectReading) (analysis.Reading, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(schema.FromAPIVersionAndKind(wanted.APIVersion, wanted.Kind))
	err := o.Live.Get(ctx, types.NamespacedName{Namespace: wanted.Namespace, Name: wanted.Name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return analysis.Reading{}, nil
	case meta.IsNoMatchError(err):
		return analysis.Reading{Problem: fmt.Sprintf("the hub has no kind %s of %s", wanted.Kind, wanted.APIVersion)}, nil
	case apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
		return analysis.Reading{Problem: fmt.Sprintf("the hub agent cannot read this object: %s", apierrors.ReasonForError(err))}, nil
	case err != nil:
		return analysis.Reading{}, fmt.Errorf("reading %s %s for a metric: %w", wanted.Kind, wanted.Name, err)
	}
	if _, is := found.GetAnnotations()[placementv1beta1.EnvelopeConfigMapAnnotation]; is {
		return analysis.Reading{Problem: fmt.Sprintf("no metric reads a %s with the annotation %s: it is an envelope, which may hold Secrets",
			wanted.Kind, placementv1beta1.EnvelopeConfigMapAnnotation)}, nil
	}
	found.SetManagedFields(nil)
	unstructured.RemoveNestedField(found.Object, "metadata", "annotations")
	return analysis.Reading{Object: &analysis.Object{Fields: found.Object}}, nil
}

// readWorks reads what the Works of the run's placement say of an object, cluster by cluster.
func (o Objects) readWorks(ctx context.Context, q Question) (analysis.Reading, error) {
	found := make([]*analysis.Object, len(q.Clusters))
	problems := make([]string, len(q.Clusters))
	g, reading := errgroup.WithContext(ctx)
	g.SetLimit(worksAtOnce)
	for i, cluster := range q.Clusters {
		g.Go(func() (err error) {
			found[i], problems[i], err = o.readCluster(reading, q, cluster)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return analysis.Reading{}, err
	}
	objects := map[string]analysis.Object{}
	for i, cluster := range q.Clusters {
		if problems[i] != "" {
			return analysis.Reading{Problem: "cluster " + cluster + ": " + problems[i]}, nil
		}
		if found[i] != nil {
			objects[cluster] = *found[i]
		}
	}
	return analysis.Reading{Objects: objects}, nil
}

// readCluster reads the Works of one cluster; found is nil if none has the object, or the member has not reported on the Work as it
// is now: what it says about an earlier one is no measurement of this version.
func (o Objects) readCluster(ctx context.Context, q Question, cluster string) (found *analysis.Object, problem string, err error) {
	var works placementv1beta1.WorkList
	err = o.Live.List(ctx, &works, client.InNamespace(placementv1beta1.MemberNamespace(cluster)),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: q.Placement})
	if err != nil {
		return nil, "", fmt.Errorf("reading the Works of cluster %s: %w", cluster, err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		if work.Labels[placementv1beta1.ParentNamespaceLabel] != q.Of.GetNamespace() || !work.DeletionTimestamp.IsZero() {
			continue
		}
		if manifest, at := manifestOf(work, q.Metric.Objects); manifest != nil {
			found, problem = objectOf(work, manifest, at, q.Metric.AnalysisMetric)
			return found, problem, nil
		}
	}
	return nil, "", nil
}

// manifestOf returns the manifest of an object in a Work, and where in it that is; nil if there is none.
func manifestOf(work *placementv1beta1.Work, wanted *fleetflowv1alpha1.ObjectReading) (manifest []byte, at int) {
	for at := range work.Spec.Workload.Manifests {
		var is struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}
		raw := work.Spec.Workload.Manifests[at].Raw
		if json.Unmarshal(raw, &is) != nil || is.Kind != wanted.Kind || is.APIVersion != wanted.APIVersion {
			continue
		}
		if is.Metadata.Name == wanted.Name && is.Metadata.Namespace == wanted.Namespace {
			return raw, at
		}
	}
	return nil, 0
}

// shownOfWorks are the fields that expressions see of an object of a Work, beside its status: not the data of ConfigMaps, nor the
// annotations, which may have a copy of all.
var shownOfWorks = []string{"apiVersion", "kind", "spec"}

// objectOf returns an object of a Work, with what its member has reported.
func objectOf(work *placementv1beta1.Work, manifest []byte, at int,
	metric fleetflowv1alpha1.AnalysisMetric) (object *analysis.Object, problem string) {
	report := reportOn(work, at)
	if report == nil {
		return nil, ""
	}
	var whole map[string]any
	if utiljson.Unmarshal(manifest, &whole) != nil {
		return nil, "the manifest cannot be read"
	}
	object = &analysis.Object{Fields: map[string]any{}, Conditions: map[string]string{}}
	for _, field := range shownOfWorks {
		if value, has := whole[field]; has {
			object.Fields[field] = value
		}
	}
	of := unstructured.Unstructured{Object: whole}
	labels := map[string]any{}
	for key, value := range of.GetLabels() {
		labels[key] = value
	}
	object.Fields["metadata"] = map[string]any{"name": of.GetName(), "namespace": of.GetNamespace(), "labels": labels}
	for _, c := range report.Conditions {
		object.Conditions[c.Type] = string(c.Status)
	}
	if report.BackReportedStatus == nil {
		if !analysis.UsesStatus(metric) {
			return object, ""
		}
		if strategy := work.Spec.ReportBackStrategy; strategy == nil || strategy.Type != placementv1beta1.ReportBackStrategyTypeMirror {
			return nil, "object.status is not reported: the placement's strategy needs reportBackStrategy: {type: Mirror, destination: WorkAPI}"
		}
		return nil, ""
	}
	var reported map[string]any
	if utiljson.Unmarshal(report.BackReportedStatus.ObservedStatus.Raw, &reported) != nil {
		return nil, "the reported status cannot be read"
	}
	if status, has := reported["status"]; has {
		object.Fields["status"] = status
	}
	return object, ""
}

// reportOn returns what the member has reported on a manifest of the Work as it is now; nil if it has not.
func reportOn(work *placementv1beta1.Work, at int) *placementv1beta1.ManifestCondition {
	applied := meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionTypeApplied)
	if applied == nil || applied.ObservedGeneration != work.Generation {
		return nil
	}
	for i := range work.Status.ManifestConditions {
		if of := &work.Status.ManifestConditions[i]; of.Identifier.Ordinal == at {
			return of
		}
	}
	return nil
}
