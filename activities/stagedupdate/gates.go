package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// CheckGates opens the tasks before or after a stage, reads live how far they
// are, records that, and says whether the stage may pass.
func (a *Activities) CheckGates(ctx context.Context, in act.GateRequest) (act.GateState, error) {
	run, err := a.active(ctx, in.Run)
	if err != nil {
		return act.GateState{}, err
	}
	if run == nil || !hasStage(run, in.StageRequest) {
		return act.GateState{Ended: true}, nil
	}
	if run.Spec.State == placementv1beta1.StateStop {
		return act.GateState{Stopping: true}, nil
	}
	if !in.Before && (!updaterun.StageUpdated(&run.Status.StagesStatus[in.Index]) || updaterun.OverBudget(run, in.Index)) {
		return act.GateState{Stopping: true}, nil // nothing passes before its clusters are done: look again
	}
	f, err := a.placementFacts(ctx, run.Spec.PlacementName, run.Status.PolicySnapshotIndexUsed)
	if err != nil {
		return act.GateState{}, err
	}
	var state act.GateState
	if err = a.checkClusters(ctx, run, f, in); err == nil {
		state, err = a.checkTasks(ctx, run, in)
		err = a.troubled(ctx, run, err)
	}
	if errors.Is(err, errNotOn) {
		return act.GateState{Ended: true}, nil
	}
	if refused, ok := errors.AsType[*userError](err); ok {
		return act.GateState{Ended: true}, a.fail(ctx, run, refused.text)
	}
	return state, err
}

// checkTasks looks at each task of one side of a stage.
func (a *Activities) checkTasks(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, in act.GateRequest) (act.GateState, error) {
	stage := &run.Status.StagesStatus[in.Index]
	g := gateCheck{Activities: a, run: run, in: in, now: a.Clock.Now()}
	if len(stage.Clusters) > 0 {
		tasks := stage.AfterStageTaskStatus
		if in.Before {
			tasks = stage.BeforeStageTaskStatus
		}
		for _, t := range tasks {
			if err := g.task(ctx, t); err != nil || g.state.Ended {
				return act.GateState{Ended: g.state.Ended}, err
			}
		}
	}
	g.state.Open = !g.state.NeedsApproval && g.state.WaitUntil.IsZero()
	if err := a.store(ctx, run, g.record); err != nil {
		return act.GateState{}, err
	}
	g.announce()
	return g.state, nil
}

// gateCheck is one look at the tasks of a stage.
type gateCheck struct {
	*Activities
	run   *placementv1beta1.ClusterStagedUpdateRun
	in    act.GateRequest
	now   time.Time
	state act.GateState

	opened, approved, elapsed bool
	wasOver                   bool
	// given is who approved; nil when that was recorded before.
	given *placementv1beta1.ApprovalRecord
}

func (g *gateCheck) task(ctx context.Context, t placementv1beta1.StageTaskStatus) error {
	if t.Type == placementv1beta1.StageTaskTypeTimedWait {
		g.timedWait()
		return nil
	}
	if meta.IsStatusConditionTrue(t.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved) {
		// Accepted once, it cannot be taken back, nor by deleting the request.
		g.opened, g.approved, g.state.Request = true, true, t.ApprovalRequestName
		return nil
	}
	request, err := g.request(ctx, t.ApprovalRequestName)
	if err != nil || request == nil {
		g.state.Ended = err == nil
		return err
	}
	g.opened = true
	g.approved = meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApproved) ||
		meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApprovalAccepted)
	g.state.Request = request.Name
	g.state.NeedsApproval = !g.approved
	if !g.approved {
		return nil
	}
	err = g.accept(ctx, request)
	g.given = request.Status.Approval
	return err
}

// timedWait counts from when the stage began to wait, as recorded.
func (g *gateCheck) timedWait() {
	stage := &g.run.Status.StagesStatus[g.in.Index]
	start := updaterun.CeilSecond(g.now)
	if began := updaterun.AfterTasksBegan(stage); began != nil {
		start = began.LastTransitionTime.Time
	}
	until := start.Add(stageStateOf(g.run, g.in.Index).Wait)
	if g.elapsed = !g.now.Before(until); !g.elapsed {
		g.state.WaitUntil = until
	}
}

