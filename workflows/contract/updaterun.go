package contract

import (
	"encoding/json"
	"slices"
	"time"
)

// Activities of the update run and stage workflows.
const (
	LoadRun         = "LoadRun"
	InitializeRun   = "InitializeRun"
	LoadStage       = "LoadStage"
	AdvanceStage    = "AdvanceStage"
	CheckGates      = "CheckGates"
	RecordApproval  = "RecordApproval"
	ReportSignal    = "ReportSignal"
	PauseRun        = "PauseRun"
	AdvanceDeletion = "AdvanceDeletion"
	StopRun         = "StopRun"
	MeasureAnalysis = "MeasureAnalysis"
)

// RunState is a run's progress as its object says, read live.
type RunState struct {
	Found     bool   `json:"found"`
	UID       string `json:"uid,omitempty"`
	Deleting  bool   `json:"deleting,omitempty"`
	Placement string `json:"placement,omitempty"`
	// Generation of the run's spec that this state was read at.
	Generation int64 `json:"generation,omitempty"`
	// DesiredState is what the user wants: Initialize, Run or Stop.
	DesiredState string `json:"state,omitempty"`
	Initialized  bool   `json:"initialized,omitempty"`
	// Terminal says that Succeeded is set, or that initialization failed.
	Terminal  bool `json:"terminal,omitempty"`
	Succeeded bool `json:"succeeded,omitempty"`
	// SnapshotIndex is the resource snapshot the run brings clusters to.
	SnapshotIndex string       `json:"snapshotIndex,omitempty"`
	Stages        []StageState `json:"stages,omitempty"`
	// DeletionDone says that the deletion stage has succeeded.
	DeletionDone bool `json:"deletionDone,omitempty"`
	// DeletionInFlight are clusters of the deletion stage that are being cleared.
	DeletionInFlight int `json:"deletionInFlight,omitempty"`
}

// Phases of a stage.
const (
	PhasePending    = "Pending"
	PhaseBeforeGate = "WaitingBefore"
	PhaseUpdating   = "Updating"
	PhaseGates      = "Waiting"
	PhaseSucceeded  = "Succeeded"
)

// StageState is the progress of one stage.
type StageState struct {
	Name     string `json:"name"`
	Phase    string `json:"phase"`
	Clusters int    `json:"clusters"`
	Done     int    `json:"done,omitempty"`
	// InFlight are clusters that were started and are neither done, failed nor skipped.
	InFlight int `json:"inFlight,omitempty"`
	// Failed are clusters the stage goes on without, within its failure budget, and
	// Skipped those the user asked to go on without, or that have left.
	Failed  int `json:"failed,omitempty"`
	Skipped int `json:"skipped,omitempty"`
	// TasksBefore are the types of the tasks before the stage that are not done, and TasksAfter of
	// those after it.
	TasksBefore []string `json:"tasksBefore,omitempty"`
	TasksAfter  []string `json:"tasksAfter,omitempty"`
}

// InitializeResult ends initialization; State.Terminal says that it failed.
type InitializeResult struct {
	State RunState `json:"state"`
}

// StageRequest names one stage of a run.
type StageRequest struct {
	Run   Ref    `json:"run"`
	Stage string `json:"stage"`
	Index int    `json:"index"`
}

// StagePlan is the frozen order of a stage and how far it has come.
type StagePlan struct {
	Gone bool `json:"gone,omitempty"`
	// Clusters in update order.
	Clusters []string `json:"clusters,omitempty"`
	// Done, Started, Failed and Skipped are indexes into Clusters; each cluster is in one of
	// them at most.
	Done    []int `json:"done,omitempty"`
	Started []int `json:"started,omitempty"`
	Failed  []int `json:"failed,omitempty"`
	Skipped []int `json:"skipped,omitempty"`
	// OverBudget says that more have failed than may: the stage cannot pass as it is.
	OverBudget bool `json:"overBudget,omitempty"`
	// Watched says that the stage has a task that is not done which is to be done while its clusters are updated.
	Watched bool `json:"watched,omitempty"`
	// MaxConcurrency is how many clusters may be in flight, for display.
	MaxConcurrency int `json:"maxConcurrency"`
	// NextAt are the positions of the clusters that are proposed for the first request.
	NextAt Positions `json:"nextAt,omitempty"`
}

