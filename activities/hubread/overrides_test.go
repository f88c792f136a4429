package hubread_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// snapshotOf is a snapshot of a ClusterResourceOverride or, in a namespace, of a ResourceOverride.
func snapshotOf(namespace, of string, index int, latest, hash string) client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: placementv1beta1.OverrideSnapshotName(of, index), Labels: map[string]string{
		placementv1beta1.ParentOverrideLabel: of, placementv1beta1.OverrideIndexLabel: strconv.Itoa(index), placementv1beta1.IsLatestSnapshotLabel: latest,
	}}
	if namespace == "" {
		return &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: meta,
			Spec: placementv1beta1.ClusterResourceOverrideSnapshotSpec{OverrideHash: []byte(hash)}}
	}
	return &placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: meta, Spec: placementv1beta1.ResourceOverrideSnapshotSpec{OverrideHash: []byte(hash)}}
}

func namesOf(snapshots override.Snapshots) []string {
	var names []string
	for _, snapshot := range snapshots {
		names = append(names, override.SourceOf(snapshot).Ref())
	}
	return names
}

func TestOneSnapshotOfEachOverrideIsInForce(t *testing.T) {
	deleted := snapshotOf("", "c", 0, "true", "")
	deleted.SetFinalizers([]string{"example.com/kept"})
	hub := fixture.APIServer(t, deleted,
		snapshotOf("", "a", 0, "false", ""), snapshotOf("", "a", 1, "true", ""),
		snapshotOf("", "b", 9, "true", ""), snapshotOf("", "b", 10, "true", ""), // a crash has left two
		snapshotOf("web", "a", 0, "true", ""), snapshotOf("app", "a", 3, "true", ""))
	require.NoError(t, hub.Delete(t.Context(), deleted))
	inForce, err := hubread.OverridesInForce(t.Context(), hub)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"a-1", "b-10", "web/a-0", "app/a-3"}, namesOf(inForce))
}

// overrideOf is an override of which a controller has said that it is valid, or not.
func overrideOf(namespace, name string, valid metav1.ConditionStatus, observed int64) placementv1beta1.OverrideObject {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 2}
	conditions := []metav1.Condition{{Type: placementv1beta1.ConditionTypeValid, Status: valid, ObservedGeneration: observed}}
	if namespace == "" {
		return &placementv1beta1.ClusterResourceOverride{ObjectMeta: meta, Status: placementv1beta1.OverrideStatus{Conditions: conditions}}
	}
	return &placementv1beta1.ResourceOverride{ObjectMeta: meta, Status: placementv1beta1.OverrideStatus{Conditions: conditions}}
}

func madeFor(o placementv1beta1.OverrideObject, name string, scope placementv1beta1.PlacementScope) placementv1beta1.OverrideObject {
	ref := &placementv1beta1.PlacementRef{Name: name, Scope: scope}
	switch o := o.(type) {
	case *placementv1beta1.ClusterResourceOverride:
		o.Spec.Placement = ref
	case *placementv1beta1.ResourceOverride:
		o.Spec.Placement = ref
	}
	return o
}

// early gives an override the condition of one whose placement did not exist.
func early(o placementv1beta1.OverrideObject) placementv1beta1.OverrideObject {
	conditions := o.GetConditions()
	conditions[0].Status = metav1.ConditionFalse
	conditions[0].Reason = placementv1beta1.ReasonOverridePlacementNotFound
	o.SetConditions(conditions)
	return o
}

