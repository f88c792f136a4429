package brake_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

func busyMember(name string, since, until time.Time) clusterv1beta1.MemberCluster {
	return clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     clusterv1beta1.MemberClusterStatus{Busy: &clusterv1beta1.Busy{Since: metav1.NewTime(since), Until: metav1.NewTime(until), Message: "month-end"}},
	}
}

func TestABusyClusterIsClosedForAllThatBegins(t *testing.T) {
	end := noon.Add(2 * time.Hour)
	gate := brake.NewChain(brake.Busy([]clusterv1beta1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "e1"}}, busyMember("w1", noon, end)}, brake.Subject{}, noon))
	for _, start := range fleetflowv1alpha1.AllStarts() {
		closure, closed := gate.Closed(west, start, noon)
		assert.True(t, closed, start)
		assert.Equal(t, rollout.Wait{
			Cluster: "w1", Kind: rollout.BrakeBusy, Object: "w1", Reason: fleetflowv1alpha1.ReasonClusterBusy, Why: "month-end", Until: end,
		}, closure)
		assert.Equal(t, "busy cluster w1 (month-end) until 2026-11-22T14:00:00Z", closure.Text())
		_, closed = gate.Closed(east, start, noon)
		assert.False(t, closed, "no other waits for it")
		_, closed = gate.Closed(west, start, end)
		assert.False(t, closed, "its time is over")
	}
	assert.Equal(t, end, gate.NextChange(noon))
	assert.Zero(t, gate.NextChange(end))
	assert.Nil(t, brake.NewChain(brake.Busy(make([]clusterv1beta1.MemberCluster, 3), brake.Subject{}, noon)), "a fleet without busy clusters is open")
	assert.Nil(t, brake.NewChain(brake.Busy([]clusterv1beta1.MemberCluster{busyMember("w1", noon, end)}, brake.Subject{}, end)), "and so is one of which one was busy")
}

func TestAnExemptionFromABusyCluster(t *testing.T) {
	end := noon.Add(2 * time.Hour)
	tests := map[string]struct {
		from    fleetflowv1alpha1.ExemptFrom
		at      time.Time
		closed  bool
		changes time.Time
	}{
		"of that name":             {from: fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromBusy, Name: "w1"}, at: noon, changes: noon.Add(time.Hour)},
		"from all":                 {from: fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromBusy}, at: noon, changes: noon.Add(time.Hour)},
		"that is over":             {from: fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromBusy}, at: noon.Add(time.Hour), closed: true, changes: end},
		"from another one":         {from: fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromBusy, Name: "e1"}, at: noon, closed: true, changes: end},
		"from a hold of that name": {from: fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "w1"}, at: noon, closed: true, changes: end},
		"from all windows":         {from: fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromWindow}, at: noon, closed: true, changes: end},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of := brake.Subject{Run: "web-17", UID: "1"}
			e := exemption("e", func(e *fleetflowv1alpha1.RolloutExemption) {
				e.Spec.ExemptFrom = []fleetflowv1alpha1.ExemptFrom{test.from}
			})
			of.Exemptions = brake.Exemptions{e}
			gate := brake.NewChain(brake.Busy([]clusterv1beta1.MemberCluster{busyMember("w1", noon, end)}, of, noon))
			_, closed := gate.Closed(west, fleetflowv1alpha1.StartUpdates, test.at)
			assert.Equal(t, test.closed, closed)
			assert.Equal(t, test.changes, gate.NextChange(test.at))
		})
	}
}