// StageAdvance is the recorded choice of clusters: the activity writes to these only.
type StageAdvance struct {
	StageRequest
	// Start are the clusters to write now, InFlight those written earlier and
	// Done those finished since the last call: the activity records all three.
	Start    []string `json:"start,omitempty"`
	InFlight []string `json:"inFlight,omitempty"`
	Done     []string `json:"done,omitempty"`
	// InFlightAt are further clusters in flight, by their positions in the stage: of a window of
	// thousands, each call would repeat all names.
	InFlightAt Positions `json:"inFlightAt,omitempty"`
	// Failed are those the stage goes on without: they may still recover. If there are many, FailedAt are their positions.
	// SkippedAt are those of clusters that it goes on without because the user wants it so, or that have left.
	Failed    []string  `json:"failed,omitempty"`
	FailedAt  Positions `json:"failedAt,omitempty"`
	SkippedAt Positions `json:"skippedAt,omitempty"`
}

// StageDelta is what AdvanceStage saw.
type StageDelta struct {
	// Ended says that the run needs a fresh look by its parent: it failed, was
	// deleted or replaced.
	Ended bool `json:"ended,omitempty"`
	// Stopping says that the user asked to stop: start nothing more.
	Stopping bool `json:"stopping,omitempty"`
	// Done are clusters newly seen done and not yet recorded on the run;
	// Recorded are those the activity has recorded itself.
	Done     []string `json:"done,omitempty"`
	Recorded []string `json:"recorded,omitempty"`
	// NotStarted are clusters that were to start and did not, because the run
	// stops.
	NotStarted []string `json:"notStarted,omitempty"`
	// Failed and Skipped are clusters the stage goes on without from now on; Requeued are
	// such clusters that are to be updated after all, and wait for their turn.
	Failed   []string `json:"failed,omitempty"`
	Skipped  []string `json:"skipped,omitempty"`
	Requeued []string `json:"requeued,omitempty"`
	// NextAt are the positions of the clusters that are proposed for the next request.
	NextAt Positions `json:"nextAt,omitempty"`
	// Waiting names the first cluster in flight, for display.
	Waiting string `json:"waiting,omitempty"`
	// Held is what the stage waits for if nothing is in flight and every cluster that is next must not be started now.
	Held []TaskWait `json:"held,omitempty"`
}

// StageResult ends a stage workflow.
type StageResult struct {
	Ended   bool `json:"ended,omitempty"`
	Stopped bool `json:"stopped,omitempty"`
	// Without are clusters the stage was done without.
	Without int `json:"without,omitempty"`
	// Held is what the stage waits for that stands still because clusters must not be started now.
	Held []TaskWait `json:"held,omitempty"`
	// Watched says that some of its clusters have been updated, and that it is to be watched while it stands still.
	Watched bool `json:"watched,omitempty"`
}

// DeletionResult says how far the deletion stage is.
type DeletionResult struct {
	// Done says that the run has ended.
	Done bool `json:"done,omitempty"`
	// Held is what the stage waits for that stands still because clusters must not be cleared now.
	Held []TaskWait `json:"held,omitempty"`
}

// UnmarshalJSON also reads a mere true or false, which versions from before the first tag have written: their runs are taken over in the
// middle of an upgrade.
func (r *DeletionResult) UnmarshalJSON(text []byte) error {
	if isBool := string(text) == "true" || string(text) == "false"; isBool {
		*r = DeletionResult{}
		return json.Unmarshal(text, &r.Done)
	}
	type plain DeletionResult
	return json.Unmarshal(text, (*plain)(r))
}

// GateRequest asks for the gates before or after a stage, or for what watches it while its clusters are updated.
type GateRequest struct {
	StageRequest
	Before bool `json:"before,omitempty"`
	During bool `json:"during,omitempty"`
}

// GateState says whether a stage may pass, and if not what it waits for.
type GateState struct {
	Ended    bool `json:"ended,omitempty"`
	Stopping bool `json:"stopping,omitempty"`
	Open     bool `json:"open"`
	// Waits are the tasks that the stage waits for; those that do not end by themselves come first.
	Waits []TaskWait `json:"waits,omitempty"`
	// Measure is what is to be measured meanwhile; nil for nothing.
	Measure *MeasureRequest `json:"measure,omitempty"`
}

