package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// epoch is when everything begins; at is some seconds later.
var epoch = time.Unix(1000, 0)

func at(seconds int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
}

func condition(name string, status metav1.ConditionStatus, reason string, seconds int, generation int64) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Reason: reason, LastTransitionTime: at(seconds), ObservedGeneration: generation}
}

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

// collect gathers what the collector says of objects, without comments, and only series of one metric.
func collect(t *testing.T, name string, objects ...client.Object) []string {
	t.Helper()
	leading := make(chan struct{})
	close(leading)
	return lines(t, name, &Collector{
		Cache:   fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(objects...).Build(),
		Leading: leading, Clock: clocktesting.NewFakePassiveClock(at(100).Time), Log: logr.Discard(),
	})
}

func lines(t *testing.T, name string, collectors ...prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		registry.MustRegister(c)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	var found []string
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				value = h.GetSampleSum()
			}
			found = append(found, fmt.Sprintf("%s %v", strings.Join(labels, " "), value))
		}
	}
	return found
}

// sampleCount is how many observations a histogram has.
func sampleCount(t *testing.T, c prometheus.Collector) int {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	count := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			count += int(m.GetHistogram().GetSampleCount()) //nolint:gosec // a handful
		}
	}
	return count
}

func TestAPlacementStandsAtItsFirstConditionThatIsNotTrue(t *testing.T) {
	const name = "fleet_workload_placement_status_last_timestamp_seconds"
	all := func(last metav1.ConditionStatus) []metav1.Condition {
		var conditions []metav1.Condition
		for i, c := range []string{"Scheduled", "RolloutStarted", "Overridden", "WorkSynchronized", "Applied"} {
			conditions = append(conditions, condition("ClusterResourcePlacement"+c, yes, c, i, 2))
		}
		return append(conditions, condition("ClusterResourcePlacementAvailable", last, "Availability", 9, 2))
	}
	for sentence, test := range map[string]struct {
		conditions []metav1.Condition
		strategy   placementv1beta1.ApplyStrategyType
		want       string
	}{
		"nothing is known of a new one": {nil, "", "conditionType=ClusterResourcePlacementScheduled generation=2 name=p namespace= reason=Unknown status=Unknown 1000"},
		"what is of an earlier generation counts for nothing": {
			[]metav1.Condition{condition("ClusterResourcePlacementScheduled", yes, "x", 50, 1)}, "",
			"conditionType=ClusterResourcePlacementScheduled generation=2 name=p namespace= reason=Unknown status=Unknown 1000",
		},
		"one that no cluster is picked for is complete": {
			[]metav1.Condition{condition("ClusterResourcePlacementScheduled", yes, "x", 3, 2)}, "",
			"conditionType=Completed generation=2 name=p namespace= reason=Completed status=True 1003",
		},
		"one that clusters are picked for is not": {
			[]metav1.Condition{condition("ClusterResourcePlacementScheduled", yes, "picked", 3, 2)}, "",
			"conditionType=ClusterResourcePlacementRolloutStarted generation=2 name=p namespace= reason=Unknown status=Unknown 1003",
		},
		"one that is not available says so": {all(no), "", "conditionType=ClusterResourcePlacementAvailable generation=2 name=p namespace= reason=Availability status=False 1009"},
		"one that is available is complete": {all(yes), "", "conditionType=Completed generation=2 name=p namespace= reason=Completed status=True 1009"},
		"differences are to be reported":    {all(yes), placementv1beta1.ApplyStrategyTypeReportDiff, "conditionType=ClusterResourcePlacementDiffReported generation=2 name=p namespace= reason=Unknown status=Unknown 1003"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 2, CreationTimestamp: at(0)}}
			p.Spec.Strategy = &placementv1beta1.RolloutStrategy{ApplyStrategy: &placementv1beta1.ApplyStrategy{Type: test.strategy}}
			p.Status.Conditions = test.conditions
			if len(test.conditions) != 1 || test.conditions[0].Reason == "picked" {
				p.Status.PerClusterPlacementStatuses = []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "c"}}
			}
			assert.Equal(t, []string{test.want}, collect(t, name, p))
		})
	}
}

