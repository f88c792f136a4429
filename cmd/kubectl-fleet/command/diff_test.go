package command

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

func configMap(name string) placementv1beta1.ResourceIdentifier {
	return placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}
}

func drifted(id placementv1beta1.ResourceIdentifier, path, hub, member string) placementv1beta1.DriftedResourcePlacement {
	return placementv1beta1.DriftedResourcePlacement{
		ResourceIdentifier: id, FirstDriftedObservedTime: ago(time.Hour), ObservationTime: ago(time.Minute),
		ObservedDrifts: []placementv1beta1.PatchDetail{{Path: path, ValueInHub: hub, ValueInMember: member}},
	}
}

func TestDiffShowsFieldByFieldHowMembersDiffer(t *testing.T) {
	changed := bindingTo("member-1", ok("Applied"))
	clean := bindingTo("member-2", ok("Applied"))
	silent := bindingTo("member-3")
	changed.Status.DriftedPlacements = []placementv1beta1.DriftedResourcePlacement{
		drifted(configMap("settings"), "/data/theme", "dark", "pink"),
		drifted(placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Secret", Namespace: "shop", Name: "login"}, "/data/password", "aHVudGVyMg==", "aHVudGVyMw=="),
	}
	changed.Status.DiffedPlacements = []placementv1beta1.DiffedResourcePlacement{
		{ResourceIdentifier: configMap("extra"), FirstDiffedObservedTime: ago(time.Hour), ObservationTime: ago(time.Minute), TargetClusterObservedGeneration: ptr.To[int64](3), ObservedDiffs: []placementv1beta1.PatchDetail{{Path: "/data/new", ValueInMember: "x"}}},
		{ResourceIdentifier: configMap("gone"), FirstDiffedObservedTime: ago(time.Hour), ObservationTime: ago(time.Minute), ObservedDiffs: []placementv1beta1.PatchDetail{{Path: "/", ValueInHub: "(the whole object)"}}},
	}
	c := newConsole(t, append(smallFleet(), changed, clean, silent)...)
	err := c.run("diff", "placement/web")
	exit, is := errors.AsType[*cli.Exit](err)
	require.True(t, is, "%v", err)
	assert.Equal(t, cli.CodeFailed, exit.Code, "as kubectl diff")
	c.Golden("diff.txt")
	assert.NotContains(t, c.Out.String(), "aHVudGVy")

	require.NoError(t, c.run("diff", "web", "--member", "member-2"))
	assert.Equal(t, "placement/web: no differences reported on 1 member.\n", c.Out.String())
}

func TestThatADifferenceCannotBeToldIsNoDifference(t *testing.T) {
	for sentence, args := range map[string][]string{
		"no such placement":     {"diff", "missing"},
		"no placement named":    {"diff"},
		"a flag there is not":   {"diff", "web", "--everywhere"},
		"a format there is not": {"diff", "web", "-o", "xml"},
	} {
		t.Run(sentence, func(t *testing.T) {
			exit, is := errors.AsType[*cli.Exit](newConsole(t, smallFleet()...).run(args...))
			require.True(t, is)
			assert.Equal(t, 2, exit.Code)
			assert.NotEmpty(t, exit.Error())
		})
	}
}

func TestDiffReadsWorksWhereABindingHasNoRoomForMore(t *testing.T) {
	full := bindingTo("member-1", ok("Applied"))
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "web-work", Namespace: "fleet-member-member-1", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}}}
	for i := range 120 {
		name := fmt.Sprintf("settings-%03d", i)
		if i < 100 {
			full.Status.DriftedPlacements = append(full.Status.DriftedPlacements, drifted(configMap(name), "/data/theme", "dark", "pink"))
		}
		work.Status.ManifestConditions = append(work.Status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier:   placementv1beta1.WorkResourceIdentifier{Ordinal: i, Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name},
			DriftDetails: &placementv1beta1.DriftDetails{ObservationTime: ago(0), FirstDriftedObservedTime: ago(0)},
		})
	}
	c := newConsole(t, append(smallFleet(), full, work)...)
	require.Error(t, c.run("diff", "web"))
	assert.Contains(t, c.Out.String(), "settings-119")
}

func TestDiffSaysWhoOverwritesWhatTheAgentHasApplied(t *testing.T) {
	changed := bindingTo("member-1", ok("Applied"))
	changed.Status.DriftedPlacements = []placementv1beta1.DriftedResourcePlacement{drifted(configMap("settings"), "/data/theme", "dark", "pink")}
	work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "web-work", Namespace: "fleet-member-member-1", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}}}
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier: placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"},
		Conditions: []metav1.Condition{{
			Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonAppliedWithDifference,
			Message: "Another client keeps overwriting the object: /data/theme is held by painter",
		}},
		DriftDetails: &placementv1beta1.DriftDetails{
			ObservationTime: ago(0), FirstDriftedObservedTime: ago(0), ObservedDrifts: changed.Status.DriftedPlacements[0].ObservedDrifts,
		},
	}}
	c := newConsole(t, append(smallFleet(), changed, work)...)
	require.Error(t, c.run("diff", "web"))
	assert.Contains(t, c.Out.String(), "      member: pink\n    Another client keeps overwriting the object: /data/theme is held by painter\n")
}

