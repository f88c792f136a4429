package work

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func jobManifest(version string, ttl int) []placementv1beta1.Manifest {
	text := fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"n","name":"j","labels":{"version":%q}},"spec":{"ttlSecondsAfterFinished":%d}}`, version, ttl)
	return []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(text)}}}
}

// agentWithJob has created the Job of a Work.
func agentWithJob(t *testing.T, ttl int) *agent {
	t.Helper()
	w := manifestWork("w")
	w.Spec.Workload.Manifests = jobManifest("1", ttl)
	a := newAgent(t, []client.Object{w}, nil)
	require.Contains(t, a.mustReconcile(t, "w"), "member create Job j")
	return a
}

func (a *agent) job() *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	out.SetNamespace("n")
	out.SetName("j")
	return out
}

// finishJob ends the Job with a condition.
func (a *agent) finishJob(t *testing.T, condition string) {
	t.Helper()
	job := a.job()
	require.True(t, a.readMember(t, job, "j"))
	job.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True", "reason": "BackoffLimitExceeded", "message": "too many"}}}
	require.NoError(t, a.member.Status().Update(t.Context(), job))
}

func (a *agent) jobCondition(t *testing.T, kind string) metav1.Condition {
	t.Helper()
	manifests := a.work(t, "w").Status.ManifestConditions
	require.Len(t, manifests, 1)
	c := meta.FindStatusCondition(manifests[0].Conditions, kind)
	require.NotNil(t, c)
	return *c
}

func TestAJobThatItsClusterRemovesRunsOnceForEachVersionOfItsManifest(t *testing.T) {
	for condition, want := range map[string]string{"Complete": "Available", "Failed": "ManifestFailed"} {
		t.Run(condition, func(t *testing.T) {
			a := agentWithJob(t, 5)
			a.finishJob(t, condition)
			a.mustReconcile(t, "w")
			require.NoError(t, a.member.Delete(t.Context(), a.job()))

			assert.NotContains(t, a.afterRetryDelay().mustReconcile(t, "w"), "member create Job j")
			assert.Equal(t, "Applied", a.jobCondition(t, placementv1beta1.ConditionTypeApplied).Reason)
			assert.Equal(t, want, a.jobCondition(t, placementv1beta1.ConditionTypeAvailable).Reason)
			assert.Empty(t, a.afterRetryDelay().mustReconcile(t, "w"), "nothing is written while idle")

			a.memories.forgetWork("w")
			assert.Empty(t, a.mustReconcile(t, "w"), "the next agent knows of the run, too")

			a.setManifests(t, "w", jobManifest("2", 5))
			assert.Contains(t, a.mustReconcile(t, "w"), "member create Job j")
		})
	}
}

func TestAJobThatSomebodyRemovesBeforeItsEndIsCreatedAgain(t *testing.T) {
	a := agentWithJob(t, 600)
	job := a.job()
	require.True(t, a.readMember(t, job, "j"))
	job.SetCreationTimestamp(metav1.NewTime(a.clock.Now()))
	require.NoError(t, a.member.Update(t.Context(), job))
	a.mustReconcile(t, "w")
	require.NoError(t, a.member.Delete(t.Context(), a.job()))
	assert.Contains(t, a.afterRetryDelay().mustReconcile(t, "w"), "member create Job j")
}

func TestAJobWhoseEndNobodyHasSeenDoesNotRunAgain(t *testing.T) {
	a := agentWithJob(t, 0)
	require.NoError(t, a.member.Delete(t.Context(), a.job()))
	a.clock.SetTime(a.clock.Now().Add(time.Hour))
	assert.NotContains(t, a.mustReconcile(t, "w"), "member create Job j")
	assert.Equal(t, "NotTrackable", a.jobCondition(t, placementv1beta1.ConditionTypeAvailable).Reason)
}

func TestTheRunOfAJobIsKnownAlthoughTheRemovalOfSomethingElseFails(t *testing.T) {
	w := manifestWork("w", "stale")
	a := newAgent(t, []client.Object{w}, nil)
	a.mustReconcile(t, "w")
	a.setManifests(t, "w", jobManifest("1", 0))
	a.fail = func(write string) error {
		if write == "member delete ConfigMap stale" {
			return fmt.Errorf("not now")
		}
		return nil
	}
	_, _, err := a.reconcileByName(t, "w")
	require.Error(t, err)
	require.NoError(t, a.member.Delete(t.Context(), a.job()))
	writes, _, _ := a.reconcileByName(t, "w")
	assert.NotContains(t, writes, "member create Job j")
}

func TestAJobThatHasFailedForGoodSaysWhy(t *testing.T) {
	a := agentWithJob(t, 600)
	a.finishJob(t, "Failed")
	a.mustReconcile(t, "w")
	c := a.jobCondition(t, placementv1beta1.ConditionTypeAvailable)
	assert.Equal(t, metav1.ConditionFalse, c.Status)
	assert.Contains(t, c.Message, "BackoffLimitExceeded: too many")
}
