package rules

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReplacedBy returns the cluster whose copy takes the place of that of a binding, which stays until that is available; empty if the binding
// does not wait for one.
func ReplacedBy(binding placementv1beta1.BindingObject) string {
	if IsLiveBinding(binding) || IsDeleting(binding) {
		return ""
	}
	return binding.GetAnnotations()[placementv1beta1.ReplacedByAnnotation]
}

// ReplacementAsked returns which cluster a user has asked for in the place of that of a binding which waits for one; empty if none was.
func ReplacementAsked(binding placementv1beta1.BindingObject) string {
	if ReplacedBy(binding) == "" {
		return ""
	}
	return binding.GetAnnotations()[placementv1beta1.ReplacementAskedAnnotation]
}

// WhyImmovable returns why a placement does not move to a cluster that replaces one that it has, empty if it does, and whether no copy may be
// added before another has gone.
func WhyImmovable(placement placementv1beta1.PlacementObject) (why string, noRoom bool) {
	strategy := StrategyOf(placement)
	switch {
	case IsExternal(placement):
		return "update runs decide what is placed where (strategy type External)", false
	case strategy.ApplyStrategy != nil && strategy.ApplyStrategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff:
		return "it only reports differences (ReportDiff), and places nothing that could move", false
	}
	_, surge := RolloutLimits(placement)
	if surge.Type == intstr.Int {
		return "", surge.IntVal == 0
	}
	return "", strings.Trim(strings.TrimSuffix(surge.StrVal, "%"), "0") == ""
}
