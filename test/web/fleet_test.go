package web

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// html is what must stay text wherever it is shown. If it does not, the page has an alert, an element or an error.
const html = `<img src=x onerror="document.body.dataset.taken=1"><script>document.body.dataset.taken=1</script>`

// secretOnHub and secretOnMember are values of a Secret that no page shows.
const secretOnHub, secretOnMember = "aW5mbw==", "ZGVidWc="

// clusters are the members, in the order of stages: two of each region in staging and canary, four in production.
var clusters = []string{"staging-eu", "staging-us", "canary-eu", "canary-us", "prod-eu-1", "prod-eu-2", "prod-us-1", "prod-us-2"}

func ago(d time.Duration) metav1.Time {
	return metav1.NewTime(time.Now().Add(-d).Truncate(time.Second))
}

func condition(kind string, status metav1.ConditionStatus, reason string, age time.Duration, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: ago(age), ObservedGeneration: 1, Message: message}
}

// fulfilled is a condition that is true since long ago.
func fulfilled(kind string) metav1.Condition {
	return condition(kind, metav1.ConditionTrue, "Fulfilled", 26*time.Hour, "")
}

func member(name string, heartbeat time.Duration) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: ago(90 * 24 * time.Hour), Labels: map[string]string{"environment": name[:max(1, slices.Index([]byte(name+"-"), '-'))]}},
		Spec:       clusterv1beta1.MemberClusterSpec{HeartbeatPeriodSeconds: 60},
		Status: clusterv1beta1.MemberClusterStatus{
			Conditions: []metav1.Condition{fulfilled(clusterv1beta1.ConditionTypeReadyToJoin), fulfilled(clusterv1beta1.ConditionTypeJoined), fulfilled(clusterv1beta1.ConditionTypeHealthy)},
			Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
				clusterv1beta1.NodeCountProperty: {Value: "12"}, clusterv1beta1.KubernetesVersionProperty: {Value: "v1.36.3"},
			},
			ResourceUsage: clusterv1beta1.ResourceUsage{
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("384Gi")},
				Available:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("31500m"), corev1.ResourceMemory: resource.MustParse("120Gi")},
			},
			AgentStatus: []clusterv1beta1.AgentStatus{{
				Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: ago(heartbeat),
				Conditions: []metav1.Condition{fulfilled(clusterv1beta1.ConditionTypeJoined), fulfilled(clusterv1beta1.ConditionTypeHealthy)},
			}},
		},
	}
}

// placement is one that runs roll out, with all clusters on a snapshot, and a snapshot after that.
func placement(name string, snapshot int) []client.Object {
	status := placementv1beta1.PlacementStatus{
		ObservedResourceIndex: strconv.Itoa(snapshot + 1),
		Conditions: []metav1.Condition{
			fulfilled("ClusterResourcePlacementScheduled"),
			condition("ClusterResourcePlacementRolloutStarted", metav1.ConditionUnknown, placementv1beta1.ReasonRolloutStartedUnknown, time.Hour, "Update runs roll this placement out"),
		},
		SelectedResources: []placementv1beta1.ResourceIdentifier{
			{Version: "v1", Kind: "Namespace", Name: name}, {Group: "apps", Version: "v1", Kind: "Deployment", Namespace: name, Name: name}, {Version: "v1", Kind: "Secret", Namespace: name, Name: "login"},
		},
	}
	for index := range snapshot + 2 {
		status.ResourceSnapshots = append(status.ResourceSnapshots, placementv1beta1.ResourceSnapshotSummary{
			Index: strconv.Itoa(index), Name: placementv1beta1.ResourceSnapshotName(name, index, 0), CreationTime: ago(time.Duration(snapshot+2-index) * 12 * time.Hour),
		})
	}
	for _, cluster := range clusters {
		status.PerClusterPlacementStatuses = append(status.PerClusterPlacementStatuses, placementv1beta1.PerClusterPlacementStatus{
			ClusterName: cluster, ObservedResourceIndex: strconv.Itoa(snapshot), Conditions: []metav1.Condition{fulfilled("Scheduled"), fulfilled("RolloutStarted"), fulfilled("Applied"), fulfilled("Available")},
		})
	}
	objects := []client.Object{
		&placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: ago(40 * 24 * time.Hour), Labels: map[string]string{"team": "store"}},
			Spec:       placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}},
			Status:     status,
		},
		&placementv1beta1.ClusterSchedulingPolicySnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-0", CreationTimestamp: ago(40 * 24 * time.Hour), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: name, placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0"}},
			Status:     placementv1beta1.SchedulingPolicySnapshotStatus{ObservedCRPGeneration: 1, Conditions: []metav1.Condition{fulfilled("Scheduled")}},
		},
		resourceSnapshot(name, snapshot, false, "1.41.0", "aW5mbw=="), resourceSnapshot(name, snapshot+1, true, "1.42.0", "ZGVidWc="),
	}
	for _, cluster := range clusters {
		objects = append(objects, bindingTo(name, cluster, snapshot))
	}
	return objects
}