// run is a run whose stage canary has two clusters and every kind of task.
func run(change func(*placementv1beta1.StageUpdatingStatus)) *placementv1beta1.ClusterStagedUpdateRun {
	r := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "uid", Generation: 1, CreationTimestamp: at(0)}}
	stage := placementv1beta1.StageUpdatingStatus{
		StageName: "canary",
		Clusters:  []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "one"}, {ClusterName: "two"}},
		BeforeStageTaskStatus: []placementv1beta1.StageTaskStatus{
			{Type: placementv1beta1.StageTaskTypeApproval},
		},
		AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{
			{Type: placementv1beta1.StageTaskTypeTimedWait}, {Type: placementv1beta1.StageTaskTypeApproval},
		},
	}
	change(&stage)
	r.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{stage}
	return r
}

func set(conditions *[]metav1.Condition, c ...metav1.Condition) {
	*conditions = append(*conditions, c...)
}

// asked is a stage that waits for the approval before it.
func asked(s *placementv1beta1.StageUpdatingStatus) {
	set(&s.BeforeStageTaskStatus[0].Conditions, condition("ApprovalRequestCreated", yes, "", 10, 1))
}

// updating is a stage that has been approved, one of whose clusters is under way.
func updating(s *placementv1beta1.StageUpdatingStatus) {
	asked(s)
	set(&s.BeforeStageTaskStatus[0].Conditions, condition("ApprovalRequestApproved", yes, "", 70, 1))
	start := at(71)
	s.StartTime = &start
	set(&s.Clusters[0].Conditions, condition("Started", yes, "", 71, 1))
}

// waiting is a stage whose clusters are done.
func waiting(s *placementv1beta1.StageUpdatingStatus) {
	updating(s)
	set(&s.Clusters[0].Conditions, condition("Succeeded", yes, "", 74, 1))
	set(&s.Clusters[1].Conditions, condition("Started", yes, "", 74, 1), condition("Succeeded", yes, "", 79, 1))
	set(&s.Conditions, condition("Progressing", no, placementv1beta1.ReasonStageUpdatingWaiting, 80, 1))
	set(&s.AfterStageTaskStatus[1].Conditions, condition("ApprovalRequestCreated", yes, "", 80, 1))
}

// done is a stage that is over.
func done(s *placementv1beta1.StageUpdatingStatus) {
	waiting(s)
	s.Conditions[0].Reason = placementv1beta1.ReasonStageUpdatingSucceeded
	set(&s.AfterStageTaskStatus[0].Conditions, condition("WaitTimeElapsed", yes, "", 95, 1))
	set(&s.AfterStageTaskStatus[1].Conditions, condition("ApprovalRequestApproved", yes, "", 98, 1))
	end := at(98)
	s.EndTime = &end
}

func TestARunTellsWhatItWaitsForAndWhatIsUnderWay(t *testing.T) {
	for sentence, test := range map[string]struct {
		stage           func(*placementv1beta1.StageUpdatingStatus)
		gates, inFlight []string
	}{
		"before it begins": {func(*placementv1beta1.StageUpdatingStatus) {}, nil, []string{"run=r run_namespace= 0"}},
		"while it waits to begin": {asked, []string{"run=r run_namespace= stage=canary task_type=beforeStageApproval 1010"},
			[]string{"run=r run_namespace= 0"}},
		"while it updates": {updating, nil, []string{"run=r run_namespace= 1"}},
		"while it waits to end": {waiting, []string{
			"run=r run_namespace= stage=canary task_type=afterStageApproval 1080", "run=r run_namespace= stage=canary task_type=afterStageTimedWait 1080",
		}, []string{"run=r run_namespace= 0"}},
		"when it is done": {done, nil, []string{"run=r run_namespace= 0"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.gates, collect(t, "fleetflow_update_run_task_begun_timestamp_seconds", run(test.stage)))
			assert.Equal(t, test.inFlight, collect(t, "fleetflow_update_run_clusters_in_flight", run(test.stage)))
		})
	}
}

