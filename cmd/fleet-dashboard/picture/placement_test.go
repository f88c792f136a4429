package picture_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/picture"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/objectdiff"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

func deployment(name string) placementv1beta1.ResourceIdentifier {
	return placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: name}
}

func said(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: message}
}

func TestObjectsSayOnWhichClustersTheyAreNotAsTheyShouldBe(t *testing.T) {
	entries := map[string]placementv1beta1.PerClusterPlacementStatus{
		"a": {FailedPlacements: []placementv1beta1.FailedResourcePlacement{{ResourceIdentifier: deployment("web")}, {ResourceIdentifier: deployment("web")}}},
		"b": {
			FailedPlacements:  []placementv1beta1.FailedResourcePlacement{{ResourceIdentifier: deployment("web")}},
			DriftedPlacements: []placementv1beta1.DriftedResourcePlacement{{ResourceIdentifier: deployment("api")}},
		},
		"c": {DiffedPlacements: []placementv1beta1.DiffedResourcePlacement{{ResourceIdentifier: deployment("api")}}},
	}
	selected := []placementv1beta1.ResourceIdentifier{{Version: "v1", Kind: "Namespace", Name: "shop"}, deployment("idle"), deployment("api"), deployment("web")}
	drawn := picture.SelectedBy(selected, entries)
	assert.Equal(t, 4, drawn.Total)
	require.Len(t, drawn.Kinds, 2)
	group := drawn.Kinds[0]
	assert.Equal(t, []any{"Deployment.apps", 3, 2}, []any{group.Kind, group.Total, group.Bad})
	var lines []string
	for _, object := range group.Objects {
		line := object.Name
		for _, finding := range object.Findings {
			line += fmt.Sprintf("; %s on %s", finding.How, finding.Clusters)
		}
		lines = append(lines, line)
	}
	assert.Equal(t, []string{"shop/api; drifted on b; differs on c", "shop/web; failed on a, b", "shop/idle"}, lines, "what should be looked at comes first")
	assert.Equal(t, "shop", drawn.Kinds[1].Objects[0].Name)

	selected = nil
	for i := range 1000 {
		selected = append(selected, deployment(fmt.Sprint("d", i)))
	}
	drawn = picture.SelectedBy(selected, nil)
	assert.Len(t, drawn.Kinds[0].Objects, 20)
	assert.Equal(t, 980, drawn.Kinds[0].More)
	assert.Empty(t, picture.SelectedBy(nil, nil).Kinds)
}

// Objects in an envelope are not selected themselves, and long lists in a status are cut.
func TestWhatIsWrongWithAnObjectThatIsNotListedIsShownAllTheSame(t *testing.T) {
	inside := deployment("web")
	inside.Envelope = &placementv1beta1.EnvelopeIdentifier{Name: "wrapped", Namespace: "shop", Type: placementv1beta1.ResourceEnvelopeType}
	older := deployment("old")
	older.Envelope = &placementv1beta1.EnvelopeIdentifier{Name: "config", Namespace: "shop"}
	entries := map[string]placementv1beta1.PerClusterPlacementStatus{}
	for _, cluster := range []string{"a", "b"} {
		entries[cluster] = placementv1beta1.PerClusterPlacementStatus{FailedPlacements: []placementv1beta1.FailedResourcePlacement{
			{ResourceIdentifier: inside}, {ResourceIdentifier: deployment("gone")}, {ResourceIdentifier: older}, {ResourceIdentifier: deployment("gone")},
		}}
	}
	selected := []placementv1beta1.ResourceIdentifier{
		{Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Kind: "ResourceEnvelope", Namespace: "shop", Name: "wrapped"}, deployment("web"),
		{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "config"},
	}
	drawn := picture.SelectedBy(selected, entries)
	assert.Equal(t, 3, drawn.Total, "what is not listed does not count")
	var lines []string
	for _, group := range drawn.Kinds {
		for _, object := range group.Objects {
			line := group.Kind + ": " + object.Name
			for _, finding := range object.Findings {
				line += fmt.Sprintf("; %s on %s", finding.How, finding.Clusters)
			}
			lines = append(lines, line)
		}
	}
	assert.Equal(t, []string{
		"ConfigMap: shop/config; failed in it on a, b", "Deployment.apps: shop/web",
		"ResourceEnvelope.placement.kubernetes-fleet.io: shop/wrapped; failed in it on a, b",
		"not among those listed: Deployment.apps shop/gone; failed on a, b",
	}, lines)
	assert.Equal(t, 1, drawn.Kinds[3].Bad)
}

