package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Analyses returns the analyses of the hub, by run and stage; all of them without the name of a run.
func (r Reader) Analyses(ctx context.Context, namespace, run string) ([]fleetflowv1alpha1.StageAnalysisRunObject, error) {
	var found []fleetflowv1alpha1.StageAnalysisRunObject
	if namespace == "" {
		var list fleetflowv1alpha1.ClusterStageAnalysisRunList
		if err := r.Reader.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("listing the analyses: %w", err)
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	if namespace != "" || run == "" {
		var list fleetflowv1alpha1.StageAnalysisRunList
		if err := r.Reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the analyses: %w", err)
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	found = slices.DeleteFunc(found, func(a fleetflowv1alpha1.StageAnalysisRunObject) bool {
		return run != "" && a.GetStageAnalysisRunSpec().RunRef.Name != run
	})
	of := func(a fleetflowv1alpha1.StageAnalysisRunObject) string {
		return placementv1beta1.Scope{Namespace: a.GetNamespace()}.String() + a.GetStageAnalysisRunSpec().RunRef.Name
	}
	slices.SortFunc(found, func(a, b fleetflowv1alpha1.StageAnalysisRunObject) int {
		return cmp.Or(strings.Compare(of(a), of(b)), strings.Compare(a.GetName(), b.GetName()))
	})
	return found, nil
}