func resourceSnapshot(placement string, index int, latest bool, version, token string) client.Object {
	snapshot := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: placementv1beta1.ResourceSnapshotName(placement, index, 0), CreationTimestamp: ago(time.Duration(100-index) * time.Hour),
		Labels: map[string]string{
			placementv1beta1.ParentPlacementLabel: placement, placementv1beta1.ResourceIndexLabel: strconv.Itoa(index), placementv1beta1.IsLatestSnapshotLabel: strconv.FormatBool(latest),
		},
		Annotations: map[string]string{placementv1beta1.ResourceGroupHashAnnotation: "hash", placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1"},
	}}
	for _, manifest := range []string{
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, placement),
		fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%[1]q,"namespace":%[1]q},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"server","image":"registry.example/%[1]s:%[2]s"}]}}}}`, placement, version),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login","namespace":%q},"data":{"token":%q}}`, placement, token),
	} {
		snapshot.Spec.SelectedResources = append(snapshot.Spec.SelectedResources, placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}})
	}
	return snapshot
}

func bindingTo(placement, cluster string, snapshot int) *placementv1beta1.ClusterResourceBinding {
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: placement + "-" + cluster, Generation: 1, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: placement}},
		Spec: placementv1beta1.ResourceBindingSpec{
			State: placementv1beta1.BindingStateBound, TargetCluster: cluster, ResourceSnapshotName: placementv1beta1.ResourceSnapshotName(placement, snapshot, 0), SchedulingPolicySnapshotName: placement + "-0",
		},
		Status: placementv1beta1.ResourceBindingStatus{Conditions: []metav1.Condition{
			fulfilled("RolloutStarted"), fulfilled("Overridden"), fulfilled("WorkSynchronized"), fulfilled("Applied"), fulfilled("Available"),
		}},
	}
}

// started is a cluster that a run updates, done one that it has updated.
func started(name string, age time.Duration, message string) placementv1beta1.ClusterUpdatingStatus {
	return placementv1beta1.ClusterUpdatingStatus{ClusterName: name, Conditions: []metav1.Condition{
		condition(placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue, placementv1beta1.ReasonClusterUpdatingStarted, age, message),
	}}
}

func done(name string, age time.Duration) placementv1beta1.ClusterUpdatingStatus {
	cluster := started(name, age+40*time.Second, "")
	cluster.Conditions = append(cluster.Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonClusterUpdatingSucceeded, age, ""))
	return cluster
}

// newRun is a run of three stages over the clusters, that has passed the first and is done with the clusters of the second,
// after which it waits for 30 minutes and for an approval.
func newRun(name, placement string, snapshot int) *placementv1beta1.ClusterStagedUpdateRun {
	half := intstr.FromString("50%")
	soak := metav1.Duration{Duration: 30 * time.Minute}
	begun := ago(21 * time.Minute)
	passed := ago(19 * time.Minute)
	tasks := []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &soak}, {Type: placementv1beta1.StageTaskTypeApproval}}
	run := &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: ago(22 * time.Minute)},
		Spec:       placementv1beta1.UpdateRunSpec{PlacementName: placement, StagedUpdateStrategyName: "careful", State: placementv1beta1.StateRun},
		Status: placementv1beta1.UpdateRunStatus{
			ResourceSnapshotIndexUsed: strconv.Itoa(snapshot), PolicySnapshotIndexUsed: "0", PolicyObservedClusterCount: len(clusters),
			UpdateStrategySnapshot: &placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
				{Name: "staging"}, {Name: "canary", AfterStageTasks: tasks}, {Name: "production", MaxConcurrency: &half},
			}},
			StagesStatus: []placementv1beta1.StageUpdatingStatus{
				{
					StageName: "staging", StartTime: &begun, EndTime: &passed, Clusters: []placementv1beta1.ClusterUpdatingStatus{done("staging-eu", 20*time.Minute), done("staging-us", 19*time.Minute)},
					Conditions: []metav1.Condition{condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, 19*time.Minute, "")},
				},
				{
					StageName: "canary", StartTime: &passed, Clusters: []placementv1beta1.ClusterUpdatingStatus{done("canary-eu", 18*time.Minute), done("canary-us", 17*time.Minute)},
					AfterStageTaskStatus: []placementv1beta1.StageTaskStatus{
						{Type: placementv1beta1.StageTaskTypeTimedWait},
						{Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: name + "-canary", Conditions: []metav1.Condition{condition(placementv1beta1.ConditionTypeApprovalRequestCreated, metav1.ConditionTrue, "Created", 17*time.Minute, "")}},
					},
					Conditions: []metav1.Condition{condition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonStageUpdatingWaiting, 17*time.Minute, "")},
				},
				{StageName: "production"},
			},
			DeletionStageStatus: &placementv1beta1.StageUpdatingStatus{StageName: placementv1beta1.DeletionStageName},
			Conditions: []metav1.Condition{
				condition(placementv1beta1.ConditionTypeInitialized, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunInitializedSuccessfully, 22*time.Minute, ""),
				condition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunStarted, 22*time.Minute, ""),
			},
		},
	}
	for _, cluster := range clusters[4:] {
		production := &run.Status.StagesStatus[2]
		production.Clusters = append(production.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: cluster})
	}
	return run
}

