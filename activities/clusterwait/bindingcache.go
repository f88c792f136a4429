package clusterwait

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// BindingCache reads a placement's bindings and their Works from the informer cache.
// Bindings that the activity has written or read live replace those of the cache until
// the cache is as new.
type BindingCache struct {
	cache, live client.Reader

	mu       sync.Mutex
	recorded map[types.NamespacedName]placementv1beta1.BindingObject
}

// NewBindingCache returns a BindingCache over the informer cache; bindings that the cache
// does not have are read live.
func NewBindingCache(cache, live client.Reader) *BindingCache {
	return &BindingCache{cache: cache, live: live, recorded: map[types.NamespacedName]placementv1beta1.BindingObject{}}
}

// Record keeps a binding that was written or read live.
func (c *BindingCache) Record(b placementv1beta1.BindingObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := client.ObjectKeyFromObject(b)
	if old := c.recorded[key]; old == nil || isAtLeastAsNew(b, old) {
		c.recorded[key] = b
	}
}

// Binding returns the newest known version of a binding, nil if it is gone.
func (c *BindingCache) Binding(ctx context.Context, key types.NamespacedName) (placementv1beta1.BindingObject, error) {
	found := placementv1beta1.Scope{Namespace: key.Namespace}.NewBinding(key.Name)
	err := c.cache.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		// It may be gone, or so new that the cache does not have it yet.
		err = c.live.Get(ctx, key, found)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading binding %s: %w", key.Name, err)
	}
	return c.newestOf(found), nil
}

// BindingOfCluster returns the newest known version of the binding of a placement and a cluster, nil if it is gone.
func (c *BindingCache) BindingOfCluster(ctx context.Context, placement placementv1beta1.PlacementObject,
	cluster string) (placementv1beta1.BindingObject, error) {
	scope := placementv1beta1.ScopeOf(placement)
	found := scope.NewBinding(placementv1beta1.BindingName(placement.GetName(), placement.GetUID(), cluster))
	err := c.cache.Get(ctx, client.ObjectKeyFromObject(found), found)
	if err == nil && rules.IsLiveBinding(found) {
		return c.newestOf(found), nil
	}
	key, err := KeyOfBinding(ctx, c.cache, placement, cluster)
	if err != nil {
		return nil, err
	}
	return c.Binding(ctx, key)
}

// newestOf returns what is recorded of a binding, if that is newer than what the cache has.
func (c *BindingCache) newestOf(cached placementv1beta1.BindingObject) placementv1beta1.BindingObject {
	c.mu.Lock()
	defer c.mu.Unlock()
	if recorded := c.recorded[client.ObjectKeyFromObject(cached)]; recorded != nil && !isAtLeastAsNew(cached, recorded) {
		return recorded
	}
	return cached
}

// KeyOfBinding finds the binding of a placement and a cluster in the cache. It has the name that it is given when it is
// created here, unless another author has made it; that is also the name if there is none. Others are found by their cluster: a
// deletion stage asks this of each of its clusters.
func KeyOfBinding(ctx context.Context, cache client.Reader, placement placementv1beta1.PlacementObject,
	cluster string) (types.NamespacedName, error) {
	scope := placementv1beta1.ScopeOf(placement)
	key := scope.Key(placementv1beta1.BindingName(placement.GetName(), placement.GetUID(), cluster))
	binding := scope.NewBinding(key.Name)
	err := cache.Get(ctx, key, binding, client.UnsafeDisableDeepCopyOption(true))
	if err == nil && rules.IsLiveBinding(binding) {
		return key, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return key, fmt.Errorf("reading binding %s: %w", key.Name, err)
	}
	list := scope.NewBindingList()
	err = cache.List(ctx, list, client.InNamespace(scope.Namespace), client.MatchingFields{hubread.ByCluster: cluster},
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return key, fmt.Errorf("listing the bindings of cluster %s: %w", cluster, err)
	}
	if found := rules.BindingOfCluster(list.Objects(), cluster); found != nil {
		key.Name = found.GetName()
	}
	return key, nil
}

// maxCatchUp bounds the wait for a cache that lags behind.
const maxCatchUp = 5 * time.Second

// WaitForVersions waits until the cache is at least as new as bindings that were read
// live, so that what is read from it later is too.
func (c *BindingCache) WaitForVersions(ctx context.Context, sub *Subscription, bindings []placementv1beta1.BindingObject) error {
	return waitForCache(ctx, sub, bindings, "have", c.isOlderInCache)
}

