package selection

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fleetflow/fleetflow/activities/liveread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// parallelReads bounds the requests of one selection under way at the same time:
	// most answers are empty and cost the API server next to nothing.
	parallelReads = 16
	// pageSize bounds how many objects one request returns.
	pageSize = 500
	// severalNamespaces is the number of namespaces from which a kind is listed over all
	// namespaces of the hub: a request for each namespace and kind takes longer, and
	// clients have a limit for requests.
	severalNamespaces = 24
)

// selectedObjects are what a placement selects now, read live.
type selectedObjects struct {
	objects []*unstructured.Unstructured
	// inputs is the fingerprint of the candidates; empty if they were not read.
	inputs string
	// missing are the objects that selectors name and that cannot be placed now.
	missing []string
}

// objectQuery is one request for objects: for one by its name, or for those of a kind
// that match, in one or several namespaces.
type objectQuery struct {
	rule       snapshot.Rule
	namespace  string
	namespaces map[string]bool
	revision   string
	found      []*unstructured.Unstructured
	// unfit says that the object of that name is of no kind or sort that is placed.
	unfit bool
}

// readSelected reads the selected objects as of a revision of the hub's store or later.
func readSelected(ctx context.Context, reader dynamic.Interface, selection *snapshot.Selection, catalog *snapshot.Catalog,
	revision string) (selectedObjects, error) {
	outer := make([]*objectQuery, 0, len(selection.Rules))
	for _, rule := range selection.Rules {
		outer = append(outer, &objectQuery{rule: rule, revision: revision})
	}
	if err := runQueries(ctx, reader, outer); err != nil {
		return selectedObjects{}, err
	}
	inner := queriesInside(selection, catalog, outer, revision)
	if err := runQueries(ctx, reader, inner); err != nil {
		return selectedObjects{}, err
	}
	return mergeAnswers(slices.Concat(outer, inner)), requireNamespace(outer)
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

// queriesInside are the queries for what is selected together with the namespaces that
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
				whole[namespace.GetName()] = true
			}
			for _, rule := range rules {
				queries = append(queries, &objectQuery{rule: rule, namespace: namespace.GetName(), revision: revision})
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

// mergeAnswers joins the answers. An object that several selectors select counts once,
// in the version that the first of them has found.
func mergeAnswers(queries []*objectQuery) selectedObjects {
	var all selectedObjects
	var candidates []snapshot.Identity
	seen := map[snapshot.Identity]bool{}
	for _, q := range queries {
		gk := q.rule.Kind.GroupKind()
		if q.rule.Name != "" && len(q.found) == 0 {
			all.missing = append(all.missing, q.rule.Missing(q.unfit))
		}
		for _, object := range q.found {
			id := snapshot.Identity{GroupKind: gk, Namespace: object.GetNamespace(), Name: object.GetName()}
			if seen[id] {
				continue
			}
			seen[id] = true
			all.objects = append(all.objects, object)
			candidates = append(candidates, snapshot.Identify(gk, object))
		}
	}
	all.inputs = snapshot.Fingerprint(candidates)
	return all
}

// runQueries answers queries, several at a time.
func runQueries(ctx context.Context, reader dynamic.Interface, queries []*objectQuery) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for _, q := range queries {
		group.Go(func() error { return q.fillFrom(ctx, reader) })
	}
	return group.Wait()
}

// fillFrom keeps of the objects that it reads those that are placed.
func (q *objectQuery) fillFrom(ctx context.Context, reader dynamic.Interface) error {
	resources := reader.Resource(q.rule.Kind.GVR()).Namespace(q.namespace)
	var found []unstructured.Unstructured
	var err error
	if q.rule.Name != "" {
		found, err = q.getObject(ctx, resources)
	} else {
		found, err = q.listObjects(ctx, resources)
	}
	if err != nil {
		return fmt.Errorf("reading %s in namespace %q: %w", q.rule.Kind, q.namespace, err)
	}
	for i := range found {
		if q.selectsObject(&found[i]) {
			q.found = append(q.found, &found[i])
		}
	}
	q.unfit = len(q.found) < len(found)
	return nil
}

func (q *objectQuery) selectsObject(object *unstructured.Unstructured) bool {
	return snapshot.Candidate(q.rule.Kind.GroupKind(), object) && q.rule.Matches(object) &&
		(q.namespaces == nil || q.namespaces[object.GetNamespace()])
}

// getObject reads one object. One that does not exist is not an error: it is selected as
// soon as it appears.
func (q *objectQuery) getObject(ctx context.Context, resources dynamic.ResourceInterface) ([]unstructured.Unstructured, error) {
	object, err := resources.Get(ctx, q.rule.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []unstructured.Unstructured{*object}, nil
}

func (q *objectQuery) listObjects(ctx context.Context, resources dynamic.ResourceInterface) ([]unstructured.Unstructured, error) {
	var found []unstructured.Unstructured
	options := metav1.ListOptions{}
	if q.rule.Kind.Native {
		options = liveread.NotOlderThan(q.revision)
	}
	options.LabelSelector, options.Limit = q.rule.Labels.String(), pageSize
	for {
		page, err := resources.List(ctx, options)
		if apierrors.IsMethodNotSupported(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		found = append(found, page.Items...)
		if page.GetContinue() == "" {
			return found, nil
		}
		options = metav1.ListOptions{LabelSelector: options.LabelSelector, Limit: pageSize, Continue: page.GetContinue()}
	}
}