func requestOf(run, stage string) *placementv1beta1.ClusterApprovalRequest {
	return &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: run + "-" + stage, CreationTimestamp: ago(17 * time.Minute), Labels: map[string]string{placementv1beta1.TargetUpdateRunLabel: run}},
		Spec:       placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: run, TargetStage: stage},
	}
}

// soaked takes a run past its soak, so that it waits for the approval alone.
func soaked(run *placementv1beta1.ClusterStagedUpdateRun) *placementv1beta1.ClusterStagedUpdateRun {
	wait := &run.Status.StagesStatus[1].AfterStageTaskStatus[0]
	wait.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeWaitTimeElapsed, metav1.ConditionTrue, placementv1beta1.ReasonAfterStageTaskWaitTimeElapsed, time.Minute, "")}
	return run
}

// inProduction takes a run to its last stage, one cluster of which it updates.
func inProduction(run *placementv1beta1.ClusterStagedUpdateRun, message string) *placementv1beta1.ClusterStagedUpdateRun {
	soaked(run)
	passed := ago(15 * time.Minute)
	canary := &run.Status.StagesStatus[1]
	production := &run.Status.StagesStatus[2]
	canary.EndTime = &passed
	production.StartTime = &passed
	canary.AfterStageTaskStatus[1].Conditions = append(canary.AfterStageTaskStatus[1].Conditions, condition(placementv1beta1.ConditionTypeApprovalRequestApproved, metav1.ConditionTrue, "Approved", 15*time.Minute, ""))
	canary.Conditions = append(canary.Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, 15*time.Minute, ""))
	production.Clusters[0] = done("prod-eu-1", 12*time.Minute)
	production.Clusters[1] = started("prod-eu-2", 14*time.Minute, message)
	production.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingStarted, 15*time.Minute, "")}
	return run
}

// notBegun takes a run back to where it is planned and nothing else.
func notBegun(planned *placementv1beta1.ClusterStagedUpdateRun) *placementv1beta1.ClusterStagedUpdateRun {
	planned.Spec.State = placementv1beta1.StateInitialize
	planned.Status.Conditions = planned.Status.Conditions[:1]
	for i := range planned.Status.StagesStatus {
		stage := &planned.Status.StagesStatus[i]
		stage.StartTime = nil
		stage.EndTime = nil
		stage.Conditions = nil
		for j := range stage.Clusters {
			stage.Clusters[j].Conditions = nil
		}
		for j := range stage.AfterStageTaskStatus {
			stage.AfterStageTaskStatus[j].Conditions = nil
		}
	}
	return planned
}

// says gives a run a condition.
func says(run *placementv1beta1.ClusterStagedUpdateRun, c metav1.Condition) *placementv1beta1.ClusterStagedUpdateRun {
	meta.SetStatusCondition(&run.Status.Conditions, c)
	return run
}

// store is a fleet with runs in all states, a hold, a placement in a namespace, and texts that would like to be HTML.
func store() []client.Object { return storeWith(html) }

