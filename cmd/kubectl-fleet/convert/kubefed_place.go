package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// makePlacements makes the placements: one of each namespace, which has the objects that go where the namespace goes; one in the namespace
// of each further set of clusters; and one of each set of clusters for cluster-scoped objects.
func (f *federation) makePlacements(objects []*federated) error {
	slices.SortStableFunc(objects, func(a, b *federated) int { return strings.Compare(nameOf(a.object), nameOf(b.object)) })
	byNamespace := map[string][]*federated{}
	for _, x := range objects {
		byNamespace[x.object.GetNamespace()] = append(byNamespace[x.object.GetNamespace()], x)
	}
	for _, name := range slices.Sorted(maps.Keys(f.namespaces)) {
		rest, err := f.placeNamespace(f.namespaces[name], byNamespace[name])
		if err != nil {
			return err
		}
		byNamespace[name] = rest
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		if namespace != "" && f.namespaces[namespace] == nil {
			for _, x := range byNamespace[namespace] {
				f.addNote(x.in, "metadata.namespace", Changed, "there is no FederatedNamespace %s in the input: the namespace has to exist on the members", namespace)
			}
		}
		for _, group := range groupFederated(byNamespace[namespace], maxSelectors) {
			if err := f.placeGroup(group); err != nil {
				return err
			}
		}
	}
	return nil
}

// placeNamespace places a namespace, with the objects in it that go where it goes, and returns the others. All of them go only
// where the namespace goes.
func (f *federation) placeNamespace(namespace *federated, objects []*federated) ([]*federated, error) {
	name := namespace.object.GetName()
	var together, apart []*federated
	for _, x := range objects {
		before := x.targets
		x.targets = x.targets.intersect(namespace.targets)
		if left := slices.DeleteFunc(slices.Clone(before.names), func(n string) bool { return slices.Contains(x.targets.names, n) }); len(
			left) > 0 && namespace.targets.byName {
			f.addNote(x.in, "spec.placement.clusters", Ignored, "not placed on %s: its namespace is not there", strings.Join(left, ", "))
		}
		// A ClusterResourceOverride of the namespace would change what is in it, too.
		if len(namespace.rules) == 0 && x.targets.equal(namespace.targets) && x.abandon == namespace.abandon && x.report == namespace.report {
			together = append(together, x)
		} else {
			apart = append(apart, x)
		}
	}
	groups := groupFederated(together, maxSelectors-1)
	if len(groups) > 0 {
		together = groups[0]
		for _, more := range groups[1:] {
			apart = append(apart, more...)
		}
	}
	f.names["/"+name] = true
	term := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: name, SelectionScope: placementv1beta1.NamespaceOnly}
	if len(together) > 0 {
		term.SelectionScope = placementv1beta1.NamespaceWithResourceSelectors
	}
	return apart, f.addPlacement(name, "", []placementv1beta1.ResourceSelectorTerm{term}, append([]*federated{namespace}, together...))
}

// groupFederated puts objects together that go to the same clusters in the same way, as many as one placement takes.
func groupFederated(objects []*federated, most int) [][]*federated {
	var groups [][]*federated
	open := map[string]int{}
	for _, x := range objects {
		id := contentKey(x.targets.byName, x.targets.names, x.targets.selectors, x.abandon, x.report)
		at, there := open[id]
		if there && (len(groups[at]) == most || x.divided != nil && countDivided(groups[at]) == maxDivisions) {
			there = false
		}
		if !there {
			at = len(groups)
			groups = append(groups, nil)
			open[id] = at
		}
		groups[at] = append(groups[at], x)
	}
	return groups
}

func countDivided(group []*federated) int {
	count := 0
	for _, x := range group {
		if x.divided != nil {
			count++
		}
	}
	return count
}

// placeGroup places objects that go to the same clusters, with the name of the first.
func (f *federation) placeGroup(group []*federated) error {
	first := group[0].object
	name := joinedName(first.GetKind(), first.GetName())
	for i := 2; f.names[first.GetNamespace()+"/"+name]; i++ {
		name = joinedName(first.GetKind(), fmt.Sprintf("%s-%d", first.GetName(), i))
	}
	f.names[first.GetNamespace()+"/"+name] = true
	return f.addPlacement(name, first.GetNamespace(), nil, group)
}

