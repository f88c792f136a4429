package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// choosy picks one of three clusters: member-1 is picked, member-2 is not as good, member-3 is tainted.
func choosy() []client.Object {
	best := member("member-1", time.Second)
	second := member("member-2", time.Second)
	tainted := member("member-3", time.Second)
	best.Labels["tier"], second.Labels["tier"] = "gold", "silver"
	tainted.Spec.Taints = []clusterv1beta1.Taint{{Key: "maintenance", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	preferred := placementv1beta1.PreferredClusterSelector{Weight: 20, Preference: placementv1beta1.ClusterSelectorTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
	}}
	bound := bindingTo("member-1")
	bound.Spec.ClusterDecision = placementv1beta1.ClusterDecision{
		ClusterName: "member-1", Selected: true, Reason: "picked by scheduling policy",
		ClusterScore: &placementv1beta1.ClusterScore{AffinityScore: ptr.To[int32](20), TopologySpreadScore: ptr.To[int32](0)},
	}
	return []client.Object{
		best, second, tainted, bound,
		&placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1},
			Spec: placementv1beta1.PlacementSpec{Policy: &placementv1beta1.PlacementPolicy{
				PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: ptr.To[int32](1),
				Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []placementv1beta1.PreferredClusterSelector{preferred},
				}},
			}},
		},
		&placementv1beta1.ClusterSchedulingPolicySnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: map[string]string{
				placementv1beta1.ParentPlacementLabel: "web", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0",
			}},
			Status: placementv1beta1.SchedulingPolicySnapshotStatus{ObservedCRPGeneration: 1, ClusterDecisions: []placementv1beta1.ClusterDecision{
				{ClusterName: "member-3", Reason: "it had left then"},
			}},
		},
	}
}

func TestWhySaysOfEveryClusterWhatDecides(t *testing.T) {
	c := newConsole(t, choosy()...)
	require.NoError(t, c.run("why", "member-1", "member-2", "member-3", "--placement", "web"))
	c.Golden("why.txt")
	require.NoError(t, c.run("why", "-p", "crp/web", "-o", "wide"))
	c.Golden("why-all.txt")
}

func TestWhyNotIsTheSameQuestion(t *testing.T) {
	c := newConsole(t, choosy()...)
	require.NoError(t, c.run("why", "member-3", "--placement", "web"))
	why := c.Out.String()
	require.NoError(t, c.run("why-not", "member-3", "--placement", "web"))
	assert.Equal(t, why, c.Out.String())
}

func TestWhyTellsWhenTheHubHasNotDecidedYet(t *testing.T) {
	objects := choosy()
	objects[4].SetGeneration(2)
	c := newConsole(t, objects...)
	require.NoError(t, c.run("why", "member-2", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "Note: the hub has not decided on the latest change of the placement yet")
}

func TestWhyNeedsAPlacementAndAMember(t *testing.T) {
	c := newConsole(t, choosy()...)
	assert.EqualError(t, c.run("why", "member-1"), "--placement is missing: say which placement you ask about, as in: kubectl fleet why member-1 --placement web")
	assert.EqualError(t, c.run("why", "member-9", "-p", "web"), `there is no member "member-9", nor does placement/web name it; kubectl fleet get members lists them`)
	assert.EqualError(t, c.run("why", "member-1", "-p", "run/web"), `"run/web": "run" is not a kind this command is about; use placement/NAME`)
}

func TestWhyTellsWhatHoldsAClusterBackAndItsPlaceInTheOrder(t *testing.T) {
	objects := choosy()
	bound := bindingTo("member-2")
	placement := objects[4].(*placementv1beta1.ClusterResourcePlacement)
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{Order: &placementv1beta1.ClusterOrder{
		Priority: &placementv1beta1.ClusterPriority{Weights: []placementv1beta1.ClusterWeight{{Weight: 50, ClusterSelector: placementv1beta1.ClusterLabelSelector{
			ClusterSelectorTerms: []placementv1beta1.ClusterLabelTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "silver"}}}},
		}}}},
	}}}
	placement.Status.PerClusterPlacementStatuses = []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "member-1", Conditions: []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeRolloutStarted, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonWaitingForHook, Message: "The cluster waits for label a=b",
	}}}}
	c := newConsole(t, append(objects, bound)...)
	require.NoError(t, c.run("why", "member-1", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "Note: The cluster waits for label a=b.\n")
	assert.Contains(t, c.Out.String(), "Note: updates come to it as number 2 of 2, by rollingUpdate.order.\n")
	require.NoError(t, c.run("why", "member-3", "--placement", "web"))
	assert.NotContains(t, c.Out.String(), "Note: updates come to it")
}

