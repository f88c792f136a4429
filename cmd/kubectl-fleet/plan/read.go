package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
)

// Wish is the run that a plan is made for.
type Wish struct {
	// Name of the run.
	Name string
	// Strategy is the name of the strategy.
	Strategy string
	// Snapshot is the index of the resource snapshot to roll out; nil for the latest.
	Snapshot *int
	// Frozen is the status of the run, if the hub has planned it already.
	Frozen *placementv1beta1.UpdateRunStatus
	// PlanHash is that of the plan which the run follows, if it has begun: what is planned is another run like it, and none can follow that.
	PlanHash *string
	// RollbackOf is the run it takes back.
	RollbackOf string
	// Content says whether to read the snapshots themselves, to tell what changes.
	Content bool
	// Served asks the hub which kinds it serves.
	Served func() (*snapshot.Catalog, error)
}

// Read reads the facts of a plan, and what could not be made sure of.
func Read(ctx context.Context, c client.Reader, placement hub.Placement, wish Wish) (facts Facts, notes []string, err error) {
	reader := hub.Reader{Reader: c}
	facts = Facts{Run: wish.Name, Placement: placement, StrategyName: wish.Strategy, Frozen: wish.Frozen, RollbackOf: wish.RollbackOf,
		Parts: map[int][]hub.ResourceSnapshot{}, Named: map[string]override.Snapshots{}}
	if facts.Strategy, err = reader.Strategy(ctx, placement.Namespace, wish.Strategy); err != nil {
		return facts, nil, err
	}
	if facts.Members, err = reader.Members(ctx); apierrors.IsForbidden(err) {
		if wish.Frozen == nil {
			return facts, nil, fmt.Errorf("%w. By the labels of members the clusters come into stages: create the run with --initialize, and plan that, whose clusters the hub has put into stages", err)
		}
		notes = append(notes, "how the members are is not told here, and not what changes on them: you may not read members")
		wish.Content = false
	} else if err != nil {
		return facts, nil, err
	}
	if facts.Bindings, err = reader.Of(placement.Ref).Bindings(ctx); err != nil {
		return facts, nil, err
	}
	if facts.Runs, err = (hub.Reader{Reader: c, Namespace: placement.Namespace}).Runs(ctx); err != nil {
		return facts, nil, err
	}
	policies, err := reader.Of(placement.Ref).PolicySnapshots(ctx)
	if err != nil {
		return facts, nil, err
	}
	facts.Policy = hub.LatestPolicy(policies)
	if err := facts.readSnapshots(ctx, reader, wish); err != nil {
		return facts, nil, err
	}
	if wish.Content && !facts.Content {
		notes = append(notes, "what changes on the clusters is not told here: you may not read resource snapshots, which hold Secrets in clear; an administrator of the hub can plan with it")
	}
	if !facts.Content {
		return facts, notes, nil
	}
	unknown, err := facts.readEnvelopeRules(ctx, c, wish.Served)
	if err != nil {
		return facts, nil, err
	}
	unsettled, err := facts.readOverrides(ctx, c)
	return facts, slices.Concat(notes, unknown, unsettled), err
}

// Between reads what differs between two snapshots of a placement, before overrides.
func Between(ctx context.Context, c client.Reader, placement hub.Ref, from, to int,
	served func() (*snapshot.Catalog, error)) ([]objectdiff.Change, error) {
	facts := Facts{}
	if _, err := facts.readEnvelopeRules(ctx, c, served); err != nil {
		return nil, err
	}
	objects := func(index int) ([]unstructured.Unstructured, error) {
		found, err := hub.Reader{Reader: c}.Of(placement).ResourceSnapshots(ctx, index)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no snapshot %d: it is gone from the hub, or was never there", placement, index)
		}
		return objectsOf(contentOf(facts.Rules, found))
	}
	before, err := objects(from)
	if err != nil {
		return nil, err
	}
	after, err := objects(to)
	if err != nil {
		return nil, err
	}
	return objectdiff.Objects(before, after)
}

// readSnapshots reads which snapshots there are, and what is in those that matter.
func (f *Facts) readSnapshots(ctx context.Context, reader hub.Reader, wish Wish) error {
	all, err := reader.Of(f.Placement.Ref).KnownSnapshots(ctx, f.Placement.Status)
	if err != nil {
		return err
	}
	f.Indexes = map[string]int{}
	f.Latest = hub.LatestIndex(all)
	for _, part := range all {
		f.Indexes[part.GetName()] = part.Index
	}
	f.Target = f.Latest
	if wish.Snapshot != nil {
		f.Target = *wish.Snapshot
	}
	wanted := slices.Collect(maps.Values(f.targetSnapshots()))
	wanted = append(wanted, f.Target)
	for _, binding := range f.Bindings {
		if present, has := presentOf(binding, f.Indexes); has && !slices.Contains(wanted, present) {
			wanted = append(wanted, present)
		}
	}
	for _, index := range wanted {
		if index < 0 {
			continue
		}
		f.Parts[index] = slices.DeleteFunc(slices.Clone(all), func(s hub.ResourceSnapshot) bool { return s.Index != index })
	}
	if f.Content = wish.Content; !f.Content {
		return nil
	}
	for index := range f.Parts {
		parts, err := reader.Of(f.Placement.Ref).ResourceSnapshots(ctx, index)
		if apierrors.IsForbidden(err) {
			f.Content = false
			return nil
		}
		if err != nil {
			return err
		}
		f.Parts[index] = parts
	}
	return nil
}

// readOverrides reads the override snapshots in force, and those that clusters were updated with.
func (f *Facts) readOverrides(ctx context.Context, c client.Reader) (notes []string, err error) {
	f.Overrides, err = hubread.LatestOverrides(ctx, c, override.Placement{Namespace: f.Placement.Namespace, Name: f.Placement.Name})
	if unsettled, is := errors.AsType[*hubread.OverrideUnsettledError](err); is {
		notes = append(notes, unsettled.Error()+": what changes by it is not told here")
		f.Overrides, err = hubread.OverridesInForce(ctx, c)
	}
	if err != nil && !hub.Unserved(err) {
		return nil, fmt.Errorf("reading the overrides: %w", err)
	}
	for _, binding := range f.Bindings {
		for _, ref := range override.RefsOf(*binding.Spec) {
			if _, known := f.Named[ref]; known {
				continue
			}
			snapshots, err := hubread.LoadOverrides(ctx, c, c, []string{ref})
			if _, gone := errors.AsType[*hubread.OverrideMissingError](err); gone {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("reading override snapshot %s: %w", ref, err)
			}
			f.Named[ref] = snapshots
		}
	}
	return notes, nil
}
