package worksync

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// sign takes over a Work that another author has written for the binding. If its content is the wanted one, only metadata is
// written, and its member has nothing to do.
func (s *Syncer) sign(ctx context.Context, want *placementv1beta1.Work) (again bool, err error) {
	have, err := s.readLiveWork(ctx, want)
	if err != nil {
		return false, err
	}
	if have == nil || stateOfWork(want, have) != unsigned {
		return true, nil
	}
	same, err := sameSpec(want.Spec, have.Spec)
	if err != nil {
		return false, fmt.Errorf("comparing work %s/%s: %w", want.Namespace, want.Name, err)
	}
	patch, err := replacementPatch(want, have)
	if same {
		signed := want.DeepCopy()
		// It is not brought to its revision now: since when its objects have been available, its status says.
		delete(signed.Annotations, workmodel.RevisionTimeAnnotation)
		patch, err = fence.Patch(have.UID, metadataOperations(signed, have)...)
	}
	if err != nil {
		return false, err
	}
	err = s.client.Patch(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}, patch)
	return lostRace(err), err
}

// sameSpec says whether two Works ask for the same, however their manifests are written.
func sameSpec(a, b placementv1beta1.WorkSpec) (bool, error) {
	first, second := a.Workload.Manifests, b.Workload.Manifests
	if len(first) != len(second) || !equality.Semantic.DeepEqual(a.ApplyStrategy, b.ApplyStrategy) ||
		!equality.Semantic.DeepEqual(a.ReportBackStrategy, b.ReportBackStrategy) {
		return false, nil
	}
	for i := range first {
		var x, y any
		if err := json.Unmarshal(first[i].Raw, &x); err != nil {
			return false, err
		}
		if err := json.Unmarshal(second[i].Raw, &y); err != nil {
			return false, err
		}
		if !equality.Semantic.DeepEqual(x, y) {
			return false, nil
		}
	}
	return true, nil
}

// keepEnvelopeNames gives a wanted Work the name of the one that carries its envelope already: another author may have named
// it otherwise.
func keepEnvelopeNames(binding placementv1beta1.BindingObject, wanted, existing []placementv1beta1.Work) {
	for i := range wanted {
		at := slices.IndexFunc(existing, func(work placementv1beta1.Work) bool {
			return wanted[i].Labels[placementv1beta1.EnvelopeTypeLabel] != "" && work.DeletionTimestamp.IsZero() &&
				workmodel.Owns(binding, &work) && sameEnvelope(&wanted[i], &work)
		})
		if at >= 0 {
			wanted[i].Name = existing[at].Name
		}
	}
}

func sameEnvelope(a, b *placementv1beta1.Work) bool {
	for _, key := range []string{placementv1beta1.EnvelopeTypeLabel, placementv1beta1.EnvelopeNamespaceLabel, placementv1beta1.EnvelopeNameLabel} {
		if a.Labels[key] != b.Labels[key] {
			return false
		}
	}
	return true
}
