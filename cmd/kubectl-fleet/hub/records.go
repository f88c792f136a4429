package hub

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// recordsInAPart is how many records are asked for at once: there may be many.
const recordsInAPart = 500

// Records returns what is on record of the placement, and of its runs, the objects of which may be gone. There is nothing where
// the hub keeps no records, or for users who may not read them. Before Kubernetes 1.31 the API server does not choose them: all are read there.
func (r PlacementReader) Records(ctx context.Context) ([]fleetflowv1alpha1.AuditRecord, error) {
	var found []fleetflowv1alpha1.AuditRecord
	of := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("spec.placementName", r.Placement.Name)}
	chooses := true
	for from := ""; ; {
		list := fleetflowv1alpha1.AuditRecordList{}
		asked := []client.ListOption{client.Limit(recordsInAPart), client.Continue(from)}
		if chooses {
			asked = append(asked, of)
		}
		err := r.Reader.List(ctx, &list, asked...)
		if chooses && from == "" && apierrors.IsBadRequest(err) {
			chooses = false
			continue
		}
		if Unserved(err) || apierrors.IsForbidden(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the records of %s: %w", r.Placement, err)
		}
		for i := range list.Items {
			if spec := &list.Items[i].Spec; spec.PlacementName == r.Placement.Name && spec.SubjectRef.Namespace == r.Placement.Namespace {
				found = append(found, list.Items[i])
			}
		}
		if from = list.Continue; from == "" {
			return found, nil
		}
	}
}
