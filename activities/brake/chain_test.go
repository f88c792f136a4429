package brake_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var (
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	west = brake.Cluster{Name: "w1", Labels: map[string]string{"region": "west"}}
	east = brake.Cluster{Name: "e1", Labels: map[string]string{"region": "east"}}
)

// hold is one with a spec that a test changes.
func hold(name string, change func(*fleetflowv1alpha1.RolloutHoldSpec)) fleetflowv1alpha1.RolloutHold {
	h := fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "payments down"}}
	if change != nil {
		change(&h.Spec)
	}
	return h
}

func matching(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

// A user who may write a placement writes its labels, too: those that say its name and its namespace are not taken from there.
func TestAPlacementIsSelectedByItsOwnNameAndNamespace(t *testing.T) {
	team := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "web", Labels: map[string]string{"fleetflow.io/placement-name": "other", "fleetflow.io/placement-namespace": "other", "team": "pay"},
	}}
	platform := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Labels: map[string]string{"fleetflow.io/placement-namespace": "team-a"},
	}}
	both := &metav1.LabelSelector{MatchLabels: map[string]string{"fleetflow.io/placement-name": "web", "fleetflow.io/placement-namespace": "team-a"}}
	none := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "fleetflow.io/placement-namespace", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	for sentence, test := range map[string]struct {
		selector *metav1.LabelSelector
		of       placementv1beta1.PlacementObject
		covered  bool
	}{
		"by its name":                            {matching("fleetflow.io/placement-name", "web"), team, true},
		"by its namespace":                       {matching("fleetflow.io/placement-namespace", "team-a"), team, true},
		"by both":                                {both, team, true},
		"not by a name that its label says":      {matching("fleetflow.io/placement-name", "other"), team, false},
		"not by a namespace that its label says": {matching("fleetflow.io/placement-namespace", "other"), team, false},
		"by its other labels":                    {matching("team", "pay"), team, true},
		"one of the cluster by its name":         {matching("fleetflow.io/placement-name", "web"), platform, true},
		"not one of the cluster by a namespace":  {both, platform, false},
		"one of the cluster by having none":      {none, platform, true},
		"not one of a namespace by having none":  {none, team, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := brake.SubjectOf(test.of)
			held := hold("h", func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.PlacementSelector = test.selector })
			assert.Equal(t, test.covered, brake.HoldConcerns(&held, of))
			window := windowOf(t, "w", `{type: Deny, scope: Placement, `+always+`}`)
			window.Spec.PlacementSelector = test.selector
			assert.Equal(t, test.covered, brake.Windows([]fleetflowv1alpha1.RolloutWindow{window}, of) != nil)
		})
	}
	assert.Equal(t, "other", team.Labels["fleetflow.io/placement-name"], "the placement itself stays as it is")
}

func TestWhatAHoldCovers(t *testing.T) {
	for sentence, test := range map[string]struct {
		change  func(*fleetflowv1alpha1.RolloutHoldSpec)
		of      brake.Subject
		cluster brake.Cluster
		open    []brake.Start
	}{
		"without selectors it covers every cluster and every placement": {cluster: west},
		"empty selectors are as none": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) {
				s.ClusterSelector = &metav1.LabelSelector{}
				s.PlacementSelector = &metav1.LabelSelector{}
			},
			cluster: west,
		},
		"clusters that match are covered": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ClusterSelector = matching("region", "west") }, cluster: west,
		},
		"others are not": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ClusterSelector = matching("region", "west") }, cluster: east,
			open: fleetflowv1alpha1.AllStarts(),
		},
		"a placement that matches is covered": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.PlacementSelector = matching("team", "web") },
			of:     brake.Subject{PlacementLabels: map[string]string{"team": "web"}}, cluster: east,
		},
		"another is not": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.PlacementSelector = matching("team", "web") }, cluster: east,
			open: fleetflowv1alpha1.AllStarts(),
		},
		"both selectors have to match": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) {
				s.ClusterSelector = matching("region", "west")
				s.PlacementSelector = matching("team", "web")
			},
			of: brake.Subject{PlacementLabels: map[string]string{"team": "web"}}, cluster: east, open: fleetflowv1alpha1.AllStarts(),
		},
		"a placement in a Namespace that matches is covered, whatever its own labels say": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.NamespaceSelector = matching("team", "web") },
			of:     brake.Subject{PlacementLabels: map[string]string{"team": "other"}, NamespaceLabels: map[string]string{"team": "web"}}, cluster: east,
		},
		"one in another Namespace is not": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.NamespaceSelector = matching("team", "web") },
			of:     brake.Subject{PlacementLabels: map[string]string{"team": "web"}, NamespaceLabels: map[string]string{"team": "other"}}, cluster: east,
			open: fleetflowv1alpha1.AllStarts(),
		},
		"one in no Namespace counts as in one without labels": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) {
				s.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist}}}
			},
			cluster: east,
		},
		"a selector that cannot be read selects all": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) {
				s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "Like"}}}
			},
			cluster: east,
		},
		"only the starts that it names": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) {
				s.Starts = []fleetflowv1alpha1.Start{fleetflowv1alpha1.StartUpdates, fleetflowv1alpha1.StartEvictions}
			},
			cluster: west, open: []brake.Start{fleetflowv1alpha1.StartFirstPlacements, fleetflowv1alpha1.StartRemovals},
		},
		"a rollback waits": {of: brake.Subject{Rollback: true}, cluster: west},
		"unless rollbacks are exempt": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.Rollbacks = fleetflowv1alpha1.RollbacksExempt },
			of:     brake.Subject{Rollback: true}, cluster: west, open: fleetflowv1alpha1.AllStarts(),
		},
		"what is no rollback waits all the same": {
			change:  func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.Rollbacks = fleetflowv1alpha1.RollbacksExempt },
			cluster: west,
		},
		"until it expires": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ExpirationTime = at(noon.Add(time.Second)) }, cluster: west,
		},
		"and not from then on": {
			change: func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ExpirationTime = at(noon) }, cluster: west, open: fleetflowv1alpha1.AllStarts(),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			gate := brake.NewChain(brake.Holds([]fleetflowv1alpha1.RolloutHold{hold("h", test.change)}, test.of))
			var open []brake.Start
			for _, start := range fleetflowv1alpha1.AllStarts() {
				closure, closed := gate.Closed(test.cluster, start, noon)
				if !closed {
					open = append(open, start)
					continue
				}
				assert.Equal(t, "HoldInForce", closure.Reason)
				assert.Equal(t, "h", closure.Object)
			}
			assert.Equal(t, test.open, open)
		})
	}
}