// storeWith is that fleet with a text at the end of messages and reasons.
func storeWith(text string) []client.Object {
	var objects []client.Object
	for i, name := range clusters {
		m := member(name, time.Duration(5+i)*time.Second)
		if name == "prod-us-2" {
			m = member(name, 11*time.Minute)
			m.Spec.Taints = []clusterv1beta1.Taint{{Key: "maintenance", Value: "power", Effect: corev1.TaintEffectNoSchedule}}
			meta.SetStatusCondition(&m.Status.Conditions, condition(clusterv1beta1.ConditionTypeHealthy, metav1.ConditionUnknown, "MemberClusterHeartbeatMissed", 10*time.Minute, "No heartbeat for 11m"))
		}
		m.Labels["note"] = "a<b"
		objects = append(objects, m)
	}
	for name, snapshot := range map[string]int{"catalog": 11, "checkout": 6, "mail": 1, "payments": 3, "profile": 2, "search": 8} {
		objects = append(objects, placement(name, snapshot)...)
	}
	failing := says(inProduction(newRun("mail-2", "mail", 2), ""), condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunFailed, 3*time.Minute, "cluster prod-eu-2 failed: the failure budget of stage production is used up"))
	failing.Status.StagesStatus[2].Clusters[1].Conditions = append(failing.Status.StagesStatus[2].Clusters[1].Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonClusterUpdatingFailed, 3*time.Minute, "Deployment mail/mail: 1 of 3 replicas is available "+text))
	stopped := inProduction(newRun("search-9", "search", 9), "")
	stopped.Spec.State = placementv1beta1.StateStop
	planned := notBegun(newRun("profile-3", "profile", 3))
	broken := bindingTo("payments", "prod-eu-2", 4)
	meta.SetStatusCondition(&broken.Status.Conditions, condition("Available", metav1.ConditionFalse, "NotAllWorkAreAvailable", 14*time.Minute, "Work payments-work is not available"))
	broken.Status.FailedPlacements = []placementv1beta1.FailedResourcePlacement{{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "payments", Name: "payments"},
		Condition:          metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "ManifestNotAvailableYet", Message: "1 of 3 replicas is available " + text},
	}}
	drifted := bindingTo("catalog", "prod-eu-1", 11)
	drifted.Status.DriftedPlacements = []placementv1beta1.DriftedResourcePlacement{
		{
			ResourceIdentifier:       placementv1beta1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "catalog", Name: "catalog"},
			FirstDriftedObservedTime: ago(3 * time.Hour), ObservationTime: ago(time.Minute),
			ObservedDrifts: []placementv1beta1.PatchDetail{
				{Path: "/spec/template/spec/containers/0/image", ValueInHub: "registry.example/catalog:1.41.0", ValueInMember: "registry.example/catalog:1.40.2-hotfix"},
				{Path: "/metadata/annotations/note", ValueInMember: "by hand " + text},
			},
		},
		{
			ResourceIdentifier:       placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Secret", Namespace: "catalog", Name: "login"},
			FirstDriftedObservedTime: ago(3 * time.Hour), ObservationTime: ago(time.Minute),
			ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/data/token", ValueInHub: secretOnHub, ValueInMember: secretOnMember}},
		},
	}
	for _, object := range objects {
		if catalog, is := object.(*placementv1beta1.ClusterResourcePlacement); is && catalog.Name == "catalog" {
			at := slices.IndexFunc(catalog.Status.PerClusterPlacementStatuses, func(entry placementv1beta1.PerClusterPlacementStatus) bool { return entry.ClusterName == "prod-eu-1" })
			catalog.Status.PerClusterPlacementStatuses[at].DriftedPlacements = drifted.Status.DriftedPlacements
		}
	}
	objects = slices.DeleteFunc(objects, func(o client.Object) bool { return o.GetName() == broken.Name || o.GetName() == drifted.Name })
	objects = append(objects, errorRatio("payments-4", text))
	earlier := newRun("checkout-6", "checkout", 6)
	earlier.CreationTimestamp = ago(26 * time.Hour)
	nightly := newRun("nightly", "db", 5)
	return append(objects, broken, drifted,
		soaked(newRun("checkout-7", "checkout", 7)), requestOf("checkout-7", "canary"),
		newRun("catalog-12", "catalog", 12), requestOf("catalog-12", "canary"),
		says(inProduction(newRun("payments-4", "payments", 4), ""), condition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStuck, 9*time.Minute, "cluster prod-eu-2 is not available after 14m0s; Deployment payments/payments: 1 of 3 replicas is available")),
		says(stopped, condition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStopped, 5*time.Minute, "")),
		planned, failing,
		says(inProduction(earlier, ""), condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunSucceeded, 25*time.Hour, "")),
		&placementv1beta1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop", UID: "nightly", CreationTimestamp: ago(22 * time.Minute)}, Spec: nightly.Spec, Status: nightly.Status},
		&placementv1beta1.ResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop", UID: "db", CreationTimestamp: ago(40 * 24 * time.Hour)},
			Spec:       placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}},
			Status:     placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{condition("ResourcePlacementRolloutStarted", metav1.ConditionFalse, "RolloutNotStartedYet", time.Hour, text)}},
		},
		&fleetflowv1alpha1.RolloutHold{
			ObjectMeta: metav1.ObjectMeta{Name: "incident", UID: "incident", CreationTimestamp: ago(8 * time.Minute)},
			Spec:       fleetflowv1alpha1.RolloutHoldSpec{Message: "payments are slow in the west, INC-4711 " + text},
		},
		&fleetflowv1alpha1.NotificationChannel{
			ObjectMeta: metav1.ObjectMeta{Name: "chat", UID: "chat", CreationTimestamp: ago(8 * time.Hour)},
			Spec:       fleetflowv1alpha1.NotificationChannelSpec{Type: fleetflowv1alpha1.ChannelSlack},
			Status: fleetflowv1alpha1.NotificationChannelStatus{Conditions: []metav1.Condition{
				condition("Ready", metav1.ConditionFalse, fleetflowv1alpha1.ReasonRefused, time.Hour, "The last message did not arrive: Slack answers channel_not_found "+text),
			}},
		})
}

