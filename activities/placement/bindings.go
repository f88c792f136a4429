package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// parallelBindings bounds how many bindings of a placement are written at a time.
const parallelBindings = 16

// writeBindings stores a decision of now, several bindings at a time, and returns how
// many are new.
func (a *Activities) writeBindings(ctx context.Context, placement placementv1beta1.PlacementObject, policy string,
	existing []placementv1beta1.BindingObject, decision scheduler.Decision, now time.Time) (int, error) {
	byName := make(map[string]placementv1beta1.BindingObject, len(existing))
	for _, binding := range existing {
		byName[binding.GetName()] = binding
	}
	created, err := createBindings(ctx, a, placement, policy, existing, decision)
	if err != nil {
		return created, err
	}
	// A cluster whose place another one took is left waiting for that until the other one goes: only then it takes its place again, so that the
	// placement never has one cluster too many that nothing explains.
	for _, name := range decision.Returned {
		if err := a.unscheduleBinding(ctx, byName[name], noteLeaving(placement, decision, byName[name], now)); err != nil {
			return created, err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelBindings)
	for _, kept := range decision.Keep {
		group.Go(func() error { return a.keepBinding(ctx, byName[kept.Name], policy, kept) })
	}
	for _, name := range decision.Unschedule {
		if slices.Contains(decision.Returned, name) {
			continue
		}
		group.Go(func() error {
			return a.unscheduleBinding(ctx, byName[name], noteLeaving(placement, decision, byName[name], now))
		})
	}
	for _, name := range slices.Sorted(maps.Keys(decision.Replaced)) {
		if _, goesNow := slices.BinarySearch(decision.Unschedule, name); !goesNow {
			group.Go(func() error {
				return a.pointOn(ctx, byName[name], decision.Replaced[name], slices.Contains(decision.AskedAnew, name))
			})
		}
	}
	return created, group.Wait()
}

// pointOn has a binding that goes wait for the copy of another cluster than before, which the user may ask for; for none if that is empty.
func (a *Activities) pointOn(ctx context.Context, binding placementv1beta1.BindingObject, cluster string, asked bool) error {
	if cluster == "" {
		operations := []fence.Op{fence.Remove(fence.AnnotationPath(placementv1beta1.ReplacedByAnnotation))}
		if rules.ReplacementAsked(binding) != "" {
			operations = append(operations, fence.Remove(fence.AnnotationPath(placementv1beta1.ReplacementAskedAnnotation)))
		}
		return a.patchBinding(ctx, binding, operations)
	}
	operations := fence.Annotate(binding.GetAnnotations(), placementv1beta1.ReplacedByAnnotation, cluster)
	if asked {
		operations = append(operations, fence.Add(fence.AnnotationPath(placementv1beta1.ReplacementAskedAnnotation), cluster))
	}
	return a.patchBinding(ctx, binding, operations)
}

// createBindings writes the new bindings of a decision and returns how many there are. They are there before any other is
// released: what goes along from a cluster that is left is never nowhere.
func createBindings(ctx context.Context, a *Activities, placement placementv1beta1.PlacementObject, policy string,
	existing []placementv1beta1.BindingObject, decision scheduler.Decision) (int, error) {
	state, err := takeState(ctx, a.Live, placement, existing, decision)
	if err != nil {
		return 0, err
	}
	var created atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelBindings)
	for _, cluster := range decision.Create {
		group.Go(func() error {
			isNew, err := a.createBinding(ctx, placement, policy, notesOfNew(decision, existing, state, cluster.ClusterName), cluster)
			if isNew {
				created.Add(1)
			}
			return err
		})
	}
	err = group.Wait()
	return int(created.Load()), err
}

// checkLabels fails while a binding of the placement has lost its label, by which the listed ones were found. The label is put
// back before long, and until then the cluster of the binding must not get a second one, nor another cluster its place.
func checkLabels(ctx context.Context, cache client.Reader, placement placementv1beta1.PlacementObject,
	listed []placementv1beta1.BindingObject) error {
	known := make(map[types.UID]bool, len(listed))
	for _, binding := range listed {
		known[binding.GetUID()] = true
	}
	owner := rules.PlacementOwner(placement)
	for _, label := range []string{"", placement.GetName()} { // with an empty name, those without the label
		cached := placementv1beta1.ScopeOf(placement).NewBindingList()
		err := cache.List(ctx, cached, client.InNamespace(placement.GetNamespace()), client.MatchingFields{hubread.ByPlacement: label},
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("listing the bindings of placement %s from the cache: %w", placement.GetName(), err)
		}
		for _, binding := range cached.Objects() {
			if !known[binding.GetUID()] && rules.IsLiveBinding(binding) &&
				rules.PlacementNameOf(binding) == placement.GetName() &&
				rules.KinshipOf(binding, owner) != rules.KinshipDisputed {
				return fmt.Errorf("scheduling placement %s: its binding %s had lost its label, which is put back first", placement.GetName(),
					binding.GetName())
			}
		}
	}
	return nil
}

// notesOfNew returns the annotations of a new binding: the labels that objects get there, if there are any, and in place of which cluster it is
// made, if it is.
func notesOfNew(decision scheduler.Decision, existing []placementv1beta1.BindingObject, state, cluster string) map[string]string {
	notes := map[string]string{}
	if state != "" {
		notes[placementv1beta1.PreservedStateAnnotation] = state
	}
	for _, binding := range existing {
		if decision.Replaced[binding.GetName()] == cluster {
			notes[placementv1beta1.TakesPlaceOfAnnotation] = binding.GetBindingSpec().TargetCluster
		}
	}
	return notes
}

