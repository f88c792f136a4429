package fleetview_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
)

// onRecord is a record of what a user has done, or the fleet itself if no user is named.
func onRecord(kind, name, uid string, of fleetflowv1alpha1.AuditRecordType, ago time.Duration, user string) *fleetflowv1alpha1.AuditRecord {
	record := &fleetflowv1alpha1.AuditRecord{Spec: fleetflowv1alpha1.AuditRecordSpec{
		Type: of, Time: before(ago), SubjectRef: fleetflowv1alpha1.AuditSubjectReference{Kind: kind, Name: name, UID: uid},
	}}
	if kind == "ClusterStagedUpdateRun" || kind == "ClusterResourcePlacement" {
		record.Spec.PlacementName = "web"
		record.Spec.UpdateRunName = name
	}
	if user != "" {
		record.Spec.Actor = &fleetflowv1alpha1.AuditActor{Username: user, Channel: string(placementv1beta1.ApprovalChannelKubectl), Verified: true}
	}
	return record
}

func TestTheHistoryOfAFleetTellsWhatIsOnRecord(t *testing.T) {
	of := facts()
	run := &of.Runs[of.Placements[0].Ref][0]
	run.Object.SetUID("there")
	created := onRecord("ClusterStagedUpdateRun", "web-2", "there", fleetflowv1alpha1.RecordRunCreated, 40*time.Minute, "jane")
	gone := onRecord("ClusterStagedUpdateRun", "web-1", "gone", fleetflowv1alpha1.RecordRunFailed, 45*time.Minute, "")
	gone.Spec.Message = "no nodes"
	elsewhere := onRecord("ClusterStagedUpdateRun", "mail-1", "mail", fleetflowv1alpha1.RecordApprovalGiven, 44*time.Minute, "joe")
	elsewhere.Spec.PlacementName = "mail"
	elsewhere.Spec.StageName = "canary"
	lost := onRecord("MemberCluster", "b", "b", fleetflowv1alpha1.RecordMemberLost, 33*time.Minute, "")
	lost.Spec.Message = "no heartbeat"
	of.Records = []*fleetflowv1alpha1.AuditRecord{
		created, gone, elsewhere, lost,
		onRecord("ClusterStagedUpdateRun", "web-2", "there", fleetflowv1alpha1.RecordRunStopped, 25*time.Minute, "jane"),
		onRecord("RolloutHold", "storm", "storm", fleetflowv1alpha1.RecordHoldSet, 20*time.Minute, "alex"),
		onRecord("RolloutHold", "frost", "frost", fleetflowv1alpha1.RecordHoldLifted, 3*time.Minute, "alex"),
	}
	all := fleetview.Happenings(of)
	found := map[string]fleetview.Happening{}
	for _, h := range all {
		if h.At.After(noon.Add(-time.Hour)) {
			found[h.Name+" "+h.Text] = h
		}
	}
	stopped, is := found["web-2 stopped"]
	require.True(t, is, "what no object tells is told: %v", lines(all))
	assert.Equal(t, []any{"jane", true, "/runs/web-2"}, []any{stopped.By, stopped.Verified, stopped.Path})
	assert.NotContains(t, found, "web-2 created", "what the object tells is told once")
	failed, is := found["web-1 failed: no nodes"]
	require.True(t, is, lines(all))
	assert.True(t, failed.Bad)
	assert.Empty(t, failed.Path, "there is no page of a run that is gone")
	approved, is := found["mail-1 stage canary approved"]
	require.True(t, is, "of a placement that is gone, too: %v", lines(all))
	assert.Equal(t, "placement/mail", approved.Of.String())
	assert.Equal(t, "joe", approved.By)
	assert.Contains(t, found, "b lost: no heartbeat")
	assert.Equal(t, "member/b", found["b lost: no heartbeat"].Of.String())
	assert.Contains(t, found, "frost lifted")
	hold := found["storm stops the line for the whole fleet"]
	assert.Equal(t, []any{"alex", true}, []any{hold.By, hold.Verified}, "the record says who, for what the object tells")
	assert.NotContains(t, found, "storm stops the line")
}
