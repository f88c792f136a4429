package overridesource

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Mended says whether an override that a rollout began with cannot be applied somewhere
// and was changed since. There is nothing to be gained by waiting for the next rollout
// with what cannot work, so the change counts at once.
func Mended(inForce Snapshots, picked []string, bindings []placementv1beta1.ClusterResourceBinding) bool {
	latest := inForce.refs()
	superseded := func(ref string) bool { return slices.Contains(picked, ref) && !slices.Contains(latest, ref) }
	return slices.ContainsFunc(bindings, func(binding placementv1beta1.ClusterResourceBinding) bool {
		overridden := meta.FindStatusCondition(binding.Status.Conditions, placementv1beta1.ConditionTypeOverridden)
		return overridden != nil && overridden.Status == metav1.ConditionFalse && overridden.ObservedGeneration == binding.Generation &&
			slices.ContainsFunc(RefsOf(binding.Spec), superseded)
	})
}

// refs are all snapshots in short form.
func (s Snapshots) refs() []string {
	refs := make([]string, 0, len(s.ClusterWide)+len(s.Namespaced))
	for i := range s.ClusterWide {
		refs = append(refs, s.ClusterWide[i].Name)
	}
	for i := range s.Namespaced {
		refs = append(refs, s.Namespaced[i].Namespace+"/"+s.Namespaced[i].Name)
	}
	return refs
}