func TestAHoldThatIsBeingDeletedHoldsNothing(t *testing.T) {
	gone := hold("h", nil)
	gone.DeletionTimestamp = at(noon)
	assert.Nil(t, brake.NewChain(brake.Holds([]fleetflowv1alpha1.RolloutHold{gone}, brake.Subject{})))
	_, closed := (*brake.Chain)(nil).Closed(west, fleetflowv1alpha1.StartUpdates, noon)
	assert.False(t, closed, "no gate is open")
	assert.True(t, (*brake.Chain)(nil).NextChange(noon).IsZero())
}

func TestOfSeveralHoldsTheOneThatLastsIsNamed(t *testing.T) {
	short := hold("short", func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ExpirationTime = at(noon.Add(time.Hour)) })
	long := hold("long", func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ExpirationTime = at(noon.Add(3 * time.Hour)) })
	endless := hold("endless", func(s *fleetflowv1alpha1.RolloutHoldSpec) { s.ClusterSelector = matching("region", "east") })
	gate := brake.NewChain(brake.Holds([]fleetflowv1alpha1.RolloutHold{short, long, endless}, brake.Subject{}))
	for _, test := range []struct {
		cluster brake.Cluster
		now     time.Time
		by      string
		until   time.Time
	}{
		{west, noon, "long", noon.Add(3 * time.Hour)},
		{west, noon.Add(2 * time.Hour), "long", noon.Add(3 * time.Hour)},
		{west, noon.Add(3 * time.Hour), "", time.Time{}},
		{east, noon, "endless", time.Time{}},
	} {
		closure, _ := gate.Closed(test.cluster, fleetflowv1alpha1.StartUpdates, test.now)
		assert.Equal(t, test.by, closure.Object)
		assert.True(t, test.until.Equal(closure.Until), closure.Until)
	}
	assert.Equal(t, noon.Add(time.Hour), gate.NextChange(noon))
	assert.Equal(t, noon.Add(3*time.Hour), gate.NextChange(noon.Add(time.Hour)))
	assert.True(t, gate.NextChange(noon.Add(3*time.Hour)).IsZero())
}

// exemption is one of a run that lasts an hour from noon, by jane.
func exemption(name string, change func(*fleetflowv1alpha1.RolloutExemption)) fleetflowv1alpha1.RolloutExemption {
	e := fleetflowv1alpha1.RolloutExemption{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon), Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane"}},
		Spec: fleetflowv1alpha1.RolloutExemptionSpec{
			TargetRef: fleetflowv1alpha1.ExemptRun("", "web-17"), Message: "CVE", ExpirationTime: metav1.NewTime(noon.Add(time.Hour)),
			ExemptFrom: []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "h"}},
		},
	}
	if change != nil {
		change(&e)
	}
	return e
}

