package override

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Limit is how many overrides the hub applies: so many ClusterResourceOverrides, and so many
// ResourceOverrides of each namespace, so that no tenant takes the places of others.
const Limit = 100

// Override has what decides whether an override is valid.
type Override struct {
	types.NamespacedName
	Created time.Time
	// Selects names the objects that are selected.
	Selects []string
}

// Verdict says whether an override is valid, and if not, what the user can do.
type Verdict struct {
	// Reason of the condition Valid.
	Reason  string
	Message string
}

// Valid reports whether the hub applies the override.
func (v Verdict) Valid() bool { return v.Reason == placementv1beta1.ReasonOverrideValid }

// Decide returns which of all overrides of one kind are valid. The older one keeps an object: a later one that selects
// it as well is not valid as a whole and keeps nothing. Of the same age, the one with the lower name counts as older.
func Decide(overrides []Override) map[types.NamespacedName]Verdict {
	verdicts := make(map[types.NamespacedName]Verdict, len(overrides))
	keepers := map[string]*Override{}
	ordered := byAge(overrides)
	ranks := map[string]int{}
	for i := range ordered {
		verdict := decideOne(ranks[ordered[i].Namespace], &ordered[i], keepers)
		ranks[ordered[i].Namespace]++
		verdicts[ordered[i].NamespacedName] = verdict
		if !verdict.Valid() {
			continue
		}
		for _, object := range ordered[i].Selects {
			keepers[object] = &ordered[i]
		}
	}
	return verdicts
}

func decideOne(rank int, o *Override, keepers map[string]*Override) Verdict {
	if rank >= Limit {
		return Verdict{placementv1beta1.ReasonOverrideLimitExceeded, limitMessage(o)}
	}
	for _, object := range o.Selects {
		if keeper := keepers[object]; keeper != nil {
			return Verdict{placementv1beta1.ReasonOverrideConflict, conflictMessage(object, o, keeper)}
		}
	}
	return Verdict{placementv1beta1.ReasonOverrideValid, "No older override selects what this one selects"}
}

func limitMessage(o *Override) string {
	kind := "clusterResourceOverride"
	objects := "cluster resources can be created"
	if o.Namespace != "" {
		kind = "resourceOverride"
		objects = "resources can be created in namespace " + o.Namespace
	}
	return fmt.Sprintf("%s limit has been reached: at most %d %s; this override has no effect: "+
		"delete an older one, or move its rules to one", kind, Limit, objects)
}

func conflictMessage(object string, o, keeper *Override) string {
	return fmt.Sprintf("invalid resource selector: %s has been selected by both %s and %s, which is not supported; "+
		"%s is older, and this override has no effect: take the object out of one of the two, or move the rules for it to %s",
		object, keeper.Name, o.Name, keeper.Name, keeper.Name)
}

// limitMoved names the overrides that are beyond the limit now and were not before, or the other way round. told has
// the reasons of their conditions.
func limitMoved(overrides []Override, told map[types.NamespacedName]string) []types.NamespacedName {
	var moved []types.NamespacedName
	ranks := map[string]int{}
	for _, o := range byAge(overrides) {
		rank := ranks[o.Namespace]
		ranks[o.Namespace]++
		if rank >= Limit != (told[o.NamespacedName] == placementv1beta1.ReasonOverrideLimitExceeded) {
			moved = append(moved, o.NamespacedName)
		}
	}
	return moved
}

func byAge(overrides []Override) []Override {
	return slices.SortedFunc(slices.Values(overrides), func(a, b Override) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
}
