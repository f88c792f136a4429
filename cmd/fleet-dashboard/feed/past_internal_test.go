package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestThePastIsReadFromTheRunsOfThatTime(t *testing.T) {
	created := metav1.NewTime(noon.Add(-48 * time.Hour))
	over := &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", CreationTimestamp: created}, Spec: placementv1beta1.UpdateRunSpec{PlacementName: "web"},
		Status: placementv1beta1.UpdateRunStatus{Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionTrue, LastTransitionTime: at(-47 * time.Hour)}}},
	}
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "storm", CreationTimestamp: at(time.Minute)}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "r"}}
	fleet := fleetOf(over, hold)
	all, ran := fleet.Past(noon.Add(-time.Hour), noon.Add(time.Hour))
	require.Len(t, ran, 1)
	assert.Equal(t, "web-2", ran[0].Run.Name)
	assert.True(t, ran[0].Ended.IsZero())
	assert.Equal(t, "storm", all[0].Name)
	for _, happening := range all {
		assert.NotEqual(t, "web-1", happening.Name, "a run that was over before is not read")
	}
	_, ran = fleet.Past(noon.Add(-72*time.Hour), noon.Add(-24*time.Hour))
	require.Len(t, ran, 2, "one that has no time of creation was there before all")
	assert.Equal(t, noon.Add(-47*time.Hour), ran[0].Ended.UTC())

	seen := fleet.SeenBy(func(_, resource, _ string) bool { return resource != fleetflowv1alpha1.RolloutHolds.Resource })
	all, _ = seen.Past(noon.Add(-time.Hour), noon.Add(time.Hour))
	for _, happening := range all {
		assert.NotEqual(t, "storm", happening.Name, "what may not be listed is left out")
	}
}

func TestThePastIsOnRecordForWhoMayListRecords(t *testing.T) {
	record := func(ago time.Duration) *fleetflowv1alpha1.AuditRecord {
		return &fleetflowv1alpha1.AuditRecord{Spec: fleetflowv1alpha1.AuditRecordSpec{
			Type: fleetflowv1alpha1.RecordRunDeleted, Time: at(-ago), PlacementName: "web", UpdateRunName: "web-0",
			SubjectRef: fleetflowv1alpha1.AuditSubjectReference{Kind: "ClusterStagedUpdateRun", Name: "web-0", UID: "gone"},
		}}
	}
	told := func(fleet *Fleet) int {
		all, _ := fleet.Past(noon.Add(-time.Hour), noon)
		count := 0
		for _, happening := range all {
			if happening.Name == "web-0" {
				count++
			}
		}
		return count
	}
	fleet := fleetOf(record(time.Minute), record(2*time.Hour))
	assert.Equal(t, 1, told(fleet), "what is not of that time is not looked at")
	assert.Same(t, fleet, fleet.SeenBy(func(string, string, string) bool { return true }))
	seen := fleet.SeenBy(func(_, resource, _ string) bool { return resource != "auditrecords" })
	assert.Zero(t, told(seen))
	assert.Equal(t, []string{"audit records"}, seen.Denied)
}
