package selection

import (
	"context"
	"slices"

	"k8s.io/client-go/dynamic"

	"github.com/fleetflow/fleetflow/activities/snapshot"
)

// addDependencies adds to a selection what the selected objects name. It goes by the same rules as all that is selected: what a
// selector could not have placed is not placed for being named either.
func addDependencies(ctx context.Context, reader dynamic.Interface, latest *formerObjects, catalog *snapshot.Catalog,
	selection *snapshot.Selection,
	selected *selectedObjects, counted *reading) error {
	selectedOnly := len(selected.items)
	needs := findUnselected(selected)
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
		if why := selected.addFound(q); why != "" {
			refused[snapshot.Dependency{Kind: q.rule.Kind.Kind, Namespace: q.rule.Namespace, Name: q.rule.Name}] = why
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

// findUnselected finds what the selected objects name that is not selected itself, and notes it.
func findUnselected(selected *selectedObjects) map[snapshot.Dependency]snapshot.Need {
	there := make(map[snapshot.Identity]bool, len(selected.items))
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
	return needs
}

// addFound adds the object that a query for one has found. It returns why nothing is placed of it; an empty string if it is.
func (s *selectedObjects) addFound(q *objectQuery) string {
	if len(q.found) == 0 && !q.unfit {
		return snapshot.AbsentDependency
	}
	placed := false
	for i := range q.found {
		s.items = append(s.items, q.found[i])
		s.candidates = append(s.candidates, q.found[i].Identity)
		placed = q.found[i].Manifest != nil // that of a token of a service account is left out
	}
	if !placed {
		return snapshot.UnfitDependency
	}
	return ""
}
