//go:build integration

package integration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

// recordsOutliveTheRun has the hub agent die while a run waits for an approval, deletes the run once it has succeeded, and loses Temporal's
// database: what is on record is whole, says who has approved which plan, as the history does, and nobody else can write it. It is acceptance 5 of
// records.
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
	wipeTemporal(s)
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

	var entries []pastEntry
	require.NoError(s, json.Unmarshal([]byte(s.steer("history", s.name, "--only", "approval", "-o", "json")), &entries))
	given := slices.IndexFunc(entries, func(e pastEntry) bool { return e.Text == "stage canary approved" })
	require.GreaterOrEqual(s, given, 0, "%+v", entries)
	approved := entries[given]
	assert.False(s, approved.At.IsZero())
	approved.At = time.Time{}
	assert.Equal(s, pastEntry{
		Text: "stage canary approved", By: administrator, Channel: string(kubectlChannel.name), Comment: "lgtm", PlanHash: ended.Status.PlanHash, Verified: true, Recorded: true,
	}, approved)

	list := fleetflowv1alpha1.AuditRecordList{}
	require.NoError(s, s.hub.List(s.Context(), &list, client.MatchingLabels{fleetflowv1alpha1.AuditSubjectLabel: string(run.UID)}))
	require.NotEmpty(s, list.Items)
	forged := list.Items[0].DeepCopy()
	forged.Spec.Comment = "forged"
	require.ErrorContains(s, s.hub.Update(s.Context(), forged), "a record cannot be changed")
}

// recordsOfWhatIsGone lifts holds while a hub agent runs and while none does: each is on record, with who has set it.
func recordsOfWhatIsGone(s *spec) {
	lift := func(name string, meanwhile func(lift func())) {
		hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: name}}
		hold.Spec = fleetflowv1alpha1.RolloutHoldSpec{Message: "INC-4711", PlacementSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"none": "has"}}}
		s.create(hold)
		s.awaitRecords(hold.UID, "hold.set by "+administrator)
		meanwhile(func() { require.NoError(s, s.hub.Delete(s.Context(), hold.DeepCopy())) })
		s.awaitRecords(hold.UID, "hold.set by "+administrator, "hold.lifted by unverified")
	}
	lift(s.name+"-seen", func(lift func()) { lift() })
	lift(s.name+"-missed", func(lift func()) {
		s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Kill, hubAgent) })
		lift()
		s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, hubAgent) })
	})
}

// awaitRecords waits until there are these records of an object, and no others.
func (s *spec) awaitRecords(subject types.UID, want ...string) {
	s.Helper()
	s.eventually(fmt.Sprintf("the records %v", want), func() error {
		list := fleetflowv1alpha1.AuditRecordList{}
		if err := s.hub.List(s.Context(), &list, client.MatchingLabels{fleetflowv1alpha1.AuditSubjectLabel: string(subject)}); err != nil {
			return err
		}
		fleetflowv1alpha1.SortRecords(list.Items)
		var told []string
		for i := range list.Items {
			told = append(told, string(list.Items[i].Spec.Type)+" by "+list.Items[i].Actor())
		}
		if !slices.Equal(told, want) {
			return fmt.Errorf("there are %v", told)
		}
		return nil
	})
}

// planted is a value that no record may have.
const planted = "hunter2-of-the-records"

// recordsTellWhoDidWhat takes a run of three stages through an approval, a stop, a skip and its resumption: there are fourteen records, in one chain,
// and each names who has done it. It is acceptance 1 of records, and for what a run places acceptance 6.
func recordsTellWhoDidWhat(s *spec) {
	s.externalPlacement()
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: s.name}, StringData: map[string]string{"token": planted}})
	s.awaitIndex("1")
	one := placementv1beta1.StageConfig{Name: "one", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "canary", "order": "1"}}}
	two := placementv1beta1.StageConfig{Name: "two", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "canary", "order": "2"}}}
	s.strategy(staging(approval), one, two)
	run := s.startRun("run", "1")
	s.awaitRequest(run, "staging")
	s.steer("stop", run.Name)
	s.awaitStopped(run)
	s.steer("skip", run.Name, "member-1", "--yes", "--reason", "its disk is being replaced")
	s.steer("resume", run.Name)
	kubectlChannel.approve(s, run, "staging")
	s.awaitSucceeded(run)
	s.changeTo(planted)
	s.awaitIndex("2")

	admin := fleetflowv1alpha1.AuditActor{Username: administrator, Verified: true, Channel: "Kubectl"}
	creator := admin
	creator.Channel = ""
	want := map[string]*fleetflowv1alpha1.AuditActor{
		"run.created": &creator, "run.initialized": nil, "stage.started staging": nil, "stage.succeeded staging": nil, "approval.requested staging": nil,
		"approval.given staging": &admin, "run.stopped": &admin, "run.resumed": &admin, "cluster.skipped": &admin,
		"stage.started one": nil, "stage.succeeded one": nil, "stage.started two": nil, "stage.succeeded two": nil, "run.succeeded": nil,
	}
	var lines []string
	s.eventually("fourteen records", func() error {
		lines = withoutDeletionStage(slices.Collect(strings.Lines(s.steer("records", "run/"+run.Name, "-o", "jsonl"))))
		if len(lines) < len(want) {
			return fmt.Errorf("there are %d: %v", len(lines), lines)
		}
		return nil
	})
	got := map[string]*fleetflowv1alpha1.AuditActor{}
	for _, line := range lines {
		spec := fleetflowv1alpha1.AuditRecordSpec{}
		require.NoError(s, json.Unmarshal([]byte(line), &spec))
		got[strings.TrimSpace(string(spec.Type)+" "+spec.StageName)] = spec.Actor
		if spec.Type == fleetflowv1alpha1.RecordClusterSkipped {
			assert.Equal(s, "its disk is being replaced", spec.Comment)
		}
	}
	assert.Equal(s, want, got)
	assert.Len(s, lines, 14)
	var data []string
	for line := range strings.Lines(s.steer("records", "run/"+run.Name, "-o", "cloudevents")) {
		event := struct {
			Data json.RawMessage `json:"data"`
		}{}
		require.NoError(s, json.Unmarshal([]byte(line), &event))
		data = append(data, string(event.Data)+"\n")
	}
	assert.Equal(s, lines, withoutDeletionStage(data), "the data of an event is the line")
	require.Contains(s, s.steer("records", "verify", "run/"+run.Name), "yes")

	all := fleetflowv1alpha1.AuditRecordList{}
	require.NoError(s, s.hub.List(s.Context(), &all))
	text, err := json.Marshal(all)
	require.NoError(s, err)
	assert.NotContains(s, string(text), planted)
	assert.NotContains(s, string(text), base64.StdEncoding.EncodeToString([]byte(planted)))
	assert.Contains(s, s.steer("records", "placement/"+s.name, "--type", "snapshot.*"), "snapshot.created")
}

// pastEntry is what the history of a placement says as JSON.
type pastEntry struct {
	At                                   time.Time
	Text, By, Channel, Comment, PlanHash string
	Verified, Recorded                   bool
}

// withoutDeletionStage leaves out what is told of the stage that clears clusters, which a run may pass.
func withoutDeletionStage(told []string) []string {
	var rest []string
	for _, line := range told {
		if !strings.Contains(line, placementv1beta1.DeletionStageName) {
			rest = append(rest, line)
		}
	}
	return rest
}