// record writes what was seen into the status.
func (g *gateCheck) record(r updaterun.Recorder) {
	stage := r.Stage(g.in.Index)
	g.wasOver = updaterun.StageOver(stage)
	r.Progressing() // a run that was stopped, or stuck before, goes on
	if g.in.Before {
		g.recordBefore(r, stage)
		return
	}
	if len(stage.Clusters) > 0 {
		r.WaitingAfter(stage)
	}
	if g.opened {
		t := updaterun.TaskOf(&stage.AfterStageTaskStatus, placementv1beta1.StageTaskTypeApproval)
		recordApproval(r, t, g.approved, g.given, placementv1beta1.ReasonAfterStageTaskApprovalRequestCreated, placementv1beta1.ReasonAfterStageTaskApprovalRequestApproved)
	}
	if g.elapsed {
		t := updaterun.TaskOf(&stage.AfterStageTaskStatus, placementv1beta1.StageTaskTypeTimedWait)
		r.TaskCondition(t, placementv1beta1.ConditionTypeWaitTimeElapsed, placementv1beta1.ReasonAfterStageTaskWaitTimeElapsed, "Wait time elapsed")
	}
	if g.state.Open {
		r.StageSucceeded(stage)
	}
}

func (g *gateCheck) recordBefore(r updaterun.Recorder, stage *placementv1beta1.StageUpdatingStatus) {
	if !g.state.Open {
		r.WaitingBefore(stage)
	}
	if g.opened {
		t := updaterun.TaskOf(&stage.BeforeStageTaskStatus, placementv1beta1.StageTaskTypeApproval)
		recordApproval(r, t, g.approved, g.given, placementv1beta1.ReasonStageTaskApprovalRequestCreated, placementv1beta1.ReasonStageTaskApprovalRequestApproved)
	}
}

// recordApproval records the two steps of an approval task, and who took the second.
func recordApproval(r updaterun.Recorder, t *placementv1beta1.StageTaskStatus, approved bool, by *placementv1beta1.ApprovalRecord, created, given string) {
	r.TaskCondition(t, placementv1beta1.ConditionTypeApprovalRequestCreated, created, "ApprovalRequest object is created")
	if !approved || meta.IsStatusConditionTrue(t.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved) {
		return
	}
	message := "ApprovalRequest object is approved"
	if by != nil {
		message += fmt.Sprintf(" by %s through %s at %s", by.By, by.Door, by.At.UTC().Format(time.RFC3339))
	}
	r.TaskCondition(t, placementv1beta1.ConditionTypeApprovalRequestApproved, given, message)
}

// announce tells of a stage that has passed.
func (g *gateCheck) announce() {
	if g.in.Before || g.wasOver || !g.state.Open {
		return
	}
	g.event(g.run, placementv1beta1.ReasonStageUpdatingSucceeded, "Stage %s is complete", g.in.Stage)
}

// request returns the approval request of this run for the stage, creating it
// when it is missing; nil when the run has ended meanwhile. A leftover of an earlier run of
// the same name is replaced: its approval was not meant for this run.
func (g *gateCheck) request(ctx context.Context, name string) (*placementv1beta1.ClusterApprovalRequest, error) {
	request := &placementv1beta1.ClusterApprovalRequest{}
	err := g.Live.Get(ctx, types.NamespacedName{Name: name}, request)
	if err == nil && request.Annotations[placementv1beta1.ApprovalRunUIDAnnotation] == string(g.run.UID) && request.DeletionTimestamp.IsZero() {
		return request, g.belongs(request)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading approval request %s: %w", name, err)
	}
	if err == nil {
		if err := g.notOfAnother(ctx, request); err != nil {
			return nil, err
		}
		if err := g.remove(ctx, request); err != nil {
			return nil, fmt.Errorf("replacing approval request %s of an earlier run: %w", name, err)
		}
	}
	if err := g.supersede(ctx); err != nil {
		return nil, err
	}
	return g.create(ctx, newRequest(g.run, g.in, name))
}

