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

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// BindingCache is the state of a placement's clusters as the informer cache has it, but
// never older than our own last write: what was written stands in for the
// cache until the cache has caught up.
type BindingCache struct {
	cache, live client.Reader

	mu      sync.Mutex
	written map[string]*placementv1beta1.ClusterResourceBinding // by name
}

// NewBindingCache returns a view over the cache; live is asked about bindings that the
// cache does not have.
func NewBindingCache(cache, live client.Reader) *BindingCache {
	return &BindingCache{cache: cache, live: live, written: map[string]*placementv1beta1.ClusterResourceBinding{}}
}

// Record notes a binding that was written or read live.
func (v *BindingCache) Record(b *placementv1beta1.ClusterResourceBinding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old := v.written[b.Name]; old == nil || isAtLeastAsNew(b, old) {
		v.written[b.Name] = b
	}
}

// Get returns the newest version known of a binding, nil when it is gone.
func (v *BindingCache) Get(ctx context.Context, name string) (*placementv1beta1.ClusterResourceBinding, error) {
	v.mu.Lock()
	written := v.written[name]
	v.mu.Unlock()
	found := &placementv1beta1.ClusterResourceBinding{}
	err := v.cache.Get(ctx, types.NamespacedName{Name: name}, found)
	if apierrors.IsNotFound(err) {
		// It may be gone, or so new that the cache has not heard of it.
		err = v.live.Get(ctx, types.NamespacedName{Name: name}, found)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading binding %s: %w", name, err)
	case written != nil && !isAtLeastAsNew(found, written):
		return written, nil
	}
	return found, nil
}

// catchUpFor bounds the wait for a cache that is behind.
const catchUpFor = 5 * time.Second

// WaitForVersions waits until the cache is at least as new as bindings that were read
// live, so that what is read from it later is too.
func (v *BindingCache) WaitForVersions(ctx context.Context, sub *Subscription, bindings []placementv1beta1.ClusterResourceBinding) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpFor)
	defer cancel()
	defer sub.signalChange() // what came while waiting is still to be looked at
	for i := range bindings {
		for {
			behind, err := v.isOlderInCache(ctx, &bindings[i])
			if err != nil {
				return err
			}
			if !behind {
				break
			}
			select {
			case <-sub.C:
			case <-ctx.Done():
				return fmt.Errorf("waiting for the cache to have binding %s: %w", bindings[i].Name, ctx.Err())
			}
		}
	}
	return nil
}

// WaitForDeletions waits until the cache has no binding of a placement any more that is gone, by
// a list of those there are that was read live.
func (v *BindingCache) WaitForDeletions(ctx context.Context, sub *Subscription, placement string, bindings []placementv1beta1.ClusterResourceBinding) error {
	there := make(map[types.UID]bool, len(bindings))
	for i := range bindings {
		there[bindings[i].UID] = true
	}
	var cached placementv1beta1.ClusterResourceBindingList
	err := v.cache.List(ctx, &cached, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the bindings of placement %s from the cache: %w", placement, err)
	}
	var suspects []placementv1beta1.ClusterResourceBinding
	for i := range cached.Items {
		if !there[cached.Items[i].UID] { // gone, or made since
			suspects = append(suspects, cached.Items[i])
		}
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpFor)
	defer cancel()
	defer sub.signalChange()
	for i := range suspects {
		for {
			haunts, err := v.isDeletedButCached(ctx, &suspects[i])
			if err != nil {
				return err
			}
			if !haunts {
				break
			}
			select {
			case <-sub.C:
			case <-ctx.Done():
				return fmt.Errorf("waiting for the cache to drop binding %s: %w", suspects[i].Name, ctx.Err())
			}
		}
	}
	return nil
}

// isDeletedButCached says whether the cache still has a binding that is gone.
func (v *BindingCache) isDeletedButCached(ctx context.Context, b *placementv1beta1.ClusterResourceBinding) (bool, error) {
	cached, err := bindingExists(ctx, v.cache, b)
	if err != nil || !cached {
		return false, err
	}
	there, err := bindingExists(ctx, v.live, b)
	return !there, err
}

// bindingExists says whether a binding is there, and not another one of its name.
func bindingExists(ctx context.Context, reader client.Reader, b *placementv1beta1.ClusterResourceBinding) (bool, error) {
	now := &placementv1beta1.ClusterResourceBinding{}
	err := reader.Get(ctx, client.ObjectKeyFromObject(b), now)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading binding %s: %w", b.Name, err)
	}
	return err == nil && now.UID == b.UID, nil
}

// isOlderInCache says whether the cache has an older version of a binding; one that is
// gone from both is not behind.
func (v *BindingCache) isOlderInCache(ctx context.Context, b *placementv1beta1.ClusterResourceBinding) (bool, error) {
	cached := &placementv1beta1.ClusterResourceBinding{}
	err := v.cache.Get(ctx, types.NamespacedName{Name: b.Name}, cached)
	if err == nil {
		return !isAtLeastAsNew(cached, b), nil
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading binding %s from the cache: %w", b.Name, err)
	}
	err = v.live.Get(ctx, types.NamespacedName{Name: b.Name}, cached)
	return err == nil, client.IgnoreNotFound(err)
}

// ClusterState says how far a cluster is with its binding, from the Works in the
// cache. A Work that lags behind counts as not there yet, never as available.
func (v *BindingCache) ClusterState(ctx context.Context, b *placementv1beta1.ClusterResourceBinding) (workmodel.ClusterState, error) {
	var list placementv1beta1.WorkList
	err := v.cache.List(ctx, &list,
		client.InNamespace(placementv1beta1.MemberNamespace(b.Spec.TargetCluster)),
		client.MatchingLabels{placementv1beta1.ParentBindingLabel: b.Name})
	if err != nil {
		return workmodel.ClusterState{}, fmt.Errorf("listing the Works of binding %s: %w", b.Name, err)
	}
	return workmodel.StateOf(b, list.Items), nil
}

// isAtLeastAsNew says whether a is at least as new as b; both are versions of one
// object, whose resourceVersions grow.
func isAtLeastAsNew(a, b client.Object) bool {
	x, errX := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	y, errY := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errX == nil && errY == nil && x >= y
}
