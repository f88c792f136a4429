package rollingupdate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// clusterChange returns what the history keeps of a decided step: as little as tells the binding from others.
func (s *callState) clusterChange(f *rolloutFacts, step rollout.Step) wf.Change {
	c := f.pins[step.Cluster]
	c.Op = string(step.Op)
	c.UID = shortenUID(c.UID)
	if c.Binding == s.usualBinding(c.Cluster) {
		c.Binding = ""
	}
	if step.Op == rollout.AddStable {
		c.Snapshot = f.stable
	}
	return c
}

// bindingOf returns the name of the binding that a change is about.
func (s *callState) bindingOf(change wf.Change) string {
	if change.Binding == "" {
		return s.usualBinding(change.Cluster)
	}
	return change.Binding
}

// usualBinding returns the name that the scheduler gives to the binding of a cluster; adopted ones have others.
func (s *callState) usualBinding(cluster string) string {
	return placementv1beta1.BindingName(s.placement.GetName(), s.placement.GetUID(), cluster)
}

// isSameBinding reports whether a binding is the one that a change was decided for.
func isSameBinding(binding placementv1beta1.BindingObject, change wf.Change) bool {
	return change.UID != "" && strings.HasPrefix(string(binding.GetUID()), change.UID)
}

// inFlight returns the clusters that are not available yet with what they were given, or are being removed.
func (f *rolloutFacts) inFlight() sets.Set[string] {
	names := sets.New[string]()
	for _, c := range f.Clusters {
		if c.Deleting || c.Placed && c.Current && !c.Available {
			names.Insert(c.Name)
		}
	}
	return names
}
