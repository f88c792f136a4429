package worker_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// administration is a Temporal server with namespaces and search attributes only.
type administration struct {
	workflowservice.WorkflowServiceClient
	operatorservice.OperatorServiceClient
	describe, register, list, add error
	// known is what it answers from its database of a workflow.
	known      func(id string) error
	attributes map[string]enums.IndexedValueType
	registered bool
	added      map[string]enums.IndexedValueType
}

// administered is a client of that server.
type administered struct {
	client.Client
	server *administration
}

func (a administered) WorkflowService() workflowservice.WorkflowServiceClient { return a.server }
func (a administered) OperatorService() operatorservice.OperatorServiceClient { return a.server }

func (a *administration) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, a.describe
}

func (a *administration) DescribeWorkflowExecution(_ context.Context, request *workflowservice.DescribeWorkflowExecutionRequest, _ ...grpc.CallOption) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, a.known(request.GetExecution().GetWorkflowId())
}

func (a *administration) RegisterNamespace(context.Context, *workflowservice.RegisterNamespaceRequest, ...grpc.CallOption) (*workflowservice.RegisterNamespaceResponse, error) {
	a.registered = true
	return &workflowservice.RegisterNamespaceResponse{}, a.register
}

func (a *administration) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: a.attributes}, a.list
}

func (a *administration) AddSearchAttributes(_ context.Context, in *operatorservice.AddSearchAttributesRequest, _ ...grpc.CallOption) (*operatorservice.AddSearchAttributesResponse, error) {
	a.added = in.GetSearchAttributes()
	return &operatorservice.AddSearchAttributesResponse{}, a.add
}

func TestWhatANamespaceMustHaveIsMadeWhereItMayBe(t *testing.T) {
	keyword := enums.INDEXED_VALUE_TYPE_KEYWORD
	all := map[string]enums.IndexedValueType{wf.PlacementAttribute: keyword, wf.RunAttribute: keyword, wf.StageAttribute: keyword, wf.PhaseAttribute: keyword}
	denied := serviceerror.NewPermissionDenied("no", "")
	for sentence, test := range map[string]struct {
		server     administration
		registered bool
		added      int
		problem    string
	}{
		"nothing is there":              {administration{describe: serviceerror.NewNamespaceNotFound("n")}, true, 4, ""},
		"everything is there":           {administration{attributes: all}, false, 0, ""},
		"somebody else was faster":      {administration{describe: serviceerror.NewNamespaceNotFound("n"), register: serviceerror.NewNamespaceAlreadyExists("n"), add: serviceerror.NewAlreadyExists("a")}, true, 4, ""},
		"administration is closed":      {administration{describe: denied, list: denied}, false, 0, ""},
		"administration does not exist": {administration{describe: serviceerror.NewUnimplemented("no"), list: serviceerror.NewUnimplemented("no")}, false, 0, ""},
		"the missing ones are named":    {administration{add: denied}, false, 4, "adding FleetPhase, FleetPlacement, FleetRun, FleetStage, of type Keyword"},
		"Temporal is away":              {administration{describe: serviceerror.NewUnavailable("away")}, false, 0, "away"},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := test.server
			err := worker.Ensure(t.Context(), administered{server: &server}, "n")
			if test.problem == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.problem)
			}
			assert.Equal(t, test.registered, server.registered)
			assert.Len(t, server.added, test.added)
		})
	}
}