func TestARunStandsAtTheConditionThatSaysMost(t *testing.T) {
	const name = "fleet_workload_update_run_status_last_timestamp_seconds"
	initialized := condition("Initialized", yes, "Initialized", 1, 1)
	for sentence, test := range map[string]struct {
		conditions []metav1.Condition
		state      placementv1beta1.UpdateRunState
		want       string
	}{
		"a new one":             {nil, "", "condition=Initialized failureType=none name=r namespace= reason=Unknown state=Run status=Unknown 1000"},
		"one that cannot begin": {[]metav1.Condition{condition("Initialized", no, "Failed", 2, 1)}, "", "condition=Initialized failureType=user_error name=r namespace= reason=Failed state=Run status=False 1002"},
		"one that is stuck":     {[]metav1.Condition{initialized, condition("Progressing", no, "UpdateRunStuck", 3, 1)}, "", "condition=Progressing failureType=internal_error name=r namespace= reason=UpdateRunStuck state=Run status=False 1003"},
		"one that is stopped":   {[]metav1.Condition{initialized, condition("Progressing", no, "Stopped", 3, 1)}, placementv1beta1.StateStop, "condition=Progressing failureType=none name=r namespace= reason=Stopped state=Stop status=False 1003"},
		"one that has failed":   {[]metav1.Condition{initialized, condition("Succeeded", no, "Failed", 4, 1)}, "", "condition=Succeeded failureType=user_error name=r namespace= reason=Failed state=Run status=False 1004"},
		"what is of an earlier generation counts for nothing": {[]metav1.Condition{initialized, condition("Progressing", no, "UpdateRunStuck", 3, 0)}, "", "condition=Initialized failureType=none name=r namespace= reason=Initialized state=Run status=True 1001"},
		"one that has succeeded":                              {[]metav1.Condition{initialized, condition("Succeeded", yes, "Done", 4, 1)}, "", "condition=Succeeded failureType=none name=r namespace= reason=Done state=Run status=True 1004"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := run(func(*placementv1beta1.StageUpdatingStatus) {})
			r.Spec.State = test.state
			r.Status.Conditions = test.conditions
			assert.Equal(t, []string{test.want}, collect(t, name, r))
		})
	}
}

func TestTheEndsOfARunsPartsAreObservedOnce(t *testing.T) {
	w := NewWatcher(nil)
	steps := []*placementv1beta1.ClusterStagedUpdateRun{
		run(func(*placementv1beta1.StageUpdatingStatus) {}), run(asked), run(updating), run(waiting), run(done), run(done),
	}
	for i := range steps[1:] {
		w.runChanged(steps[i], steps[i+1])
	}
	assert.Equal(t, []string{
		"stage=canary task_type=afterStageApproval 18", "stage=canary task_type=afterStageTimedWait 15", "stage=canary task_type=beforeStageApproval 60",
	}, lines(t, "fleetflow_update_run_task_duration_seconds", w.gates))
	assert.Equal(t, []string{"name=r namespace= taskType=afterStage 18", "name=r namespace= taskType=beforeStage 60"},
		lines(t, "fleet_workload_update_run_approval_request_latency_seconds", w.approvals))
	assert.Equal(t, []string{"name=r namespace= 8"},
		lines(t, "fleet_workload_update_run_stage_cluster_updating_duration_seconds", w.updates), "once, from 71 to 79")
	assert.Equal(t, []string{"stage=canary 8"}, lines(t, "fleetflow_update_run_cluster_duration_seconds", w.clusters), "3 s and 5 s")
	assert.Equal(t, 1, sampleCount(t, w.updates))
	assert.Equal(t, 2, sampleCount(t, w.clusters))
	assert.Equal(t, []string{"stage=canary 27"}, lines(t, "fleetflow_update_run_stage_duration_seconds", w.stages))

	again := run(done)
	again.UID = "another"
	w.runChanged(steps[0], again)
	assert.Equal(t, []string{"stage=canary 27"}, lines(t, "fleetflow_update_run_stage_duration_seconds", w.stages), "not of a new run of the same name")
	w.runGone(steps[0])
	assert.Zero(t, testutil.CollectAndCount(w.approvals)+testutil.CollectAndCount(w.updates), "a run that is gone leaves no series")
}

