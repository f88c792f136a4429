// Package runs reads the status of a staged update run: which stage it is in, how far each is, and what it waits for. It
// is pure.
package runs

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// State is what a run, a stage or a cluster of it is at.
type State string

// States.
const (
	StateInitializing State = "Initializing"
	StateInitialized  State = "Initialized"
	StatePending      State = "Pending"
	StateRunning      State = "Running"
	StateWaiting      State = "Waiting"
	StateStuck        State = "Stuck"
	StateStopping     State = "Stopping"
	StateStopped      State = "Stopped"
	StateSucceeded    State = "Succeeded"
	StateSkipped      State = "Skipped"
	StateFailed       State = "Failed"
	StateAbandoned    State = "Abandoned"
	StateDeleting     State = "Deleting"
)

// Over says that nothing more will happen.
func (s State) Over() bool {
	return s == StateSucceeded || s == StateSkipped || s == StateFailed || s == StateAbandoned
}

// Run is how far a run is.
type Run struct {
	State   State
	Message string
	// Stages in their order, the one that clears clusters last if it has any.
	Stages []Stage
	// Current is the index of the stage that is under way or comes next, len(Stages) at the end.
	Current int
	Count
}

// Count counts clusters.
type Count struct {
	Total    int `json:"total"`
	Done     int `json:"done"`
	InFlight int `json:"inFlight,omitempty"`
	Failed   int `json:"failed,omitempty"`
	Skipped  int `json:"skipped,omitempty"`
}

// Add adds another count.
func (c *Count) Add(other Count) {
	c.Total += other.Total
	c.Done += other.Done
	c.InFlight += other.InFlight
	c.Failed += other.Failed
	c.Skipped += other.Skipped
}

// Stage is how far a stage is.
type Stage struct {
	Name string
	// Deletion says that the stage clears clusters the placement no longer picks.
	Deletion bool
	State    State
	Message  string
	// MaxConcurrency as the strategy has it, empty without.
	MaxConcurrency string
	Start, End     time.Time
	Clusters       []Cluster
	Before, After  []Gate
	Count
}

// Passed says that a run writes to no cluster of the stage any more: it is over, or waits for the tasks after it.
func (s Stage) Passed() bool {
	return s.State.Over() || s.State == StateWaiting && s.Total > 0 && s.Done+s.Failed+s.Skipped == s.Total
}

// Cluster is how far a cluster of a stage is.
type Cluster struct {
	Name       string
	State      State
	Message    string
	Start, End time.Time
}

// Gate is a task before or after a stage.
type Gate struct {
	Type placementv1beta1.StageTaskType
	// Request is the approval request.
	Request string
	// Open says that the stage waits for the task now, Done that it is done.
	Open, Done bool
	// At is when it was done, Message what its condition says of that.
	At      time.Time
	Message string
	// Wait is how long a timed wait takes, From when it began.
	Wait time.Duration
	From time.Time
}

// Until is when a timed wait that has begun ends.
func (g Gate) Until() time.Time { return g.From.Add(g.Wait) }

// Read reads the status of a run.
func Read(run hub.Run) Run {
	r := Run{}
	status := run.Status
	for i := range status.StagesStatus {
		stage := readStage(&status.StagesStatus[i], configOf(status.StagedUpdateStrategySnapshot, i))
		r.Stages = append(r.Stages, stage)
		r.Add(stage.Count)
	}
	if deletion := status.DeletionStageStatus; deletion != nil && len(deletion.Clusters) > 0 {
		stage := readStage(deletion, nil)
		stage.Deletion = true
		r.Stages = append(r.Stages, stage)
		r.Add(stage.Count)
	}
	r.State, r.Message = stateOf(run)
	for r.Current < len(r.Stages) && r.Stages[r.Current].State.Over() && r.Stages[r.Current].State != StateFailed {
		r.Current++
	}
	if r.State == StateRunning && r.Current < len(r.Stages) && r.Stages[r.Current].State == StateWaiting {
		r.State = StateWaiting
	}
	return r
}

func configOf(strategy *placementv1beta1.UpdateStrategySpec, index int) *placementv1beta1.StageConfig {
	if strategy == nil || index >= len(strategy.Stages) {
		return nil
	}
	return &strategy.Stages[index]
}

func stateOf(run hub.Run) (State, string) {
	succeeded := run.Condition(placementv1beta1.ConditionTypeSucceeded)
	initialized := run.Condition(placementv1beta1.ConditionTypeInitialized)
	progressing := run.Condition(placementv1beta1.ConditionTypeProgressing)
	switch {
	case !run.Object.GetDeletionTimestamp().IsZero():
		return StateDeleting, ""
	case is(succeeded, metav1.ConditionTrue):
		return StateSucceeded, succeeded.Message
	case is(succeeded, metav1.ConditionFalse):
		return StateFailed, succeeded.Message
	case is(initialized, metav1.ConditionFalse):
		return StateFailed, initialized.Message
	case initialized == nil || initialized.Status == metav1.ConditionUnknown:
		return StateInitializing, ""
	case progressing == nil:
		return StateInitialized, initialized.Message
	default:
		return progressState(progressing), progressing.Message
	}
}

