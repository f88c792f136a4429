package updaterun

import (
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// State is how far a run is.
type State struct {
	Phase Phase
	// Since is when the run came to the phase, and Why what its status says of that. Both may be missing.
	Since time.Time
	Why   string
	// Stages are in their order; the deletion stage is the last, if it has clusters.
	Stages []Stage
	// Current is the index of the stage that is under way or comes next, len(Stages) at the end.
	Current int
	Counts
}

// Counts are numbers of clusters. Done are those that are updated.
type Counts struct {
	Total    int `json:"total"`
	Done     int `json:"done"`
	InFlight int `json:"inFlight,omitempty"`
	Failed   int `json:"failed,omitempty"`
	Skipped  int `json:"skipped,omitempty"`
}

// Over returns how many clusters are over: updated, failed or skipped. It is what fractions of clusters count.
func (c Counts) Over() int { return c.Done + c.Failed + c.Skipped }

// Progress returns the fraction of clusters that are over, with how many of them were not updated, and why.
func (c Counts) Progress() string {
	return fmt.Sprintf("%d/%d", c.Over(), c.Total) + c.notUpdated()
}

// Sentence is Progress in words.
func (c Counts) Sentence() string {
	return fmt.Sprintf("%d of %d clusters", c.Over(), c.Total) + c.notUpdated()
}

func (c Counts) notUpdated() string {
	text := ""
	if c.Failed > 0 {
		text += fmt.Sprintf(", %d failed", c.Failed)
	}
	if c.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", c.Skipped)
	}
	return text
}

func (c *Counts) add(other Counts) {
	c.Total += other.Total
	c.Done += other.Done
	c.InFlight += other.InFlight
	c.Failed += other.Failed
	c.Skipped += other.Skipped
}

// Count counts a cluster that is in a phase.
func (c *Counts) Count(phase Phase) {
	c.Total++
	switch phase {
	case PhaseSucceeded:
		c.Done++
	case PhaseSkipped:
		c.Skipped++
	case PhaseFailed:
		c.Failed++
	case PhaseRunning:
		c.InFlight++
	}
}

// Stage is how far a stage is.
type Stage struct {
	Name string
	// Deletion says that the stage clears clusters which the placement no longer selects.
	Deletion bool
	Phase    Phase
	// Since is when the stage came to the phase, and Why what its status says of that. Both may be missing.
	Since time.Time
	Why   string
	// MaxConcurrency is that of the strategy; empty if it has none.
	MaxConcurrency string
	// MinReady is for how long a cluster has to be available until it is done.
	MinReady time.Duration
	// Started and Ended are zero as long as the stage has not.
	Started, Ended time.Time
	Clusters       []Cluster
	// Before, During and After are the tasks.
	Before, During, After []stagetask.State
	Counts
}

// Title names a stage to the user.
func (s Stage) Title() string {
	if s.Deletion {
		return "deletion"
	}
	return s.Name
}

// ClustersIn returns the names of the clusters of the stage that are in a phase.
func (s Stage) ClustersIn(phase Phase) []string {
	var names []string
	for _, cluster := range s.Clusters {
		if cluster.Phase == phase {
			names = append(names, cluster.Name)
		}
	}
	return names
}

// Passed reports whether the run writes to no cluster of the stage any more: it is over, or waits for the tasks after it.
func (s Stage) Passed() bool {
	return s.Phase.Over() || s.Phase == PhaseWaiting && s.Total > 0 && s.Done+s.Failed+s.Skipped == s.Total
}

// Cluster is how far a cluster of a stage is.
type Cluster struct {
	Name  string
	Phase Phase
	// Why is what the status says of the phase.
	Why string
	// Started and Ended are zero as long as the update of the cluster has not.
	Started, Ended time.Time
}

// Read reads how far a run is.
func Read(run placementv1beta1.UpdateRunObject) State {
	state := State{}
	status := run.GetUpdateRunStatus()
	for i := range status.StagesStatus {
		state.Stages = append(state.Stages, readStage(&status.StagesStatus[i], StageConfig(run, i)))
	}
	if deletion := status.DeletionStageStatus; deletion != nil && len(deletion.Clusters) > 0 {
		stage := readStage(deletion, placementv1beta1.StageConfig{})
		stage.Deletion = true
		state.Stages = append(state.Stages, stage)
	}
	for i := range state.Stages {
		state.add(state.Stages[i].Counts)
	}
	state.readPhase(run)
	for state.Current < len(state.Stages) && state.Stages[state.Current].Phase.Over() && state.Stages[state.Current].Phase != PhaseFailed {
		state.Current++
	}
	if state.Phase == PhaseRunning && state.Current < len(state.Stages) && state.Stages[state.Current].Phase == PhaseWaiting {
		state.Phase = PhaseWaiting
	}
	return state
}

// IsEngineAway says of the conditions of a placement or a run that it goes on only once the hub agent reaches Temporal.
func IsEngineAway(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionFalse(conditions, placementv1beta1.ConditionTypeEngineReachable)
}

