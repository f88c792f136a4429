package convert

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// placedTerm is a selector of a placement, with the path of what it was made of.
type placedTerm struct {
	placementv1beta1.ResourceSelectorTerm
	path string
}

// overlap is what two selectors have in common.
type overlap int

const (
	// overlapNone is no object.
	overlapNone overlap = iota
	// overlapPossible is some object, as far as the input tells.
	overlapPossible
	// overlapWhole is all that the second selects.
	overlapWhole
)

// withoutOverlaps leaves out what another selector of the placement selects, too: a placement that selects an object twice places
// nothing. Where the input does not tell whether two meet, a note says so.
func (c *conversion) withoutOverlaps(in Input, namespace string, terms []placedTerm) []placementv1beta1.ResourceSelectorTerm {
	var kept []placementv1beta1.ResourceSelectorTerm
	for i := range terms {
		if at := c.includedIn(namespace, terms, i); at >= 0 {
			c.addNote(in, terms[i].path, Changed, "it is left out: %s selects the same, and a placement selects an object once", terms[at].path)
			continue
		}
		for j := range terms[:i] {
			if c.includedIn(namespace, terms, j) < 0 && c.overlapOf(namespace, &terms[j], &terms[i]) == overlapPossible {
				c.addNote(in, terms[i].path, Changed, "a placement selects an object once: if %s selects one of the same, nothing is placed (InvalidResourceSelectors)", terms[j].path)
			}
		}
		kept = append(kept, terms[i].ResourceSelectorTerm)
	}
	return kept
}

// includedIn finds a selector that selects all that one selects; of two that are alike the second is included. It is -1 if there is
// none.
func (c *conversion) includedIn(namespace string, terms []placedTerm, one int) int {
	for i := range terms {
		if i == one || c.overlapOf(namespace, &terms[i], &terms[one]) != overlapWhole {
			continue
		}
		if i < one || c.overlapOf(namespace, &terms[one], &terms[i]) != overlapWhole {
			return i
		}
	}
	return -1
}

// overlapOf returns what two selectors have in common.
func (c *conversion) overlapOf(namespace string, a, b *placedTerm) overlap {
	switch {
	case a.Group != b.Group || a.Kind != b.Kind || a.Name != "" && b.Name != "" && a.Name != b.Name:
		return overlapNone
	case selectsAll(a), a.Name == b.Name && equality.Semantic.DeepEqual(a.LabelSelector, b.LabelSelector):
		return overlapWhole
	case selectsAll(b):
		return overlapPossible
	case a.Name == "" && b.Name != "":
		return c.matchOf(namespace, a, b)
	case a.Name != "" && b.Name == "":
		return min(c.matchOf(namespace, b, a), overlapPossible)
	case areDisjoint(a.LabelSelector, b.LabelSelector):
		return overlapNone
	}
	return overlapPossible
}

// selectsAll reports whether a selector selects all objects of its kind.
func selectsAll(term *placedTerm) bool {
	return term.Name == "" && (term.LabelSelector == nil || len(term.LabelSelector.MatchLabels) == 0 &&
		len(term.LabelSelector.MatchExpressions) == 0)
}

// matchOf returns overlapWhole if a selector by labels selects the object that another names, overlapPossible if the input lacks it.
func (c *conversion) matchOf(namespace string, byLabel, byName *placedTerm) overlap {
	selector, err := metav1.LabelSelectorAsSelector(byLabel.LabelSelector)
	object := c.findTemplate(byName, namespace)
	switch {
	case err != nil || object == nil:
		return overlapPossible
	case selector.Matches(labels.Set(object.GetLabels())):
		return overlapWhole
	}
	return overlapNone
}

// findTemplate finds the object that a selector names in the input; nil if it has none.
func (c *conversion) findTemplate(term *placedTerm, namespace string) *unstructured.Unstructured {
	for _, in := range c.templates {
		gvk := in.Object.GroupVersionKind()
		if gvk.Group == term.Group && gvk.Kind == term.Kind && in.Object.GetName() == term.Name && in.Object.GetNamespace() == namespace {
			return in.Object
		}
	}
	return nil
}

// areDisjoint reports whether no object matches both selectors: they ask for different values of one label.
func areDisjoint(a, b *metav1.LabelSelector) bool {
	for key, value := range a.MatchLabels {
		if other, also := b.MatchLabels[key]; also && other != value {
			return true
		}
	}
	return false
}
