package clusterupdate

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/workgen"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// View is the state of a placement's clusters as the informer cache has it, but
// never older than our own last write: what was written stands in for the
// cache until the cache has caught up.
type View struct {
	cache client.Reader

	mu      sync.Mutex
	written map[string]*placementv1beta1.ClusterResourceBinding // by name
}

// NewView returns a view over the cache.
func NewView(cache client.Reader) *View {
	return &View{cache: cache, written: map[string]*placementv1beta1.ClusterResourceBinding{}}
}

// Saw notes a binding that was written or read live.
func (v *View) Saw(b *placementv1beta1.ClusterResourceBinding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old := v.written[b.Name]; old == nil || newer(b, old) {
		v.written[b.Name] = b
	}
}

// Binding returns the newest version known of a binding, nil when it is gone.
func (v *View) Binding(ctx context.Context, name string) (*placementv1beta1.ClusterResourceBinding, error) {
	v.mu.Lock()
	written := v.written[name]
	v.mu.Unlock()
	cached := &placementv1beta1.ClusterResourceBinding{}
	err := v.cache.Get(ctx, types.NamespacedName{Name: name}, cached)
	switch {
	case apierrors.IsNotFound(err):
		return written, nil
	case err != nil:
		return nil, fmt.Errorf("reading binding %s from the cache: %w", name, err)
	case written != nil && !newer(cached, written):
		return written, nil
	}
	return cached, nil
}

// State says how far a cluster is with its binding, from the Works in the
// cache. A Work that lags behind counts as not there yet, never as available.
func (v *View) State(ctx context.Context, b *placementv1beta1.ClusterResourceBinding) (workgen.ClusterState, error) {
	var list placementv1beta1.WorkList
	err := v.cache.List(ctx, &list,
		client.InNamespace(placementv1beta1.MemberNamespace(b.Spec.TargetCluster)),
		client.MatchingLabels{placementv1beta1.ParentBindingLabel: b.Name})
	if err != nil {
		return workgen.ClusterState{}, fmt.Errorf("listing the Works of binding %s: %w", b.Name, err)
	}
	return workgen.StateOf(b, list.Items), nil
}
