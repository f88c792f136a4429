package bind

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// handful is how many bindings may always go.
	handful = 5
	// most is how many may go at most, however many bindings there are.
	most = 25
	// share of the live bindings may go between the two: one in so many.
	share = 10
)

// IsTooMany reports whether so many unexplained removals are too many for a hub with so many live bindings: more than 5 and more
// than a tenth of them, or more than 25.
func IsTooMany(unexplained, live int) bool {
	return unexplained > min(max(handful, live/share), most)
}

// SafetyCatch holds unexplained removals of bindings. What was so when the agent started nothing has told it of: a cluster or a
// placement that was gone by then. What happens while it runs it sees happen, and that explains it.
type SafetyCatch struct {
	// Cached reads the informer cache.
	Cached client.Reader

	mu       sync.Mutex
	surveyed bool
	live     int
	// suspects are the live bindings that would go unexplained: those of the survey, and those that a scheduler has named
	// since. None is ever taken out: what was held is not let go because others were accepted.
	suspects map[types.UID]bool
	// cleared are those of them that a scheduler has kept since, or has had a reason to let go: what becomes of them later,
	// the agent has seen happen.
	cleared map[types.UID]bool
	// looked are the placements whose scheduler has looked since the start.
	looked map[types.UID]bool
}

// Start surveys the hub when the agent starts, so that nothing that happens later counts.
func (c *SafetyCatch) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.surveyOnce(ctx); err != nil {
		return fmt.Errorf("looking for bindings that nothing explains: %w", err)
	}
	return nil
}

// NeedLeaderElection reports whether every replica surveys the hub: its workers work.
func (c *SafetyCatch) NeedLeaderElection() bool { return false }

// HoldsOrphan reports whether a binding whose cluster or placement is gone has to stay for now: it was so when the agent started,
// and there are too many of that kind. Without a Catch nothing is held.
func (c *SafetyCatch) HoldsOrphan(ctx context.Context, binding placementv1beta1.BindingObject) (bool, error) {
	if c == nil || !rules.IsLiveBinding(binding) {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.surveyOnce(ctx); err != nil {
		return false, err
	}
	return c.isSuspect(binding.GetUID()) && IsTooMany(len(c.suspects), c.live), nil
}

// HoldRemovals returns which of the unexplained removals that a scheduler has found on a placement have to wait. Those that
// are held already stay so, whatever their number. That the scheduler picks a cluster no more counts only at its first look
// after the start; that a cluster is gone, only if it was so at the start.
func (c *SafetyCatch) HoldRemovals(ctx context.Context, placement placementv1beta1.PlacementObject, found []rules.HeldRemoval,
	uids map[string]types.UID) ([]rules.HeldRemoval, error) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.surveyOnce(ctx); err != nil {
		return nil, err
	}
	c.clearOthers(uids, found)
	before := rules.HeldRemovalsOf(placement)
	if before == nil && c.looked[placement.GetUID()] {
		found = slices.DeleteFunc(found, func(r rules.HeldRemoval) bool { return r.Why != scheduler.ClusterGone })
	}
	found = slices.DeleteFunc(found, func(r rules.HeldRemoval) bool {
		return r.Why == scheduler.ClusterGone && !c.isSuspect(uids[r.Binding])
	})
	for _, removal := range found {
		c.suspects[uids[removal.Binding]] = true
	}
	if len(found) > 0 && (before != nil || IsTooMany(len(c.suspects), c.live)) {
		return found, nil
	}
	c.looked[placement.GetUID()] = true
	return nil, nil
}

// isSuspect reports whether a binding would have gone unexplained ever since the start.
func (c *SafetyCatch) isSuspect(uid types.UID) bool { return c.suspects[uid] && !c.cleared[uid] }

// clearOthers clears the bindings of a placement, given with their UIDs, of which the scheduler has not found that they would
// go unexplained.
func (c *SafetyCatch) clearOthers(uids map[string]types.UID, found []rules.HeldRemoval) {
	would := make(map[string]bool, len(found))
	for _, removal := range found {
		would[removal.Binding] = true
	}
	for name, uid := range uids {
		if !would[name] && c.suspects[uid] {
			c.cleared[uid] = true
		}
	}
}

// surveyOnce finds the live bindings whose cluster or placement is gone.
func (c *SafetyCatch) surveyOnce(ctx context.Context) error {
	if c.surveyed {
		return nil
	}
	clusters := &clusterv1beta1.MemberClusterList{}
	var bindings []placementv1beta1.BindingObject
	var placements []placementv1beta1.PlacementObject
	for _, scope := range placementv1beta1.Scopes() {
		bound := scope.NewBindingList()
		placed := scope.NewPlacementList()
		if err := c.Cached.List(ctx, bound, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing bindings: %w", err)
		}
		if err := c.Cached.List(ctx, placed, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing placements: %w", err)
		}
		bindings = append(bindings, bound.Objects()...)
		placements = append(placements, placed.Objects()...)
	}
	if err := c.Cached.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing member clusters: %w", err)
	}
	c.live, c.suspects = SurveyBindings(bindings, placements, clusters.Items)
	c.surveyed = true
	c.looked = map[types.UID]bool{}
	c.cleared = map[types.UID]bool{}
	return nil
}

// SurveyBindings counts the live bindings and returns those whose cluster or placement does not exist. A placement or a cluster that
// is being deleted exists. A binding that has lost its label is of the placement that its policy snapshot is of.
func SurveyBindings(bindings []placementv1beta1.BindingObject, placements []placementv1beta1.PlacementObject,
	clusters []clusterv1beta1.MemberCluster) (live int, suspects map[types.UID]bool) {
	inFleet := map[string]bool{}
	placed := map[types.NamespacedName]bool{}
	for i := range clusters {
		inFleet[clusters[i].Name] = true
	}
	for _, placement := range placements {
		placed[client.ObjectKeyFromObject(placement)] = true
	}
	suspects = map[types.UID]bool{}
	for _, binding := range bindings {
		if !rules.IsLiveBinding(binding) {
			continue
		}
		live++
		parent := types.NamespacedName{Namespace: binding.GetNamespace(), Name: rules.PlacementNameOf(binding)}
		if parent.Name != "" && (!placed[parent] || !inFleet[binding.GetBindingSpec().TargetCluster]) {
			suspects[binding.GetUID()] = true
		}
	}
	return live, suspects
}