func TestEvictionsTellHowTheyEnded(t *testing.T) {
	eviction := func(conditions ...metav1.Condition) *placementv1beta1.ClusterResourcePlacementEviction {
		e := &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: "e", CreationTimestamp: at(0)}}
		e.Status.Conditions = conditions
		return e
	}
	valid := condition("Valid", yes, "", 1, 1)
	for sentence, test := range map[string]struct {
		conditions    []metav1.Condition
		want, counted string
	}{
		"a new one":               {nil, "isCompleted=false isValid=unknown name=e 1000", ""},
		"one that is to be done":  {[]metav1.Condition{valid}, "isCompleted=false isValid=unknown name=e 1000", ""},
		"one that was executed":   {[]metav1.Condition{valid, condition("Executed", yes, "", 5, 1)}, "isCompleted=true isValid=true name=e 1005", "outcome=executed 1"},
		"one that was blocked":    {[]metav1.Condition{valid, condition("Executed", no, "", 6, 1)}, "isCompleted=true isValid=true name=e 1006", "outcome=blocked 1"},
		"one that cannot be done": {[]metav1.Condition{condition("Valid", no, "", 7, 1)}, "isCompleted=true isValid=false name=e 1007", "outcome=invalid 1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, []string{test.want}, collect(t, "fleet_workload_eviction_complete", eviction(test.conditions...)))
			w := NewWatcher(nil)
			w.evictionChanged(eviction(), eviction(test.conditions...))
			w.evictionChanged(eviction(test.conditions...), eviction(test.conditions...))
			assert.Equal(t, test.counted, strings.Join(lines(t, "fleetflow_evictions_total", w.evictions), "\n"))
		})
	}
}

func TestClustersOfPlacementsAreInFlightUntilTheyAreAvailable(t *testing.T) {
	binding := func(name string, state placementv1beta1.BindingState, conditions ...metav1.Condition) client.Object {
		b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Name: name, Generation: 2, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "p"},
		}}
		b.Spec.State = state
		b.Status.Conditions = conditions
		return b
	}
	assert.Equal(t, []string{"placement=p placement_namespace= 3"}, collect(t, "fleetflow_clusters_in_flight",
		binding("available", placementv1beta1.BindingStateBound, condition("Available", yes, "", 1, 2)),
		binding("unavailable", placementv1beta1.BindingStateBound, condition("Available", no, "", 1, 2)),
		binding("stale", placementv1beta1.BindingStateBound, condition("Available", yes, "", 1, 1)),
		binding("new", placementv1beta1.BindingStateBound),
		binding("scheduled", placementv1beta1.BindingStateScheduled),
	))
}

func TestMembersAreCountedAndTellWhenTheyWereHeardOf(t *testing.T) {
	member := func(name string, joined, healthy metav1.ConditionStatus, heartbeat int) client.Object {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Status.Conditions = []metav1.Condition{condition("Joined", joined, "", 1, 1), condition("Healthy", healthy, "", 1, 1)}
		m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{LastReceivedHeartbeat: at(heartbeat)}, {LastReceivedHeartbeat: at(1)}}
		return m
	}
	objects := []client.Object{member("a", yes, yes, 9), member("b", yes, yes, 8), member("c", yes, no, 7), &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "d"}}}
	assert.Equal(t, []string{"healthy=False joined=True 1", "healthy=True joined=True 2", "healthy=Unknown joined=Unknown 1"},
		collect(t, "fleetflow_member_clusters", objects...))
	assert.Equal(t, []string{"member=a 1009", "member=b 1008", "member=c 1007"}, collect(t, "fleetflow_member_last_heartbeat_timestamp_seconds", objects...))
}

func TestMembersThatJoinAndLeaveAreCounted(t *testing.T) {
	member := func(joined metav1.ConditionStatus) *clusterv1beta1.MemberCluster {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid"}}
		m.Status.Conditions = []metav1.Condition{condition("Joined", joined, "", 1, 1)}
		return m
	}
	w := NewWatcher(nil)
	w.memberChanged(member(metav1.ConditionUnknown), member(yes))
	w.memberChanged(member(yes), member(yes))
	w.memberChanged(member(yes), member(no))
	another := member(yes)
	another.UID = "another"
	w.memberChanged(member(no), another)
	assert.Equal(t, []string{"result=success 1"}, lines(t, "join_result_counter", w.joins.Collectors()...))
	assert.Equal(t, []string{"result=success 1"}, lines(t, "leave_result_counter", w.joins.Collectors()...))
}