func TestHistoryTellsWhoApprovedWhatAndHowRunsEnded(t *testing.T) {
	run := soakingRun()
	finish(run)
	back := soakingRun()
	back.Name = "web-5-rollback"
	back.UID = "back-uid"
	back.Spec.RollbackOf = "web-5"
	back.CreationTimestamp = ago(30 * time.Second)
	back.Status = placementv1beta1.UpdateRunStatus{Conditions: []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeInitialized, Status: metav1.ConditionFalse, LastTransitionTime: ago(20 * time.Second), Message: "the strategy is gone",
	}}}
	approval := &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "web-5-canary"},
		Status:     placementv1beta1.ApprovalRequestStatus{Approval: &placementv1beta1.ApprovalRecord{Username: "alice", At: ago(time.Minute), Channel: placementv1beta1.ApprovalChannelTemporalSignal, Comment: "lgtm"}},
	}
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: "out", CreationTimestamp: ago(2 * time.Minute)},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: "web", ClusterName: "member-3"},
		Status:     placementv1beta1.PlacementEvictionStatus{Conditions: []metav1.Condition{{Type: "Executed", Status: metav1.ConditionFalse, LastTransitionTime: ago(2 * time.Minute), Message: "blocked by budget"}}},
	}
	c := newConsole(t, append(release(), run, back, approval, eviction)...)
	require.NoError(t, c.run("history", "web"))
	c.Golden("history.txt")
	require.NoError(t, c.run("history", "web", "--only", "approval", "-o", "json"))
	assert.JSONEq(t, `[{"at":"2026-01-02T15:03:05Z","what":"approval","name":"web-5-canary","text":"stage canary approved","by":"alice","channel":"TemporalSignal","comment":"lgtm"}]`, c.Out.String())
	assert.EqualError(t, c.run("history", "web", "--only", "pods"), `--only "pods" is not known: use policy, snapshot, run, rehearsal, approval or eviction`)
}

func TestHistoryTellsOfAnApprovalThatItsAPIServerDoesNotKnowWhoGave(t *testing.T) {
	run := soakingRun()
	finish(run)
	approval := &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "web-5-canary", Labels: map[string]string{placementv1beta1.TargetUpdateRunLabel: "web-5"}},
		Status:     placementv1beta1.ApprovalRequestStatus{Approval: &placementv1beta1.ApprovalRecord{At: ago(time.Minute), Channel: placementv1beta1.ApprovalChannelKubectl, Comment: "lgtm"}},
	}
	c := newConsole(t, append(release(), run, approval)...)
	require.NoError(t, c.run("history", "web", "--only", "approval"))
	assert.Contains(t, c.Out.String(), "through kubectl (not verified: this API server cannot say who)")
	require.NoError(t, c.run("status", "run/web-5"))
	assert.Contains(t, c.Out.String(), `through kubectl (not verified: this API server cannot say who): "lgtm"`)
}

func TestHistoryShowsTheReasonsThatUsersGive(t *testing.T) {
	because := func(reason string) map[string]string {
		return map[string]string{placementv1beta1.ReasonAnnotation: reason}
	}
	run := soakingRun()
	run.Annotations = because("its disk is being replaced")
	run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-3", Action: placementv1beta1.ClusterActionSkip, Attempt: 1}}
	skipped := &run.Status.StagesStatus[len(run.Status.StagesStatus)-1].Clusters[0]
	skipped.ClusterName = "member-3"
	skipped.Conditions = []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonClusterUpdatingSkipped, LastTransitionTime: ago(50 * time.Second),
	}}
	back := soakingRun()
	back.Name = "web-5-rollback"
	back.UID = "back-uid"
	back.Spec.RollbackOf = "web-5"
	back.CreationTimestamp = ago(30 * time.Second)
	back.Annotations = because("checkout fails")
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: "out", CreationTimestamp: ago(2 * time.Minute), Annotations: because("it burns")},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: "web", ClusterName: "member-3"},
	}
	c := newConsole(t, append(release(), run, back, eviction)...)
	require.NoError(t, c.run("history", "web"))
	assert.Regexp(t, `web-5 +goes on without member-3 +"its disk is being replaced"`, c.Out.String())
	assert.Regexp(t, `web-5-rollback +takes back what run web-5 has done +"checkout fails"`, c.Out.String())
	assert.Regexp(t, `out +of member-3 asked for +"it burns"`, c.Out.String())
}

func TestHistoryShowsWhatOtherHubsRecordOfAnApproval(t *testing.T) {
	run := soakingRun()
	finish(run)
	approval := &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "web-5-canary"},
		Status:     placementv1beta1.ApprovalRequestStatus{Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeApproved, Status: metav1.ConditionTrue, LastTransitionTime: ago(time.Minute), Message: "lgtm"}}},
	}
	c := newConsole(t, append(release(), run, approval)...)
	require.NoError(t, c.run("history", "web", "--only", "approval"))
	assert.Contains(t, c.Out.String(), `"lgtm"`)
}
