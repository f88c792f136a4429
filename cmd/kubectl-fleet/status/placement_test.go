package status

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

func says(step string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: placementv1beta1.Scope{}.PlacementConditionType(step), Status: status, Reason: reason, ObservedGeneration: 2}
}

func TestWatchingAPlacementEndsWhenNothingMoreComesByItself(t *testing.T) {
	yes := metav1.ConditionTrue
	no := metav1.ConditionFalse
	unknown := metav1.ConditionUnknown
	scheduled := says("Scheduled", yes, "SchedulingPolicyFulfilled")
	started := says("RolloutStarted", yes, "RolloutStarted")
	applied := says("Applied", yes, "ApplySucceeded")
	available := says("Available", yes, "ResourceAvailable")
	held := metav1.Condition{Type: placementv1beta1.ConditionTypeRemovalsHeld, Status: yes, Reason: placementv1beta1.ReasonSelectionEmptied, ObservedGeneration: 2}
	missing := metav1.Condition{Type: placementv1beta1.ConditionTypeResourcesMissing, Status: yes, Reason: placementv1beta1.ReasonResourcesNotFound, ObservedGeneration: 2}
	stale := scheduled
	stale.ObservedGeneration = 1
	external := placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}}
	for sentence, placed := range map[string]struct {
		spec       placementv1beta1.PlacementSpec
		conditions []metav1.Condition
		clusters   int
		deleting   bool
		want       updaterun.Phase
	}{
		"nothing said yet":                       {want: updaterun.PhaseRunning},
		"a change nobody has looked at yet":      {conditions: []metav1.Condition{stale, applied, available}, want: updaterun.PhaseRunning},
		"selectors that make no sense":           {conditions: []metav1.Condition{says("Scheduled", no, placementv1beta1.ReasonInvalidResourceSelectors)}, want: updaterun.PhaseFailed},
		"clusters picked and nothing rolled out": {conditions: []metav1.Condition{scheduled}, clusters: 2, want: updaterun.PhaseRunning},
		"no cluster picked":                      {conditions: []metav1.Condition{scheduled}, want: updaterun.PhaseSucceeded},
		"a rollout held back by its limits":      {conditions: []metav1.Condition{scheduled, says("RolloutStarted", no, placementv1beta1.ReasonRolloutNotStartedYet)}, clusters: 2, want: updaterun.PhaseRunning},
		"a rollout that waits for a run":         {spec: external, conditions: []metav1.Condition{scheduled, says("RolloutStarted", unknown, placementv1beta1.ReasonRolloutStartedUnknown)}, clusters: 2, want: updaterun.PhaseWaiting},
		"an override that fails":                 {conditions: []metav1.Condition{scheduled, started, says("Overridden", no, placementv1beta1.ReasonOverriddenFailed)}, clusters: 2, want: updaterun.PhaseFailed},
		"a manifest that cannot be applied":      {conditions: []metav1.Condition{scheduled, started, says("Applied", no, placementv1beta1.ReasonApplyFailed)}, clusters: 2, want: updaterun.PhaseFailed},
		"a workload that is not up yet":          {conditions: []metav1.Condition{scheduled, started, applied, says("Available", no, placementv1beta1.ReasonResourceNotAvailableYet)}, clusters: 2, want: updaterun.PhaseRunning},
		"an object that is too large":            {conditions: []metav1.Condition{scheduled, started, applied, says("Available", no, placementv1beta1.ReasonObjectTooLarge)}, clusters: 2, want: updaterun.PhaseFailed},
		"applied, and nothing said of the rest":  {conditions: []metav1.Condition{scheduled, started, applied}, clusters: 2, want: updaterun.PhaseRunning},
		"all is well":                            {conditions: []metav1.Condition{scheduled, started, applied, available}, clusters: 2, want: updaterun.PhaseSucceeded},
		"what is lost is held":                   {conditions: []metav1.Condition{scheduled, started, applied, available, held}, clusters: 2, want: updaterun.PhaseWaiting},
		"what is lost is held during a rollout":  {conditions: []metav1.Condition{scheduled, started, says("Applied", unknown, ""), held}, clusters: 2, want: updaterun.PhaseWaiting},
		"what is lost is held, and one fails":    {conditions: []metav1.Condition{scheduled, started, says("Applied", no, placementv1beta1.ReasonApplyFailed), held}, clusters: 2, want: updaterun.PhaseFailed},
		"a selector names what is not there":     {conditions: []metav1.Condition{scheduled, started, applied, available, missing}, clusters: 2, want: updaterun.PhaseWaiting},
		"one is not there, and another fails":    {conditions: []metav1.Condition{scheduled, started, says("Applied", no, placementv1beta1.ReasonApplyFailed), missing}, clusters: 2, want: updaterun.PhaseFailed},
		"it is being deleted":                    {conditions: []metav1.Condition{scheduled, started, applied, available}, clusters: 2, deleting: true, want: updaterun.PhaseDeleting},
		"its end is held":                        {conditions: []metav1.Condition{scheduled, started, applied, available, held}, clusters: 2, deleting: true, want: updaterun.PhaseWaiting},
		"differences are reported":               {conditions: []metav1.Condition{scheduled, started, says("DiffReported", yes, "DiffReportingCompleted")}, clusters: 2, want: updaterun.PhaseSucceeded},
		"all is well but too few clusters fit":   {conditions: []metav1.Condition{says("Scheduled", no, placementv1beta1.ReasonSchedulingPolicyUnfulfilled), started, applied, available}, clusters: 2, want: updaterun.PhaseFailed},
		"too few clusters fit, others under way": {conditions: []metav1.Condition{says("Scheduled", no, placementv1beta1.ReasonSchedulingPolicyUnfulfilled), started, says("Applied", unknown, "")}, clusters: 2, want: updaterun.PhaseRunning},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}, Spec: placed.spec}
			p.Status.Conditions = placed.conditions
			p.Status.PerClusterPlacementStatuses = make([]placementv1beta1.PerClusterPlacementStatus, placed.clusters)
			if placed.deleting {
				p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_700_000_000, 0)}
			}
			state, _ := PlacementState(hub.PlacementOf(p))
			assert.Equal(t, placed.want, state)
		})
	}
}

