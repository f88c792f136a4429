package rollingupdate

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// refusalKeeper knows which bindings of a placement the API server refuses to write, for one call.
type refusalKeeper struct{ call *callState }

// learn takes over, once a call, what the placement reports of the clusters that it has: another process may have been refused.
func (k refusalKeeper) learn(bindings []placementv1beta1.BindingObject) {
	told := rules.RefusedWritesOf(k.call.placement).Clusters
	if k.call.learned || len(told) == 0 {
		return
	}
	k.call.learned = true
	clusters := sets.New[string]()
	for _, binding := range bindings {
		clusters.Insert(binding.GetBindingSpec().TargetCluster)
	}
	for _, write := range told {
		if clusters.Has(write.Cluster) {
			k.call.acts.refusals.Learn(k.call.placement.GetUID(), brake.Refusal(write.Cluster, write.Why, write.Since, write.Until), write.Basis,
				k.call.acts.Clock.Now())
		}
	}
}

// absorb notes that the API server refuses to write a binding, and returns the other errors. An admission policy answers as a
// failed test of a patch does: it was no refusal if what was written to has changed since it was read.
func (k refusalKeeper) absorb(ctx context.Context, binding placementv1beta1.BindingObject, err error) (isRefused bool, other error) {
	refused, is := errors.AsType[*bind.RefusedError](err)
	if !is {
		return false, err
	}
	if errors.Is(err, bind.ErrFenced) {
		written := binding
		if handOver, is := errors.AsType[*bind.HandOverError](err); is {
			written = handOver.Replacement
		}
		now, readErr := k.call.readBinding(ctx, written.GetName())
		if readErr != nil {
			return false, readErr
		}
		if now == nil || now.GetResourceVersion() != written.GetResourceVersion() {
			return false, err
		}
	}
	k.call.acts.refusals.Record(k.call.placement.GetUID(), binding.GetBindingSpec().TargetCluster, k.basisOf(binding), refused.Why,
		k.call.acts.Clock.Now())
	return true, nil
}

// findRefusal returns why a binding could not be written when that was last tried, if nothing has changed since of it, or of what is to be
// written.
func (k refusalKeeper) findRefusal(binding placementv1beta1.BindingObject) (rollout.Wait, bool) {
	wait, basis, refused := k.call.acts.refusals.Of(k.call.placement.GetUID(), binding.GetBindingSpec().TargetCluster)
	return wait, refused && !rules.IsDeleting(binding) && basis == k.basisOf(binding)
}

// isKept reports whether the claim of a binding that is refused could not be given back: as long as nothing changes, it need not be read
// again for that.
func (k refusalKeeper) isKept(binding placementv1beta1.BindingObject) bool {
	_, refused := k.findRefusal(binding)
	return refused && k.call.acts.refusals.IsKept(k.call.placement.GetUID(), binding.GetBindingSpec().TargetCluster)
}

// waitsOf returns what a cluster waits for whose binding cannot be written until that is tried again; nothing if it may be written.
func (k refusalKeeper) waitsOf(binding placementv1beta1.BindingObject) []rollout.Wait {
	wait, refused := k.findRefusal(binding)
	if !refused || !k.call.acts.Clock.Now().Before(wait.Until) {
		return nil
	}
	return []rollout.Wait{wait}
}

// basisOf tells apart what a binding is and what is to be written to it. Its status does not count, nor does that its claim was given back.
func (k refusalKeeper) basisOf(binding placementv1beta1.BindingObject) string {
	target := k.call.goal.targetOf(binding.GetBindingSpec().TargetCluster)
	annotations := maps.Clone(binding.GetAnnotations())
	delete(annotations, placementv1beta1.RolloutEpochAnnotation)
	return strconv.FormatUint(hashOf(string(binding.GetUID()), binding.GetGeneration(), binding.GetLabels(), annotations,
		k.call.placement.GetGeneration(), target.RevisionAt(binding)), 36)
}

// nextTry returns when the first refused write of a plan is tried again; zero if none is refused.
func nextTry(plan rollout.Plan) (next time.Time) {
	for _, wait := range plan.Refused() {
		next = rollout.EarlierOf(next, wait.Until.UTC())
	}
	return next
}

// tell tells, on the placement, which clusters cannot be written to, once they are others: for its status, and for people.
func (k refusalKeeper) tell(ctx context.Context, refused []rollout.Wait) error {
	slices.SortFunc(refused, func(a, b rollout.Wait) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Cluster, b.Cluster))
	})
	var told rules.RefusedWrites
	for _, wait := range refused[:min(len(refused), rules.MaxToldRefusedWrites)] {
		_, basis, _ := k.call.acts.refusals.Of(k.call.placement.GetUID(), wait.Cluster)
		told.Clusters = append(told.Clusters, rules.RefusedWrite{
			Cluster: wait.Cluster, Why: wait.Why, Since: wait.Since.UTC(), Until: wait.Until.UTC(), Basis: basis,
		})
	}
	told.More = len(refused) - len(told.Clusters)
	const key = placementv1beta1.RefusedWritesAnnotation
	seen := k.call.placement.GetAnnotations()
	text := told.Encode()
	if text == seen[key] {
		return nil
	}
	operations := fence.Annotate(seen, key, text)
	if text == "" {
		operations = []fence.Op{fence.Test(fence.AnnotationPath(key), seen[key]), fence.Remove(fence.AnnotationPath(key))}
	}
	patch, err := fence.Patch(k.call.placement.GetUID(), operations...)
	if err != nil {
		return err
	}
	err = k.call.acts.Client.Patch(ctx, placementv1beta1.DeepCopyOf(k.call.placement), patch)
	if _, refused := bind.RefusalOf(err); refused || apierrors.IsNotFound(err) {
		return nil // another process has written it, or the agent may not: the next look tells
	}
	if err != nil {
		return err
	}
	k.call.placement = annotated(k.call.placement, key, text)
	return nil
}