func TestHoldsAndWindowsAreCountedByWhetherTheyCount(t *testing.T) {
	const name = "fleetflow_rollout_windows"
	hold := func(name string, expires int) client.Object {
		h := &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(7)}}
		if expires > 0 {
			until := at(expires)
			h.Spec.ExpirationTime = &until
		}
		return h
	}
	assert.Equal(t, []string{"effective=False 1", "effective=True 2"}, collect(t, "fleetflow_rollout_holds", hold("over", 99), hold("expires", 101), hold("stays", 0)))
	assert.Equal(t, []string{"expires=false hold=stays 1007", "expires=true hold=expires 1007"},
		collect(t, "fleetflow_rollout_hold_created_timestamp_seconds", hold("over", 99), hold("expires", 101), hold("stays", 0)))

	window := func(name string, of fleetflowv1alpha1.WindowType, valid ...metav1.ConditionStatus) client.Object {
		w := &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.Spec.Type = of
		for _, status := range valid {
			set(&w.Status.Conditions, condition(fleetflowv1alpha1.ConditionTypeAccepted, status, "", 1, 1))
		}
		return w
	}
	assert.Equal(t, []string{"accepted=False type=Allow 1", "accepted=False type=Deny 0", "accepted=True type=Allow 1", "accepted=True type=Deny 0", "accepted=Unknown type=Deny 1"},
		collect(t, name, window("good", fleetflowv1alpha1.WindowAllow, yes), window("bad", fleetflowv1alpha1.WindowAllow, no), window("new", fleetflowv1alpha1.WindowDeny)))
	assert.Equal(t, []string{"accepted=False type=Allow 0", "accepted=False type=Deny 0", "accepted=True type=Allow 0", "accepted=True type=Deny 0"}, collect(t, name))
}

func TestClustersThatAreHeldAreCountedByReason(t *testing.T) {
	held := condition(fleetflowv1alpha1.ConditionTypeHeld, yes, "WindowClosed", 1, 1)
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for i, reason := range []string{"HoldInForce", "HoldInForce", "WindowClosed", "RolloutNotStartedYet"} {
		p.Status.PerClusterPlacementStatuses = append(p.Status.PerClusterPlacementStatuses, placementv1beta1.PerClusterPlacementStatus{
			ClusterName: fmt.Sprintf("c%d", i), Conditions: []metav1.Condition{condition("RolloutStarted", no, reason, 1, 1)},
		})
	}
	of := func() []string { return collect(t, "fleetflow_held_clusters", p) }
	assert.Equal(t, []string{"reason=ClusterBusy 0", "reason=HoldInForce 0", "reason=OutsideAllowedWindow 0", "reason=PlanOutdated 0", "reason=WindowClosed 0"}, of(), "it does not say that it is held")
	p.Status.Conditions = []metav1.Condition{held}
	assert.Equal(t, []string{"reason=ClusterBusy 0", "reason=HoldInForce 2", "reason=OutsideAllowedWindow 0", "reason=PlanOutdated 0", "reason=WindowClosed 1"}, of())

	r := run(func(*placementv1beta1.StageUpdatingStatus) {})
	r.Status.Conditions = []metav1.Condition{held}
	r.Status.StagesStatus = append(r.Status.StagesStatus, r.Status.StagesStatus[0])
	assert.Equal(t, []string{"reason=ClusterBusy 0", "reason=HoldInForce 0", "reason=OutsideAllowedWindow 0", "reason=PlanOutdated 0", "reason=WindowClosed 2"}, collect(t, "fleetflow_held_clusters", r),
		"only the stage it is in waits")
}