// addPlacement adds a placement, the objects that it selects, and their overrides.
func (f *federation) addPlacement(name, namespace string, terms []placementv1beta1.ResourceSelectorTerm, group []*federated) error {
	spec := placementv1beta1.PlacementSpec{ResourceSelectors: terms, Strategy: f.defaultStrategy()}
	policy, fits := group[0].targets.policy()
	if !fits {
		f.addNote(group[0].in, "spec.placement.clusters", Unsupported, "a placement names at most %d clusters", maxNames*maxTerms)
	}
	spec.Policy = policy
	if f.takeOver != "" {
		apply := ptr.Deref(spec.Strategy.ApplyStrategy, placementv1beta1.ApplyStrategy{})
		apply.WhenToTakeOver = f.takeOver
		spec.Strategy.ApplyStrategy = &apply
	}
	if group[0].abandon {
		spec.Strategy.DeleteStrategy = &placementv1beta1.DeleteStrategy{PropagationPolicy: placementv1beta1.DeletePropagationPolicyAbandon}
	}
	if slices.ContainsFunc(group, func(x *federated) bool { return x.report }) {
		spec.Strategy.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{
			Type: placementv1beta1.ReportBackStrategyTypeMirror, Destination: ptr.To(placementv1beta1.ReportBackDestinationWorkAPI),
		}
	}
	ref := placementv1beta1.PlacementRef{Name: name, Scope: placementv1beta1.ClusterScoped}
	if namespace != "" {
		ref.Scope = placementv1beta1.NamespaceScoped
	}
	var comments []string
	for _, x := range group {
		f.addManifest(x.in, x.object)
		if len(terms) == 0 || x.object.GetKind() != "Namespace" {
			spec.ResourceSelectors = append(spec.ResourceSelectors, termOf(x.object))
		}
		if x.divided != nil {
			spec.Policy.ReplicaScheduling = append(spec.Policy.ReplicaScheduling, *x.divided)
			comments = append(comments, f.comments[x.in.name()]...)
		}
		if err := f.addOverride(x, ref); err != nil {
			return err
		}
	}
	if !f.SafeRollout {
		comments = append(comments, atOnce)
	}
	return f.addPlacementOf(name, namespace, spec, comments)
}

// addPlacementOf adds a placement in a namespace, or a cluster-scoped one.
func (c *conversion) addPlacementOf(name, namespace string, spec placementv1beta1.PlacementSpec, comments []string) error {
	kind := "ClusterResourcePlacement"
	if namespace != "" {
		kind = "ResourcePlacement"
	}
	made, err := toManifest(&placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec},
		kind, placementv1beta1.GroupVersion.String())
	if err != nil {
		return err
	}
	c.result.Documents = append(c.result.Documents, Document{Object: made, Comments: comments})
	return nil
}

// termOf selects one object.
func termOf(object *unstructured.Unstructured) placementv1beta1.ResourceSelectorTerm {
	gvk := object.GroupVersionKind()
	return placementv1beta1.ResourceSelectorTerm{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: object.GetName()}
}

// addOverride adds the override of an object, if it has rules.
func (f *federation) addOverride(x *federated, ref placementv1beta1.PlacementRef) error {
	if len(x.rules) == 0 {
		return nil
	}
	return f.addOverrideOf(x.in, x.object, joinedName(x.object.GetKind(), x.object.GetName()), &ref, x.rules)
}

// addOverrideOf adds an override of one object.
func (c *conversion) addOverrideOf(in Input, object *unstructured.Unstructured, name string, ref *placementv1beta1.PlacementRef,
	rules []placementv1beta1.OverrideRule) error {
	policy := placementv1beta1.OverridePolicy{OverrideRules: rules}
	meta := metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: name}
	var made *unstructured.Unstructured
	var err error
	if object.GetNamespace() == "" {
		made, err = toManifest(&placementv1beta1.ClusterResourceOverride{ObjectMeta: meta, Spec: placementv1beta1.ClusterResourceOverrideSpec{
			Placement: ref, ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{termOf(object)}, Policy: policy,
		}}, "ClusterResourceOverride", placementv1beta1.GroupVersion.String())
	} else {
		gvk := object.GroupVersionKind()
		made, err = toManifest(&placementv1beta1.ResourceOverride{ObjectMeta: meta, Spec: placementv1beta1.ResourceOverrideSpec{
			Placement: ref, Policy: policy,
			ResourceSelectors: []placementv1beta1.ResourceSelector{{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: object.GetName()}},
		}}, "ResourceOverride", placementv1beta1.GroupVersion.String())
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", in.Source, in.name(), err)
	}
	c.addManifest(in, made)
	return nil
}