// errorRatio is an analysis of a run that has found one bad measurement of four.
func errorRatio(run, text string) *fleetflowv1alpha1.ClusterStageAnalysisRun {
	analysis := &fleetflowv1alpha1.ClusterStageAnalysisRun{
		ObjectMeta: metav1.ObjectMeta{Name: run + "-production-during", UID: "analysis"},
		Spec: fleetflowv1alpha1.StageAnalysisRunSpec{
			RunRef: fleetflowv1alpha1.UpdateRunReference{Name: run, UID: types.UID(run)}, Stage: "production", Position: fleetflowv1alpha1.PositionDuring, Attempt: 1,
			Metrics: []fleetflowv1alpha1.AnalysisRunMetric{{AnalysisMetric: fleetflowv1alpha1.AnalysisMetric{
				Name: "error-ratio", Success: "result <= 0.05", FailureLimit: 2, Prometheus: &fleetflowv1alpha1.PrometheusQuery{Query: "ratio", BaselineQuery: "ratio_of_the_others"},
			}}},
		},
		Status: fleetflowv1alpha1.StageAnalysisRunStatus{ObservedAttempt: 1, Conditions: []metav1.Condition{condition("Succeeded", metav1.ConditionUnknown, "Running", 14*time.Minute, "error-ratio 0.031, wanted result <= 0.05")}},
	}
	counted := fleetflowv1alpha1.AnalysisMetricStatus{Name: "error-ratio", Phase: fleetflowv1alpha1.AnalysisRunning, Measured: 4, Succeeded: 3, Failed: 1, Errors: 1}
	for i, value := range []string{"0.031", "0.062", "", "0.024", "0.012"} {
		taken := fleetflowv1alpha1.AnalysisMeasurement{At: metav1.NewMicroTime(ago(time.Duration(2+3*i) * time.Minute).Time), Outcome: fleetflowv1alpha1.OutcomeSuccess, Value: value, Message: "against 0.01" + strconv.Itoa(i)}
		switch i {
		case 1:
			taken.Outcome = fleetflowv1alpha1.OutcomeFailure
		case 2:
			taken.Outcome = fleetflowv1alpha1.OutcomeError
			taken.Message = "connection refused " + text
		}
		counted.Last = append(counted.Last, taken)
	}
	analysis.Status.Metrics = []fleetflowv1alpha1.AnalysisMetricStatus{counted}
	return analysis
}

// edges is a run over many clusters, two of which it updates.
func edges(number int) []client.Object {
	run := newRun("web-1", "web", 1)
	run.Status.UpdateStrategySnapshot.Stages = []placementv1beta1.StageConfig{{Name: "all"}}
	begun := ago(21 * time.Minute)
	all := placementv1beta1.StageUpdatingStatus{StageName: "all", StartTime: &begun, Conditions: []metav1.Condition{condition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingStarted, 21*time.Minute, "")}}
	objects := []client.Object{run, &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web"}, Spec: placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}},
	}}
	for i := range number {
		name := fmt.Sprintf("edge-%04d", i)
		objects = append(objects, member(name, 5*time.Second), bindingTo("web", name, 0))
		cluster := placementv1beta1.ClusterUpdatingStatus{ClusterName: name}
		switch i {
		case 0:
			cluster = done(name, time.Minute)
		case 1, 2:
			cluster = started(name, time.Minute, "")
		}
		all.Clusters = append(all.Clusters, cluster)
	}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{all}
	return objects
}
