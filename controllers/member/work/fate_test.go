package work

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// waysOut are the ways in which a Work stops to want an object.
var waysOut = map[string]departure{
	"the Work is deleted":                   {end: endDeleted},
	"the Work is deleted and leaves it":     {end: endDeleted, abandon: true},
	"the object leaves the Work":            {end: endDropped},
	"the object leaves the Work and stays":  {end: endDropped, abandon: true},
	"the cluster leaves":                    {end: endLeave},
	"the cluster leaves, the placement too": {end: endLeave, abandon: true},
}

var configMapKind = schema.GroupKind{Kind: "ConfigMap"}

// TestEveryOrderedPairOfEnds ends two Works that have a manifest of the same object, one after the other. The object is there for
// as long as one of them wants it, and goes with the last, unless somebody wants it to stay.
func TestEveryOrderedPairOfEnds(t *testing.T) {
	for _, kind := range []schema.GroupKind{configMapKind, namespaceKind, definitionKind, claimKind} {
		for firstName, first := range waysOut {
			for secondName, second := range waysOut {
				for _, others := range [][]string{nil, {"ConfigMap local of the cluster"}} {
					t.Run(fmt.Sprintf("%s: %s, then %s, others' objects %d", kind.Kind, firstName, secondName, len(others)), func(t *testing.T) {
						first.kind, second.kind = kind, kind
						if holdsOthers(kind) {
							first.residents, second.residents = others, others
						}
						first.heir = "second"
						switch got := decideFate(first); {
						case first.end == endLeave && first.abandon:
							assert.Equal(t, fateRelease, got)
						case first.end == endLeave && len(first.residents) > 0:
							assert.Equal(t, fateRelease, got, "all Works end, and what others have stays")
						case first.end == endLeave:
							assert.Equal(t, fateRemove, got, "all Works end")
						default:
							assert.Equal(t, fateHandOver, got, "the second still wants it")
						}
						switch got := decideFate(second); {
						case second.abandon, kind == claimKind && second.end == endDropped:
							assert.Equal(t, fateRelease, got)
						case len(second.residents) > 0 && second.end == endLeave:
							assert.Equal(t, fateRelease, got)
						case len(second.residents) > 0:
							assert.Equal(t, fateHold, got)
						default:
							assert.Equal(t, fateRemove, got, "nobody wants it any more")
						}
					})
				}
			}
		}
	}
}
