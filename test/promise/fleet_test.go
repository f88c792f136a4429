package promise

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func inFleet(name string, external bool) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.RollingUpdateRolloutStrategyType}
	if external {
		p.Spec.Strategy.Type = placementv1beta1.ExternalRolloutStrategyType
	}
	return p
}

func bindingOf(placement, cluster, snapshot string) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: placement + "-" + cluster, UID: "1", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement},
	}}
	b.Spec.TargetCluster = cluster
	b.Spec.State = placementv1beta1.BindingStateBound
	b.Spec.ResourceSnapshotName = snapshot
	return b
}

func TestAFleetJudgesEachPlacementByItself(t *testing.T) {
	for _, external := range []bool{false, true} {
		f := NewFleet()
		require.NoError(t, f.Take(&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "west", Labels: map[string]string{"region": "west"}}}, false))
		require.NoError(t, f.Take(inFleet("one", external), false))
		require.NoError(t, f.Take(bindingOf("one", "west", ""), false))
		require.NoError(t, f.Take(bindingOf("one", "west", "one-0-snapshot"), false))
		f.At(time.Unix(100, 0))
		f.Batch = 10 * time.Second
		hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "h"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{
			Message: "r", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "west"}},
		}}
		require.NoError(t, f.Take(hold, false))
		require.NoError(t, f.Take(inFleet("two", external), false), "a placement that is made later is held, too")

		require.NoError(t, f.Take(bindingOf("two", "west", ""), false))
		f.At(time.Unix(105, 0))
		require.NoError(t, f.Take(bindingOf("one", "west", "one-1-snapshot"), false), "the batch that had begun is written")
		f.At(time.Unix(120, 0))
		require.ErrorContains(t, f.Take(bindingOf("one", "west", "one-2-snapshot"), false), "begins while hold h covers it")
		require.ErrorContains(t, f.Take(bindingOf("two", "west", "two-0-snapshot"), false), "begins while hold h covers it")
		require.NoError(t, f.Take(hold, true))
		require.NoError(t, f.Take(bindingOf("one", "west", "one-3-snapshot"), false))
	}
}

func TestWhatIsOnAClusterGoesWithIt(t *testing.T) {
	f := NewFleet()
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	take := func() error {
		require.NoError(t, f.Take(inFleet("one", false), false))
		require.NoError(t, f.Take(bindingOf("one", "a", ""), false))
		require.NoError(t, f.Take(bindingOf("one", "a", "one-0-snapshot"), false))
		return f.Take(bindingOf("one", "a", "one-0-snapshot"), true)
	}
	require.NoError(t, f.Take(member, false))
	require.ErrorContains(t, take(), "is deleted without a cause")
	require.NoError(t, f.Take(member, true))
	require.NoError(t, take(), "the cluster is out of the fleet")
	require.NoError(t, f.Take(member, false))
	require.ErrorContains(t, take(), "is deleted without a cause", "it is in the fleet again")
}

func TestAPlacementThatIsMadeAgainIsAnotherOne(t *testing.T) {
	f := NewFleet()
	require.NoError(t, f.Take(inFleet("one", false), false))
	require.NoError(t, f.Take(bindingOf("one", "a", ""), false))
	require.NoError(t, f.Take(bindingOf("one", "a", "one-0-snapshot"), false))
	require.NoError(t, f.Take(inFleet("one", false), true))
	require.NoError(t, f.Take(bindingOf("one", "b", "one-0-snapshot"), false), "nothing is known of a placement that is gone")
	require.NoError(t, f.Take(inFleet("one", false), false))
	require.NoError(t, f.Take(bindingOf("one", "c", ""), false))
	require.NoError(t, f.Take(bindingOf("one", "c", "one-0-snapshot"), false), "the first of the new placement")
	writes, placements := f.Judged()
	assert.Equal(t, 2, writes)
	assert.Equal(t, 2, placements)
}

func TestAStageBeginsAfterTheOneBefore(t *testing.T) {
	now := metav1.Now()
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	require.NoError(t, Run(run), "a run that is not initialized")
	run.Status.UpdateStrategySnapshot = &placementv1beta1.UpdateStrategySpec{}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "one", StartTime: &now}, {StageName: "two", StartTime: &now}}
	require.ErrorContains(t, Run(run), "stage two has started before stage one has ended")
	run.Status.StagesStatus[0].EndTime = &now
	require.NoError(t, Run(run))
	run.Status.DeletionStageStatus = &placementv1beta1.StageUpdatingStatus{StartTime: &now}
	require.ErrorContains(t, Run(run), "clusters are cleared before stage two has ended")
	run.Status.StagesStatus[1].EndTime = &now
	require.NoError(t, Run(run))
}