// WaitForDeletions waits until the cache has dropped the deleted bindings of a placement;
// existing are all of its bindings, read live.
func (c *BindingCache) WaitForDeletions(ctx context.Context, sub *Subscription, placement placementv1beta1.PlacementObject,
	existing []placementv1beta1.BindingObject) error {
	exists := make(map[types.UID]bool, len(existing))
	for _, binding := range existing {
		exists[binding.GetUID()] = true
	}
	name := placement.GetName()
	cached := placementv1beta1.ScopeOf(placement).NewBindingList()
	err := c.cache.List(ctx, cached, client.InNamespace(placement.GetNamespace()),
		client.MatchingFields{hubread.ByPlacement: name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the bindings of placement %s from the cache: %w", name, err)
	}
	var suspects []placementv1beta1.BindingObject
	for _, binding := range cached.Objects() {
		if !exists[binding.GetUID()] { // deleted, or created since
			suspects = append(suspects, binding)
		}
	}
	return waitForCache(ctx, sub, suspects, "drop", c.isDeletedButCached)
}

// waitForCache waits until the cache is no longer behind for any of the bindings. The
// signal that it has used up is given again: the events are still to be taken.
func waitForCache(ctx context.Context, sub *Subscription, bindings []placementv1beta1.BindingObject, verb string,
	isBehind func(context.Context, placementv1beta1.BindingObject) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, maxCatchUp)
	defer cancel()
	defer sub.signalChange()
	for _, binding := range bindings {
		for {
			behind, err := isBehind(ctx, binding)
			if err != nil {
				return err
			}
			if !behind {
				break
			}
			select {
			case <-sub.C:
			case <-ctx.Done():
				return fmt.Errorf("waiting for the cache to %s binding %s: %w", verb, binding.GetName(), ctx.Err())
			}
		}
	}
	return nil
}

func (c *BindingCache) isDeletedButCached(ctx context.Context, b placementv1beta1.BindingObject) (bool, error) {
	cached, err := bindingExists(ctx, c.cache, b)
	if err != nil || !cached {
		return false, err
	}
	exists, err := bindingExists(ctx, c.live, b)
	return !exists, err
}

// bindingExists reports whether a reader has a binding, and not another one of its name.
func bindingExists(ctx context.Context, reader client.Reader, b placementv1beta1.BindingObject) (bool, error) {
	found := placementv1beta1.ScopeOf(b).NewBinding(b.GetName())
	err := reader.Get(ctx, client.ObjectKeyFromObject(b), found)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading binding %s: %w", b.GetName(), err)
	}
	return err == nil && found.GetUID() == b.GetUID(), nil
}

// isOlderInCache reports whether the cache has an older version of a binding, or none of
// one that exists.
func (c *BindingCache) isOlderInCache(ctx context.Context, b placementv1beta1.BindingObject) (bool, error) {
	key := client.ObjectKeyFromObject(b)
	found := placementv1beta1.ScopeOf(b).NewBinding(b.GetName())
	err := c.cache.Get(ctx, key, found)
	if err == nil {
		return !isAtLeastAsNew(found, b), nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading binding %s from the cache: %w", b.GetName(), err)
	}
	err = c.live.Get(ctx, key, found)
	return err == nil, client.IgnoreNotFound(err)
}

// ClusterState returns how far a cluster is with its binding, from the Works in the cache. A
// Work of which the cache has an older version counts as missing, never as available.
func (c *BindingCache) ClusterState(ctx context.Context, b placementv1beta1.BindingObject) (workmodel.ClusterState, error) {
	return stateOf(ctx, c.cache, b, hubread.NearBinding(b.GetName()), client.UnsafeDisableDeepCopy)
}

// LiveClusterState returns how far a cluster is with its binding, from the Works past the cache.
func (c *BindingCache) LiveClusterState(ctx context.Context, b placementv1beta1.BindingObject) (workmodel.ClusterState, error) {
	return stateOf(ctx, c.live, b)
}

func stateOf(ctx context.Context, from client.Reader, b placementv1beta1.BindingObject, options ...client.ListOption) (workmodel.ClusterState, error) {
	var works placementv1beta1.WorkList
	err := from.List(ctx, &works, append(options, client.InNamespace(placementv1beta1.MemberNamespace(b.GetBindingSpec().TargetCluster)),
		client.MatchingLabels{placementv1beta1.ParentBindingLabel: b.GetName()})...)
	if err != nil {
		return workmodel.ClusterState{}, fmt.Errorf("listing the Works of binding %s: %w", b.GetName(), err)
	}
	return workmodel.StateOf(b, works.Items), nil
}

// isAtLeastAsNew compares two versions of one object by their resourceVersions, which grow.
func isAtLeastAsNew(a, b client.Object) bool {
	x, errX := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errY := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errX == nil && errY == nil && x >= y
}