// readPhase reads the phase of the run as a whole.
func (s *State) readPhase(run placementv1beta1.UpdateRunObject) {
	find := func(kind string) *metav1.Condition { return meta.FindStatusCondition(run.GetConditions(), kind) }
	succeeded := find(placementv1beta1.ConditionTypeSucceeded)
	initialized := find(placementv1beta1.ConditionTypeInitialized)
	progressing := find(placementv1beta1.ConditionTypeProgressing)
	from := succeeded
	switch {
	case rules.IsDeleting(run):
		s.Phase = PhaseDeleting
		s.Since = run.GetDeletionTimestamp().Time
		return
	case hasStatus(succeeded, metav1.ConditionTrue):
		s.Phase = PhaseSucceeded
	case hasStatus(succeeded, metav1.ConditionFalse):
		s.Phase = PhaseFailed
	case hasStatus(initialized, metav1.ConditionFalse):
		s.Phase = PhaseFailed
		from = initialized
	case !hasStatus(initialized, metav1.ConditionTrue):
		s.Phase = PhaseInitializing
		return
	case progressing == nil:
		s.Phase = PhaseInitialized
		from = initialized
	default:
		s.Phase = progressPhase(progressing)
		from = progressing
	}
	s.Since = from.LastTransitionTime.Time
	s.Why = from.Message
}

func hasStatus(condition *metav1.Condition, status metav1.ConditionStatus) bool {
	return condition != nil && condition.Status == status
}

// progressPhase returns what the condition Progressing of a run or a stage says.
func progressPhase(c *metav1.Condition) Phase {
	switch c.Reason {
	case placementv1beta1.ReasonUpdateRunStuck:
		return PhaseStuck
	case placementv1beta1.ReasonUpdateRunWaiting, placementv1beta1.ReasonStageUpdatingWaiting:
		return PhaseWaiting
	case placementv1beta1.ReasonUpdateRunStopping, placementv1beta1.ReasonStageUpdatingStopping:
		return PhaseStopping
	case placementv1beta1.ReasonUpdateRunStopped, placementv1beta1.ReasonStageUpdatingStopped:
		return PhaseStopped
	case placementv1beta1.ReasonUpdateRunFailed, placementv1beta1.ReasonStageUpdatingFailed:
		return PhaseFailed
	}
	return PhaseRunning
}

func readStage(status *placementv1beta1.StageUpdatingStatus, config placementv1beta1.StageConfig) Stage {
	stage := Stage{Name: status.StageName, Phase: PhasePending, Started: timeOf(status.StartTime), Ended: timeOf(status.EndTime)}
	stage.readPhase(status)
	stage.Clusters = make([]Cluster, len(status.Clusters))
	for i := range status.Clusters {
		stage.Clusters[i] = ReadCluster(&status.Clusters[i])
		stage.Count(stage.Clusters[i].Phase)
	}
	if config.MaxConcurrency != nil {
		stage.MaxConcurrency = config.MaxConcurrency.String()
	}
	stage.MinReady = config.MinReady()
	stage.Before = readTasks(status, config, stagetask.Before)
	stage.During = readTasks(status, config, stagetask.During)
	stage.After = readTasks(status, config, stagetask.After)
	return stage
}

// Tasks iterates over all tasks of the stage, in the order in which the run comes to them, with the side that each is on.
func (s *Stage) Tasks() iter.Seq2[stagetask.Side, stagetask.State] {
	return func(yield func(stagetask.Side, stagetask.State) bool) {
		on := map[stagetask.Side][]stagetask.State{stagetask.Before: s.Before, stagetask.During: s.During, stagetask.After: s.After}
		for _, side := range stagetask.Sides() {
			for _, task := range on[side] {
				if !yield(side, task) {
					return
				}
			}
		}
	}
}

// readPhase reads the phase of the stage as a whole.
func (s *Stage) readPhase(status *placementv1beta1.StageUpdatingStatus) {
	succeeded := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeSucceeded)
	progressing := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeProgressing)
	from := succeeded
	switch {
	case hasStatus(succeeded, metav1.ConditionTrue) && succeeded.Reason == placementv1beta1.ReasonStageUpdatingSkippedNoClusters:
		s.Phase = PhaseSkipped
	case hasStatus(succeeded, metav1.ConditionTrue):
		s.Phase = PhaseSucceeded
	case hasStatus(succeeded, metav1.ConditionFalse):
		s.Phase = PhaseFailed
	case progressing != nil:
		s.Phase = progressPhase(progressing)
		from = progressing
	default:
		return
	}
	s.Since = from.LastTransitionTime.Time
	s.Why = from.Message
}

// ReadCluster reads how far a cluster is.
func ReadCluster(status *placementv1beta1.ClusterUpdatingStatus) Cluster {
	cluster := Cluster{Name: status.ClusterName, Phase: ClusterPhase(status)}
	if started := findStarted(status); started != nil {
		cluster.Started = started.LastTransitionTime.Time
		cluster.Why = started.Message
	}
	if ended := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionTypeSucceeded); ended != nil {
		cluster.Ended = ended.LastTransitionTime.Time
		cluster.Why = ended.Message
	}
	return cluster
}

func readTasks(stage *placementv1beta1.StageUpdatingStatus, config placementv1beta1.StageConfig, side stagetask.Side) []stagetask.State {
	var states []stagetask.State
	for _, task := range stagetask.List(stage, &config, side, WaitsSince(stage, config, side)) {
		states = append(states, task.Describe())
	}
	return states
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