func TestAClusterHasALadderOfItsConditions(t *testing.T) {
	entries := map[string]placementv1beta1.PerClusterPlacementStatus{"a": {Conditions: []metav1.Condition{
		said("Available", metav1.ConditionUnknown, "starts"), said("RolloutStarted", metav1.ConditionTrue, ""), said("Overridden", metav1.ConditionTrue, ""), said("Applied", metav1.ConditionFalse, "no"),
	}}}
	placed := picture.Placed{Latest: 3, Has: map[string]int{"a": 2, "b": 3, "c": 0}}
	drawn := picture.BranchesOf([]tree.Node{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "(no cluster)"}}, entries, placed)
	require.Len(t, drawn, 4)
	assert.Equal(t, []picture.Rungs{
		{Phase: updaterun.PhaseSucceeded, Steps: []string{"RolloutStarted", "Overridden"}}, {Phase: updaterun.PhaseFailed, Steps: []string{"Applied"}},
		{Phase: updaterun.PhaseRunning, Steps: []string{"Available"}},
	}, drawn[0].Ladder)
	assert.Equal(t, "RolloutStarted succeeded, Overridden succeeded, Applied failed, Available running", drawn[0].Text)
	var ages []string
	for _, branch := range drawn {
		ages = append(ages, branch.Snapshot+" "+branch.Age)
	}
	assert.Equal(t, []string{"2 behind", "3 latest", "0 older", " "}, ages)
	assert.Empty(t, drawn[3].Ladder, "what is not reported is not drawn")
}

func TestSnapshotsAreALineWithTheClustersThatHaveThem(t *testing.T) {
	var told []placementv1beta1.ResourceSnapshotSummary
	for i := range 20 {
		told = append(told, placementv1beta1.ResourceSnapshotSummary{Index: fmt.Sprint(i), CreationTime: metav1.NewTime(midday.Add(time.Duration(i) * time.Hour))})
	}
	run := hub.Run{Ref: refTo(hub.KindRun, "web-19"), Status: &placementv1beta1.UpdateRunStatus{ResourceSnapshotIndexUsed: "19"}}
	lost := hub.Run{Ref: refTo(hub.KindRun, "web-99"), Status: &placementv1beta1.UpdateRunStatus{ResourceSnapshotIndexUsed: "99"}}
	line := picture.SnapshotsOf(told, picture.Placed{Latest: 19, Has: map[string]int{"a": 3, "b": 19, "c": 18, "d": 18}}, []hub.Run{run, lost})
	var texts []string
	for _, stop := range line.Stops {
		texts = append(texts, fmt.Sprintf("%d %s %d%% [%s] after %d", stop.Index, stop.Age, stop.Width, stop.Named, stop.Before))
	}
	assert.Equal(t, []string{
		"3 older 25% [a] after 2", "15 older 0% [] after 14", "16 older 0% [] after 15",
		"17 older 0% [] after 16", "18 behind 50% [c, d] after 17", "19 latest 25% [b] after 18",
	}, texts)
	assert.Equal(t, 14, line.Older)
	assert.Equal(t, []hub.Ref{run.Ref}, line.Stops[5].Runs)

	line = picture.SnapshotsOf(nil, picture.Placed{Latest: 2, Has: map[string]int{"a": 1}}, nil)
	require.Len(t, line.Stops, 2, "a status that tells of none")
	assert.Equal(t, -1, line.Stops[0].Before)
	assert.True(t, line.Stops[0].Taken.IsZero(), "when it was taken is not known")
	assert.Empty(t, picture.SnapshotsOf(nil, picture.Placed{Latest: -1, Unseen: true}, nil).Stops)
}

