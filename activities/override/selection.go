package override

import (
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// objectKey tells one object from others, in whatever version.
type objectKey struct {
	group, kind, namespace, name string
}

// resource is an object in a version, which is empty if it does not matter.
type resource struct {
	objectKey
	version string
}

// resourceOf reads which resource an identifier of the API stands for.
func resourceOf(id placementv1beta1.ResourceIdentifier) resource {
	return resource{
		objectKey: objectKey{group: id.Group, kind: id.Kind, namespace: id.Namespace, name: id.Name},
		version:   id.Version,
	}
}

func (r resource) toIdentifier() placementv1beta1.ResourceIdentifier {
	return placementv1beta1.ResourceIdentifier{Group: r.group, Version: r.version, Kind: r.kind, Namespace: r.namespace, Name: r.name}
}

// isNamespace reports whether the resource is a Namespace.
func (o objectKey) isNamespace() bool {
	return o.group == "" && o.kind == "Namespace" && o.namespace == ""
}

// ofVersion reports whether the resource is meant by a selector of a version. The fields of a
// kind can differ between versions, so a patch is for the version that it names.
func (r resource) ofVersion(version string) bool {
	return version == "" || r.version == "" || version == r.version
}

// mention is one place where an override selects something.
type mention struct {
	// override and selector are positions, of the override and in it.
	override, selector int
	version            string
}

// index finds the overrides that select a resource.
type index struct {
	objects map[objectKey][]mention
	// contents are the mentions of Namespaces, by name: those select what is inside, too.
	contents map[string][]mention
}

func newIndex(overrides []spec) *index {
	x := &index{objects: map[objectKey][]mention{}, contents: map[string][]mention{}}
	for i, override := range overrides {
		for j, selector := range override.selectors {
			m := mention{override: i, selector: j, version: selector.version}
			x.objects[selector.objectKey] = append(x.objects[selector.objectKey], m)
			if selector.isNamespace() && selector.ofVersion("v1") {
				x.contents[selector.name] = append(x.contents[selector.name], m)
			}
		}
	}
	return x
}

// findMentions appends the mentions that select the resource, in the order of the overrides.
func (x *index) findMentions(to []mention, r resource) []mention {
	for _, m := range x.objects[r.objectKey] {
		if r.ofVersion(m.version) {
			to = append(to, m)
		}
	}
	if r.namespace == "" {
		return to
	}
	inside := x.contents[r.namespace]
	if len(inside) == 0 {
		return to
	}
	to = append(to, inside...)
	slices.SortStableFunc(to, func(a, b mention) int { return a.override - b.override })
	return to
}
