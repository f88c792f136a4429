package stagedupdate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// The hub agent is upgraded while a rollback is under way that the version before has planned: it noted nothing of what the clusters go
// back to, and let rollbacks be rolled back.
func TestARollbackThatAnEarlierVersionHasBegunIsJudged(t *testing.T) {
	for sentence, test := range map[string]struct {
		// of changes the run that is rolled back, before the run that brought what the clusters go back to.
		of     func(*placementv1beta1.ClusterStagedUpdateRun)
		before bool
		exempt bool
		says   string
	}{
		"it restores what has succeeded":       {before: true, exempt: true, says: "nothing"},
		"nothing says that that had ever been": {says: "nothing"},
		"it rolls a rollback back":             {of: func(r *placementv1beta1.ClusterStagedUpdateRun) { r.Spec.RollbackOf = "example-run-1" }, before: true, says: "False UpdateRunFailed"},
		"the run was replaced by a younger one": {of: func(r *placementv1beta1.ClusterStagedUpdateRun) {
			r.Spec.RollbackOf = "example-run-1"
			r.CreationTimestamp = metav1.NewTime(begin.Add(2 * time.Hour))
		}, before: true, exempt: true, says: "nothing"},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := failedHalfway(t, placementv1beta1.FailureBudgetRollback)
			require.True(t, h.late(names("member1"), nil).Ended)
			made := h.run(back) // the same, an hour later and with a UID
			require.NoError(t, h.WithWatch.Delete(t.Context(), made))
			made.ResourceVersion = ""
			made.UID = "uid-" + back
			made.CreationTimestamp = metav1.NewTime(begin.Add(time.Hour))
			require.NoError(t, h.WithWatch.Create(t.Context(), made))
			require.True(t, initialize(h, back).Initialized)
			require.False(t, h.run(back).Status.RestoresSucceeded, "it had noted nothing")
			if test.before {
				before := broughtBefore("member1", "member2", "member3")
				status := before.Status
				require.NoError(t, h.WithWatch.Create(t.Context(), before))
				before.Status = status
				require.NoError(t, h.WithWatch.Status().Update(t.Context(), before))
			}
			if test.of != nil {
				of := h.run("example-run-2")
				test.of(of)
				require.NoError(t, h.WithWatch.Update(t.Context(), of))
			}

			must(h, h.acts.LoadRun, refOf(back))
			run := h.run(back)
			assert.Equal(t, test.says, said(run.Status.Conditions, "Succeeded"))
			assert.Equal(t, test.exempt, placementv1beta1.RestoresWhatSucceeded(run))
			again := run.ResourceVersion
			must(h, h.acts.LoadRun, refOf(back))
			assert.Equal(t, again, h.run(back).ResourceVersion, "another look writes nothing")
		})
	}
}

func TestARollbackOfARollbackThatAnEarlierVersionHasBegunStartsNoFurtherCluster(t *testing.T) {
	h := failedHalfway(t, placementv1beta1.FailureBudgetRollback)
	require.True(t, h.late(names("member1"), nil).Ended)
	made := h.run(back)
	require.NoError(t, h.WithWatch.Delete(t.Context(), made))
	made.ResourceVersion = ""
	made.UID = "uid-" + back
	made.CreationTimestamp = metav1.NewTime(begin.Add(time.Hour))
	require.NoError(t, h.WithWatch.Create(t.Context(), made))
	require.True(t, initialize(h, back).Initialized)
	of := h.run("example-run-2")
	of.Spec.RollbackOf = "example-run-1"
	require.NoError(t, h.WithWatch.Update(t.Context(), of))

	had := h.binding("member3").Spec.ResourceSnapshotName
	delta := must(h, h.acts.AdvanceStage, wf.StageAdvance{StageRequest: stageOf(back, "canary", 0), Start: names("member3")})
	assert.True(t, delta.Ended)
	assert.Equal(t, had, h.binding("member3").Spec.ResourceSnapshotName)
	assert.Contains(t, conditionOf(h.run(back).Status.Conditions, "Succeeded"), "`example-run-2` to roll back is a rollback itself, of `example-run-1`")
}
