package work

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstGlance and lastGlance bound how often the cluster is asked whether it serves a kind
	// by now.
	firstGlance = 20 * time.Millisecond
	lastGlance  = 500 * time.Millisecond
	// servedWithin is how long a pass waits for the kinds that its Work defines.
	servedWithin = 5 * time.Second
)

// namespaceResource is what the member serves Namespaces as.
var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// definitionKind is the kind of CustomResourceDefinitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// awaitKinds waits, before a wave is applied, until the cluster serves the kinds that earlier
// waves of the same Work have defined: it takes a moment from the definition to the kind, and
// without waiting each such Work would fail first. What takes longer than the reconciler's
// patience is told by the watch.
func (r *Reconciler) awaitKinds(ctx context.Context, wave, all []*step) error {
	pending := map[schema.GroupVersionKind]*step{}
	for _, s := range wave {
		if s.outcome.problem == nil || s.resting {
			continue
		}
		if s.definition = definitionOf(all, s.manifest.Kind()); s.definition != nil && s.definition.outcome.problem == nil {
			pending[s.manifest.Object.GroupVersionKind()] = s
		}
	}
	ends := time.Now().Add(r.patience)
	for glance := firstGlance; len(pending) > 0; glance = min(2*glance, lastGlance) {
		for kind, s := range pending {
			if err := r.resolve(s); err != nil {
				return err
			}
			if s.outcome.problem == nil {
				delete(pending, kind)
			}
		}
		if len(pending) == 0 || time.Now().After(ends) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(glance):
		}
	}
	return nil
}

// definitionOf returns the step that defines a kind; nil if none does.
func definitionOf(steps []*step, kind schema.GroupKind) *step {
	for _, s := range steps {
		if s.manifest.Kind() != definitionKind || s.manifest.Object == nil {
			continue
		}
		group, _, _ := unstructured.NestedString(s.manifest.Object.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(s.manifest.Object.Object, "spec", "names", "kind")
		if kind == (schema.GroupKind{Group: group, Kind: name}) {
			return s
		}
	}
	return nil
}

// blame says in the problem of a step whose kind is unknown what became of its definition.
func (s *step) blame() {
	if s.definition == nil {
		return
	}
	problem := *s.outcome.problem
	name := s.definition.outcome.id.Name
	if s.definition.outcome.problem != nil {
		problem.Message += fmt.Sprintf(". CustomResourceDefinition %s, which is placed with it, could not be applied", name)
	} else {
		problem.Message += fmt.Sprintf(". CustomResourceDefinition %s, which is placed with it, has been applied, but the cluster does not serve the kind yet", name)
	}
	s.outcome.problem = &problem
}

// lacking returns the namespaces in which objects could not be applied the last time, be it
// because they were missing: they are watched, so that a namespace that comes from elsewhere is
// made use of at once.
func lacking(outcomes []outcome) []object {
	var out []object
	for _, o := range outcomes {
		if o.retry && o.id.Namespace != "" {
			out = append(out, object{gvr: namespaceResource, name: types.NamespacedName{Name: o.id.Namespace}})
		}
	}
	return out
}