func TestWhyTellsWhichValuesOfTheStatusDoNotGoAlong(t *testing.T) {
	objects := choosy()
	placement := objects[4].(*placementv1beta1.ClusterResourcePlacement)
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{
		PurgeMode: placementv1beta1.PurgeDirectly, StatePreservation: &placementv1beta1.StatePreservation{Rules: []placementv1beta1.StatePreservationRule{{AliasLabelName: "job", JSONPath: "{.jobID}"}}},
	}}}
	work := &placementv1beta1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-member-1", Name: "web-work", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}},
		Status: placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
			Identifier: placementv1beta1.WorkResourceIdentifier{Group: "flink.apache.org", Kind: "FlinkDeployment", Namespace: "web", Name: "front"},
			StateValues: []placementv1beta1.StateValue{
				{JSONPath: "{.jobID}", Message: "it is empty"}, {JSONPath: "{.other}", Message: "it is of an earlier rule"},
			},
		}}},
	}
	c := newConsole(t, append(objects, work)...)
	require.NoError(t, c.run("why", "member-1", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "Note: of the status of flink.apache.org/FlinkDeployment web/front, {.jobID} would not go along to another cluster: it is empty.\n")
	assert.NotContains(t, c.Out.String(), "earlier rule")
	require.NoError(t, c.run("why", "member-2", "--placement", "web"))
	assert.NotContains(t, c.Out.String(), "would not go along")

	said := &work.Status.ManifestConditions[0]
	for range 5 {
		said.StateValues = append(said.StateValues, said.StateValues[0])
	}
	c = newConsole(t, append(objects, work)...)
	require.NoError(t, c.run("why", "member-1", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "Note: 1 more values of a status would not go along to another cluster.\n")
}

func TestWhyTellsSinceWhenReplicasAreWithheld(t *testing.T) {
	objects := dividedPlacement()
	withheld := &placementv1beta1.WithheldReplicas{
		Since: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Because: placementv1beta1.CauseApplication, Reason: "what is placed there has not been available for longer than 60 s",
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *placementv1beta1.ClusterResourcePlacement:
			o.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{
				DecisionConditions: &placementv1beta1.FailoverDecisionConditions{TolerationSeconds: ptr.To[int32](60)},
			}}}
		case *placementv1beta1.ClusterResourceBinding:
			o.Spec.SchedulingPolicySnapshotName = "web-0"
			o.Spec.ClusterDecision.ClusterName = o.Spec.TargetCluster
			if o.Spec.TargetCluster == "member-2" {
				o.Spec.ClusterDecision.Withheld = withheld
			}
		}
	}
	c := newConsole(t, append(objects, &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: map[string]string{
		placementv1beta1.ParentPlacementLabel: "web", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0",
	}}})...)
	require.NoError(t, c.run("why", "member-2", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "Note: it gets no replicas since 2026-01-02T03:04:05Z: what is placed there has not been available for longer than 60 s; it counts again when ")
	assert.Contains(t, c.Out.String(), "\nReplicas:\n  apps/Deployment web/front: withheld: what is placed there has not been available for longer than 60 s: 0 of 9\n")
}

func TestWhyTellsThatTheOwnerOfAClusterHasAskedForTime(t *testing.T) {
	objects := choosy()
	for _, object := range objects {
		if member, is := object.(*clusterv1beta1.MemberCluster); is && member.Name == "member-1" {
			member.Status.Busy = &clusterv1beta1.Busy{Since: metav1.NewTime(now.Add(-time.Hour)), Until: metav1.NewTime(now.Add(time.Hour)), Message: "month-end"}
		}
	}
	c := newConsole(t, objects...)
	require.NoError(t, c.run("why", "member-1", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "Note: a change of what it has does not begin now: it waits for busy cluster member-1 (month-end) until 2026-01-02T16:04:05Z.\n")
	require.NoError(t, c.run("why", "member-2", "--placement", "web"))
	assert.NotContains(t, c.Out.String(), "month-end\n")
}

func TestWhyTellsWhichWindowAClusterWaitsForAndWhatLetsItGo(t *testing.T) {
	window := &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: "nights"}, Spec: fleetflowv1alpha1.RolloutWindowSpec{
		Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowCluster, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}},
		TimeZone: "UTC", Weekly: []fleetflowv1alpha1.WeeklyOpening{{Days: []fleetflowv1alpha1.Weekday{"Fri"}, DailyHours: fleetflowv1alpha1.DailyHours{Start: "22:00", End: "06:00"}}},
	}}
	c := newConsole(t, append(choosy(), window)...)
	require.NoError(t, c.run("why", "member-1", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "Note: a change of what it has does not begin now: it waits for window nights: opens 2026-01-02T22:00:00Z.\n")
	require.NoError(t, c.run("why", "member-2", "--placement", "web"))
	assert.NotContains(t, c.Out.String(), "window nights", "it is of another tier")

	exemption := &fleetflowv1alpha1.RolloutExemption{
		ObjectMeta: metav1.ObjectMeta{Name: "hotfix", Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane"}},
		Spec: fleetflowv1alpha1.RolloutExemptionSpec{
			TargetRef: fleetflowv1alpha1.ExemptPlacement("", "web"), ExemptFrom: []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromWindow}}, Message: "CVE-2026-1", ExpirationTime: metav1.NewTime(now.Add(time.Hour)),
		},
	}
	c = newConsole(t, append(choosy(), window, exemption)...)
	require.NoError(t, c.run("why", "member-1", "--placement", "web"))
	assert.Contains(t, c.Out.String(), "Note: a change of what it has begins despite window nights: exemption hotfix: jane exempts placement/web from window until 2026-01-02T16:04:05Z: CVE-2026-1.\n")
}
