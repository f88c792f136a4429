package v1beta1

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAScopeChoosesTheKindAndTheNamespace(t *testing.T) {
	for sentence, test := range map[string]struct {
		scope      Scope
		placement  PlacementObject
		run        UpdateRunObject
		bindings   ObjectList[BindingObject]
		kind, run2 string
	}{
		"without a namespace, cluster-scoped kinds": {
			Scope{}, &ClusterResourcePlacement{}, &ClusterStagedUpdateRun{}, &ClusterResourceBindingList{}, "ClusterResourcePlacement", "ClusterStagedUpdateRun",
		},
		"with a namespace, their twins": {
			Scope{Namespace: "team"}, &ResourcePlacement{}, &StagedUpdateRun{}, &ResourceBindingList{}, "ResourcePlacement", "StagedUpdateRun",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := test.scope.NewPlacement("app")
			assert.IsType(t, test.placement, p)
			assert.Equal(t, test.scope.Key("app"), Scope{Namespace: p.GetNamespace()}.Key(p.GetName()))
			assert.Equal(t, test.scope, ScopeOf(p))
			assert.IsType(t, test.run, test.scope.NewUpdateRun("run"))
			assert.IsType(t, test.bindings, test.scope.NewBindingList())
			assert.Equal(t, test.kind, test.scope.PlacementKind().Kind)
			assert.Equal(t, test.run2, test.scope.UpdateRunKind().Kind)
		})
	}
}

func TestItemsOfAListAreChangedInPlace(t *testing.T) {
	list := &ResourceBindingList{Items: make([]ResourceBinding, 2)}
	list.Objects()[1].GetBindingSpec().TargetCluster = "member-1"
	assert.Equal(t, "member-1", list.Items[1].Spec.TargetCluster)
}

func TestACopySharesNothing(t *testing.T) {
	from := UpdateRunObject(&ClusterStagedUpdateRun{})
	from.SetAnnotations(map[string]string{"a": "1"})
	into := Scope{}.NewUpdateRun("other")
	CopyInto(into, from)
	copied := DeepCopyOf(from)
	from.GetAnnotations()["a"] = "2"
	assert.Equal(t, "1", into.GetAnnotations()["a"])
	assert.Equal(t, "1", copied.GetAnnotations()["a"])
	assert.Empty(t, into.GetName())
}

func TestTextsNameTheKindsOfTheScope(t *testing.T) {
	text := "the clusterStagedUpdateStrategy of ClusterStagedUpdateRun `r` does not fit clusterResourcePlacement `p`, see ClusterResourcePlacementScheduled and ClusterResourceOverride `o`"
	assert.Equal(t, text, Scope{}.Word(text))
	assert.Equal(t, "the stagedUpdateStrategy of StagedUpdateRun `r` does not fit resourcePlacement `p`, see ResourcePlacementScheduled and ClusterResourceOverride `o`",
		Scope{Namespace: "team"}.Word(text))
}
