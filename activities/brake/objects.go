package brake

import (
	"slices"
	"time"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Objects are the objects of a hub that may close clusters.
type Objects struct {
	Holds   []fleetflowv1alpha1.RolloutHold
	Windows []fleetflowv1alpha1.RolloutWindow
	Members []clusterv1beta1.MemberCluster
}

// Kind is a kind of objects that close clusters.
type Kind struct {
	// IsThere reports whether there is anything from which a subject could have to be exempt.
	IsThere func(o Objects, of Subject, now time.Time) bool
	// Source makes a source of the objects that concern a subject; nil if there are none.
	Source func(o Objects, of Subject, now time.Time) Source
}

// kinds are in the order in which they count.
var kinds = []Kind{
	{
		func(o Objects, _ Subject, _ time.Time) bool { return len(o.Holds) > 0 },
		func(o Objects, of Subject, _ time.Time) Source { return Holds(o.Holds, of) },
	},
	{
		func(o Objects, of Subject, _ time.Time) bool { return len(o.Windows)+len(of.Windows) > 0 },
		func(o Objects, of Subject, _ time.Time) Source { return Windows(o.Windows, of) },
	},
	{
		func(o Objects, _ Subject, now time.Time) bool {
			return slices.ContainsFunc(o.Members, func(m clusterv1beta1.MemberCluster) bool { return m.Status.Busy.IsNow(now) })
		},
		func(o Objects, of Subject, now time.Time) Source { return Busy(o.Members, of, now) },
	},
}

// Register adds a kind behind the others until the returned function is called: tests add kinds this way. It must not run while a chain
// is made.
func Register(k Kind) (remove func()) {
	before := kinds
	kinds = append(slices.Clone(kinds), k)
	return func() { kinds = before }
}

// AnyFor reports whether there is anything from which a subject could have to be exempt. Without it the chain is nil.
func (o Objects) AnyFor(of Subject, now time.Time) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return k.IsThere(o, of, now) })
}

// Chain makes the chain of a subject; nil if nothing closes any cluster for it.
func (o Objects) Chain(of Subject, now time.Time) *Chain {
	sources := make([]Source, len(kinds))
	for i, k := range kinds {
		sources[i] = k.Source(o, of, now)
	}
	return NewChain(sources...)
}
