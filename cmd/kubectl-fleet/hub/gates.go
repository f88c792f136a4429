package hub

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// gateSources are what closes clusters, and what lets rollouts go in spite of that. Not everyone may read them, and not every
// hub has them: what is shown without them is true, too.
func gateSources() []Source {
	return []Source{
		{"holds", &fleetflowv1alpha1.RolloutHold{}, func() client.ObjectList { return &fleetflowv1alpha1.RolloutHoldList{} }, nil, true},
		{"windows", &fleetflowv1alpha1.RolloutWindow{}, func() client.ObjectList { return &fleetflowv1alpha1.RolloutWindowList{} }, nil, true},
		{"exemptions", &fleetflowv1alpha1.RolloutExemption{}, func() client.ObjectList { return &fleetflowv1alpha1.RolloutExemptionList{} }, nil, true},
	}
}

// Gates reads the holds, windows and exemptions of the hub; of a kind that may not be read there are none.
func (r Reader) Gates(ctx context.Context) ([]fleetflowv1alpha1.RolloutHold, []fleetflowv1alpha1.RolloutWindow, []fleetflowv1alpha1.RolloutExemption, error) {
	var holds fleetflowv1alpha1.RolloutHoldList
	var windows fleetflowv1alpha1.RolloutWindowList
	var exemptions fleetflowv1alpha1.RolloutExemptionList
	for what, list := range map[string]client.ObjectList{"holds": &holds, "windows": &windows, "exemptions": &exemptions} {
		if err := r.list(ctx, what, list); err != nil && !apierrors.IsForbidden(err) {
			return nil, nil, nil, err
		}
	}
	return holds.Items, windows.Items, exemptions.Items, nil
}
