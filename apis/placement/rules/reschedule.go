package rules

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// RescheduleAt returns the time in the annotation that asks to reschedule a placement, or on a policy snapshot, that says which of these
// requests was carried out last; zero without one. The error is for the user.
func RescheduleAt(object metav1.Object) (time.Time, error) {
	value, there := object.GetAnnotations()[placementv1beta1.RescheduleAtAnnotation]
	if !there {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s is %q, which is no time like 2026-01-31T12:00:00Z: it has no effect",
			placementv1beta1.RescheduleAtAnnotation, value)
	}
	return at, nil
}

// AsksToReschedule reports whether a user has asked to pick the clusters of a placement afresh, and that this has not been carried out
// yet, as the latest policy snapshot says; that may be nil.
func AsksToReschedule(placement, latest metav1.Object) bool {
	asked, err := RescheduleAt(placement)
	if err != nil || asked.IsZero() || latest == nil {
		return false // without a policy snapshot, nothing has been picked yet
	}
	done, err := RescheduleAt(latest)
	return err != nil || asked.After(done)
}
