package override

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Snapshots are snapshots of overrides of both kinds. They may be shared with a cache
// and must not be changed.
type Snapshots []placementv1beta1.OverrideSnapshotObject

// shortForms returns all snapshots in short form.
func (s Snapshots) shortForms() []string {
	refs := make([]string, 0, len(s))
	for _, snapshot := range s {
		refs = append(refs, SourceOf(snapshot).Ref())
	}
	return refs
}

// KeyOf names the override that a snapshot was taken of.
func KeyOf(snapshot placementv1beta1.OverrideSnapshotObject) types.NamespacedName {
	return placementv1beta1.ScopeOf(snapshot).Key(snapshot.GetLabels()[placementv1beta1.ParentOverrideLabel])
}

// RefsOf returns the snapshots that a binding names, in short form.
func RefsOf(spec placementv1beta1.ResourceBindingSpec) []string {
	return Refs(spec.ClusterResourceOverrideSnapshots, spec.ResourceOverrideSnapshots)
}

// Refs are snapshots of both kinds, in short form.
func Refs(clusterWide []string, namespaced []placementv1beta1.NamespacedName) []string {
	refs := append([]string(nil), clusterWide...)
	for _, name := range namespaced {
		refs = append(refs, name.Namespace+"/"+name.Name)
	}
	return refs
}

// InputsAnnotations returns those of a binding whose overrides are applied from inputs; nil if it
// has none.
func InputsAnnotations(inputs string) map[string]string {
	if inputs == "" {
		return nil
	}
	return map[string]string{placementv1beta1.OverrideInputsAnnotation: inputs}
}

// Corrected reports whether an override that a rollout began with cannot be applied somewhere and was changed since. There is
// nothing to be gained by waiting for the next rollout with what cannot work, so the change counts at once.
func Corrected(inForce Snapshots, picked []string, bindings []placementv1beta1.BindingObject) bool {
	latest := inForce.shortForms()
	superseded := func(ref string) bool { return slices.Contains(picked, ref) && !slices.Contains(latest, ref) }
	return slices.ContainsFunc(bindings, func(binding placementv1beta1.BindingObject) bool {
		overridden := meta.FindStatusCondition(binding.GetConditions(), placementv1beta1.ConditionTypeOverridden)
		return overridden != nil && overridden.Status == metav1.ConditionFalse && overridden.ObservedGeneration == binding.GetGeneration() &&
			slices.ContainsFunc(RefsOf(*binding.GetBindingSpec()), superseded)
	})
}

// Lacking returns the overrides that a placement requires and of which no snapshot is in force, as messages name them: they do not exist,
// or are not valid. It is nil if there are none.
func (s Snapshots) Lacking(placement placementv1beta1.PlacementObject) []string {
	required := placement.GetPlacementSpec().RequiredOverrides
	if len(required) == 0 {
		return nil
	}
	inForce := map[placementv1beta1.RequiredOverride]bool{}
	for _, snapshot := range s {
		inForce[RequiredOf(snapshot)] = true
	}
	var lacking []string
	for _, one := range required {
		switch {
		case inForce[one]:
		case one.Namespace == "":
			lacking = append(lacking, "ClusterResourceOverride "+one.Name)
		default:
			lacking = append(lacking, "ResourceOverride "+one.Namespace+"/"+one.Name)
		}
	}
	return lacking
}

// RequiredOf returns how a placement that requires the override of a snapshot names it.
func RequiredOf(snapshot placementv1beta1.OverrideSnapshotObject) placementv1beta1.RequiredOverride {
	of := KeyOf(snapshot)
	return placementv1beta1.RequiredOverride{Namespace: of.Namespace, Name: of.Name}
}

// LackingError says that overrides which a placement requires are not in force.
type LackingError struct{ Overrides []string }

// Error names them, and says what to do.
func (e *LackingError) Error() string {
	return DescribeLacking(e.Overrides)
}

// namedLacking is how many overrides are named.
const namedLacking = 5

// DescribeLacking returns which overrides are lacking, and what to do.
func DescribeLacking(overrides []string) string {
	named := strings.Join(overrides[:min(len(overrides), namedLacking)], ", ")
	if len(overrides) > namedLacking {
		named += ", ..."
	}
	return "spec.requiredOverrides names overrides that do not exist or are not valid: " + named +
		"; create or correct them, or no longer require them"
}
