package worksync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// keptOverrides is how many sets of overrides are kept in memory, compiled: the clusters
// of a rollout have few different ones.
const keptOverrides = 64

// overrider changes the content of snapshots by the overrides that bindings name.
type overrider struct {
	cached client.Reader
	live   client.Reader
	kept   *lru.Cache
}

func newOverrider(cached, live client.Reader) *overrider {
	return &overrider{cached: cached, live: live, kept: lru.New(keptOverrides)}
}

// applyOverrides returns the content as the cluster of a binding is to have it: with the replicas that are in force there and the
// labels that came from where it was before, then with overrides, which have the last word. A *workmodel.OverrideError is for
// people to correct.
func (o *overrider) applyOverrides(ctx context.Context, binding placementv1beta1.BindingObject,
	content *workmodel.Content) (*workmodel.Content, error) {
	content, err := content.Divide(binding.GetBindingSpec().ReplicaAssignments)
	if err == nil {
		content, err = content.Label(rules.PreservedStateOf(binding))
	}
	refs := override.RefsOf(*binding.GetBindingSpec())
	if err != nil || len(refs) == 0 {
		return content, err
	}
	set, err := o.compileOverrides(ctx, refs)
	if missing, gone := errors.AsType[*hubread.OverrideMissingError](err); gone {
		return nil, &workmodel.OverrideError{Cause: missing}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the overrides of binding %s: %w", binding.GetName(), err)
	}
	cluster, err := hubread.OverrideCluster(ctx, o.cached, binding.GetBindingSpec().TargetCluster)
	if err != nil {
		return nil, err
	}
	return content.Override(set.On(cluster))
}

// compileOverrides returns overrides ready to use. Their specs never change, so what was compiled
// once is kept by the uids.
func (o *overrider) compileOverrides(ctx context.Context, refs []string) (*override.Set, error) {
	named, err := hubread.LoadOverrides(ctx, o.cached, o.live, refs)
	if err != nil {
		return nil, err
	}
	var key strings.Builder
	for _, snapshot := range named {
		key.WriteString(string(snapshot.GetUID()) + ",")
	}
	if set, ok := o.kept.Get(key.String()); ok {
		return set.(*override.Set), nil
	}
	set := override.Compile(named)
	o.kept.Add(key.String(), set)
	return set, nil
}

// generateWithFormer makes the Works with the objects that are held back as they are now: the
// cache has no manifests, so they are read live.
func generateWithFormer(ctx context.Context, live client.Reader, binding placementv1beta1.BindingObject,
	content *workmodel.Content) ([]placementv1beta1.Work, error) {
	var present placementv1beta1.WorkList
	if err := live.List(ctx, &present, ofBinding(binding)...); err != nil {
		return nil, fmt.Errorf("reading what the works of binding %s hold: %w", binding.GetName(), err)
	}
	own := slices.DeleteFunc(present.Items, func(work placementv1beta1.Work) bool { return !workmodel.Owns(binding, &work) })
	return workmodel.Generate(binding, content.KeepFormer(own))
}