func TestThePictureNamesTheAffinityGroupThatClustersArePickedFrom(t *testing.T) {
	binding := func(cluster, group string, state placementv1beta1.BindingState) hub.Binding {
		return hub.BindingOf(&placementv1beta1.ClusterResourceBinding{Spec: placementv1beta1.ResourceBindingSpec{
			TargetCluster: cluster, State: state, ClusterDecision: placementv1beta1.ClusterDecision{AffinityGroup: group},
		}})
	}
	p := hub.PlacementOf(&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	facts := Facts{Bindings: map[string]hub.Binding{
		"member-1": binding("member-1", "local", placementv1beta1.BindingStateUnscheduled), "member-2": binding("member-2", "cloud", placementv1beta1.BindingStateScheduled),
	}}
	assert.Equal(t, "PickAll, affinity group cloud", Placement(p, facts, Options{}).Detail)
	assert.Equal(t, "PickAll", Placement(p, Facts{}, Options{}).Detail)
}

func TestAJobThatHasFailedForGoodIsNotWaitedFor(t *testing.T) {
	entry := placementv1beta1.PerClusterPlacementStatus{
		ClusterName: "member-2", Conditions: []metav1.Condition{
			{Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionTrue},
			{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonNotAllWorkAreAvailable},
		},
		FailedPlacements: []placementv1beta1.FailedResourcePlacement{{Condition: metav1.Condition{
			Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonManifestNotAvailableYet,
		}}},
	}
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
	p.Status.Conditions = []metav1.Condition{
		says("Scheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled"), says("Available", metav1.ConditionFalse, placementv1beta1.ReasonResourceNotAvailableYet),
	}
	states := func() []updaterun.Phase {
		p.Status.PerClusterPlacementStatuses = []placementv1beta1.PerClusterPlacementStatus{entry}
		state, _ := PlacementState(hub.PlacementOf(p))
		return []updaterun.Phase{state, clusterNode(entry).State}
	}
	assert.Equal(t, []updaterun.Phase{updaterun.PhaseRunning, updaterun.PhaseRunning}, states(), "it is not there yet")
	entry.FailedPlacements[0].Condition.Reason = placementv1beta1.ReasonManifestFailed
	assert.Equal(t, []updaterun.Phase{updaterun.PhaseFailed, updaterun.PhaseFailed}, states())
}

func TestASilentClusterIsStuckAndNotFailed(t *testing.T) {
	const text = "member-2 has not reported since 2026-03-01 10:00:00 UTC"
	node := clusterNode(placementv1beta1.PerClusterPlacementStatus{ClusterName: "member-2", Conditions: []metav1.Condition{
		{Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionTrue},
		{Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionUnknown, Reason: "MemberClusterHeartbeatMissed", Message: text},
	}})
	assert.Equal(t, updaterun.PhaseStuck, node.State)
	assert.Equal(t, text, node.Detail)
}

func TestARunThatWaitsForTemporalSaysSo(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	assert.NotEqual(t, updaterun.PhaseStuck, Run(hub.RunOf(run), Facts{}, Options{}).State)
	run.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeEngineReachable, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonTemporalUnreachable}}
	node := Run(hub.RunOf(run), Facts{}, Options{})
	assert.Equal(t, updaterun.PhaseStuck, node.State)
	assert.Contains(t, node.Detail, ": waits for Temporal, which the hub agent does not reach")
}

