package workmodel

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/envelope"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	earlier = metav1.NewTime(time.Date(2025, 3, 17, 21, 0, 0, 0, time.UTC))
	now     = metav1.NewTime(time.Date(2025, 3, 17, 21, 37, 14, 0, time.UTC))
)

func binding(change ...func(*placementv1beta1.ClusterResourceBinding)) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: "crp-1-member1-0a1b2c3d", UID: "binding-uid", Generation: 3,
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp-1"},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			State:                placementv1beta1.BindingStateBound,
			ResourceSnapshotName: "crp-1-5-snapshot",
			TargetCluster:        "member1",
			ApplyStrategy:        &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeClientSideApply},
		},
	}
	for _, c := range change {
		c(b)
	}
	return b
}

func reportDiff(b *placementv1beta1.ClusterResourceBinding) {
	b.Spec.ApplyStrategy.Type = placementv1beta1.ApplyStrategyTypeReportDiff
}

func snapshotParts(n int) []placementv1beta1.ResourceSnapshotObject {
	parts := make([]placementv1beta1.ResourceSnapshotObject, n)
	for i := range parts {
		part := &placementv1beta1.ClusterResourceSnapshot{}
		part.Name = placementv1beta1.ResourceSnapshotName("crp-1", 5, i)
		part.Labels = map[string]string{placementv1beta1.ResourceIndexLabel: "5"}
		parts[i] = part
		part.Spec.SelectedResources = []placementv1beta1.ResourceContent{{
			RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"app"}}`)},
		}}
	}
	return parts
}

// generated are the Works of a binding as they come back from the API server.
func generated(t *testing.T, b *placementv1beta1.ClusterResourceBinding, n int) []placementv1beta1.Work {
	t.Helper()
	works, err := Generate(b, NewContent(envelope.Rules{}, snapshotParts(n)))
	require.NoError(t, err)
	for i := range works {
		works[i].Generation = 2
	}
	return works
}

func report(work *placementv1beta1.Work, conditionType string, status metav1.ConditionStatus, reason string) {
	work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, ObservedGeneration: work.Generation, LastTransitionTime: earlier,
	})
}

func reportUp(works []placementv1beta1.Work) {
	for i := range works {
		report(&works[i], placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, placementv1beta1.ReasonAllManifestsApplied)
		report(&works[i], placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue, placementv1beta1.ReasonAllManifestsAvailable)
	}
}

func TestGenerateMakesOneWorkPerPart(t *testing.T) {
	works := generated(t, binding(), 3)
	require.Len(t, works, 3)
	golden(t, "works.yaml", works)
}

func TestGenerateRefusesPartsOfAnotherSnapshot(t *testing.T) {
	_, err := Generate(binding(), NewContent(envelope.Rules{}, nil))
	require.Error(t, err)
	_, err = Generate(binding(func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = "crp-1-6-snapshot" }), NewContent(envelope.Rules{}, snapshotParts(1)))
	require.ErrorContains(t, err, "crp-1-6-snapshot")
}

func TestRevision(t *testing.T) {
	base := Revision(binding())
	cases := map[string]struct {
		change func(*placementv1beta1.ResourceBindingSpec)
		same   bool
	}{
		"another snapshot is another revision": {
			change: func(s *placementv1beta1.ResourceBindingSpec) { s.ResourceSnapshotName = "crp-1-6-snapshot" }},
		"another apply strategy is another revision": {
			change: func(s *placementv1beta1.ResourceBindingSpec) { s.ApplyStrategy.AllowCoOwnership = true }},
		"another override is another revision": {
			change: func(s *placementv1beta1.ResourceBindingSpec) { s.ClusterResourceOverrideSnapshots = []string{"o-1"} }},
		"another policy is the same revision": {same: true,
			change: func(s *placementv1beta1.ResourceBindingSpec) { s.SchedulingPolicySnapshotName = "crp-1-9" }},
		"another decision is the same revision": {same: true,
			change: func(s *placementv1beta1.ResourceBindingSpec) { s.ClusterDecision.Reason = "because" }},
		"another state is the same revision": {same: true,
			change: func(s *placementv1beta1.ResourceBindingSpec) { s.State = placementv1beta1.BindingStateUnscheduled }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding()
			tc.change(&b.Spec)
			assert.Equal(t, tc.same, Revision(b) == base)
		})
	}
	assert.Empty(t, Revision(&placementv1beta1.ClusterResourceBinding{}), "without a snapshot there is no revision")
}

func TestOverridesOfOneNameCanDiffer(t *testing.T) {
	from := func(inputs string, overrides ...string) string {
		b := binding()
		b.Annotations = map[string]string{placementv1beta1.OverrideInputsAnnotation: inputs}
		b.Spec.ClusterResourceOverrideSnapshots = overrides
		return Revision(b)
	}
	assert.NotEqual(t, from("a", "o-0"), from("b", "o-0"), "the content, or a label that a variable stands for, is another one")
	assert.Equal(t, from("a"), from("b"), "without overrides it does not matter from what they would be applied")
}

func TestStateOf(t *testing.T) {
	later := earlier.Add(20 * time.Minute)
	cases := map[string]struct {
		binding *placementv1beta1.ClusterResourceBinding
		change  func([]placementv1beta1.Work) []placementv1beta1.Work
		want    ClusterState
	}{
		"all parts up is available": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work { reportUp(w); return w },
			want:   ClusterState{Synced: true, Applied: true, Available: true, AvailableSince: earlier.Time}},
		"no report yet is synced only": {want: ClusterState{Synced: true}},
		"a missing part is not synced": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work { reportUp(w); return w[:1] }},
		"a part of another revision is not synced": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				reportUp(w)
				w[1].Annotations[placementv1beta1.RevisionAnnotation] = "old"
				return w
			}},
		"a part of an earlier binding is not synced": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				reportUp(w)
				w[1].Annotations[placementv1beta1.BindingUIDAnnotation] = "another"
				return w
			}},
		"a part being deleted is not synced": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				reportUp(w)
				w[0].DeletionTimestamp = &now
				return w
			}},
		"a report on an earlier generation counts for nothing": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work { reportUp(w); w[1].Generation++; return w },
			want:   ClusterState{Synced: true}},
		"a part that failed to apply fails the cluster": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				reportUp(w[:1])
				report(&w[1], placementv1beta1.ConditionTypeApplied, metav1.ConditionFalse, placementv1beta1.ReasonSomeManifestsAreNotApplied)
				return w
			},
			want: ClusterState{Synced: true, Failed: true}},
		"a part that is not up yet is applied only": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				reportUp(w)
				w[1].Status.Conditions[1].Status = metav1.ConditionFalse
				return w
			},
			want: ClusterState{Synced: true, Applied: true}},
		"an object that makes no progress is named, the first by the names of the Works": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				reportUp(w)
				for i, condition := range []metav1.Condition{
					{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonManifestFailed, Message: "over"},
					{Type: placementv1beta1.ConditionTypeStalled, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonStalled, Message: "late"},
				} {
					w[i].Status.Conditions[1].Status = metav1.ConditionFalse
					w[i].Status.ManifestConditions = []placementv1beta1.ManifestCondition{
						{Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse,
							Reason: placementv1beta1.ReasonManifestNotAvailableYet}}},
						{Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "Job", Namespace: "app", Name: "j"}, Conditions: []metav1.Condition{condition}},
					}
				}
				slices.Reverse(w)
				return w
			},
			want: ClusterState{Synced: true, Applied: true, Stalled: &Stall{Kind: "Job", Namespace: "app", Name: "j", Why: "late"}}},
		"what an earlier version said of an object counts for nothing": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				reportUp(w)
				w[1].Status.ManifestConditions = []placementv1beta1.ManifestCondition{{Conditions: []metav1.Condition{
					{Type: placementv1beta1.ConditionTypeStalled, Status: metav1.ConditionTrue}}}}
				w[1].Generation++
				return w
			},
			want: ClusterState{Synced: true}},
		"an untrackable part counts from when it was written": {
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				reportUp(w)
				w[1].Status.Conditions[1].Reason = placementv1beta1.ReasonWorkNotTrackable
				w[1].Annotations[RevisionTimeAnnotation] = later.Format(time.RFC3339)
				return w
			},
			want: ClusterState{Synced: true, Applied: true, Available: true, NotTrackable: true, AvailableSince: later}},
		"a reported diff is what ReportDiff is for": {
			binding: binding(reportDiff),
			change: func(w []placementv1beta1.Work) []placementv1beta1.Work {
				for i := range w {
					report(&w[i], placementv1beta1.ConditionTypeDiffReported, metav1.ConditionTrue, placementv1beta1.ReasonAllManifestsDiffReported)
				}
				return w
			},
			want: ClusterState{Synced: true, Applied: true, Available: true, AvailableSince: earlier.Time}},
		"a binding without a snapshot has no state": {
			binding: binding(func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ResourceSnapshotName = "" }),
			change:  func([]placementv1beta1.Work) []placementv1beta1.Work { return nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.binding == nil {
				tc.binding = binding()
			}
			var works []placementv1beta1.Work
			if tc.binding.Spec.ResourceSnapshotName != "" {
				works = generated(t, tc.binding, 2)
			}
			if tc.change != nil {
				works = tc.change(works)
			}
			assert.Empty(t, cmp.Diff(tc.want, StateOf(tc.binding, works)))
		})
	}
}

func TestBindingStatusGolden(t *testing.T) {
	diff := metav1.Condition{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonFailedToTakeOver, LastTransitionTime: earlier}
	cases := map[string]struct {
		binding *placementv1beta1.ClusterResourceBinding
		parts   int
		works   func([]placementv1beta1.Work)
		syncErr error
	}{
		"scheduled": {binding: binding(func(b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State = placementv1beta1.BindingStateScheduled
			b.Spec.ResourceSnapshotName = ""
		})},
		"unsynced":    {},
		"sync-failed": {syncErr: errors.New(`namespaces "fleet-member-member1" not found`)},
		"applying":    {parts: 1},
		"some-applied": {parts: 2, works: func(w []placementv1beta1.Work) {
			reportUp(w[:1])
		}},
		"available": {parts: 1, works: reportUp},
		"available-by-run": {parts: 1, works: reportUp, binding: binding(func(b *placementv1beta1.ClusterResourceBinding) {
			b.Annotations = map[string]string{placementv1beta1.UpdateRunAnnotation: "example-run"}
		})},
		"not-trackable": {parts: 1, works: func(w []placementv1beta1.Work) {
			reportUp(w)
			w[0].Status.Conditions[1].Reason = placementv1beta1.ReasonWorkNotTrackable
		}},
		"not-available": {parts: 1, works: func(w []placementv1beta1.Work) {
			reportUp(w)
			w[0].Status.Conditions[1].Status = metav1.ConditionFalse
			w[0].Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
				Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: 1, Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "test-ns", Name: "my-deployment"},
				Conditions: []metav1.Condition{
					{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonApplied, LastTransitionTime: earlier},
					{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonManifestNotAvailableYet, LastTransitionTime: earlier, Message: "Manifest is not yet available; Fleet will check again later"},
				},
			}}
		}},
		"failed-drifted-diffed": {parts: 2, works: func(w []placementv1beta1.Work) {
			reportUp(w[:1])
			report(&w[1], placementv1beta1.ConditionTypeApplied, metav1.ConditionFalse, placementv1beta1.ReasonSomeManifestsAreNotApplied)
			w[0].Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
				Identifier:   placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Resource: "namespaces", Name: "web"},
				DriftDetails: &placementv1beta1.DriftDetails{ObservationTime: now, FirstDriftedObservedTime: earlier, ObservedInMemberClusterGeneration: 7, ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/metadata/labels/owner", ValueInMember: "me"}}},
			}}
			w[1].Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
				Identifier:  placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Service", Resource: "services", Namespace: "web", Name: "front"},
				Conditions:  []metav1.Condition{diff},
				DiffDetails: &placementv1beta1.DiffDetails{ObservationTime: now, FirstDiffedObservedTime: earlier, ObservedDiffs: []placementv1beta1.PatchDetail{{Path: "/", ValueInHub: "(the whole object)"}}},
			}}
		}},
		"diff-in-progress": {parts: 1, binding: binding(reportDiff)},
		"diff-reported": {parts: 1, binding: binding(reportDiff), works: func(w []placementv1beta1.Work) {
			report(&w[0], placementv1beta1.ConditionTypeDiffReported, metav1.ConditionTrue, placementv1beta1.ReasonAllManifestsDiffReported)
		}},
		"diff-failed": {parts: 1, binding: binding(reportDiff), works: func(w []placementv1beta1.Work) {
			report(&w[0], placementv1beta1.ConditionTypeDiffReported, metav1.ConditionFalse, placementv1beta1.ReasonSomeManifestsHaveNotReportedDiff)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.binding == nil {
				tc.binding = binding()
			}
			var works []placementv1beta1.Work
			if tc.parts > 0 {
				works = generated(t, tc.binding, tc.parts)
			}
			if tc.works != nil {
				tc.works(works)
			}
			golden(t, "binding-"+name+".yaml", BindingStatus(tc.binding, works, tc.syncErr, now))
		})
	}
}

func TestConditionsKeepTheTimeOfAnUnchangedStatus(t *testing.T) {
	b := binding()
	b.Status.Conditions = []metav1.Condition{
		{Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionTrue, LastTransitionTime: earlier},
		{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionTrue, LastTransitionTime: earlier},
	}
	got := BindingConditions(b, generated(t, b, 1), nil, now)
	require.Len(t, got, 4)
	assert.Equal(t, earlier, got[0].LastTransitionTime, "RolloutStarted was true before")
	assert.Equal(t, now, got[3].LastTransitionTime, "Applied is no longer true")
}

func TestFindingsAreBounded(t *testing.T) {
	works := generated(t, binding(), 1)
	reportUp(works)
	for range 150 {
		works[0].Status.ManifestConditions = append(works[0].Status.ManifestConditions, placementv1beta1.ManifestCondition{
			Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse}},
		})
	}
	status := BindingStatus(binding(), works, nil, now)
	assert.Len(t, status.FailedPlacements, 100)
	left := len(works[0].Status.ManifestConditions) - 100
	assert.Contains(t, status.Conditions[len(status.Conditions)-1].Message, fmt.Sprintf(" (%d more failed placement(s) are not listed; see the Works)", left))
}

func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("ä", 40_000)
	works := generated(t, binding(), 1)
	reportUp(works)
	works[0].Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Message: "short"}},
	}, {
		Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Message: long}},
	}}
	status := BindingStatus(binding(), works, errors.New(long), now)
	messages := []string{meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeWorkSynchronized).Message}
	messages = append(messages, status.FailedPlacements[1].Condition.Message)
	for _, message := range messages {
		assert.LessOrEqual(t, len(message), 4096)
		assert.True(t, utf8.ValidString(message))
		assert.True(t, strings.HasSuffix(message, "ä…"), "it says that there is more")
	}
	assert.Equal(t, "short", status.FailedPlacements[0].Condition.Message)
	assert.Equal(t, long, works[0].Status.ManifestConditions[1].Conditions[0].Message, "what the cache has stays as it is")
}

func TestSnapshotIndex(t *testing.T) {
	assert.Equal(t, "12", SnapshotIndex("my-app-12-snapshot"))
	assert.Empty(t, SnapshotIndex("my-app-12-1"))
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	require.NoError(t, err)
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(string(want), string(got)), "run with -update and look at the difference")
}
