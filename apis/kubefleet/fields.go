package kubefleet

import (
	_ "embed" // of the fields
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed fields.txt
var fieldList string

// specs are the fields of the specs of KubeFleet's kinds that users write, by kind and version.
var specs = sync.OnceValue(func() map[string]map[string]bool {
	byKind := map[string]map[string]bool{}
	var fields map[string]bool
	for line := range strings.Lines(fieldList) {
		line = strings.TrimSpace(line)
		switch kind, isKind := strings.CutPrefix(line, "= "); {
		case isKind:
			fields = map[string]bool{}
			name, versions, _ := strings.Cut(kind, " ")
			for version := range strings.FieldsSeq(versions) {
				byKind[name+" "+version] = fields
			}
		case fields != nil:
			fields[line] = true
		}
	}
	return byKind
})

// KnowsSpec reports whether the fields of the spec of a kind in a version are known.
func KnowsSpec(kind, version string) bool { return specs()[kind+" "+version] != nil }

// HasField reports whether KubeFleet's kind has a field, such as spec.stages[].name.
func HasField(kind, version, path string) bool { return specs()[kind+" "+version][path] }

// Prune removes from a spec what clients with KubeFleet's Go types drop when they update an object, and returns the paths of the
// removed fields in order, each once. Of a kind that is not known it removes nothing.
func Prune(kind, version string, spec map[string]any) []string {
	known := specs()[kind+" "+version]
	if known == nil {
		return nil
	}
	dropped := map[string]bool{}
	prune(known, dropped, "spec", spec)
	return slices.Sorted(maps.Keys(dropped))
}

func prune(known, dropped map[string]bool, path string, value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			prune(known, dropped, path+"[]", item)
		}
	case map[string]any:
		if known[path+"{}"] {
			return // a map with keys of the user's
		}
		for name, field := range value {
			if at := path + "." + name; known[at] {
				prune(known, dropped, at, field)
			} else {
				dropped[at] = true
				delete(value, name)
			}
		}
	}
}
