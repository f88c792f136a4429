package worksync

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// signWork takes over a Work that another author has written for the binding. If its content is the wanted one, only metadata is
// written, and its member has nothing to do.
func (s *Syncer) signWork(ctx context.Context, want, have *placementv1beta1.Work) (again bool, err error) {
	same, err := sameSpec(want, have)
	if err != nil {
		return false, err
	}
	patch, err := replacementPatch(want, have)
	if same {
		signed := want.DeepCopy()
		// It is not brought to its revision now: since when its objects have been available, its status says.
		delete(signed.Annotations, workmodel.RevisionTimeAnnotation)
		unchanged := fence.Test("/metadata/generation", have.Generation)
		patch, err = fence.Patch(have.UID, append([]fence.Op{unchanged}, metadataOperations(signed, have)...)...)
	}
	if err != nil {
		return false, err
	}
	err = s.client.Patch(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}, patch)
	return lostRace(err), err
}

// sameSpec reports whether two Works ask for the same, however their manifests are written.
func sameSpec(want, have *placementv1beta1.Work) (bool, error) {
	if !equality.Semantic.DeepEqual(want.Spec.ApplyStrategy, have.Spec.ApplyStrategy) ||
		!equality.Semantic.DeepEqual(want.Spec.ReportBackStrategy, have.Spec.ReportBackStrategy) ||
		!slices.Equal(want.Spec.ReportReplicas, have.Spec.ReportReplicas) ||
		!slices.Equal(want.Spec.ReportState, have.Spec.ReportState) {
		return false, nil
	}
	wanted, err := workmodel.HashOfManifests(want)
	if err != nil {
		return false, err
	}
	found, err := workmodel.HashOfManifests(have)
	return wanted == found, err
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
	for _, key := range []string{placementv1beta1.EnvelopeTypeLabel, placementv1beta1.EnvelopeNamespaceLabel,
		placementv1beta1.EnvelopeNameLabel} {
		if a.Labels[key] != b.Labels[key] {
			return false
		}
	}
	return true
}
