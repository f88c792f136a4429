package selection

import (
	"context"
	"slices"

	"k8s.io/client-go/dynamic"

	"github.com/fleetflow/fleetflow/activities/snapshot"
)

// addDependencies adds to a selection what the selected objects name. It goes by the same rules as all that is selected: what a
// selector could not have placed is not placed for being named either.
func addDependencies(ctx context.Context, reader dynamic.Interface, latest *formerObjects, catalog *snapshot.Catalog, selection *snapshot.Selection,
	selected *selectedObjects, counted *reading) error {
	selectedOnly := len(selected.items)
	there := make(map[snapshot.Identity]bool, selectedOnly)
	for i := range selected.items {
		item := &selected.items[i]
		there[snapshot.Identity{GroupKind: item.GroupKind, Namespace: item.Namespace, Name: item.Name}] = true
	}
	needs := map[snapshot.Dependency]snapshot.Need{}
	for _, need := range snapshot.FindNeeds(selected.items) {
		if !there[need.Identity()] {
			needs[need.Dependency] = need
			selected.dependencies = append(selected.dependencies, need.Dependency)
		}
	}
	if err := snapshot.CheckDependencies(selected.dependencies); err != nil {
		return err
	}
	rules, refused := selection.AddDependencies(selected.dependencies, catalog)
	queries := make([]*objectQuery, 0, len(rules))
	for _, rule := range rules {
		queries = append(queries, &objectQuery{rule: rule, namespace: rule.Namespace})
	}
	if err := runQueries(ctx, reader, queries, counted); err != nil {
		return err
	}
	for _, q := range queries {
		d := snapshot.Dependency{Kind: q.rule.Kind.Kind, Namespace: q.rule.Namespace, Name: q.rule.Name}
		for i := range q.found {
			selected.items = append(selected.items, q.found[i])
			selected.candidates = append(selected.candidates, q.found[i].Identity)
			q.unfit = q.found[i].Manifest == nil
		}
		switch {
		case q.unfit:
			refused[d] = snapshot.UnfitDependency
		case len(q.found) == 0:
			refused[d] = snapshot.AbsentDependency
		}
	}
	for _, d := range selected.dependencies {
		if why := refused[d]; why != "" && !needs[d].Optional {
			selected.missingDependencies = append(selected.missingDependencies, needs[d].Missing(why))
		}
	}
	selected.inputs = snapshot.Fingerprint(selected.candidates)
	if catalog.HoldsAny() {
		for _, name := range selection.Held {
			if !slices.Contains(selected.held, name) {
				selected.held = append(selected.held, name)
			}
		}
		slices.Sort(selected.held)
	}
	return latest.keepTooLargeOf(ctx, selected, selected.items[selectedOnly:])
}