func TestDriftIsShownBesideWhatIsWantedWithoutSecrets(t *testing.T) {
	secret := placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Secret", Namespace: "shop", Name: "login"}
	entry := placementv1beta1.PerClusterPlacementStatus{
		ClusterName: "a", Conditions: []metav1.Condition{said("Applied", metav1.ConditionTrue, "")},
		DriftedPlacements: []placementv1beta1.DriftedResourcePlacement{
			{ResourceIdentifier: deployment("web"), ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/spec/image", ValueInHub: "shop:1.41.0", ValueInMember: "shop:1.40.0"}, {Path: "/spec/paused", ValueInMember: "true"}}},
			{ResourceIdentifier: secret, ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/data/token", ValueInHub: "aW5mbw==", ValueInMember: "ZGVidWc="}}},
		},
		DiffedPlacements: []placementv1beta1.DiffedResourcePlacement{{ResourceIdentifier: deployment("gone")}},
	}
	of := hub.Placement{Ref: refTo(hub.KindPlacement, "web"), Status: &placementv1beta1.PlacementStatus{PerClusterPlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{
		entry, {ClusterName: "b", Conditions: entry.Conditions}, {ClusterName: "c"},
	}}}
	drift := picture.DriftOf(fleetview.Drift(fleetview.DriftFacts{Placement: of}), of.Ref, false)
	assert.Equal(t, "1 of 3 clusters differ from what is wanted.", drift.Summary())
	assert.Equal(t, "c", drift.Unreported)
	assert.Equal(t, "kubectl fleet diff placement/web", drift.Command)
	require.Len(t, drift.Rows, 4)
	assert.Equal(t, []objectdiff.Word{{Text: "shop:"}, {Text: "1.41.0", Changed: true}}, drift.Rows[0].Wanted)
	assert.Equal(t, []objectdiff.Word{{Text: "shop:"}, {Text: "1.40.0", Changed: true}}, drift.Rows[0].Found)
	assert.Empty(t, drift.Rows[1].Wanted)
	assert.Equal(t, fleetview.Missing, drift.Rows[3].How)
	assert.NotContains(t, fmt.Sprint(drift), "aW5mbw==")
	assert.NotContains(t, fmt.Sprint(drift), "ZGVidWc=")

	entry.DriftedPlacements[0].ObservedDrifts = nil
	for i := range 80 {
		entry.DriftedPlacements[0].ObservedDrifts = append(entry.DriftedPlacements[0].ObservedDrifts, placementv1beta1.PatchDetail{Path: fmt.Sprint("/spec/", i), ValueInHub: strings.Repeat("x", 1000)})
	}
	of.Status.PerClusterPlacementStatuses[0] = entry
	drift = picture.DriftOf(fleetview.Drift(fleetview.DriftFacts{Placement: of}), of.Ref, false)
	assert.Len(t, drift.Rows, 50)
	assert.Equal(t, 32, drift.More)
	assert.Less(t, len(drift.Rows[0].Wanted[0].Text), 310)
	assert.Empty(t, drift.Cut)
	for i := range 99 {
		entry.DiffedPlacements = append(entry.DiffedPlacements, placementv1beta1.DiffedResourcePlacement{ResourceIdentifier: deployment(fmt.Sprint(i))})
	}
	of.Status.PerClusterPlacementStatuses[0] = entry
	assert.Equal(t, "a", picture.DriftOf(fleetview.Drift(fleetview.DriftFacts{Placement: of}), of.Ref, false).Cut)
	assert.Equal(t, "No cluster has reported a difference.", picture.Drift{}.Summary())
}

// The status of a placement of many clusters leaves out clusters and what differs on them.
func TestDriftIsNotKnownToUsersWhoMayNotListBindings(t *testing.T) {
	of := hub.Placement{Ref: refTo(hub.KindPlacement, "web"), Status: &placementv1beta1.PlacementStatus{PerClusterPlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "a"}}}}
	draw := func() picture.Drift {
		return picture.DriftOf(fleetview.Drift(fleetview.DriftFacts{Placement: of}), of.Ref, true)
	}
	assert.Empty(t, draw().Unreported, "an entry that has only a name may be one that was cut")
	assert.True(t, draw().Unseen)
	assert.Equal(t, "It names no cluster that differs, which does not say that none does.", draw().Summary())
	of.Status.PerClusterPlacementStatuses[0].DriftedPlacements = []placementv1beta1.DriftedResourcePlacement{{ResourceIdentifier: deployment("web")}}
	assert.Equal(t, "At least 1 cluster differs from what is wanted.", draw().Summary())
}