// MeasureRequest asks to take the measurements of an analysis that are due.
type MeasureRequest struct {
	Run Ref `json:"run"`
	// Analysis is the name of the ClusterStageAnalysisRun, or of the StageAnalysisRun in the namespace of the run, Stage that of the stage.
	Analysis string `json:"analysis"`
	Stage    string `json:"stage"`
}

// MeasureResult says how an analysis stands: counts and a name, nothing of what was measured.
type MeasureResult struct {
	// Again asks to measure on: the next measurement is due soon. Otherwise the gates are to be checked.
	Again bool `json:"again,omitempty"`
	// Phase is that of the analysis; empty if there is nothing to measure any more.
	Phase    string `json:"phase,omitempty"`
	Measured int    `json:"measured,omitempty"`
	// Worst is the name of the metric that makes it so.
	Worst string `json:"worst,omitempty"`
}

// TaskWait is a task that a stage waits for.
type TaskWait struct {
	Type string `json:"type"`
	// Title is what the task is called within a sentence, and Subject the name of the object it is about.
	Title   string `json:"title"`
	Subject string `json:"subject,omitempty"`
	// Phase is that of a run that waits for the task.
	Phase string `json:"phase"`
	// Approvable says that an approval can be sent to the workflow.
	Approvable bool `json:"approvable,omitempty"`
	// Until is when the task ends by itself; zero if it does not.
	Until time.Time `json:"until,omitzero"`
	// CheckAt is when to check the task again; zero if only a change can end it.
	CheckAt time.Time `json:"checkAt,omitzero"`
}

// NeedsApproval reports whether the stage waits for an approval.
func (s GateState) NeedsApproval() bool {
	return slices.ContainsFunc(s.Waits, isApprovable)
}

// Approved takes away what has been approved.
func (s *GateState) Approved() { s.Waits = slices.DeleteFunc(s.Waits, isApprovable) }

func isApprovable(w TaskWait) bool { return w.Approvable }

// NextCheck returns the task that is to be checked again first, if any is.
func (s GateState) NextCheck() (next TaskWait, ok bool) {
	for _, w := range s.Waits {
		if !w.CheckAt.IsZero() && (!ok || w.CheckAt.Before(next.CheckAt)) {
			next = w
			ok = true
		}
	}
	return next, ok
}

// Channels through which an approval can come.
const (
	ChannelSignal = "TemporalSignal"
	ChannelUpdate = "TemporalUpdate"
)

// ApprovalRequest asks to write an approval to the stage's approval request.
type ApprovalRequest struct {
	StageRequest
	Before  bool   `json:"before,omitempty"`
	Channel string `json:"channel"`
	Comment string `json:"comment,omitempty"`
	// PlanHash is the plan that the approval is for, as its sender has it.
	PlanHash string `json:"planHash,omitempty"`
	// Workflow and Execution locate the history in which the approver's
	// identity stands; Update is the update's ID.
	Workflow  string `json:"workflow"`
	Execution string `json:"execution"`
	Update    string `json:"update,omitempty"`
}

// ApprovalResult is what the approver is told.
type ApprovalResult struct {
	Ended   bool   `json:"ended,omitempty"`
	Request string `json:"request,omitempty"`
	By      string `json:"by,omitempty"`
	// Already says that the request had been approved before.
	Already bool `json:"already,omitempty"`
	// Refused says why the hub does not take the approval; an event on the run says it too.
	Refused string `json:"refused,omitempty"`
}

// Reasons why a signal was ignored.
const (
	SignalMalformed    = "Malformed"
	SignalUnknownStage = "UnknownStage"
	SignalNotWaiting   = "NotWaiting"
	SignalNoApproval   = "NoApproval"
)

// SignalReport tells the user, by an event on the run, that a signal did
// nothing and why.
type SignalReport struct {
	Run     Ref    `json:"run"`
	Reason  string `json:"reason"`
	Stage   string `json:"stage,omitempty"`
	Waiting string `json:"waiting,omitempty"`
}

// StopRequest turns a cancellation from Temporal into spec.state Stop.
type StopRequest struct {
	Run       Ref    `json:"run"`
	Workflow  string `json:"workflow"`
	Execution string `json:"execution"`
}
