package worker

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// deployment is the fleet's Worker Deployment of a Temporal that answers what it is to answer, one after the other.
type deployment struct {
	client.WorkerDeploymentHandle
	answers []error
}

func (d *deployment) Describe(context.Context, client.WorkerDeploymentDescribeOptions) (client.WorkerDeploymentDescribeResponse, error) {
	answer := d.answers[0]
	d.answers = d.answers[1:]
	return client.WorkerDeploymentDescribeResponse{}, answer
}

// deployments has that one.
type deployments struct {
	client.WorkerDeploymentClient
	one *deployment
}

func (d deployments) GetHandle(string) client.WorkerDeploymentHandle { return d.one }

// deploying is a client of that Temporal.
type deploying struct {
	client.Client
	of deployments
}

func (d deploying) WorkerDeploymentClient() client.WorkerDeploymentClient { return d.of }

func TestATemporalThatWasAwayAndHasNoBuildsIsNoProblem(t *testing.T) {
	for sentence, last := range map[string]error{
		"no worker has ever named a build": serviceerror.NewNotFound("none"),
		"it denies the question":           serviceerror.NewPermissionDenied("no", ""),
	} {
		r := &Routing{Client: deploying{of: deployments{one: &deployment{answers: []error{serviceerror.NewUnavailable("away"), last}}}}, Log: logr.Discard()}
		require.NoError(t, r.Start(t.Context()), sentence)
		assert.NoError(t, r.problem, sentence)
	}
}