// create makes a request. Whoever deletes the run meanwhile has seen none to delete.
func (g *gateCheck) create(ctx context.Context, request *placementv1beta1.ClusterApprovalRequest) (*placementv1beta1.ClusterApprovalRequest, error) {
	if err := g.Client.Create(ctx, request); err != nil {
		return nil, fmt.Errorf("creating approval request %s: %w", request.Name, err)
	}
	run, err := g.active(ctx, g.in.Run)
	if err != nil {
		return nil, err
	}
	if run == nil {
		if err := g.remove(ctx, request); err != nil {
			return nil, fmt.Errorf("removing approval request %s of a run that has ended: %w", request.Name, err)
		}
		return nil, nil
	}
	g.event(g.run, placementv1beta1.ConditionTypeApprovalRequestCreated, "Stage %s waits for an approval: approve %s with kubectl, or send approve to workflow updaterun/%s", g.in.Stage, request.Name, g.run.Name)
	return request, nil
}

func (g *gateCheck) remove(ctx context.Context, request *placementv1beta1.ClusterApprovalRequest) error {
	uid := request.UID
	return client.IgnoreNotFound(g.Client.Delete(ctx, request, client.Preconditions{UID: &uid}))
}

// supersede takes the label of the latest request of the stage from the one before the stage:
// exactly one has it.
func (g *gateCheck) supersede(ctx context.Context) error {
	if g.in.Before || len(updaterun.StageConfig(g.run, g.in.Index).BeforeStageTasks) == 0 {
		return nil
	}
	earlier := &placementv1beta1.ClusterApprovalRequest{}
	earlier.Name = placementv1beta1.BeforeStageApprovalName(g.run.Name, g.in.Stage)
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"false"}}}`, placementv1beta1.IsLatestUpdateRunApprovalLabel)
	if err := client.IgnoreNotFound(g.Client.Patch(ctx, earlier, client.RawPatch(types.MergePatchType, patch))); err != nil {
		return fmt.Errorf("marking approval request %s as not the latest: %w", earlier.Name, err)
	}
	return nil
}

// notOfAnother refuses a request that another run still needs: what run `web` waits for before a
// stage has the name of what a run `web-before` waits for after it.
func (g *gateCheck) notOfAnother(ctx context.Context, request *placementv1beta1.ClusterApprovalRequest) error {
	name := request.Spec.ParentStageRollout
	if name == g.run.Name {
		return nil
	}
	other, err := g.active(ctx, wf.Ref{Name: name, UID: request.Annotations[placementv1beta1.ApprovalRunUIDAnnotation]})
	if err != nil || other == nil {
		return err
	}
	return g.belongs(request)
}

// belongs refuses a request that is not about this stage of this run.
func (g *gateCheck) belongs(request *placementv1beta1.ClusterApprovalRequest) error {
	if request.Spec.ParentStageRollout == g.run.Name && request.Spec.TargetStage == g.in.Stage {
		return nil
	}
	mend := "delete it and create the run again"
	if request.Spec.ParentStageRollout != g.run.Name {
		mend = "create the run again under another name"
	}
	return refuse("%s", cannotContinue(fmt.Sprintf("the approval request `%s` is for stage `%s` of run `%s`, want stage `%s` of run `%s`; %s",
		request.Name, request.Spec.TargetStage, request.Spec.ParentStageRollout, g.in.Stage, g.run.Name, mend)))
}

func newRequest(run *placementv1beta1.ClusterStagedUpdateRun, in act.GateRequest, name string) *placementv1beta1.ClusterApprovalRequest {
	taskType := placementv1beta1.TaskTypeAfterStage
	if in.Before {
		taskType = placementv1beta1.TaskTypeBeforeStage
	}
	return &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				placementv1beta1.TargetUpdateRunLabel:           run.Name,
				placementv1beta1.TargetUpdateRunLowercaseLabel:  run.Name,
				placementv1beta1.TargetUpdatingStageLabel:       in.Stage,
				placementv1beta1.TaskTypeLabel:                  taskType,
				placementv1beta1.IsLatestUpdateRunApprovalLabel: placementv1beta1.LabelValueTrue,
			},
			Annotations: map[string]string{placementv1beta1.ApprovalRunUIDAnnotation: string(run.UID)},
		},
		Spec: placementv1beta1.ApprovalRequestSpec{ParentStageRollout: run.Name, TargetStage: in.Stage},
	}
}
