package worker

import (
	"context"
	"reflect"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

var (
	web    = wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: "web-17", UID: "uid"}
	prod   = wf.StageRequest{Run: web, Stage: "prod", Index: 2}
	theRun = wf.Execution{Type: wf.UpdateRunWorkflow, ID: "updaterun/web-17"}
	theOne = wf.Execution{Type: wf.StageWorkflow, ID: "updaterun/web-17/stage/prod"}
)

func TestAnActivityRunsForTheWorkflowOfItsObjectOnly(t *testing.T) {
	placement := wf.Execution{Type: wf.PlacementWorkflow, ID: "placement/web"}
	for sentence, test := range map[string]struct {
		activity string
		input    any
		caller   wf.Execution
		refused  bool
	}{
		"a stage is advanced by its own workflow":                    {wf.AdvanceStage, wf.StageAdvance{StageRequest: prod}, theOne, false},
		"not by a workflow of the type that somebody starts":         {wf.AdvanceStage, wf.StageAdvance{StageRequest: prod}, wf.Execution{Type: wf.StageWorkflow, ID: "x"}, true},
		"not by a workflow of another type under the ID":             {wf.AdvanceStage, wf.StageAdvance{StageRequest: prod}, wf.Execution{Type: "Mine", ID: theOne.ID}, true},
		"not by the stage of another run":                            {wf.AdvanceStage, wf.StageAdvance{StageRequest: prod}, wf.Execution{Type: wf.StageWorkflow, ID: "updaterun/web-18/stage/prod"}, true},
		"the deletion stage belongs to the run":                      {wf.AdvanceDeletion, web, theRun, false},
		"and not to a second workflow of the run":                    {wf.AdvanceDeletion, web, wf.Execution{Type: wf.UpdateRunWorkflow, ID: "second"}, true},
		"an approval is written for the run that received it":        {wf.RecordApproval, wf.ApprovalRequest{StageRequest: prod}, theRun, false},
		"not for a workflow that was started to claim one":           {wf.RecordApproval, wf.ApprovalRequest{StageRequest: prod, Workflow: theRun.ID}, wf.Execution{Type: "Mine", ID: "mine"}, true},
		"gates are checked by the run":                               {wf.CheckGates, wf.GateRequest{StageRequest: prod}, theRun, false},
		"and not by its stage":                                       {wf.CheckGates, wf.GateRequest{StageRequest: prod}, theOne, true},
		"a placement is advanced by its workflow":                    {wf.AdvancePlacement, wf.AdvanceRequest{Placement: wf.Ref{Name: "web"}}, placement, false},
		"a placement is scaled by its workflow":                      {wf.ScaleReplicas, wf.ScaleRequest{Placement: wf.Ref{Name: "web"}}, placement, false},
		"not by that of a placement of the same name in a namespace": {wf.AdvancePlacement, wf.AdvanceRequest{Placement: wf.Ref{Name: "web", Namespace: "app"}}, placement, true},
		"the kind that an input claims does not matter":              {wf.PauseRun, wf.Ref{Kind: wf.KindClusterResourcePlacement, Name: "web"}, placement, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			why := refuseCaller(test.activity, []any{test.input}, test.caller)
			assert.Equal(t, test.refused, why != "", why)
		})
	}
}

// inputs collects the input types of all activities.
type inputs struct {
	worker.ActivityRegistry
	types map[string]reflect.Type
}

func (i inputs) RegisterActivityWithOptions(f any, o activity.RegisterOptions) {
	i.types[o.Name] = reflect.TypeOf(f).In(1)
}

func TestEveryActivityHasAnOwner(t *testing.T) {
	all := inputs{types: map[string]reflect.Type{}}
	RegisterShort(all, Activities{})
	RegisterWaiting(all, Activities{})
	RegisterMeasuring(all, Activities{})
	require.Len(t, all.types, 17)
	for name, input := range all.types {
		owner, known := ownerOf(name, []any{reflect.Zero(input).Interface()})
		assert.True(t, known, name)
		assert.NotEmpty(t, owner.Type, name)
	}
}

func TestARefusedCallIsFinalAndSaysWhoseActivityItIs(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&callerCheck{log: logr.Discard()}}})
	called := false
	env.RegisterActivityWithOptions(func(context.Context, wf.StageAdvance) error { called = true; return nil }, activity.RegisterOptions{Name: wf.AdvanceStage})
	_, err := env.ExecuteActivity(wf.AdvanceStage, wf.StageAdvance{StageRequest: prod})
	require.ErrorContains(t, err, "it is for workflow updaterun/web-17/stage/prod of type Stage")
	require.ErrorContains(t, err, "started by the hub agent")
	assert.False(t, called)
}