// createBinding writes a new binding. Its name follows from placement and cluster,
// so that an attempt that overlaps with this one writes the same object.
func (a *Activities) createBinding(ctx context.Context, placement placementv1beta1.PlacementObject, policy string,
	notes map[string]string, decision placementv1beta1.ClusterDecision) (bool, error) {
	name := placementv1beta1.BindingName(placement.GetName(), placement.GetUID(), decision.ClusterName)
	binding := placementv1beta1.ScopeOf(placement).NewBinding(name)
	binding.SetLabels(map[string]string{placementv1beta1.ParentPlacementLabel: placement.GetName()})
	binding.SetFinalizers([]string{placementv1beta1.WorkFinalizer})
	binding.SetAnnotations(notes)
	*binding.GetBindingSpec() = placementv1beta1.ResourceBindingSpec{
		State:                        placementv1beta1.BindingStateScheduled,
		SchedulingPolicySnapshotName: policy,
		TargetCluster:                decision.ClusterName,
		ClusterDecision:              decision,
	}
	err := a.Client.Create(ctx, binding)
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating binding %s for cluster %s: %w", binding.GetName(), decision.ClusterName, err)
	}
	return true, nil
}

// keepBinding points a binding to the latest policy, and restores the state of one whose
// cluster is picked again.
func (a *Activities) keepBinding(ctx context.Context, binding placementv1beta1.BindingObject, policy string, kept scheduler.Kept) error {
	spec := binding.GetBindingSpec()
	var operations []fence.Op
	if spec.State != kept.State {
		operations = append(operations, fence.Replace("/spec/state", kept.State))
	}
	if spec.SchedulingPolicySnapshotName != policy {
		operations = append(operations, fence.Replace("/spec/schedulingPolicySnapshotName", policy))
	}
	if !equality.Semantic.DeepEqual(spec.ClusterDecision, kept.Decision) {
		operations = append(operations, fence.Replace("/spec/clusterDecision", kept.Decision))
	}
	return a.patchBinding(ctx, binding, operations)
}

// noteLeaving returns what the annotations of a binding that goes say of why it does; what is empty is taken off. The time is that of the
// decision, so that what is picked in its place is younger.
func noteLeaving(placement placementv1beta1.PlacementObject, decision scheduler.Decision, binding placementv1beta1.BindingObject,
	now time.Time) map[string]string {
	notes := map[string]string{placementv1beta1.FailedOverAnnotation: "", placementv1beta1.FailedOverBecauseAnnotation: "",
		placementv1beta1.SupersededAnnotation: "", placementv1beta1.ReplacedByAnnotation: "", placementv1beta1.ReplacementAskedAnnotation: ""}
	if by := decision.Replaced[binding.GetName()]; by != "" {
		notes[placementv1beta1.ReplacedByAnnotation] = by
		if !slices.Contains(decision.Returned, binding.GetName()) {
			notes[placementv1beta1.ReplacementAskedAnnotation] = by
		}
		return notes
	}
	if decision.FailedOver[binding.GetName()] == "" {
		return notes
	}
	notes[placementv1beta1.FailedOverAnnotation] = now.UTC().Format(time.RFC3339)
	if decision.Ill[binding.GetName()] {
		notes[placementv1beta1.FailedOverBecauseAnnotation] = string(placementv1beta1.CauseApplication)
		if rules.Supersedes(rules.ApplicationFailoverOf(placement), binding, now) {
			notes[placementv1beta1.SupersededAnnotation] = now.UTC().Format(time.RFC3339)
		}
	}
	return notes
}

// unscheduleBinding marks a binding as no longer picked. Removing what it placed
// is part of the rollout, which waits for a replacement if the placement has failed over.
func (a *Activities) unscheduleBinding(ctx context.Context, binding placementv1beta1.BindingObject, notes map[string]string) error {
	operations := fence.Annotate(binding.GetAnnotations(), placementv1beta1.PreviousBindingStateAnnotation,
		string(binding.GetBindingSpec().State))
	for _, key := range slices.Sorted(maps.Keys(notes)) {
		switch _, before := binding.GetAnnotations()[key]; {
		case notes[key] != "": // there are annotations by now
			operations = append(operations, fence.Add(fence.AnnotationPath(key), notes[key]))
		case before:
			operations = append(operations, fence.Remove(fence.AnnotationPath(key)))
		}
	}
	return a.patchBinding(ctx, binding, append(operations, fence.Replace("/spec/state", placementv1beta1.BindingStateUnscheduled)))
}

// patchBinding writes a binding unless another writer has changed what the decision
// rests on: then the activity fails and is retried, which reads everything again.
func (a *Activities) patchBinding(ctx context.Context, binding placementv1beta1.BindingObject, operations []fence.Op) error {
	if len(operations) == 0 {
		return nil
	}
	pins := []fence.Op{
		fence.Test("/spec/state", binding.GetBindingSpec().State),
		fence.Test("/spec/schedulingPolicySnapshotName", binding.GetBindingSpec().SchedulingPolicySnapshotName),
	}
	patch, err := fence.Patch(binding.GetUID(), slices.Concat(pins, operations, fence.Untrack(binding))...)
	if err != nil {
		return err
	}
	if err := a.Client.Patch(ctx, placementv1beta1.DeepCopyOf(binding), patch); err != nil {
		return fmt.Errorf("patching binding %s: %w", binding.GetName(), err)
	}
	return nil
}
