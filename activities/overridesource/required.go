package overridesource

import (
	"strings"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

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
	of := overrideOf(snapshot)
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