func TestOverridesWithoutEffectAreShownWhereTheyLookMeant(t *testing.T) {
	placed := placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "settings"}
	p := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	p.Status.SelectedResources = []placementv1beta1.ResourceIdentifier{placed}
	of := func(name, referred, selected, reason string) *placementv1beta1.ResourceOverride {
		o := &placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		o.Spec.Placement = &placementv1beta1.PlacementRef{Name: referred, Scope: placementv1beta1.NamespaceScoped}
		o.Spec.ResourceSelectors = []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: selected}}
		o.Status.Conditions = []metav1.Condition{{
			Type: placementv1beta1.ConditionTypeValid, Status: metav1.ConditionFalse, Reason: reason, Message: "set another",
		}}
		return o
	}
	lost := placementv1beta1.ReasonOverridePlacementNotFound
	twin := of("c-wrong-scope", "app", "other", lost)
	twin.Spec.Placement.Scope = placementv1beta1.ClusterScoped
	valid := of("g-valid", "app", "settings", "")
	valid.Status.Conditions[0].Status = metav1.ConditionTrue
	root := Placement(hub.PlacementOf(p), Facts{Overrides: []placementv1beta1.OverrideObject{
		twin, valid,
		of("a-misspelt", "ap", "settings", lost),
		of("b-conflict", "app", "settings", placementv1beta1.ReasonOverrideConflict),
		of("d-misspelt-of-others", "ap", "other", lost),
		of("e-conflict-of-others", "another", "settings", placementv1beta1.ReasonOverrideConflict),
	}}, Options{})
	var names []string
	for _, node := range root.Children {
		names = append(names, node.Name)
		assert.Equal(t, "set another", node.Detail)
		assert.Equal(t, updaterun.PhaseStuck, node.State)
	}
	assert.Equal(t, []string{"ResourceOverride team/a-misspelt", "ResourceOverride team/b-conflict", "ResourceOverride team/c-wrong-scope"}, names)
}

