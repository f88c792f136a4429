package telemetry

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/joining"
)

const minute = 60.0

// Watcher observes how long things took, and counts them, when it sees them end. What ended while no hub agent led is not
// observed; the objects still tell.
type Watcher struct {
	// Cache reports changes.
	Cache cache.Cache
	// Log receives the progress of runs. It is optional.
	Log logr.Logger

	approvals *prometheus.HistogramVec
	updates   *prometheus.HistogramVec
	clusters  *prometheus.HistogramVec
	stages    *prometheus.HistogramVec
	gates     *prometheus.HistogramVec
	evictions *prometheus.CounterVec
	joins     *joining.Counters
}

// NewWatcher returns a watcher of the objects in a cache.
func NewWatcher(objects cache.Cache) *Watcher {
	return &Watcher{
		Cache: objects,
		approvals: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "fleet_workload_update_run_approval_request_latency_seconds",
			Help: "How long approval requests waited for their approval.",
			Buckets: []float64{minute, 5 * minute, 15 * minute, 30 * minute, 60 * minute, 2 * 60 * minute, 6 * 60 * minute, 12 * 60 * minute,
				24 * 60 * minute},
		}, []string{"namespace", "name", "taskType"}),
		updates: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fleet_workload_update_run_stage_cluster_updating_duration_seconds",
			Help:    "How long stages of update runs took from their start until their last cluster was done.",
			Buckets: []float64{15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 30 * minute, 60 * minute},
		}, []string{"namespace", "name"}),
		clusters: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fleetflow_update_run_cluster_duration_seconds",
			Help:    "How long clusters took in update runs, from their start until they were available.",
			Buckets: []float64{.25, .5, 1, 2.5, 5, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 30 * minute, 60 * minute},
		}, []string{"stage"}),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fleetflow_update_run_stage_duration_seconds",
			Help:    "How long stages of update runs took, tasks included.",
			Buckets: []float64{1, 5, 15, minute, 5 * minute, 15 * minute, 60 * minute, 4 * 60 * minute, 24 * 60 * minute, 7 * 24 * 60 * minute},
		}, []string{"stage"}),
		gates: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "fleetflow_update_run_task_duration_seconds",
			Help:    "How long update runs waited for the tasks of their stages.",
			Buckets: []float64{1, 15, minute, 5 * minute, 15 * minute, 60 * minute, 4 * 60 * minute, 24 * 60 * minute, 7 * 24 * 60 * minute},
		}, []string{"stage", "task_type"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fleetflow_evictions_total",
			Help: "Evictions that are over, by how they ended: executed, blocked by a budget, or invalid.",
		}, []string{"outcome"}),
		joins: joining.NewCounters(),
	}
}

// Collectors returns the watcher's metrics.
func (w *Watcher) Collectors() []prometheus.Collector {
	return append(w.joins.Collectors(), w.approvals, w.updates, w.clusters, w.stages, w.gates, w.evictions)
}

// NeedLeaderElection leaves the watching to the leader, so that nothing is counted twice.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Start watches until the context ends.
func (w *Watcher) Start(ctx context.Context) error {
	for _, scope := range placementv1beta1.Scopes() {
		runs, err := w.Cache.GetInformer(ctx, scope.NewUpdateRun(""))
		if err != nil {
			return fmt.Errorf("watching update runs for the metrics: %w", err)
		}
		if _, err := runs.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: changed(w.runChanged),
			DeleteFunc: w.runGone}); err != nil {
			return fmt.Errorf("watching update runs for the metrics: %w", err)
		}
	}
	evictions, err := w.Cache.GetInformer(ctx, &placementv1beta1.ClusterResourcePlacementEviction{})
	if err != nil {
		return fmt.Errorf("watching evictions for the metrics: %w", err)
	}
	if _, err := evictions.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: changed(w.evictionChanged)}); err != nil {
		return fmt.Errorf("watching evictions for the metrics: %w", err)
	}
	members, err := w.Cache.GetInformer(ctx, &clusterv1beta1.MemberCluster{})
	if err != nil {
		return fmt.Errorf("watching member clusters for the metrics: %w", err)
	}
	if _, err := members.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: changed(w.memberChanged)}); err != nil {
		return fmt.Errorf("watching member clusters for the metrics: %w", err)
	}
	<-ctx.Done()
	return nil
}

// changed passes on objects of one kind.
func changed[T any](pass func(before, after T)) func(any, any) {
	return func(before, after any) {
		b, ok := before.(T)
		if !ok {
			return
		}
		if a, ok := after.(T); ok {
			pass(b, a)
		}
	}
}

func (w *Watcher) evictionChanged(before, after *placementv1beta1.ClusterResourcePlacementEviction) {
	if outcome, _ := outcomeOf(after); !before.Ended() && outcome != "" {
		w.evictions.WithLabelValues(outcome).Inc()
	}
}

