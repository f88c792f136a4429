package diagnosis

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
)

// ReadStandstill says that no hub agent keeps what the hub stores up to date, so that it is as the last one left it. It says nothing if
// one does, or if there never was one. The error says why that is not known.
func ReadStandstill(ctx context.Context, c client.Reader, now time.Time) (said string, err error) {
	f := &Facts{}
	for _, name := range []string{migration.HubAgentLease.Name, kubefleet.HubAgentLease.Name} {
		list := &coordinationv1.LeaseList{}
		if err := c.List(ctx, list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}); err != nil {
			return "", fmt.Errorf("reading the leases %s: %w", name, err)
		}
		f.Leases = append(f.Leases, list.Items...)
	}
	return describeStandstill(f, now), nil
}

// ReadDoubt says why what is shown may not be how it is: no hub agent works, or the hub does not answer. Forbidden reports that the user
// may not ask.
func ReadDoubt(ctx context.Context, c client.Reader, now time.Time) (said string, forbidden bool) {
	said, err := ReadStandstill(ctx, c, now)
	switch {
	case apierrors.IsForbidden(err):
		return "", true
	case err != nil:
		return fmt.Sprintf("what is shown may be old, as the hub does not answer: %v", err), false
	}
	return said, false
}

func describeStandstill(f *Facts, now time.Time) string {
	c := &checker{Facts: f, now: now}
	if len(f.Leases) == 0 || len(c.heldLeases()) > 0 {
		return ""
	}
	var last *metav1.MicroTime
	for i := range f.Leases {
		if renewed := f.Leases[i].Spec.RenewTime; renewed != nil && (last == nil || last.Before(renewed)) {
			last = renewed
		}
	}
	return "no hub agent has worked for " + c.ageOf(last) + ": this is what the hub knew then, and how it is now is not known; kubectl fleet check says more"
}