// TestNoStateOfAPlacementIsSilent has a line for each state in which a placement is not as wanted and which its user could overlook.
// The picture repeats the message of the condition, which names the object and says what to do.
func TestNoStateOfAPlacementIsSilent(t *testing.T) {
	const said = "ConfigMap team/settings: do this"
	yes := metav1.ConditionTrue
	told := func(name string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: reason, Message: said}
	}
	well := []metav1.Condition{{Type: "RolloutStarted", Status: yes}, {Type: "Applied", Status: yes}, {Type: "Available", Status: yes}}
	settings := placementv1beta1.ResourceIdentifier{Kind: "ConfigMap", Namespace: "team", Name: "settings"}
	failed := func(step, reason string) *placementv1beta1.PerClusterPlacementStatus {
		return &placementv1beta1.PerClusterPlacementStatus{ClusterName: "member-1",
			Conditions: []metav1.Condition{{Type: "RolloutStarted", Status: yes}, {Type: step, Status: metav1.ConditionFalse, Reason: "NotAll"}},
			FailedPlacements: []placementv1beta1.FailedResourcePlacement{{ResourceIdentifier: settings,
				Condition: told(step, metav1.ConditionFalse, reason)}},
		}
	}
	removal := func(status metav1.ConditionStatus, reason string) *placementv1beta1.PerClusterPlacementStatus {
		return &placementv1beta1.PerClusterPlacementStatus{ClusterName: "member-1",
			Conditions: append([]metav1.Condition{told(placementv1beta1.ConditionTypeRemovalPending, status, reason)}, well...)}
	}
	for state, tc := range map[string]struct {
		placement []metav1.Condition
		cluster   *placementv1beta1.PerClusterPlacementStatus
		want      string
	}{
		"an object is left out for its size": {placement: []metav1.Condition{
			told(placementv1beta1.ConditionTypeResourcesLeftOut, yes, placementv1beta1.ReasonObjectTooLarge)}, want: said},
		"a removal is refused":          {cluster: removal(yes, placementv1beta1.ReasonRemovalRefused), want: said},
		"an end waits for a finalizer":  {cluster: removal(yes, placementv1beta1.ReasonWaitingForFinalizers), want: said},
		"an end waits for others":       {cluster: removal(yes, placementv1beta1.ReasonInUse), want: said},
		"a neighbour fails":             {cluster: removal(yes, placementv1beta1.ReasonRemovalHeldBack), want: said},
		"removals of the placement":     {placement: []metav1.Condition{told(placementv1beta1.ConditionTypeRemovalPending, yes, placementv1beta1.ReasonRemovalRefused)}, want: said},
		"a Job has failed for good":     {cluster: failed("Available", placementv1beta1.ReasonManifestFailed), want: said},
		"an API is missing":             {cluster: failed("Applied", placementv1beta1.ReasonDecodingErred), want: said},
		"another client keeps removing": {cluster: failed("Applied", placementv1beta1.ReasonManifestApplyFailed), want: said},
		"another client overwrites an object": {cluster: &placementv1beta1.PerClusterPlacementStatus{ClusterName: "member-1", Conditions: well,
			DriftedPlacements: []placementv1beta1.DriftedResourcePlacement{{ResourceIdentifier: settings}}}, want: "1 object drifted, see kubectl fleet diff"},
		"what was to be removed is gone": {cluster: removal(metav1.ConditionFalse, placementv1beta1.ReasonResolved)},
	} {
		t.Run(state, func(t *testing.T) {
			p := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
			p.Status.Conditions = tc.placement
			if tc.cluster != nil {
				p.Status.PerClusterPlacementStatuses = []placementv1beta1.PerClusterPlacementStatus{*tc.cluster}
			}
			var details []string
			var gather func(tree.Node)
			gather = func(node tree.Node) {
				details = append(details, node.Detail)
				for _, child := range node.Children {
					gather(child)
				}
			}
			gather(Placement(hub.PlacementOf(p), Facts{}, Options{}))
			if tc.want == "" {
				assert.NotContains(t, strings.Join(details, "\n"), said)
				return
			}
			assert.Contains(t, strings.Join(details, "\n"), tc.want)
		})
	}
}