func (w *Watcher) memberChanged(before, after *clusterv1beta1.MemberCluster) {
	if before.UID == after.UID {
		w.joins.Observe(before.Status.Conditions, after.Status.Conditions)
	}
}

func (w *Watcher) runChanged(before, after placementv1beta1.UpdateRunObject) {
	if before.GetUID() != after.GetUID() {
		return // a new one of the same name
	}
	logProgress(w.Log, before, after)
	w.observeGates(before, after)
	w.observeStages(before, after)
	w.observeUpdates(before, after)
	w.observeClusters(before, after)
}

func (w *Watcher) observeGates(before, after placementv1beta1.UpdateRunObject) {
	held := map[[2]string]gate{}
	for _, g := range gatesOf(before) {
		if !g.Done() {
			held[[2]string{g.stage, g.taskLabel()}] = g
		}
	}
	for _, g := range gatesOf(after) {
		if h, was := held[[2]string{g.stage, g.taskLabel()}]; was && g.Done() {
			took := g.DoneAt.Sub(h.Begun).Seconds()
			w.gates.WithLabelValues(g.stage, g.taskLabel()).Observe(took)
			if g.Approvable {
				w.approvals.WithLabelValues(after.GetNamespace(), after.GetName(), string(g.side)).Observe(took)
			}
		}
	}
}

func (w *Watcher) observeStages(before, after placementv1beta1.UpdateRunObject) {
	ended := map[string]bool{}
	for i := range before.GetUpdateRunStatus().StagesStatus {
		s := &before.GetUpdateRunStatus().StagesStatus[i]
		ended[s.StageName] = s.EndTime != nil
	}
	for i := range after.GetUpdateRunStatus().StagesStatus {
		s := &after.GetUpdateRunStatus().StagesStatus[i]
		if already, known := ended[s.StageName]; known && !already && s.EndTime != nil && s.StartTime != nil {
			w.stages.WithLabelValues(s.StageName).Observe(s.EndTime.Sub(s.StartTime.Time).Seconds())
		}
	}
}

// observeUpdates observes the stages whose last cluster is done just now.
func (w *Watcher) observeUpdates(before, after placementv1beta1.UpdateRunObject) {
	was := before.GetUpdateRunStatus().StagesStatus
	is := after.GetUpdateRunStatus().StagesStatus
	for i := range is {
		if i >= len(was) || was[i].StageName != is[i].StageName {
			return // another plan
		}
		if len(is[i].Clusters) == 0 || is[i].StartTime == nil || updaterun.StageUpdated(&was[i]) || !updaterun.StageUpdated(&is[i]) {
			continue
		}
		var last time.Time
		for j := range is[i].Clusters {
			if ended := updaterun.ReadCluster(&is[i].Clusters[j]).Ended; ended.After(last) {
				last = ended
			}
		}
		w.updates.WithLabelValues(after.GetNamespace(), after.GetName()).Observe(last.Sub(is[i].StartTime.Time).Seconds())
	}
}

func (w *Watcher) observeClusters(before, after placementv1beta1.UpdateRunObject) {
	for i := range after.GetUpdateRunStatus().StagesStatus {
		if i >= len(before.GetUpdateRunStatus().StagesStatus) {
			return
		}
		was := before.GetUpdateRunStatus().StagesStatus[i].Clusters
		is := after.GetUpdateRunStatus().StagesStatus[i].Clusters
		for j := range is {
			if j >= len(was) || was[j].ClusterName != is[j].ClusterName {
				break // another plan
			}
			if took, ok := updateDuration(&was[j], &is[j]); ok {
				w.clusters.WithLabelValues(after.GetUpdateRunStatus().StagesStatus[i].StageName).Observe(took.Seconds())
			}
		}
	}
}

// updateDuration returns how long a cluster took if it has succeeded just now. The status of a large run does not keep when clusters that
// are done were started, so the one before counts.
func updateDuration(was, is *placementv1beta1.ClusterUpdatingStatus) (time.Duration, bool) {
	before := updaterun.ReadCluster(was)
	after := updaterun.ReadCluster(is)
	started := after.Started
	if started.IsZero() {
		started = before.Started
	}
	if started.IsZero() || after.Phase != updaterun.PhaseSucceeded || before.Phase == updaterun.PhaseSucceeded {
		return 0, false
	}
	return after.Ended.Sub(started), true
}

// runGone forgets the series of a run that was deleted.
func (w *Watcher) runGone(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if run, ok := object.(placementv1beta1.UpdateRunObject); ok {
		of := prometheus.Labels{"namespace": run.GetNamespace(), "name": run.GetName()}
		w.approvals.DeletePartialMatch(of)
		w.updates.DeletePartialMatch(of)
	}
}