// TestHowManySeriesAHubHas measures what the guide says of 5,000 clusters and 1,000 placements. Of each, only so many make a difference.
func TestHowManySeriesAHubHas(t *testing.T) {
	const members, placements, runs = 50, 10, 4
	var objects []client.Object
	for i := range members {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", i)}}
		m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{LastReceivedHeartbeat: at(1)}}
		objects = append(objects, m)
	}
	for i := range placements {
		name := fmt.Sprintf("p%d", i)
		objects = append(objects, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}})
		for j := range 3 {
			b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", name, j), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: name},
			}}
			b.Spec.State = placementv1beta1.BindingStateBound
			objects = append(objects, b)
		}
	}
	w := NewWatcher(nil)
	for i := range runs {
		name := fmt.Sprintf("r%d", i)
		steps := []*placementv1beta1.ClusterStagedUpdateRun{run(asked), run(updating), run(waiting)}
		for _, step := range steps {
			step.Name = name
		}
		w.runChanged(steps[0], steps[1])
		w.runChanged(steps[1], steps[2])
		objects = append(objects, steps[2])
	}
	leading := make(chan struct{})
	close(leading)
	all := append(w.Collectors(), &Collector{
		Cache:   fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(objects...).Build(),
		Leading: leading, Clock: clocktesting.NewFakePassiveClock(at(100).Time), Log: logr.Discard(),
	})
	for name, want := range map[string]int{
		"fleet_workload_placement_status_last_timestamp_seconds":            placements,
		"fleetflow_clusters_in_flight":                                      placements, // however many clusters a placement has
		"fleetflow_member_last_heartbeat_timestamp_seconds":                 members,
		"fleet_workload_update_run_status_last_timestamp_seconds":           runs,
		"fleetflow_update_run_clusters_in_flight":                           runs,
		"fleetflow_update_run_task_begun_timestamp_seconds":                 2 * runs, // two tasks wait at the end of the stage
		"fleet_workload_update_run_approval_request_latency_seconds":        12 * runs,
		"fleet_workload_update_run_stage_cluster_updating_duration_seconds": 11 * runs,
		"fleetflow_update_run_cluster_duration_seconds":                     16, // for each name of a stage
		"fleetflow_update_run_task_duration_seconds":                        12,
	} {
		assert.Equal(t, want, seriesOf(t, name, all...), name)
	}
}

// seriesOf is how many series Prometheus stores of a metric.
func seriesOf(t *testing.T, name string, collectors ...prometheus.Collector) int {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		registry.MustRegister(c)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	count := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			switch h := m.GetHistogram(); {
			case family.GetName() != name:
			case h != nil:
				count += len(h.GetBucket()) + 3 // the last bucket, sum and count
			default:
				count++
			}
		}
	}
	return count
}

func TestOverridesWithoutEffectAreCounted(t *testing.T) {
	override := func(name string, status metav1.ConditionStatus, reason string) client.Object {
		o := &placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		o.Status.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeValid, status, reason, 0, 0)}
		return o
	}
	assert.ElementsMatch(t, []string{
		"kind=ResourceOverride override_namespace=team reason=OverrideConflict 1", "kind=ResourceOverride override_namespace=team reason=OverridePlacementNotFound 2",
	}, collect(t, "fleetflow_overrides_without_effect",
		override("a", no, placementv1beta1.ReasonOverridePlacementNotFound), override("b", no, placementv1beta1.ReasonOverridePlacementNotFound),
		override("c", no, placementv1beta1.ReasonOverrideConflict), override("d", yes, placementv1beta1.ReasonOverrideValid),
		&placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "e"}}))
}

func TestPlacementsOfWhichNotAllIsPlacedOrRemovedAreTold(t *testing.T) {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	p.Status.Conditions = []metav1.Condition{
		condition(placementv1beta1.ConditionTypeResourcesLeftOut, yes, placementv1beta1.ReasonObjectTooLarge, 0, 0),
		condition(placementv1beta1.ConditionTypeRemovalPending, yes, placementv1beta1.ReasonRemovalRefused, 0, 0),
		condition(placementv1beta1.ConditionTypeRemovalsHeld, no, placementv1beta1.ReasonResolved, 0, 0),
	}
	inside := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	inside.Status.Conditions = []metav1.Condition{
		condition(placementv1beta1.ConditionTypeResourcesMissing, yes, placementv1beta1.ReasonResourcesNotFound, 0, 0),
	}
	assert.ElementsMatch(t, []string{
		"condition=ResourcesLeftOut placement=web placement_namespace= reason=ObjectTooLarge 1",
		"condition=RemovalPending placement=web placement_namespace= reason=RemovalRefused 1",
		"condition=ResourcesMissing placement=app placement_namespace=team reason=ResourcesNotFound 1",
	}, collect(t, "fleetflow_placement_incomplete", p, inside))
}

func TestAReplicaThatDoesNotLeadSaysNothing(t *testing.T) {
	c := &Collector{Leading: make(chan struct{})}
	assert.Zero(t, testutil.CollectAndCount(c))
}
