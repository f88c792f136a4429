package placement

import (
	"context"
	"errors"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// Overrides are what is known of the overrides of a placement.
type Overrides struct {
	// Lacking are the overrides that the placement requires and that are not in force.
	Lacking []string
	// Made is the fingerprint of the overrides in force that are for the placement.
	Made string
	// Gone says that a picked override snapshot does not exist any more.
	Gone bool
	// Corrected reports that a picked override cannot be applied and has been changed since.
	Corrected bool
	// Applicable are those of the picked overrides that apply to each cluster with a binding.
	Applicable map[string]override.Applicable
	// Inputs are the fingerprints of what those are applied from.
	Inputs map[string]string
}

// gatherOverrides reads what is known of overrides. Update runs pick their own.
func (f *Facts) gatherOverrides(ctx context.Context, cached client.Reader) error {
	if rules.IsExternal(f.Placement) && len(f.Placement.GetPlacementSpec().RequiredOverrides) == 0 {
		return nil
	}
	inForce, err := hubread.OverridesInForce(ctx, cached)
	if err != nil {
		return err
	}
	f.Overrides.Lacking = inForce.Lacking(f.Placement)
	if rules.IsExternal(f.Placement) {
		return nil
	}
	f.Overrides.Made = override.Made(override.PlacementOf(f.Placement), inForce)
	if len(f.Verdict.Overrides) == 0 {
		return nil
	}
	picked, err := hubread.LoadOverrides(ctx, cached, cached, f.Verdict.Overrides)
	if _, gone := errors.AsType[*hubread.OverrideMissingError](err); gone {
		f.Overrides.Gone = true
		return nil
	}
	if err != nil {
		return err
	}
	f.Overrides.Corrected = override.Corrected(inForce, f.Verdict.Overrides, f.Bindings)
	matcher := override.Picked(picked)
	f.Overrides.Applicable = make(map[string]override.Applicable, len(f.Bindings))
	f.Overrides.Inputs = make(map[string]string, len(f.Bindings))
	for _, binding := range f.Bindings {
		cluster, err := hubread.OverrideCluster(ctx, cached, binding.GetBindingSpec().TargetCluster)
		if err != nil {
			return err
		}
		f.Overrides.Applicable[cluster.Name] = matcher.Applicable(cluster)
		f.Overrides.Inputs[cluster.Name] = matcher.Inputs(cluster)
	}
	return nil
}

// areLacking reports whether nothing is to be written, because overrides are missing that the placement requires.
func (o Overrides) areLacking() bool { return o.Lacking != nil }

// overridesChanged reports whether other overrides are for the placement than its last selection has seen, or that a picked one is gone
// or corrected.
func (f *Facts) overridesChanged() bool {
	if !slices.Equal(f.Overrides.Lacking, f.Verdict.OverridesLacking) {
		return true
	}
	return !rules.IsExternal(f.Placement) && (f.Overrides.Gone || f.Overrides.Corrected ||
		f.Overrides.Made != f.Verdict.OverridesMade)
}

// hasApplicableOverrides reports whether a binding names the overrides that apply to its cluster. While a picked one is
// gone, or none have been picked yet, that is unknown, and the next selection will pick them. What another author has bound
// has no note of its inputs until the binding controller adds it.
func (f *Facts) hasApplicableOverrides(binding placementv1beta1.BindingObject) bool {
	if f.Overrides.Gone || f.Verdict.Generation == 0 {
		return true
	}
	wanted := f.Overrides.Applicable[binding.GetBindingSpec().TargetCluster]
	noted, isNoted := binding.GetAnnotations()[placementv1beta1.OverrideInputsAnnotation]
	if inputs := f.Overrides.Inputs[binding.GetBindingSpec().TargetCluster]; isNoted && inputs != "" && inputs != noted {
		return false
	}
	return apiequality.Semantic.DeepEqual(wanted, override.Applicable{
		ClusterResourceOverrideSnapshots: binding.GetBindingSpec().ClusterResourceOverrideSnapshots,
		ResourceOverrideSnapshots:        binding.GetBindingSpec().ResourceOverrideSnapshots,
	})
}

// requestOverridden requests the placement that an override is for, and all placements that have picked its snapshot.
func (r requester) requestOverridden(ctx context.Context, object client.Object) []reconcile.Request {
	source := override.Source{Name: object.GetName(), Namespace: object.GetNamespace()}
	requests := r.requestByOverride(ctx, fieldindex.Picked(source.Ref()))
	taken, ok := object.(placementv1beta1.OverrideSnapshotObject)
	if !ok {
		return requests
	}
	requests = append(requests, r.requestByOverride(ctx, fieldindex.Required(override.RequiredOf(taken)))...)
	made := taken.GetOverridePlacement()
	if made == nil || (made.Scope == placementv1beta1.NamespaceScoped) != r.scope.Namespaced() {
		return requests
	}
	of := placementv1beta1.Scope{}
	if r.scope.Namespaced() {
		of = placementv1beta1.ScopeOf(taken)
	}
	return append(requests, reconcile.Request{NamespacedName: of.Key(made.Name)})
}

// requestAllOverridden requests the placements with overrides: which of them apply to a cluster can change with its
// labels.
func (r requester) requestAllOverridden(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requestByOverride(ctx, fieldindex.AnyPicked)
}

// requestByOverride requests the placements that the index has under the name of an override.
func (r requester) requestByOverride(ctx context.Context, name string) []reconcile.Request {
	placements := r.scope.NewPlacementList()
	if err := r.client.List(ctx, placements, client.MatchingFields{fieldindex.ByOverride: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	requests := make([]reconcile.Request, 0, len(placements.Objects()))
	for _, placement := range placements.Objects() {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(placement)})
	}
	return requests
}

// onLabelsChanged passes only updates that change labels.
func onLabelsChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
