// Package reportback carries the status of placed objects to where their placement wants it: it
// tells the members through their Works whether to report it, and copies what one reports to
// the original object on the hub, if the placement is on that one cluster only.
package reportback

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// ownKinds are the kinds whose status the hub's API server needs for itself.
var ownKinds = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             true,
}

// Reconciler keeps Works in line with how their placement wants status reported.
type Reconciler struct {
	client client.Client
	// scope chooses between the cluster-scoped kinds and their twins in namespaces.
	scope placementv1beta1.Scope
	live  client.Reader
}

// NewReconciler makes a Reconciler; live reads past the cache.
func NewReconciler(c client.Client, live client.Reader) *Reconciler {
	return &Reconciler{client: c, live: live}
}

// Reconcile looks at one Work.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	work := &placementv1beta1.Work{}
	// Work and placement are only read, and the placement's status has a part for each cluster: copied for each Work, they would be
	// copied as often as there are clusters.
	if err := r.client.Get(ctx, request.NamespacedName, work, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	name := work.Labels[placementv1beta1.ParentPlacementLabel]
	scope := placementv1beta1.Scope{Namespace: work.Labels[placementv1beta1.ParentNamespaceLabel]}
	if name == "" || scope.Namespaced() != r.scope.Namespaced() || !work.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	placement := scope.NewPlacement(name)
	if err := r.client.Get(ctx, scope.Key(name), placement, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cluster, _ := clusterv1beta1.MemberOfNamespace(work.Namespace); !rules.IsSuspended(placement, cluster) { // else the Work stays as it is
		if changes := r.changesOf(work, placement); len(changes) > 0 {
			return ctrl.Result{}, r.instructMember(ctx, work, changes)
		}
	}
	if !toOriginal(work) {
		return ctrl.Result{}, nil
	}
	only, err := r.isOnlyCluster(ctx, scope, name, work.Namespace)
	if err != nil || !only {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.copyToOriginals(ctx, work)
}

// toOriginal reports whether a Work's report is for the objects on the hub. The content of an envelope has no such objects.
func toOriginal(work *placementv1beta1.Work) bool {
	s := work.Spec.ReportBackStrategy
	return s != nil && s.Type == placementv1beta1.ReportBackStrategyTypeMirror &&
		s.Destination != nil && *s.Destination == placementv1beta1.ReportBackDestinationOriginalResource &&
		work.Labels[placementv1beta1.EnvelopeTypeLabel] == ""
}

// changesOf returns those that a Work needs for its member to know what the placement says by now of reports, of values in the status that
// may go along to another cluster, of which placement has an object, and of how objects are removed.
func (r *Reconciler) changesOf(work *placementv1beta1.Work, placement placementv1beta1.PlacementObject) []fence.Op {
	var changes []fence.Op
	if wanted := workmodel.ReportBack(placement); !apiequality.Semantic.DeepEqual(wanted, work.Spec.ReportBackStrategy) {
		changes = append(changes, fence.Remove("/spec/reportBackStrategy"))
		if wanted != nil {
			changes[0] = fence.Add("/spec/reportBackStrategy", wanted)
		}
	}
	if wanted := rules.StatePathsOf(placement); !slices.Equal(wanted, work.Spec.ReportState) {
		change := fence.Remove("/spec/reportState")
		if len(wanted) > 0 {
			change = fence.Add("/spec/reportState", wanted)
		}
		changes = append(changes, change)
	}
	said := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Labels: work.Labels, Annotations: map[string]string{}}}
	workmodel.AnnotateRank(said, placement)
	workmodel.AnnotatePruning(said, placement)
	for _, key := range []string{placementv1beta1.PriorityAnnotation, placementv1beta1.PreemptionAnnotation, placementv1beta1.PruneAnnotation} {
		wanted, has := said.Annotations[key]
		is, had := work.Annotations[key]
		switch {
		case has && is != wanted:
			changes = append(changes, fence.Add(fence.AnnotationPath(key), wanted)) // there are annotations: those of its binding
		case !has && had:
			changes = append(changes, fence.Remove(fence.AnnotationPath(key)))
		}
	}
	return changes
}