func TestTheLatestSnapshotsShowEveryChangeThatConcernsThePlacement(t *testing.T) {
	const valid, invalid = metav1.ConditionTrue, metav1.ConditionFalse
	for sentence, test := range map[string]struct {
		override placementv1beta1.OverrideObject
		// snapshot says whether the snapshot in force shows the override as it is.
		snapshot  bool
		unsettled string
	}{
		"one whose snapshot shows it":                        {overrideOf("", "a", valid, 2), true, ""},
		"one that was changed since its snapshot":            {overrideOf("", "a", valid, 2), false, "override a"},
		"one that was changed since it was checked":          {overrideOf("", "a", valid, 1), true, "override a"},
		"a namespaced one that was changed":                  {overrideOf("web", "a", valid, 2), false, "override web/a"},
		"an invalid one has no effect":                       {overrideOf("", "a", invalid, 2), false, ""},
		"an invalid one that was changed may have one":       {overrideOf("", "a", invalid, 1), false, "override a"},
		"one for another placement is not waited for":        {madeFor(overrideOf("", "a", valid, 2), "other", ""), false, ""},
		"one for a namespaced placement of the name neither": {madeFor(overrideOf("web", "a", valid, 2), "crp", placementv1beta1.NamespaceScoped), false, ""},
		"one that is older than the placement counts":        {early(madeFor(overrideOf("", "a", valid, 2), "crp", "")), true, ""},
		"one that is older, and was changed since":           {early(madeFor(overrideOf("", "a", valid, 2), "crp", "")), false, "override a"},
		"one for this placement is":                          {madeFor(overrideOf("", "a", valid, 2), "crp", placementv1beta1.ClusterScoped), false, "override a"},
	} {
		t.Run(sentence, func(t *testing.T) {
			hash, err := override.Hash(test.override)
			require.NoError(t, err)
			shown := snapshotOf(test.override.GetNamespace(), "a", 0, "true", string(hash))
			if !test.snapshot {
				shown = snapshotOf(test.override.GetNamespace(), "a", 0, "true", "another")
				shown.(placementv1beta1.OverrideSnapshotObject).GetOverridePolicy().OverrideRules = make([]placementv1beta1.OverrideRule, 1)
			}
			hub := fixture.APIServer(t, test.override, shown)
			_, err = hubread.LatestOverrides(t.Context(), hub, override.Placement{Name: "crp"})
			if test.unsettled == "" {
				require.NoError(t, err)
				return
			}
			assert.Equal(t, &hubread.OverrideUnsettledError{Override: test.unsettled}, err)
		})
	}
}

func TestSnapshotsOfOverridesThatAreBeingDeletedAreLeftOut(t *testing.T) {
	going := overrideOf("web", "a", metav1.ConditionTrue, 2)
	going.SetFinalizers([]string{placementv1beta1.OverrideCleanupFinalizer})
	hub := fixture.APIServer(t, going, snapshotOf("web", "a", 0, "true", ""), snapshotOf("", "a", 0, "true", ""))
	require.NoError(t, hub.Delete(t.Context(), going))
	latest, err := hubread.LatestOverrides(t.Context(), hub, override.Placement{Name: "crp"})
	require.NoError(t, err)
	assert.Equal(t, []string{"a-0"}, namesOf(latest), "the one of the same name in no namespace stays")
}

func TestSnapshotsThatADecisionNamesAreReadLiveIfTheCacheDoesNotHaveThem(t *testing.T) {
	cached := fixture.APIServer(t, snapshotOf("", "a", 0, "true", ""))
	live := fixture.APIServer(t, snapshotOf("web", "b", 1, "true", ""))
	loaded, err := hubread.LoadOverrides(t.Context(), cached, live, []string{"a-0", "web/b-1"})
	require.NoError(t, err)
	assert.Equal(t, []string{"a-0", "web/b-1"}, namesOf(loaded))

	_, err = hubread.LoadOverrides(t.Context(), cached, live, []string{"a-0", "web/b-2"})
	var missing *hubread.OverrideMissingError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, override.Source{Kind: "ResourceOverrideSnapshot", Namespace: "web", Name: "b-2"}, missing.Source)
	assert.ErrorContains(t, err, "ResourceOverrideSnapshot web/b-2 does not exist any more")

	_, err = hubread.LoadOverrides(t.Context(), cached, live, []string{"a/b/c"})
	assert.ErrorContains(t, err, `"a/b/c" names no override snapshot`)
}

func TestInputsDependOnTheLabelsOfTheCluster(t *testing.T) {
	labelled := func(value string) client.Client {
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-1", Labels: map[string]string{"env": value}}}
		return fixture.APIServer(t, member, fixture.OverrideSnapshot("a", "a-0", ""))
	}
	inputs := func(hub client.Client, refs ...string) string {
		t.Helper()
		found, err := hubread.OverrideInputs(t.Context(), hub, hub, refs, "member-1")
		require.NoError(t, err)
		return found
	}
	assert.NotEmpty(t, inputs(labelled("prod"), "a-0"))
	assert.Empty(t, inputs(labelled("test"), "a-0"), "the override has no rule for the cluster")
	assert.Empty(t, inputs(labelled("prod")), "no override was picked")
	assert.Empty(t, inputs(fixture.APIServer(t, fixture.OverrideSnapshot("a", "a-0", "")), "a-0"), "a cluster that does not exist has no labels")
}