// progressState is what the condition Progressing of a run or a stage says.
func progressState(c *metav1.Condition) State {
	switch c.Reason {
	case placementv1beta1.ReasonUpdateRunStuck:
		return StateStuck
	case placementv1beta1.ReasonUpdateRunWaiting, placementv1beta1.ReasonStageUpdatingWaiting:
		return StateWaiting
	case placementv1beta1.ReasonUpdateRunStopping, placementv1beta1.ReasonStageUpdatingStopping:
		return StateStopping
	case placementv1beta1.ReasonUpdateRunStopped, placementv1beta1.ReasonStageUpdatingStopped:
		return StateStopped
	case placementv1beta1.ReasonUpdateRunFailed, placementv1beta1.ReasonStageUpdatingFailed:
		return StateFailed
	default:
		return StateRunning
	}
}

func is(condition *metav1.Condition, status metav1.ConditionStatus) bool {
	return condition != nil && condition.Status == status
}

func readStage(status *placementv1beta1.StageUpdatingStatus, config *placementv1beta1.StageConfig) Stage {
	stage := Stage{Name: status.StageName, Start: timeOf(status.StartTime), End: timeOf(status.EndTime)}
	stage.State, stage.Message = stageState(status)
	for i := range status.Clusters {
		cluster := readCluster(&status.Clusters[i])
		stage.Clusters = append(stage.Clusters, cluster)
		stage.count(cluster.State)
	}
	if config != nil && config.MaxConcurrency != nil {
		stage.MaxConcurrency = config.MaxConcurrency.String()
	}
	waiting := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeProgressing)
	if waiting != nil && waiting.Reason != placementv1beta1.ReasonStageUpdatingWaiting {
		waiting = nil
	}
	before, after := tasksOf(config)
	over := stage.State.Over()
	// The wait before a stage has the same reason as the one after it; only then no cluster has begun.
	begun := stage.Done+stage.InFlight+stage.Failed+stage.Skipped > 0 || len(status.BeforeStageTaskStatus) == 0
	stage.Before = gates(status.BeforeStageTaskStatus, before, ifTrue(waiting, !begun && !over))
	stage.After = gates(status.AfterStageTaskStatus, after, ifTrue(waiting, begun && stage.Done+stage.Failed+stage.Skipped == stage.Total))
	if over {
		closeGates(stage.Before)
		closeGates(stage.After)
	}
	return stage
}

func ifTrue(condition *metav1.Condition, yes bool) *metav1.Condition {
	if !yes {
		return nil
	}
	return condition
}

func tasksOf(config *placementv1beta1.StageConfig) (before, after []placementv1beta1.StageTask) {
	if config == nil {
		return nil, nil
	}
	return config.BeforeStageTasks, config.AfterStageTasks
}

func (s *Stage) count(state State) {
	s.Total++
	switch state {
	case StateSucceeded:
		s.Done++
	case StateSkipped:
		s.Skipped++
	case StateFailed:
		s.Failed++
	case StateRunning:
		s.InFlight++
	}
}

func stageState(status *placementv1beta1.StageUpdatingStatus) (State, string) {
	succeeded := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	progressing := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeProgressing)
	switch {
	case is(succeeded, metav1.ConditionTrue) && strings.Contains(succeeded.Reason, "Skipped"):
		return StateSkipped, succeeded.Message
	case is(succeeded, metav1.ConditionTrue):
		return StateSucceeded, succeeded.Message
	case is(succeeded, metav1.ConditionFalse):
		return StateFailed, succeeded.Message
	case progressing != nil:
		return progressState(progressing), progressing.Message
	default:
		return StatePending, ""
	}
}

func readCluster(status *placementv1beta1.ClusterUpdatingStatus) Cluster {
	cluster := Cluster{Name: status.ClusterName, State: StatePending}
	if started := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeStarted); started != nil {
		cluster.Start, cluster.Message = started.LastTransitionTime.Time, started.Message
		if started.Status == metav1.ConditionTrue {
			cluster.State = StateRunning
		}
	}
	succeeded := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	if succeeded == nil {
		return cluster
	}
	switch {
	case strings.Contains(succeeded.Reason, "Skipped"):
		cluster.State = StateSkipped
	case succeeded.Status == metav1.ConditionTrue:
		cluster.State = StateSucceeded
	case succeeded.Status == metav1.ConditionFalse:
		cluster.State = StateFailed
	default:
		return cluster
	}
	cluster.End, cluster.Message = succeeded.LastTransitionTime.Time, succeeded.Message
	return cluster
}

// gates are the tasks of one side of a stage; waiting is the condition that says it waits for them now.
func gates(tasks []placementv1beta1.StageTaskStatus, config []placementv1beta1.StageTask, waiting *metav1.Condition) []Gate {
	all := make([]Gate, 0, len(tasks))
	for i := range tasks {
		task := &tasks[i]
		gate := Gate{Type: task.Type, Request: task.ApprovalRequestName}
		done := meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved)
		if task.Type == placementv1beta1.StageTaskTypeTimedWait {
			done = meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionTypeWaitTimeElapsed)
			gate.Wait = waitOf(config)
		}
		if is(done, metav1.ConditionTrue) {
			gate.Done, gate.At, gate.Message = true, done.LastTransitionTime.Time, done.Message
		}
		if waiting != nil {
			gate.From = waiting.LastTransitionTime.Time
			gate.Open = !gate.Done
		}
		all = append(all, gate)
	}
	return all
}

func waitOf(config []placementv1beta1.StageTask) time.Duration {
	for _, task := range config {
		if task.Type == placementv1beta1.StageTaskTypeTimedWait && task.WaitTime != nil {
			return task.WaitTime.Duration
		}
	}
	return 0
}

func closeGates(all []Gate) {
	for i := range all {
		all[i].Open = false
	}
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// Title names a stage to a person.
func (s Stage) Title() string {
	if s.Deletion {
		return "deletion"
	}
	return s.Name
}