func TestNoMoreClustersAreOnTheirWayThanTheStageAllows(t *testing.T) {
	for name, c := range map[string]struct {
		most  *intstr.IntOrString
		on    int
		legal bool
	}{
		"one by default":          {nil, 1, true},
		"no more by default":      {nil, 2, false},
		"a number":                {new(intstr.FromInt32(3)), 3, true},
		"more than the number":    {new(intstr.FromInt32(3)), 4, false},
		"a share is rounded down": {new(intstr.FromString("50%")), 2, true},
		"more than the share":     {new(intstr.FromString("50%")), 3, false},
		"one always":              {new(intstr.FromString("1%")), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			run := &placementv1beta1.ClusterStagedUpdateRun{}
			run.Status.UpdateStrategySnapshot = &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{Name: "s", MaxConcurrency: c.most}}}
			stage := placementv1beta1.StageUpdatingStatus{StageName: "s", Clusters: make([]placementv1beta1.ClusterUpdatingStatus, 5)}
			for i := range c.on {
				stage.Clusters[i].Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue}}
			}
			stage.Clusters[4].Conditions = []metav1.Condition{
				{Type: placementv1beta1.ConditionTypeStarted, Status: metav1.ConditionTrue}, {Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse},
			}
			run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{stage}
			if c.legal {
				assert.NoError(t, Run(run))
			} else {
				assert.ErrorContains(t, Run(run), "are on their way, maxConcurrency allows")
			}
		})
	}
}

func TestAnExemptionIsFromOneHoldForOnePlacement(t *testing.T) {
	start := time.Unix(1000, 0)
	f := NewFleet()
	f.Batch = 10 * time.Second
	f.At(start)
	for _, name := range []string{"one", "two"} {
		require.NoError(t, f.Take(inFleet(name, false), false))
		require.NoError(t, f.Take(bindingOf(name, "west", ""), false))
		require.NoError(t, f.Take(bindingOf(name, "west", name+"-0-snapshot"), false))
	}
	hold := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "h"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "r"}}
	require.NoError(t, f.Take(hold, false))
	exemption := &fleetflowv1alpha1.RolloutExemption{
		ObjectMeta: metav1.ObjectMeta{Name: "e", Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane"}},
		Spec: fleetflowv1alpha1.RolloutExemptionSpec{
			TargetRef: fleetflowv1alpha1.ExemptPlacement("", "one"), ExemptFrom: []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "h"}}, ExpirationTime: metav1.NewTime(start.Add(time.Minute)),
		},
	}
	require.NoError(t, f.Take(exemption, false))
	f.At(start.Add(30 * time.Second))
	require.NoError(t, f.Take(bindingOf("one", "west", "one-1-snapshot"), false), "it is exempt")
	require.ErrorContains(t, f.Take(bindingOf("two", "west", "two-1-snapshot"), false), "begins while hold h covers it", "the other is not")

	other := hold.DeepCopy()
	other.Name = "other"
	require.NoError(t, f.Take(other, false))
	f.At(start.Add(45 * time.Second))
	require.ErrorContains(t, f.Take(bindingOf("one", "west", "one-2-snapshot"), false), "begins while hold other covers it", "it is exempt from one hold")
	require.NoError(t, f.Take(other, true))
	f.At(start.Add(2 * time.Minute))
	require.ErrorContains(t, f.Take(bindingOf("one", "west", "one-3-snapshot"), false), "begins while hold h covers it", "its time is over")

	anonymous := exemption.DeepCopy()
	anonymous.Annotations = nil
	anonymous.Spec.ExpirationTime = metav1.NewTime(start.Add(time.Hour))
	require.NoError(t, f.Take(anonymous, false))
	require.ErrorContains(t, f.Take(bindingOf("one", "west", "one-4-snapshot"), false), "begins while hold h covers it", "who has made it is not known")
}

func TestTheBatchThatHadBegunIsWrittenWhenFewerClustersAreAskedFor(t *testing.T) {
	asks := func(clusters int32, claim string) *placementv1beta1.ClusterResourcePlacement {
		p := inFleet("one", false)
		p.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: &clusters}
		p.Spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxSurge: new(intstr.FromInt32(0))}
		p.Annotations = map[string]string{placementv1beta1.RolloutClaimAnnotation: claim}
		return p
	}
	for sentence, test := range map[string]struct {
		cluster string
		after   time.Duration
		broken  string
	}{
		"a cluster of the batch":                  {cluster: "b", after: 5 * time.Second},
		"a cluster that was not in the batch":     {cluster: "c", after: 5 * time.Second, broken: "placing on c makes 2 clusters, 1 may have resources"},
		"a cluster of the batch, a long time ago": {cluster: "b", after: 11 * time.Second, broken: "placing on b makes 2 clusters, 1 may have resources"},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := NewFleet()
			f.Batch = 10 * time.Second
			f.At(time.Unix(100, 0))
			require.NoError(t, f.Take(asks(2, `{"epoch":1,"clusters":{"a":"1","b":"1"}}`), false))
			require.NoError(t, f.Take(bindingOf("one", "a", "one-0-snapshot"), false))
			require.NoError(t, f.Take(asks(1, `{"epoch":1,"clusters":{"a":"1","b":"1"}}`), false))
			f.At(time.Unix(100, 0).Add(test.after))
			err := f.Take(bindingOf("one", test.cluster, "one-0-snapshot"), false)
			if test.broken == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, test.broken)
		})
	}
}
