package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
)

// Group are clusters on which the same changes.
type Group struct {
	Clusters []string `json:"clusters"`
	// From is the snapshot they have now, empty for none.
	From string `json:"from,omitempty"`
	// To is the snapshot they get.
	To string `json:"to"`
	// Overrides that are applied to what they get.
	Overrides []string `json:"overrides,omitempty"`
	// Objects that change.
	Objects []objectdiff.Change `json:"objects,omitempty"`
	// Problem says why it is unknown, or why the cluster cannot be updated.
	Problem string `json:"problem,omitempty"`
}

// comparer finds out what changes on clusters.
type comparer struct {
	facts    Facts
	matcher  *override.Matcher
	cluster  func(string) override.Cluster
	byName   map[string]hub.Binding
	contents map[int]*workmodel.Content
	targets  map[string]int
	// known are the answers for clusters that no override tells apart.
	known map[string]Group
}

func newComparer(facts Facts) *comparer {
	c := &comparer{facts: facts, cluster: clusterOf(facts), byName: map[string]hub.Binding{}, contents: map[int]*workmodel.Content{},
		targets: facts.targetSnapshots(), known: map[string]Group{}}
	for _, binding := range facts.Bindings {
		c.byName[binding.Spec.TargetCluster] = binding
	}
	return c
}

// groupChanges returns those on every cluster, grouped.
func (c *comparer) groupChanges(clusters []string) ([]Group, error) {
	if len(c.facts.Overrides) > 0 {
		placed, err := identifiersOf(c.unpackSnapshot(c.facts.Target))
		if err != nil {
			return nil, err
		}
		named := override.Placement{Namespace: c.facts.Placement.Namespace, Name: c.facts.Placement.Name}
		c.matcher = override.NewMatcher(named, placed, c.facts.Overrides)
	}
	var groups []Group
	places := map[string]int{}
	for _, name := range clusters {
		group, err := c.compareCluster(name)
		if err != nil {
			return nil, err
		}
		id, err := json.Marshal(group)
		if err != nil {
			return nil, fmt.Errorf("comparing the clusters: %w", err)
		}
		place, known := places[string(id)]
		if !known {
			place = len(groups)
			places[string(id)] = place
			groups = append(groups, group)
		}
		groups[place].Clusters = append(groups[place].Clusters, name)
	}
	return groups, nil
}

// unpackSnapshot returns a snapshot as clusters get it, its envelopes unpacked.
func (c *comparer) unpackSnapshot(index int) *workmodel.Content {
	if known, ok := c.contents[index]; ok {
		return known
	}
	c.contents[index] = contentOf(c.facts.Rules, c.facts.Parts[index])
	return c.contents[index]
}

// contentOf returns what is in the parts of a snapshot.
func contentOf(rules envelope.Rules, parts []hub.ResourceSnapshot) *workmodel.Content {
	var objects []placementv1beta1.ResourceSnapshotObject
	for _, part := range parts {
		objects = append(objects, part.Object.(placementv1beta1.ResourceSnapshotObject))
	}
	return workmodel.NewContent(rules, objects)
}

// compareCluster returns what changes on one cluster.
func (c *comparer) compareCluster(name string) (Group, error) {
	binding := c.byName[name]
	present, has := presentOf(binding, c.facts.Indexes)
	before := []string{}
	refs := []string{}
	if has {
		before = override.RefsOf(*binding.Spec)
	}
	var target override.Snapshots
	if c.matcher != nil {
		applicable := c.matcher.Applicable(c.cluster(name))
		refs = override.Refs(applicable.ClusterResourceOverrideSnapshots, applicable.ResourceOverrideSnapshots)
		target = pickOverrides(c.facts.Overrides, applicable)
	}
	plain := len(before) == 0 && len(refs) == 0
	to := c.facts.Target
	if own, is := c.targets[name]; is {
		to = own
	}
	key := fmt.Sprint(present, has, to)
	if known, ok := c.known[key]; plain && ok {
		return known, nil
	}
	group := Group{Overrides: refs, To: strconv.Itoa(to)}
	if has {
		group.From = strconv.Itoa(present)
	}
	if len(c.facts.Parts[to]) == 0 {
		group.Problem = fmt.Sprintf("snapshot %d is gone from the hub", to)
		return group, nil
	}
	err := c.fillGroup(&group, name, present, to, has, before, target)
	if plain && err == nil {
		c.known[key] = group
	}
	return group, err
}

