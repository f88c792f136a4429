// Package convert makes fleetflow's manifests of those of KubeFed and Karmada. It reads no cluster: what it is given is all that
// it knows. Fields that have no counterpart are named in notes, never dropped in silence.
package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Systems to convert from.
const (
	FromAuto    = "auto"
	FromKubeFed = "kubefed"
	FromKarmada = "karmada"
)

// Input is one manifest.
type Input struct {
	// Source is the file that it stands in.
	Source string
	Object *unstructured.Unstructured
}

// name returns the object as notes name it.
func (in Input) name() string { return nameOf(in.Object) }

func nameOf(object *unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return strings.ToLower(object.GetKind()) + "/" + name
}

// Class says what becomes of a field.
type Class string

const (
	// Changed is a field that acts otherwise here.
	Changed Class = "changed"
	// Ignored is a field that had no effect in the other system either.
	Ignored Class = "ignored"
	// Unsupported is a field without a counterpart.
	Unsupported Class = "unsupported"
)

// Note says what became of a field.
type Note struct {
	// Source is the file of the manifest, Object its kind and name, Field the path of the field; empty if it is about the whole.
	Source, Object, Field string
	Class                 Class
	Text                  string
}

// String returns FILE: kind/name: field: class: text.
func (n Note) String() string {
	parts := []string{n.Source, n.Object, n.Field, string(n.Class), n.Text}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// Document is one manifest of the output.
type Document struct {
	Object *unstructured.Unstructured
	// Comments stand above it, a line each.
	Comments []string
}

// Options say how to convert.
type Options struct {
	// From is one of the systems; other manifests of either are an error then, unless it is FromAuto.
	From string
	// ReportDiff has placements report what they would change instead of changing it.
	ReportDiff bool
	// SafeRollout leaves a rolling update at its default limits; otherwise all clusters are written at once, as both systems do.
	SafeRollout bool
	// KeepTemplateMetadata keeps annotations and finalizers of KubeFed's templates, which never reached a member.
	KeepTemplateMetadata bool
	// PickFixed makes Karmada's clusterNames a promise: PickFixed instead of candidates.
	PickFixed bool
	// RegionLabel, ZoneLabel and ProviderLabel are the labels of MemberClusters that have Karmada's cluster fields.
	RegionLabel, ZoneLabel, ProviderLabel string
}

// Result is what was made.
type Result struct {
	// Documents are in the order in which they are to be applied.
	Documents []Document
	Notes     []Note
	// Steps are what the user does to hand over, a line each.
	Steps []string
}

// Convert converts manifests. Errors name what cannot be read.
func Convert(inputs []Input, o Options) (*Result, error) {
	inputs, err := withoutRepeats(inputs)
	if err != nil {
		return nil, err
	}
	c := &conversion{Options: o, result: &Result{}, comments: map[string][]string{}}
	var kubefed, karmada []Input
	for _, in := range inputs {
		switch group := in.Object.GroupVersionKind().Group; {
		case isOf(group, kubefedDomain) && o.From != FromKarmada:
			kubefed = append(kubefed, in)
		case isOf(group, karmadaDomain) && o.From != FromKubeFed:
			karmada = append(karmada, in)
		case isOf(group, kubefedDomain), isOf(group, karmadaDomain):
			return nil, fmt.Errorf("%s: %s is not of %s: leave it out, or use --from auto", in.Source, in.name(), o.From)
		default:
			c.templates = append(c.templates, in)
		}
	}
	if err := newFederation(c).convert(kubefed); err != nil {
		return nil, err
	}
	if err := newPropagation(c).convert(karmada); err != nil {
		return nil, err
	}
	for _, in := range c.templates {
		c.addManifest(in, in.Object)
	}
	c.sortDocuments()
	return c.result, nil
}

// withoutRepeats leaves out manifests that are given again, as in two files of one export. An object of two contents is an error.
func withoutRepeats(inputs []Input) ([]Input, error) {
	var once []Input
	for _, in := range inputs {
		at := slices.IndexFunc(once, func(other Input) bool {
			return other.Object.GroupVersionKind().GroupKind() == in.Object.GroupVersionKind().GroupKind() && other.name() == in.name()
		})
		switch {
		case at < 0:
			once = append(once, in)
		case !equality.Semantic.DeepEqual(once[at].Object, in.Object):
			return nil, fmt.Errorf("%s: %s stands in %s with another content: leave one of them out", in.Source, in.name(), once[at].Source)
		}
	}
	return once, nil
}

func isOf(group, domain string) bool { return group == domain || strings.HasSuffix(group, "."+domain) }

// conversion gathers what is made.
type conversion struct {
	Options
	result *Result
	// templates are manifests of neither system: they pass through.
	templates []Input
	// comments are notes on inputs by their names, for what is made of them.
	comments map[string][]string
}

// addNote notes what became of a field.
func (c *conversion) addNote(in Input, field string, class Class, format string, args ...any) {
	n := Note{Source: in.Source, Object: in.name(), Field: field, Class: class, Text: fmt.Sprintf(format, args...)}
	c.result.Notes = append(c.result.Notes, n)
	n.Source = ""
	c.comments[in.name()] = append(c.comments[in.name()], n.String())
}

// noteRest notes fields that nothing has been made of.
func (c *conversion) noteRest(in Input, f fields) {
	for _, path := range f.rest() {
		c.addNote(in, path, Unsupported, "there is no counterpart")
	}
}

// memberName returns the name that a cluster can join with.
func (c *conversion) memberName(in Input, field, name string) string {
	member := strings.ReplaceAll(strings.ToLower(name), ".", "-")
	if member != name {
		c.addNote(in, field, Changed, "a member's name has lower-case letters, digits and hyphens: %s becomes %s", name, member)
	}
	return member
}

// addManifest adds a manifest that was made of an input, with the notes on it so far.
func (c *conversion) addManifest(in Input, object *unstructured.Unstructured) {
	c.result.Documents = append(c.result.Documents, Document{Object: object, Comments: slices.Clone(c.comments[in.name()])})
}

// addStep adds a line for the user, once.
func (c *conversion) addStep(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(c.result.Steps, line) {
		c.result.Steps = append(c.result.Steps, line)
	}
}

// sortDocuments puts documents into the order of applying them: what is named comes before what names it.
func (c *conversion) sortDocuments() {
	slices.SortStableFunc(c.result.Documents, func(a, b Document) int {
		return cmp.Or(
			cmp.Compare(rankDocument(a.Object), rankDocument(b.Object)),
			strings.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()),
			strings.Compare(a.Object.GetKind(), b.Object.GetKind()),
			strings.Compare(a.Object.GetName(), b.Object.GetName()),
		)
	})
}

func rankDocument(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case "ClusterResourceOverride", "ResourceOverride":
		return 2
	case "ClusterResourcePlacement", "ResourcePlacement":
		return 3
	case "PropagatedType":
		return 4
	default:
		return 1
	}
}

// defaultStrategy returns how placements write, before what an input says of it.
func (c *conversion) defaultStrategy() *placementv1beta1.RolloutStrategy {
	s := &placementv1beta1.RolloutStrategy{}
	if !c.SafeRollout {
		all := intstr.FromString("100%")
		s.Type = placementv1beta1.RollingUpdateRolloutStrategyType
		s.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &all, MaxSurge: &all}
	}
	if c.ReportDiff {
		s.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeReportDiff}
	}
	return s
}

const atOnce = "all clusters are written at once, as before: leave maxUnavailable and maxSurge out for batches of 25%"
