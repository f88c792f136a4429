package selection

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
)

// found is the answer to a selector: the objects of a kind with these names.
func found(index int, kind, namespace string, names ...string) *objectQuery {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
	q := &objectQuery{rule: snapshot.Rule{Index: index, Kind: snapshot.Kind{GroupVersionKind: gvk}}}
	for _, name := range names {
		q.found = append(q.found, snapshot.Item{
			Identity: snapshot.Identity{GroupKind: gvk.GroupKind(), Namespace: namespace, Name: name}, Manifest: []byte("{}"),
		})
	}
	return q
}

func TestAnObjectThatTwoSelectorsSelectIsRefused(t *testing.T) {
	tests := map[string]struct {
		queries []*objectQuery
		refusal string
		objects int
	}{
		"objects of several selectors":        {[]*objectQuery{found(0, "Namespace", "", "a"), found(1, "Namespace", "", "b")}, "", 2},
		"of one name and different kinds":     {[]*objectQuery{found(0, "Namespace", "", "a"), found(1, "Node", "", "a")}, "", 2},
		"or in different namespaces":          {[]*objectQuery{found(0, "Secret", "n", "a"), found(1, "Secret", "m", "a")}, "", 2},
		"an answer that repeats itself":       {[]*objectQuery{found(0, "Namespace", "", "a", "a")}, "", 1},
		"an object selected by its name, and": {[]*objectQuery{found(0, "Namespace", "", "a"), found(1, "Namespace", "", "b", "a")}, `resourceSelectors[0] and resourceSelectors[1] both select Namespace (v1) "a": change one of them so that each object is selected once, or remove it (found duplicate resource)`, 2},
		"in a namespace":                      {[]*objectQuery{found(0, "Secret", "n", "a"), found(2, "Secret", "n", "a")}, `resourceSelectors[0] and resourceSelectors[2] both select Secret (v1) "n/a"`, 1},
		"the first one is named":              {[]*objectQuery{found(0, "Secret", "n", "a", "b"), found(1, "Secret", "n", "b", "a")}, `"n/b"`, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			selected, twice := mergeAnswers(tc.queries)
			assert.Len(t, selected.items, tc.objects)
			assert.NotEmpty(t, selected.inputs, "a change of what is selected is noticed")
			if tc.refusal == "" {
				require.NoError(t, twice)
				return
			}
			var invalid *snapshot.InvalidError
			require.ErrorAs(t, twice, &invalid)
			assert.Contains(t, invalid.Message, tc.refusal)
		})
	}
}