func (r *Reconciler) instructMember(ctx context.Context, work *placementv1beta1.Work, changes []fence.Op) error {
	patch, err := fence.Patch(work.UID, changes...)
	if err != nil {
		return err
	}
	err = r.client.Patch(ctx, work.DeepCopy(), patch)
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil // it was replaced, or has it already; an event will tell
	}
	if err != nil {
		return fmt.Errorf("telling the member of Work %s/%s what its placement says: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// isOnlyCluster reports whether a placement is on the cluster of a member's namespace and on no other: the status on the hub
// cannot tell several clusters apart, and no other member has a say in it.
func (r *Reconciler) isOnlyCluster(ctx context.Context, scope placementv1beta1.Scope, placement, namespace string) (bool, error) {
	bindings := scope.NewBindingList()
	err := r.client.List(ctx, bindings, client.InNamespace(scope.Namespace), client.MatchingFields{fieldindex.ByPlacement: placement},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the bindings of placement %s: %w", placement, err)
	}
	all := bindings.Objects()
	return len(all) == 1 && clusterv1beta1.MemberNamespace(all[0].GetBindingSpec().TargetCluster) == namespace, nil
}

// copyToOriginals copies what a member has reported to the objects on the hub. The member says what the status is;
// which object it belongs to is read from the manifests, which no member can write.
func (r *Reconciler) copyToOriginals(ctx context.Context, work *placementv1beta1.Work) error {
	whole := &placementv1beta1.Work{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(work), whole); err != nil {
		return client.IgnoreNotFound(err)
	}
	manifests := whole.Spec.Workload.Manifests
	for i := range whole.Status.ManifestConditions { // the cache has a hash of the reported statuses only
		reported := &whole.Status.ManifestConditions[i]
		ordinal := reported.Identifier.Ordinal
		if reported.BackReportedStatus == nil || ordinal < 0 || ordinal >= len(manifests) {
			continue
		}
		status, err := statusIn(reported.BackReportedStatus.ObservedStatus.Raw)
		if err != nil {
			return fmt.Errorf("reading what Work %s/%s reports on manifest %d: %w", work.Namespace, work.Name, ordinal, err)
		}
		original := &unstructured.Unstructured{}
		if original.UnmarshalJSON(manifests[ordinal].Raw) != nil || !sameObject(original, reported.Identifier) {
			continue // the report is on other manifests; one on these will come
		}
		if ownKinds[original.GroupVersionKind().GroupKind()] {
			continue
		}
		if err := r.copyStatus(ctx, original, status); err != nil {
			return err
		}
	}
	return nil
}

// statusIn returns the status in a reported object; nil if it has none.
func statusIn(raw []byte) (map[string]any, error) {
	var object struct {
		Status map[string]any `json:"status"`
	}
	if len(raw) == 0 {
		return nil, nil
	}
	err := json.Unmarshal(raw, &object)
	return object.Status, err
}

func sameObject(object *unstructured.Unstructured, id placementv1beta1.WorkResourceIdentifier) bool {
	kind := object.GroupVersionKind()
	return kind.Group == id.Group && kind.Kind == id.Kind && object.GetNamespace() == id.Namespace && object.GetName() == id.Name
}

// copyStatus writes a status to the object on the hub, if it differs. An object that is gone needs none, and a kind
// without a status subresource gets none.
func (r *Reconciler) copyStatus(ctx context.Context, manifest *unstructured.Unstructured, status map[string]any) error {
	original := &unstructured.Unstructured{}
	original.SetGroupVersionKind(manifest.GroupVersionKind())
	err := r.live.Get(ctx, client.ObjectKeyFromObject(manifest), original)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", manifest.GetKind(), client.ObjectKeyFromObject(manifest), err)
	}
	if len(status) == 0 || sameStatus(original.Object["status"], status) {
		return nil
	}
	err = fence.ReplaceStatus(ctx, r.client, original, status)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		log.FromContext(ctx).Error(err, "The hub does not take the reported status; if it is forbidden, set reportBackToOriginals in the hub agent's chart", "kind", manifest.GetKind(), "object", client.ObjectKeyFromObject(manifest))
		return nil // asking again would not change its mind
	}
	return err
}

// sameStatus compares as the API server would write both.
func sameStatus(a, b any) bool {
	left, errA := json.Marshal(a)
	right, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(left) == string(right)
}