func TestWhatAnExemptionLetsGo(t *testing.T) {
	run := brake.Subject{Placement: "", Run: "web-17"}
	for sentence, test := range map[string]struct {
		change     func(*fleetflowv1alpha1.RolloutExemption)
		of         brake.Subject
		now        time.Time
		unverified bool
		open       bool
	}{
		"its run goes":                         {of: run, open: true},
		"until it ends":                        {of: run, now: noon.Add(time.Hour - time.Second), open: true},
		"and not from then on":                 {of: run, now: noon.Add(time.Hour)},
		"another run waits":                    {of: brake.Subject{Run: "web-18"}},
		"the run of that name of a team waits": {of: brake.Subject{Namespace: "team-a", Run: "web-17"}},
		"unless it is meant": {change: func(e *fleetflowv1alpha1.RolloutExemption) {
			e.Spec.TargetRef = fleetflowv1alpha1.ExemptRun("team-a", "web-17")
		},
			of: brake.Subject{Namespace: "team-a", Run: "web-17"}, open: true},
		"a rolling update of that name waits": {of: brake.Subject{Placement: "web-17"}},
		"a placement goes": {change: func(e *fleetflowv1alpha1.RolloutExemption) {
			e.Spec.TargetRef = fleetflowv1alpha1.ExemptPlacement("", "web")
		},
			of: brake.Subject{Placement: "web"}, open: true},
		"its runs do not go with it": {change: func(e *fleetflowv1alpha1.RolloutExemption) {
			e.Spec.TargetRef = fleetflowv1alpha1.ExemptPlacement("", "web")
		}, of: run},
		"a run that got its name after the exemption waits": {of: brake.Subject{Run: "web-17", Created: *at(noon.Add(time.Second))}},
		"one that was there before goes":                    {of: brake.Subject{Run: "web-17", Created: *at(noon.Add(-time.Hour))}, open: true},
		"the run with its UID goes": {change: func(e *fleetflowv1alpha1.RolloutExemption) { e.Spec.TargetRef.UID = "mine" },
			of: brake.Subject{Run: "web-17", UID: "mine", Created: *at(noon.Add(time.Second))}, open: true},
		"the run of its name with another UID waits": {change: func(e *fleetflowv1alpha1.RolloutExemption) { e.Spec.TargetRef.UID = "mine" },
			of: brake.Subject{Run: "web-17", UID: "another", Created: *at(noon.Add(-time.Hour))}},
		"a placement that got its name after the exemption waits": {change: func(e *fleetflowv1alpha1.RolloutExemption) {
			e.Spec.TargetRef = fleetflowv1alpha1.ExemptPlacement("", "web")
		},
			of: brake.Subject{Placement: "web", Created: *at(noon.Add(time.Second))}},
		"it is not from another hold": {change: func(e *fleetflowv1alpha1.RolloutExemption) { e.Spec.ExemptFrom[0].Name = "other" }, of: run},
		"nor is one from all windows": {change: func(e *fleetflowv1alpha1.RolloutExemption) {
			e.Spec.ExemptFrom[0] = fleetflowv1alpha1.ExemptFrom{Kind: fleetflowv1alpha1.ExemptFromWindow}
		}, of: run},
		"one that is deleted lets nothing go":               {change: func(e *fleetflowv1alpha1.RolloutExemption) { e.DeletionTimestamp = at(noon) }, of: run},
		"nor does one of which it is not known who made it": {change: func(e *fleetflowv1alpha1.RolloutExemption) { e.Annotations = nil }, of: run},
		"unless that need not be known":                     {change: func(e *fleetflowv1alpha1.RolloutExemption) { e.Annotations = nil }, of: run, unverified: true, open: true},
		"nor does one that lasts for more than a day": {change: func(e *fleetflowv1alpha1.RolloutExemption) {
			e.Spec.ExpirationTime = metav1.NewTime(noon.Add(25 * time.Hour))
		}, of: run},
	} {
		t.Run(sentence, func(t *testing.T) {
			of := test.of
			now := test.now
			if now.IsZero() {
				now = noon
			}
			of.Exemptions = brake.ExemptionsOf([]fleetflowv1alpha1.RolloutExemption{exemption("e", test.change)}, of, !test.unverified)
			gate := brake.NewChain(brake.Holds([]fleetflowv1alpha1.RolloutHold{hold("h", nil)}, of))
			_, closed := gate.Closed(west, fleetflowv1alpha1.StartUpdates, now)
			assert.Equal(t, test.open, !closed)
		})
	}
}

func TestTwoHoldsAndOneExemption(t *testing.T) {
	of := brake.Subject{Run: "web-17"}
	of.Exemptions = brake.ExemptionsOf([]fleetflowv1alpha1.RolloutExemption{exemption("e", nil)}, of, true)
	gate := brake.NewChain(brake.Holds([]fleetflowv1alpha1.RolloutHold{hold("h", nil), hold("other", nil)}, of))
	closure, closed := gate.Closed(west, fleetflowv1alpha1.StartUpdates, noon)
	assert.True(t, closed, "an exemption is from single holds")
	assert.Equal(t, "other", closure.Object)
	assert.Equal(t, noon.Add(time.Hour), gate.NextChange(noon), "when the exemption ends, the hold counts again")
}
