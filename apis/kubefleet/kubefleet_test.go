package kubefleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func lease(holder string, renewed time.Time, seconds int32) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: &seconds}}
}

func TestALeaseIsHeldUntilItExpires(t *testing.T) {
	for sentence, test := range map[string]struct {
		lease *coordinationv1.Lease
		held  bool
	}{
		"there is no lease":              {nil, false},
		"it was renewed a moment ago":    {lease("a", now.Add(-time.Second), 60), true},
		"it was renewed too long ago":    {lease("a", now.Add(-time.Minute), 60), false},
		"its holder has released it":     {lease("", now.Add(-time.Second), 1), false},
		"it was never renewed":           {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a")}}, false},
		"it does not say for how long":   {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: &metav1.MicroTime{Time: now.Add(-10 * time.Second)}}}, true},
		"and that was a long time ago":   {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a"), RenewTime: &metav1.MicroTime{Time: now.Add(-20 * time.Second)}}}, false},
		"its holder's clock is in front": {lease("a", now.Add(time.Hour), 60), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.held, kubefleet.Hold{}.Observe(test.lease, now).IsHeld(now))
		})
	}
}

func TestARenewalCountsFromWhenItIsSeen(t *testing.T) {
	// The holder's clock is an hour behind.
	behind := now.Add(-time.Hour)
	hold := kubefleet.Hold{}.Observe(lease("a", behind, 60), now)
	assert.False(t, hold.IsHeld(now), "nothing tells yet that it is alive")
	hold = hold.Observe(lease("a", behind.Add(5*time.Second), 60), now.Add(5*time.Second))
	assert.Equal(t, now.Add(65*time.Second), hold.Until)
	again := hold.Observe(lease("a", behind.Add(5*time.Second), 60), now.Add(30*time.Second))
	assert.Equal(t, hold.Until, again.Until, "to be seen once more is no renewal")
}
