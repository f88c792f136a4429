package brake

import (
	"fmt"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Base returns what a cluster waits for that has something else now than it had when the plan of its run was made, and whether it does. The
// binding says which run has written it last. One of which is not known what it had waits as well: an agent of an earlier version has lost that.
func Base(cluster, planned, now string, binding placementv1beta1.BindingObject) (rollout.Wait, bool) {
	if planned == now {
		return rollout.Wait{}, false
	}
	by := "which no run has written"
	if run := binding.GetAnnotations()[placementv1beta1.UpdateRunAnnotation]; run != "" {
		by = "which run " + run + " has written last"
	}
	had := "it had " + planned + " when the plan was made, and"
	if planned == "" {
		had = "what it had when the plan was made is not known, and it"
	}
	return rollout.Wait{
		Cluster: cluster, Kind: rollout.BrakeBase, Object: cluster, Reason: fleetflowv1alpha1.ReasonPlanOutdated,
		Why: fmt.Sprintf("%s has %s now, %s", had, now, by),
	}, true
}
