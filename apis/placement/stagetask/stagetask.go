// Package stagetask has the tasks that a run waits for before and after a stage. A type of task is one
// file, with one type that implements Type, and one line in the registry; nothing else in the product
// knows what types there are.
//
// The package is pure: what a check reads from the hub and writes to it goes through the interface Hub.
package stagetask

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Side is where a task stands: before, during or after its stage.
type Side string

// Sides of a stage, by the names that labels of approval requests and of metrics have for them.
const (
	Before Side = placementv1beta1.TaskTypeBeforeStage
	After  Side = placementv1beta1.TaskTypeAfterStage
	During Side = placementv1beta1.TaskTypeDuringStage
)

// Type is a type of task.
type Type interface {
	// Validate says what is wrong with a task of a strategy, in words that follow "task 1 of stage x:";
	// empty if nothing is.
	Validate(side Side, config placementv1beta1.StageTask) string
	// Freeze returns the status that a run begins with.
	Freeze(names Names, stage string, side Side) placementv1beta1.StageTaskStatus
	// Describe reads how far a task is, from its configuration and its status alone.
	Describe(task Task) State
	// Check looks at what a task waits for, once its stage waits for it, and says what to record. It may run
	// again after any part of it has been done.
	Check(ctx context.Context, check Check) (Outcome, error)
}

// Expiring is a Type whose tasks hold for a time only once they are done.
type Expiring interface {
	Type
	// HoldsUntil returns until when a task that is done holds, from its configuration and its status alone.
	HoldsUntil(task Task) time.Time
	// CheckStart looks at a task that is done once nothing else keeps its stage from starting. Without conditions it holds still.
	CheckStart(ctx context.Context, check Check) (Outcome, error)
}

// Task is one task of a stage, as a run has frozen it.
type Task struct {
	Side   Side
	Config placementv1beta1.StageTask
	Status placementv1beta1.StageTaskStatus
	// WaitsSince is when the stage began to wait for its tasks on this side; zero while it does not.
	WaitsSince time.Time
}

// State is how far a task is, for users and for the workflow.
type State struct {
	Type placementv1beta1.StageTaskType
	// Title is what the task is called within a sentence, such as "approval", and Subject names the object
	// that the user looks at, if there is one.
	Title, Subject string
	// RunPhase is the phase of a run that waits for the task.
	RunPhase string
	// Approvable says that the user ends the task by approving Subject.
	Approvable bool
	// Expires is until when Subject can be approved; zero for as long as it takes.
	Expires time.Time
	// Timed says that the task ends by itself after Duration, at Due; that is zero before it has begun.
	Timed    bool
	Duration time.Duration
	Due      time.Time

	// StartsAfter are the types of the tasks that have to be done before this one begins.
	StartsAfter []placementv1beta1.StageTaskType

	// WaitsSince is when the stage began to wait, zero while it does not; Begun is when the task itself did,
	// zero if that was not recorded.
	WaitsSince, Begun time.Time
	// DoneAt is when the task was done, zero before; Message is what its condition says of that.
	DoneAt  time.Time
	Message string
	// Incomplete says that the task was done without all that it is for: Message says what is missing.
	Incomplete bool
	// Failed says that the task has ended otherwise, such as an analysis that has measured what is bad.
	Failed bool
}

// Done reports whether the stage need not wait for the task any more.
func (s State) Done() bool { return !s.DoneAt.IsZero() }

// Detail returns what is known of a task that is not done: what it lacks, and when the run stops for that.
func (s State) Detail() string {
	if s.Done() || s.Expires.IsZero() {
		return s.Message
	}
	text := "expires " + s.Expires.UTC().Format(time.RFC3339) + ", and the run stops then"
	if s.Message != "" {
		text = s.Message + "; " + text
	}
	return text
}

// Waiting reports whether the stage waits for the task now.
func (s State) Waiting() bool { return !s.WaitsSince.IsZero() && !s.Done() }

// Check is what a check of a task works with.
type Check struct {
	Task
	Run   placementv1beta1.UpdateRunObject
	Stage *placementv1beta1.StageUpdatingStatus
	Now   time.Time
	Hub   Hub
	// Anew says that what the task starts after was not done when these checks began, and is now.
	Anew bool
}

// Outcome is what a check has found.
type Outcome struct {
	// Conditions are recorded in the status of the task, in this order; Describe says whether it is done then.
	Conditions []metav1.Condition
	// Rehearsal is recorded in the status of the task; nil leaves what is there.
	Rehearsal *placementv1beta1.StageRehearsal
	// Expires is recorded in the status of the task as until when it can be approved; zero leaves what is there.
	Expires time.Time
	// CheckAgain is when to check a task again that is not done, unless a change is noticed before; zero if only a
	// change can end it.
	CheckAgain time.Time
	// RunEnded says that the run has ended or was deleted meanwhile: there is nothing to record.
	RunEnded bool
	// Refused ends the run, with this sentence for the user.
	Refused string
	// Measure is the name of the analysis that is to be measured while the stage waits for the task.
	Measure string
	// Action is what to do with the run once the conditions are recorded, Because of what; empty for nothing.
	Action  placementv1beta1.AnalysisAction
	Because string
}

// Hub is what checks read from the hub and write to it. Errors are those of the API server.
type Hub interface {
	// Get reads an object live.
	Get(ctx context.Context, key types.NamespacedName, into placementv1beta1.Object) error
	Create(ctx context.Context, object placementv1beta1.Object) error
	UpdateStatus(ctx context.Context, object placementv1beta1.Object) error
	// Label sets a label of an object that may be missing.
	Label(ctx context.Context, object placementv1beta1.Object, label, value string) error
	// Annotate sets an annotation of the very object that was read.
	Annotate(ctx context.Context, object placementv1beta1.Object, annotation, value string) error
	// Delete deletes the very object that was read, if it is still there.
	Delete(ctx context.Context, object placementv1beta1.Object) error
	// RunIsActive says whether a run with this name and UID still has something to do.
	RunIsActive(ctx context.Context, key types.NamespacedName, uid types.UID) (bool, error)
	// Analysis reads what a task measures, and makes it if it is missing; again asks for another attempt. Refused
	// says why there can be none.
	Analysis(ctx context.Context, check Check, again bool) (run fleetflowv1alpha1.StageAnalysisRunObject, refused string, err error)
	// Waive waives the analysis of a task if an exemption does, and says which, by whom and why; empty if none does.
	Waive(ctx context.Context, check Check) (waiver string, err error)
	// Report emits an event about the run that is checked, ReportWarning a warning, and ReportOn an event about another object of it.
	Report(reason, note string)
	ReportWarning(reason, note string)
	ReportOn(object placementv1beta1.Object, reason, action, note string)
}
