package telemetry

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// collectTimeout bounds a collection: the cache answers at once or has not been filled yet.
const collectTimeout = 5 * time.Second

// What is collected of the objects as they are.
var (
	placementStatus = prometheus.NewDesc("fleet_workload_placement_status_last_timestamp_seconds",
		"When a placement came to stand where it does: at the first of its conditions that is not true, or Completed.",
		[]string{"namespace", "name", "generation", "conditionType", "status", "reason"}, nil)
	incomplete = prometheus.NewDesc("fleetflow_placement_incomplete",
		"Of placements of which not all is placed, or removed, that is to be: 1 for each condition that says so.",
		[]string{"placement_namespace", "placement", "condition", "reason"}, nil)
	runStatus = prometheus.NewDesc("fleet_workload_update_run_status_last_timestamp_seconds",
		"When an update run came to stand where it does.",
		[]string{"namespace", "name", "state", "condition", "status", "reason", "failureType"}, nil)
	evictionComplete = prometheus.NewDesc("fleet_workload_eviction_complete",
		"When an eviction was over, or was made if it is not.",
		[]string{"name", "isCompleted", "isValid"}, nil)
	clustersInFlight = prometheus.NewDesc("fleetflow_clusters_in_flight",
		"Clusters of a placement that are being changed now, by it or by its update runs, or waited for to become available.",
		[]string{"placement_namespace", "placement"}, nil)
	runInFlight = prometheus.NewDesc("fleetflow_update_run_clusters_in_flight",
		"Those of them that an update run is changing.",
		[]string{"run_namespace", "run"}, nil)
	taskBegun = prometheus.NewDesc("fleetflow_update_run_task_begun_timestamp_seconds",
		"Since when an update run has been waiting for a task of a stage that it still waits for.",
		[]string{"run_namespace", "run", "stage", "task_type"}, nil)
	memberClusters = prometheus.NewDesc("fleetflow_member_clusters",
		"Member clusters by the status of their conditions Joined and Healthy.",
		[]string{"joined", "healthy"}, nil)
	idleOverrides = prometheus.NewDesc("fleetflow_overrides_without_effect",
		"Overrides that the hub does not go by, by the reason of their condition Valid.",
		[]string{"kind", "override_namespace", "reason"}, nil)
	memberHeartbeat = prometheus.NewDesc("fleetflow_member_last_heartbeat_timestamp_seconds",
		"When a member cluster's agent last reported.",
		[]string{"member"}, nil)
)

// Collector tells how the hub's objects stand, when it is asked. Of several replicas only the one that holds the lease answers.
type Collector struct {
	// Cache has the objects.
	Cache client.Reader
	// Leading is closed when this replica leads.
	Leading <-chan struct{}
	Clock   clock.PassiveClock
	Log     logr.Logger
}

// Describe names what is collected.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		placementStatus, incomplete, runStatus, evictionComplete, clustersInFlight, runInFlight, taskBegun, memberClusters, memberHeartbeat,
		rolloutHolds, holdCreated, rolloutWindows, heldClusters, idleOverrides,
	} {
		descriptions <- d
	}
}

// Collect reads the objects in the cache.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.Leading:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	for _, collect := range []func(context.Context, chan<- prometheus.Metric) error{
		c.collectPlacements, c.collectRuns, c.collectEvictions, c.collectBindings, c.collectMembers,
		c.collectHolds, c.collectWindows, c.collectHeld, c.collectOverrides,
	} {
		if err := collect(ctx, metrics); err != nil {
			c.Log.Info("Some metrics are missing", "cause", err.Error())
		}
	}
}

func newGauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixNano()) / float64(time.Second) }

