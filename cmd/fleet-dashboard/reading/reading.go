// Package reading reads for pages of the dashboard what no watch brings, when a page is opened that shows it.
package reading

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

// Hub is a hub as a user may read it.
type Hub struct {
	Client client.WithWatch
	Clock  clock.PassiveClock
	// Discover asks the hub which kinds it serves.
	Discover func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// Run reads a run.
func (h *Hub) Run(ctx context.Context, ref hub.Ref) (hub.Run, error) {
	return hub.Reader{Reader: h.Client}.Run(ctx, ref)
}

// Placement reads a placement.
func (h *Hub) Placement(ctx context.Context, ref hub.Ref) (hub.Placement, error) {
	return hub.Reader{Reader: h.Client}.Placement(ctx, ref)
}

// Plan works out what a run that is planned changes on the clusters.
func (h *Hub) Plan(ctx context.Context, run hub.Run) (plan.Plan, error) {
	placement, err := h.Placement(ctx, run.Placement())
	if err != nil {
		return plan.Plan{}, fmt.Errorf("reading %s: %w", run.Placement(), err)
	}
	return h.plan(ctx, placement, plan.Wish{
		Name: run.Name, Strategy: run.Spec.StagedUpdateStrategyName,
		Snapshot: plan.Index(cmp.Or(run.Status.ResourceSnapshotIndexUsed, run.Spec.ResourceSnapshotIndex)),
		Frozen:   run.Status, RollbackOf: run.Spec.RollbackOf, Content: true,
	})
}

// History returns what has become of a placement.
func (h *Hub) History(ctx context.Context, placement hub.Placement) ([]fleetview.Entry, error) {
	facts := fleetview.HistoryFacts{Placement: placement}
	if err := facts.Read(ctx, h.Client); err != nil {
		return nil, err
	}
	return fleetview.History(facts), nil
}

// Told returns what records and messages go to.
func (h *Hub) Told(ctx context.Context) ([]fleetview.Told, error) {
	return fleetview.ReadTold(ctx, h.Client)
}

// Analyses returns the analyses of a run, and not those of another that had its name before; none where the hub serves none.
func (h *Hub) Analyses(ctx context.Context, run hub.Run) ([]fleetflowv1alpha1.StageAnalysisRunObject, error) {
	found, err := hub.Reader{Reader: h.Client}.Analyses(ctx, run.Namespace, run.Name)
	if hub.Unserved(err) {
		return nil, nil
	}
	return slices.DeleteFunc(found, func(a fleetflowv1alpha1.StageAnalysisRunObject) bool {
		return a.GetStageAnalysisRunSpec().RunRef.UID != run.Object.GetUID()
	}), err
}

// Resource returns what a kind is called in rights.
func (h *Hub) Resource(object client.Object) (group, resource string) {
	kind, err := h.Client.GroupVersionKindFor(object)
	if err != nil {
		return "", ""
	}
	mapping, err := h.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return kind.Group, strings.ToLower(kind.Kind) + "s"
	}
	return mapping.Resource.Group, mapping.Resource.Resource
}

// served returns the kinds that the hub serves.
func (h *Hub) served() (*snapshot.Catalog, error) {
	groups, lists, err := h.Discover()
	return snapshot.NewCatalog(groups, lists, nil, snapshot.Filter{}), err
}

// plan works out a plan.
func (h *Hub) plan(ctx context.Context, placement hub.Placement, wish plan.Wish) (plan.Plan, error) {
	wish.Served = h.served
	return plan.Work(ctx, h.Client, h.Clock.Now(), placement, wish)
}

// Preview works out what a run would do that is not there yet.
func (h *Hub) Preview(ctx context.Context, placement hub.Placement, strategy, index string) (plan.Plan, error) {
	return h.plan(ctx, placement, plan.Wish{Name: "<run>", Strategy: strategy, Snapshot: plan.Index(index), Content: true})
}

// Strategies returns the names of those that runs in a namespace can have; of a placement in none if it is empty.
func (h *Hub) Strategies(ctx context.Context, namespace string) ([]string, error) {
	scope := placementv1beta1.Scope{Namespace: namespace}
	list := scope.NewUpdateStrategyList()
	if err := h.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the strategies: %w", err)
	}
	var names []string
	for _, strategy := range list.Objects() {
		names = append(names, strategy.GetName())
	}
	slices.Sort(names)
	return names, nil
}

// Strategy names a strategy as it is, by its UID and its generation.
func (h *Hub) Strategy(ctx context.Context, namespace, name string) (string, error) {
	strategy := placementv1beta1.Scope{Namespace: namespace}.NewUpdateStrategy(name)
	if err := h.Client.Get(ctx, client.ObjectKeyFromObject(strategy), strategy); err != nil {
		return "", fmt.Errorf("reading strategy %s: %w", name, err)
	}
	return fmt.Sprintf("%s/%d", strategy.GetUID(), strategy.GetGeneration()), nil
}

// Snapshots returns the masters of the resource snapshots of a placement, the latest first, without what is in them.
func (h *Hub) Snapshots(ctx context.Context, placement hub.Ref) ([]hub.ResourceSnapshot, error) {
	all, err := hub.Reader{Reader: h.Client}.Of(placement).ResourceSnapshotIndexes(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(part hub.ResourceSnapshot) bool { return !part.Master() })
	slices.Reverse(all)
	return all, nil
}

// Diff returns what differs between two snapshots of a placement.
func (h *Hub) Diff(ctx context.Context, placement hub.Ref, from, to int) ([]objectdiff.Change, error) {
	return plan.Between(ctx, h.Client, placement, from, to, h.served)
}