// fillGroup compares what a cluster has with what it gets. What keeps that from being told is said in the group.
func (c *comparer) fillGroup(group *Group, name string, present, to int, has bool, before []string, target override.Snapshots) error {
	var old []unstructured.Unstructured
	if has {
		if old, group.Problem = c.presentObjects(name, present, before); group.Problem != "" {
			return nil
		}
	}
	now, err := c.objectsFor(to, name, target)
	if err != nil {
		group.Problem = err.Error()
		return nil //nolint:nilerr // the plan says it, and goes on with the other clusters
	}
	group.Objects, err = objectdiff.Objects(old, now)
	return err
}

// presentObjects returns what a cluster has now, or why that is unknown.
func (c *comparer) presentObjects(name string, present int, refs []string) (objects []unstructured.Unstructured, problem string) {
	if len(c.facts.Parts[present]) == 0 {
		return nil, fmt.Sprintf("snapshot %d is gone from the hub: what changes is unknown", present)
	}
	named, missing := c.namedOverrides(refs)
	if missing != "" {
		return nil, fmt.Sprintf("override snapshot %s is gone from the hub: what changes is unknown", missing)
	}
	objects, err := c.objectsFor(present, name, named)
	if err != nil {
		return nil, "what it has now is unknown: " + err.Error()
	}
	return objects, ""
}

// namedOverrides returns the override snapshots that a binding names; missing is one that is gone.
func (c *comparer) namedOverrides(refs []string) (all override.Snapshots, missing string) {
	for _, ref := range refs {
		one, ok := c.facts.Named[ref]
		if !ok {
			return all, ref
		}
		all = append(all, one...)
	}
	return all, ""
}

// pickOverrides returns the snapshots that apply to a cluster.
func pickOverrides(inForce override.Snapshots, applicable override.Applicable) override.Snapshots {
	var picked override.Snapshots
	refs := override.Refs(applicable.ClusterResourceOverrideSnapshots, applicable.ResourceOverrideSnapshots)
	for _, snapshot := range inForce {
		if slices.Contains(refs, override.SourceOf(snapshot).Ref()) {
			picked = append(picked, snapshot)
		}
	}
	return picked
}

// objectsFor returns those a cluster gets of a snapshot.
func (c *comparer) objectsFor(index int, cluster string, overrides override.Snapshots) ([]unstructured.Unstructured, error) {
	content := c.unpackSnapshot(index)
	if len(overrides) > 0 {
		changed, err := content.Override(override.Compile(overrides).On(c.cluster(cluster)))
		if err != nil {
			return nil, err
		}
		content = changed
	}
	return objectsOf(content)
}

// objectsOf reads the objects of all Works that a snapshot makes.
func objectsOf(content *workmodel.Content) ([]unstructured.Unstructured, error) {
	binding := &placementv1beta1.ClusterResourceBinding{}
	binding.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "plan"}
	binding.Spec.ResourceSnapshotName = content.Parts()[0].GetName()
	works, err := workmodel.Generate(binding, content)
	if err != nil {
		return nil, err
	}
	var objects []unstructured.Unstructured
	for i := range works {
		for _, manifest := range works[i].Spec.Workload.Manifests {
			object := unstructured.Unstructured{}
			if err := json.Unmarshal(manifest.Raw, &object.Object); err != nil {
				return nil, fmt.Errorf("reading an object of %s: %w", strings.Join(objectNames(content), ", "), err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}

func objectNames(content *workmodel.Content) []string {
	var all []string
	for _, part := range content.Parts() {
		all = append(all, part.GetName())
	}
	return all
}

// identifiersOf returns those of all objects of a snapshot.
func identifiersOf(content *workmodel.Content) ([]placementv1beta1.ResourceIdentifier, error) {
	objects, err := objectsOf(content)
	if err != nil {
		return nil, err
	}
	var all []placementv1beta1.ResourceIdentifier
	for i := range objects {
		gvk := schema.FromAPIVersionAndKind(objects[i].GetAPIVersion(), objects[i].GetKind())
		all = append(all, placementv1beta1.ResourceIdentifier{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: objects[i].GetNamespace(), Name: objects[i].GetName(),
		})
	}
	return all, nil
}