func (c *Collector) collectPlacements(ctx context.Context, metrics chan<- prometheus.Metric) error {
	for _, scope := range placementv1beta1.Scopes() {
		placements := scope.NewPlacementList()
		if err := c.Cache.List(ctx, placements, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for _, p := range placements.Objects() {
			s := currentStateOfPlacement(p)
			metrics <- newGauge(placementStatus, unixSeconds(s.since), p.GetNamespace(), p.GetName(), strconv.FormatInt(p.GetGeneration(), 10),
				s.condition, s.status, s.reason)
			for _, tells := range tellsIncomplete {
				if said := placementv1beta1.FindTrue(p.GetPlacementStatus().Conditions, tells); said != nil {
					metrics <- newGauge(incomplete, 1, p.GetNamespace(), p.GetName(), tells, said.Reason)
				}
			}
		}
	}
	return nil
}

// tellsIncomplete are the conditions that say of a placement what is not placed, or not removed, although KubeFleet's conditions may
// all be True.
var tellsIncomplete = []string{
	placementv1beta1.ConditionTypeResourcesLeftOut, placementv1beta1.ConditionTypeResourcesMissing,
	placementv1beta1.ConditionTypeDependenciesMissing, placementv1beta1.ConditionTypeKindsHeld,
	placementv1beta1.ConditionTypeChangesHeld, placementv1beta1.ConditionTypeRemovalsHeld, placementv1beta1.ConditionTypeRemovalPending,
}

func (c *Collector) collectRuns(ctx context.Context, metrics chan<- prometheus.Metric) error {
	for _, scope := range placementv1beta1.Scopes() {
		runs := scope.NewUpdateRunList()
		if err := c.Cache.List(ctx, runs, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for _, run := range runs.Objects() {
			c.collectRun(run, metrics)
		}
	}
	return nil
}

func (c *Collector) collectRun(run placementv1beta1.UpdateRunObject, metrics chan<- prometheus.Metric) {
	namespace := run.GetNamespace()
	name := run.GetName()
	s, failure := currentStateOfRun(run)
	state := cmp.Or(run.GetUpdateRunSpec().State, placementv1beta1.StateRun)
	metrics <- newGauge(runStatus, unixSeconds(s.since), namespace, name, string(state), s.condition, s.status, s.reason, failure)
	if rules.IsRunOver(run) {
		return
	}
	metrics <- newGauge(runInFlight, float64(updaterun.Read(run).InFlight), namespace, name)
	waited := map[[2]string]bool{}
	for _, g := range gatesOf(run) {
		if key := [2]string{g.stage, g.taskLabel()}; !g.Done() && !waited[key] {
			waited[key] = true
			metrics <- newGauge(taskBegun, unixSeconds(g.Begun), namespace, name, g.stage, g.taskLabel())
		}
	}
}

func (c *Collector) collectEvictions(ctx context.Context, metrics chan<- prometheus.Metric) error {
	var evictions placementv1beta1.ClusterResourcePlacementEvictionList
	if err := c.Cache.List(ctx, &evictions, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range evictions.Items {
		e := &evictions.Items[i]
		outcome, at := outcomeOf(e)
		metrics <- newGauge(evictionComplete, unixSeconds(at), e.Name, yesNo(outcome != ""), validity(outcome))
	}
	return nil
}

// collectBindings counts, for each placement that has any, the clusters that are to run something and are not available.
func (c *Collector) collectBindings(ctx context.Context, metrics chan<- prometheus.Metric) error {
	for _, scope := range placementv1beta1.Scopes() {
		bindings := scope.NewBindingList()
		if err := c.Cache.List(ctx, bindings, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		count := map[types.NamespacedName]int{}
		for _, b := range bindings.Objects() {
			if underWay(b) {
				count[placementv1beta1.ScopeOf(b).Key(b.GetLabels()[placementv1beta1.ParentPlacementLabel])]++
			}
		}
		for placement, n := range count {
			metrics <- newGauge(clustersInFlight, float64(n), placement.Namespace, placement.Name)
		}
	}
	return nil
}

// underWay reports whether a cluster is to run something and is not known to be done with it.
func underWay(b placementv1beta1.BindingObject) bool {
	if b.GetBindingSpec().State != placementv1beta1.BindingStateBound || !b.GetDeletionTimestamp().IsZero() {
		return false
	}
	done := placementv1beta1.ConditionTypeAvailable
	if s := b.GetBindingSpec().ApplyStrategy; s != nil && s.Type == placementv1beta1.ApplyStrategyTypeReportDiff {
		done = placementv1beta1.ConditionTypeDiffReported
	}
	condition := meta.FindStatusCondition(b.GetConditions(), done)
	return condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration < b.GetGeneration()
}

func (c *Collector) collectMembers(ctx context.Context, metrics chan<- prometheus.Metric) error {
	var members clusterv1beta1.MemberClusterList
	if err := c.Cache.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	type kind struct{ joined, healthy string }
	count := map[kind]int{}
	for i := range members.Items {
		m := &members.Items[i]
		count[kind{statusOf(m.Status.Conditions, clusterv1beta1.ConditionTypeJoined),
			statusOf(m.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)}]++
		var last time.Time
		for _, agent := range m.Status.AgentStatus {
			if agent.LastReceivedHeartbeat.After(last) {
				last = agent.LastReceivedHeartbeat.Time
			}
		}
		if !last.IsZero() {
			metrics <- newGauge(memberHeartbeat, unixSeconds(last), m.Name)
		}
	}
	for k, n := range count {
		metrics <- newGauge(memberClusters, float64(n), k.joined, k.healthy)
	}
	return nil
}

// collectOverrides counts the overrides without effect, such as those that refer to a placement that does not exist.
func (c *Collector) collectOverrides(ctx context.Context, metrics chan<- prometheus.Metric) error {
	for _, scope := range placementv1beta1.Scopes() {
		overrides := scope.NewOverrideList()
		if err := c.Cache.List(ctx, overrides, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		type why struct{ namespace, reason string }
		count := map[why]int{}
		for _, o := range overrides.Objects() {
			if valid := meta.FindStatusCondition(o.GetConditions(), placementv1beta1.ConditionTypeValid); valid != nil &&
				valid.Status == metav1.ConditionFalse {
				count[why{o.GetNamespace(), valid.Reason}]++
			}
		}
		for k, n := range count {
			metrics <- newGauge(idleOverrides, float64(n), scope.OverrideKind().Kind, k.namespace, k.reason)
		}
	}
	return nil
}

func statusOf(conditions []metav1.Condition, name string) string {
	if c := meta.FindStatusCondition(conditions, name); c != nil {
		return string(c.Status)
	}
	return string(metav1.ConditionUnknown)
}
