package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// parallelReads bounds the requests of one selection under way at the same time:
	// most answers are empty and cost the API server next to nothing. parallelLargeReads
	// bounds those of a large selection, in which answers may be as large as can be.
	parallelReads      = 16
	parallelLargeReads = 4
	// pageSize bounds how many objects one request returns.
	pageSize = 500
	// severalNamespaces is the number of namespaces from which a kind is listed over all
	// namespaces of the hub: a request for each namespace and kind takes longer, and
	// clients have a limit for requests.
	severalNamespaces = 24
)

// selectedObjects are what a placement selects now, read live.
type selectedObjects struct {
	// by is what they were selected by.
	by    *snapshot.Selection
	items []snapshot.Item
	// candidates are the objects that were found, inputs is their fingerprint; empty if they were not read.
	candidates []snapshot.Identity
	inputs     string
	// tooLarge says which objects no snapshot can hold, and what is placed of them.
	tooLarge []string
	// held are the kinds whose propagation is disabled and which the selection concerns.
	held []string
	// rivals is the fingerprint of the other placements with a priority, leftOut what is left to them.
	rivals  string
	leftOut snapshot.LeftOut
	// missing are the objects that selectors name and that cannot be placed now.
	missing []string
	// dependencies are what the selected objects name beyond the selection, if the placement propagates that; missingDependencies
	// says which of them are not placed, and why.
	dependencies        []snapshot.Dependency
	missingDependencies []string
}

// objectQuery is one request for objects: for one by its name, or for those of a kind
// that match, in one or several namespaces.
type objectQuery struct {
	rule       snapshot.Rule
	namespace  string
	namespaces map[string]bool
	revision   string
	found      []snapshot.Item
	// unfit says that the object of that name is of no kind or sort that is placed.
	unfit bool
}

// readSelected reads the selected objects as of a revision of the hub's store or later. An
// InvalidError says that they are more than the ceiling allows.
func readSelected(ctx context.Context, reader dynamic.Interface, selection *snapshot.Selection, catalog *snapshot.Catalog,
	revision string, counted *reading) (selectedObjects, error) {
	outer := make([]*objectQuery, 0, len(selection.Rules))
	for _, rule := range selection.Rules {
		outer = append(outer, &objectQuery{rule: rule, namespace: rule.Namespace, revision: revision})
	}
	if err := runQueries(ctx, reader, outer, counted); err != nil {
		return selectedObjects{}, err
	}
	inner := queriesInside(selection, catalog, outer, revision)
	if err := runQueries(ctx, reader, inner, counted); err != nil {
		return selectedObjects{}, err
	}
	selected, twice := mergeAnswers(slices.Concat(outer, inner))
	selected.by = selection
	return selected, cmp.Or(requireNamespace(outer), twice)
}

// requireNamespace refuses a Namespace that is selected as the home of what other selectors select and that cannot be
// placed now: without it they select nothing, and what was placed before would be removed.
func requireNamespace(queries []*objectQuery) error {
	for _, q := range queries {
		if len(q.found) == 0 && q.rule.Kind.GroupKind() == snapshot.NamespaceKind &&
			q.rule.Scope == placementv1beta1.NamespaceWithResourceSelectors {
			return q.rule.NamespaceMissing(q.unfit)
		}
	}
	return nil
}

// queriesInside returns the queries for what is selected together with the namespaces that
// were found.
func queriesInside(selection *snapshot.Selection, catalog *snapshot.Catalog, outer []*objectQuery, revision string) []*objectQuery {
	var queries []*objectQuery
	whole := map[string]bool{}
	for _, q := range outer {
		if q.rule.Kind.GroupKind() != snapshot.NamespaceKind {
			continue
		}
		rules, all := selection.Contents(q.rule)
		for _, namespace := range q.found {
			if all {
				whole[namespace.Name] = true
			}
			for _, rule := range rules {
				queries = append(queries, &objectQuery{rule: rule, namespace: namespace.Name, revision: revision})
			}
		}
	}
	for _, kind := range catalog.Contents() {
		rule := snapshot.All(kind)
		if len(whole) >= severalNamespaces {
			queries = append(queries, &objectQuery{rule: rule, namespaces: whole, revision: revision})
			continue
		}
		for namespace := range whole {
			queries = append(queries, &objectQuery{rule: rule, namespace: namespace, revision: revision})
		}
	}
	return queries
}

