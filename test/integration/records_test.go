//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// recordsOutliveTheRun has the hub agent die while a run waits for an approval, deletes the run once it has succeeded, and its placement: what is
// on record is whole, says who has approved which plan, and nobody else can write it.
func recordsOutliveTheRun(s *spec) {
	s.externalPlacement()
	s.strategy(staging(), canary(approval))
	run := s.startRun("run", "0")
	s.awaitRequest(run, "canary")
	killHubAgent(s)
	kubectlChannel.approve(s, run, "canary")
	ended := s.awaitSucceeded(run)
	require.NoError(s, s.hub.Delete(s.Context(), run.DeepCopy()))
	s.eventually("the run to be gone", func() error {
		err := s.hub.Get(s.Context(), client.ObjectKeyFromObject(run), &placementv1beta1.ClusterStagedUpdateRun{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the run is still there: %w", err)
	})
	killHubAgent(s) // what the next one finds makes no record twice

	var told []string
	for line := range strings.Lines(s.steer("records", "run/"+run.Name, "-o", "jsonl")) {
		spec := fleetflowv1alpha1.AuditRecordSpec{}
		require.NoError(s, json.Unmarshal([]byte(line), &spec), line)
		told = append(told, strings.TrimSpace(string(spec.Type)+" "+spec.StageName))
		assert.Equal(s, string(run.UID), spec.SubjectRef.UID)
		switch spec.Type {
		case fleetflowv1alpha1.RecordRunCreated:
			assert.Equal(s, &fleetflowv1alpha1.AuditActor{Username: administrator, Verified: true}, spec.Actor)
		case fleetflowv1alpha1.RecordApprovalGiven:
			assert.Equal(s, &fleetflowv1alpha1.AuditActor{Username: administrator, Verified: true, Channel: string(kubectlChannel.name)}, spec.Actor)
			assert.Equal(s, "lgtm", spec.Comment)
			assert.Equal(s, ended.Status.PlanHash, spec.PlanHash)
		case fleetflowv1alpha1.RecordRunDeleted:
			assert.Equal(s, &fleetflowv1alpha1.AuditActor{}, spec.Actor)
		}
	}
	assert.ElementsMatch(s, []string{
		"run.created", "run.initialized", "stage.started staging", "stage.succeeded staging", "approval.requested canary", "stage.started canary",
		"stage.succeeded canary", "approval.given canary", "run.succeeded", "run.deleted",
	}, withoutDeletionStage(told))
	require.Contains(s, s.steer("records", "verify", "run/"+run.Name), "yes")

	list := fleetflowv1alpha1.AuditRecordList{}
	require.NoError(s, s.hub.List(s.Context(), &list, client.MatchingLabels{fleetflowv1alpha1.AuditSubjectLabel: string(run.UID)}))
	require.NotEmpty(s, list.Items)
	forged := list.Items[0].DeepCopy()
	forged.Spec.Comment = "forged"
	require.ErrorContains(s, s.hub.Update(s.Context(), forged), "a record cannot be changed")
}

// withoutDeletionStage leaves out what is told of the stage that clears clusters, which a run may pass.
func withoutDeletionStage(told []string) []string {
	var rest []string
	for _, line := range told {
		if !strings.HasSuffix(line, placementv1beta1.DeletionStageName) {
			rest = append(rest, line)
		}
	}
	return rest
}
