package selection

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetflow/fleetflow/activities/liveread"
	"github.com/fleetflow/fleetflow/activities/snapshot"
)

const (
	// parallelReads bounds the requests of one selection at a time: most answers are
	// empty and cost the API server next to nothing.
	parallelReads = 16
	// pageSize bounds how many objects one request returns.
	pageSize = 500
	// severalNamespaces is from how many namespaces on a kind is read from all there are
	// at once: a request for each of them and each kind takes longer, and there is a
	// limit to requests.
	severalNamespaces = 24
)

// gathered is what a placement selects now, read live.
type gathered struct {
	objects    []*unstructured.Unstructured
	candidates []snapshot.Identity
	// missing are the objects that selectors name and that cannot be placed now.
	missing []string
}

// query is one request for objects: one by name, or those of a kind that match, in a
// namespace or in several.
type query struct {
	rule       snapshot.Rule
	namespace  string
	namespaces map[string]bool
	revision   string
	found      []*unstructured.Unstructured
	// unfit says that the object there is by that name is none that is placed.
	unfit bool
}

// gather reads the selected objects as of a revision of the hub's store or later.
func (s *Selector) gather(ctx context.Context, selection *snapshot.Selection, catalog *snapshot.Catalog, revision string) (gathered, error) {
	outer := make([]*query, 0, len(selection.Rules))
	for _, rule := range selection.Rules {
		outer = append(outer, &query{rule: rule, revision: revision})
	}
	if err := s.ask(ctx, outer); err != nil {
		return gathered{}, err
	}
	inner := inside(selection, catalog, outer, revision)
	if err := s.ask(ctx, inner); err != nil {
		return gathered{}, err
	}
	return merge(slices.Concat(outer, inner)), nil
}

// inside asks for what comes along with the namespaces that were found.
func inside(selection *snapshot.Selection, catalog *snapshot.Catalog, outer []*query, revision string) []*query {
	var queries []*query
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
				queries = append(queries, &query{rule: rule, namespace: namespace.GetName(), revision: revision})
			}
		}
	}
	for _, kind := range catalog.Contents() {
		rule := snapshot.All(kind)
		if len(whole) >= severalNamespaces {
			queries = append(queries, &query{rule: rule, namespaces: whole, revision: revision})
			continue
		}
		for namespace := range whole {
			queries = append(queries, &query{rule: rule, namespace: namespace, revision: revision})
		}
	}
	return queries
}

// merge joins the answers. An object that several selectors select counts once, in
// the version of the first that does.
func merge(queries []*query) gathered {
	var all gathered
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
			all.candidates = append(all.candidates, snapshot.Identify(gk, object))
		}
	}
	return all
}

// ask answers queries, several at a time.
func (s *Selector) ask(ctx context.Context, queries []*query) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for _, q := range queries {
		group.Go(func() error { return s.answer(ctx, q) })
	}
	return group.Wait()
}

func (s *Selector) answer(ctx context.Context, q *query) error {
	var found []unstructured.Unstructured
	var err error
	if q.rule.Name != "" {
		found, err = s.get(ctx, q)
	} else {
		found, err = s.list(ctx, q)
	}
	if err != nil {
		return fmt.Errorf("reading %s in namespace %q: %w", q.rule.Kind, q.namespace, err)
	}
	for i := range found {
		if q.takes(&found[i]) {
			q.found = append(q.found, &found[i])
		}
	}
	q.unfit = len(q.found) < len(found)
	return nil
}

// takes says whether an object that was read is one to place.
func (q *query) takes(object *unstructured.Unstructured) bool {
	return snapshot.Candidate(q.rule.Kind.GroupKind(), object) && q.rule.Matches(object) &&
		(q.namespaces == nil || q.namespaces[object.GetNamespace()])
}

// get reads one object. One that does not exist is not an error: it is selected as
// soon as it appears.
func (s *Selector) get(ctx context.Context, q *query) ([]unstructured.Unstructured, error) {
	object, err := s.Dynamic.Resource(q.rule.Kind.GVR()).Namespace(q.namespace).Get(ctx, q.rule.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []unstructured.Unstructured{*object}, nil
}

func (s *Selector) list(ctx context.Context, q *query) ([]unstructured.Unstructured, error) {
	var found []unstructured.Unstructured
	options := metav1.ListOptions{}
	if q.rule.Kind.Native {
		options = liveread.NotOlderThan(q.revision)
	}
	options.LabelSelector, options.Limit = q.rule.Labels.String(), pageSize
	for {
		page, err := s.Dynamic.Resource(q.rule.Kind.GVR()).Namespace(q.namespace).List(ctx, options)
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
