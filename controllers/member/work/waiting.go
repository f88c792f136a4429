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
	// firstKindPoll and maxKindPoll bound the interval between two checks whether the cluster
	// serves a kind.
	firstKindPoll = 20 * time.Millisecond
	maxKindPoll   = 500 * time.Millisecond
	// defaultKindTimeout is how long a pass waits for the kinds that its own Work defines.
	defaultKindTimeout = 5 * time.Second
)

// namespaceResource is the resource of Namespaces.
var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// awaitKinds waits, before a wave is applied, until the cluster serves the kinds that earlier waves
// of the same Work have defined. A cluster serves a new kind only a moment after its definition;
// without waiting, each such Work would fail first. After the timeout, the watch
// enqueues the Work once the kind is there.
func (a applier) awaitKinds(ctx context.Context, wave, all []*step) error {
	pending := map[schema.GroupVersionKind]*step{}
	for _, s := range wave {
		if s.outcome.problem == nil || s.backingOff || s.outcome.gvr.Resource != "" {
			continue // nothing to wait for: the cluster serves the kind, or the manifest backs off
		}
		if s.definition = definitionOf(all, s.manifest.Kind()); s.definition != nil && s.definition.outcome.problem == nil {
			pending[s.manifest.Object.GroupVersionKind()] = s
		}
	}
	deadline := time.Now().Add(a.kindTimeout)
	for interval := firstKindPoll; len(pending) > 0; interval = min(2*interval, maxKindPoll) {
		for kind, s := range pending {
			if err := s.resolveKind(a.engine); err != nil {
				return err
			}
			if s.outcome.problem == nil {
				delete(pending, kind)
			}
		}
		if len(pending) == 0 || time.Now().After(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
	}
	return nil
}

// definitionOf returns the step that defines a kind; nil if there is none.
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

// explainMissingKind adds to the problem of a step whose kind is unknown whether its definition was
// applied.
func (s *step) explainMissingKind() {
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

// namespacesOfFailed returns the namespaces of objects that could not be applied. They may have
// been missing, so the pass watches them and tries again as soon as another client creates one.
func namespacesOfFailed(outcomes []outcome) []objectRef {
	var out []objectRef
	for _, o := range outcomes {
		if o.retry && o.id.Namespace != "" {
			out = append(out, objectRef{gvr: namespaceResource, name: types.NamespacedName{Name: o.id.Namespace}})
		}
	}
	return out
}
