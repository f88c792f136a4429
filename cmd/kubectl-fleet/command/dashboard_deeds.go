package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/plan"
)

// Start creates a run of a placement.
func (w *webSteering) Start(ctx context.Context, placement hub.Placement, strategy, index string, initialize bool) (string, error) {
	return w.by(func(s *steering) error {
		_, err := (&runOptions{steering: *s, strategy: strategy, index: index, initialize: initialize}).create(ctx, w.client, placement)
		return err
	})
}

// Rollback takes the clusters that a run has updated back.
func (w *webSteering) Rollback(ctx context.Context, run hub.Run, reason string) (string, error) {
	return w.because(reason, func(s *steering) error { return s.rollback(ctx, w.client, run, "") })
}

// Delete deletes the run that was looked at, and no other of its name.
func (w *webSteering) Delete(ctx context.Context, run hub.Run, reason string) (string, error) {
	return w.because(reason, func(s *steering) error {
		if err := s.keepReason(ctx, w.client, run.Object); err != nil {
			return err
		}
		uid := run.Object.GetUID()
		if err := s.writer(w.client).Delete(ctx, run.Object, client.Preconditions{UID: &uid}); err != nil {
			return fmt.Errorf("deleting %s: %w", run.Ref, err)
		}
		s.Done(s.streams, "%s deleted; its clusters stay as they are", run.Ref)
		return nil
	})
}

// Exempt lets a run or a placement go despite what holds it back.
func (w *webSteering) Exempt(ctx context.Context, what hub.Found, from []string, reason, ticket string,
	lasts time.Duration) (string, error) {
	return w.by(func(s *steering) error {
		return (&exempting{steering: *s, from: from, reason: reason, ticket: ticket, lasts: lasts}).letGo(ctx, w.client, what)
	})
}

// served are the kinds that the hub serves.
func (w *webReading) served() (*snapshot.Catalog, error) {
	groups, lists, err := w.factory.Discover()
	return snapshot.NewCatalog(groups, lists, nil, snapshot.Filter{}), err
}

// plan works out a plan, with the openings of its waves.
func (w *webReading) plan(ctx context.Context, placement hub.Placement, wish plan.Wish) (plan.Plan, error) {
	wish.Served = w.served
	facts, unsure, err := plan.Read(ctx, w.client, placement, wish)
	if err != nil {
		return plan.Plan{}, err
	}
	made, err := plan.Make(facts)
	made.Notes = append(made.Notes, unsure...)
	if err != nil {
		return made, err
	}
	planned := planOptions{viewing: viewing{factory: w.factory}}
	return made, planned.addOpenings(ctx, w.client, facts, &made)
}

// Preview works out what a run would do that is not there yet.
func (w *webReading) Preview(ctx context.Context, placement hub.Placement, strategy, index string) (plan.Plan, error) {
	return w.plan(ctx, placement, plan.Wish{Name: "<run>", Strategy: strategy, Snapshot: indexIn(index), Content: true})
}

// Strategies are the names of those that runs in a namespace can have; of a placement in none if it is empty.
func (w *webReading) Strategies(ctx context.Context, namespace string) ([]string, error) {
	scope := placementv1beta1.Scope{Namespace: namespace}
	list := scope.NewUpdateStrategyList()
	if err := w.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
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
func (w *webReading) Strategy(ctx context.Context, namespace, name string) (string, error) {
	strategy := placementv1beta1.Scope{Namespace: namespace}.NewUpdateStrategy(name)
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(strategy), strategy); err != nil {
		return "", fmt.Errorf("reading strategy %s: %w", name, err)
	}
	return fmt.Sprintf("%s/%d", strategy.GetUID(), strategy.GetGeneration()), nil
}

// Snapshots are the masters of the resource snapshots of a placement, the latest first, without what is in them.
func (w *webReading) Snapshots(ctx context.Context, placement hub.Ref) ([]hub.ResourceSnapshot, error) {
	all, err := hub.Reader{Reader: w.client}.ResourceSnapshotIndexes(ctx, placement)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(part hub.ResourceSnapshot) bool { return !part.Master() })
	slices.Reverse(all)
	return all, nil
}

// Diff is what differs between two snapshots of a placement.
func (w *webReading) Diff(ctx context.Context, placement hub.Ref, from, to int) ([]objectdiff.Change, error) {
	return plan.Between(ctx, w.client, placement, from, to, w.served)
}