// mergeAnswers joins the answers. An object that two selectors select counts once, and is refused as in KubeFleet: the
// error is an InvalidError that names both.
func mergeAnswers(queries []*objectQuery) (all selectedObjects, twice error) {
	finder := map[snapshot.Identity]*objectQuery{}
	for _, q := range queries {
		if q.rule.Name != "" && len(q.found) == 0 {
			all.missing = append(all.missing, q.rule.Missing(q.unfit))
		}
		for _, item := range q.found {
			id := snapshot.Identity{GroupKind: item.GroupKind, Namespace: item.Namespace, Name: item.Name}
			if first, found := finder[id]; found {
				if twice == nil && first != q {
					twice = q.rule.SelectedTwice(first.rule, item.Identity)
				}
				continue
			}
			finder[id] = q
			all.items = append(all.items, item)
			all.candidates = append(all.candidates, item.Identity)
		}
	}
	all.inputs = snapshot.Fingerprint(all.candidates)
	return all, twice
}

// runQueries answers queries, several at a time.
func runQueries(ctx context.Context, reader dynamic.Interface, queries []*objectQuery, counted *reading) error {
	group, ctx := errgroup.WithContext(withReading(ctx, counted))
	group.SetLimit(parallelReads)
	if counted.large {
		group.SetLimit(parallelLargeReads)
	}
	for _, q := range queries {
		group.Go(func() error { return q.fillFrom(ctx, reader, counted) })
	}
	err := group.Wait()
	if errors.Is(err, errTooMuch) {
		return counted.describeTooMuch(queries)
	}
	return err
}

// foundBytes returns how many bytes the objects have that were found.
func (q *objectQuery) foundBytes() int64 {
	size := 0
	for i := range q.found {
		size += len(q.found[i].Manifest)
	}
	return int64(size)
}

// describeSource says in words what a query finds.
func (q *objectQuery) describeSource() string {
	switch {
	case q.namespace != "":
		return fmt.Sprintf("%s in namespace %q", q.rule.Kind, q.namespace)
	case q.namespaces != nil:
		return fmt.Sprintf("%s in %d namespaces", q.rule.Kind, len(q.namespaces))
	}
	return fmt.Sprintf("%s, which resourceSelectors[%d] selects", q.rule.Kind, q.rule.Index)
}

// fillFrom keeps of the objects that it reads those that are placed.
func (q *objectQuery) fillFrom(ctx context.Context, reader dynamic.Interface, counted *reading) error {
	resources := reader.Resource(q.rule.Kind.GVR()).Namespace(q.namespace)
	var err error
	if q.rule.Name != "" {
		err = q.getObject(ctx, resources, counted)
	} else {
		err = q.listObjects(ctx, resources, counted)
	}
	if err != nil {
		return fmt.Errorf("reading %s in namespace %q: %w", q.rule.Kind, q.namespace, err)
	}
	return nil
}

// addSelected adds those of the objects that are placed.
func (q *objectQuery) addSelected(objects []unstructured.Unstructured, counted *reading) error {
	for i := range objects {
		if !q.selectsObject(&objects[i]) {
			q.unfit = true
			continue
		}
		item, err := snapshot.Encode(&objects[i])
		if err != nil {
			return err
		}
		q.found = append(q.found, item)
		if err := counted.countItem(len(item.Manifest)); err != nil {
			return err
		}
	}
	return nil
}

func (q *objectQuery) selectsObject(object *unstructured.Unstructured) bool {
	return snapshot.Candidate(q.rule.Kind.GroupKind(), object) && q.rule.Matches(object) &&
		(q.namespaces == nil || q.namespaces[object.GetNamespace()])
}

// getObject reads one object. One that does not exist is not an error: it is selected as
// soon as it appears.
func (q *objectQuery) getObject(ctx context.Context, resources dynamic.ResourceInterface, counted *reading) error {
	object, err := resources.Get(ctx, q.rule.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return q.addSelected([]unstructured.Unstructured{*object}, counted)
}

// listObjects takes what it needs of each page before it asks for the next one. A page whose
// objects are large is asked for again in smaller ones.
func (q *objectQuery) listObjects(ctx context.Context, resources dynamic.ResourceInterface, counted *reading) error {
	options := metav1.ListOptions{}
	if q.rule.Kind.Native {
		options = hubread.NotOlderThan(q.revision)
	}
	options.LabelSelector = q.rule.Labels.String()
	options.Limit = pageSize
	for {
		page, err := resources.List(ctx, options)
		switch {
		case apierrors.IsMethodNotSupported(err):
			return nil
		case errors.Is(err, errLargePage) && options.Limit > 1:
			options.Limit = max(1, options.Limit/8)
			continue
		case err != nil:
			return err
		}
		if err := q.addSelected(page.Items, counted); err != nil || page.GetContinue() == "" {
			return err
		}
		options = metav1.ListOptions{LabelSelector: options.LabelSelector, Limit: options.Limit, Continue: page.GetContinue()}
	}
}
