package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Deployment is the name that the workers of all hub agents have among the Worker Deployments of their Temporal namespace.
const Deployment = "fleetflow"

// routedEvery is how often it is looked whether tasks still go to the build of the agent that leads: Temporal tells no client that its
// database is another one.
const routedEvery = 10 * time.Second

// deploymentOptions has a worker take tasks only while its build is the current one. Executions go from build to build.
func deploymentOptions(build string) worker.DeploymentOptions {
	if build == "" {
		return worker.DeploymentOptions{}
	}
	return worker.DeploymentOptions{
		UseVersioning: true, DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		Version: worker.WorkerDeploymentVersion{DeploymentName: Deployment, BuildID: build},
	}
}

// Routing has Temporal give the tasks of all executions to the workers of one build, that of the agent that leads. Without it every
// worker that polls gets tasks, so that an execution meets two builds by turns during an upgrade.
type Routing struct {
	Client client.Client
	// Build names this one. If it is empty, tasks go to the workers that name none.
	Build string
	Log   logr.Logger
	// Tell, if set, is told that tasks go to this build from now on.
	Tell func(message string)
}

// NeedLeaderElection reports whether only the agent that leads routes: when the lease moves, all executions move with it.
func (r *Routing) NeedLeaderElection() bool { return true }

// Start routes until the context ends. Workers that name no build are routed to once: nothing takes that back but an agent that leads
// later.
func (r *Routing) Start(ctx context.Context) error {
	retry := minRetryDelay
	for {
		wait := routedEvery
		err := r.route(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it ends without an error when its context ends
		case err != nil:
			r.Log.Info("It is not known whether Temporal gives its tasks to this build; trying again", "after", retry.String(), "cause", err.Error())
			wait = retry
			retry = min(2*retry, maxRetryDelay)
		case r.Build == "":
			return nil
		default:
			retry = minRetryDelay
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// route makes this build the current one, unless it is. Temporal refuses that until a worker of the build has polled.
func (r *Routing) route(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	deployment := r.Client.WorkerDeploymentClient().GetHandle(Deployment)
	found, err := deployment.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if _, missing := errors.AsType[*serviceerror.NotFound](err); r.Build == "" && (missing || isAdminDenied(err)) {
		return nil // no worker has ever named a build there
	}
	if err != nil {
		return fmt.Errorf("asking Temporal which build gets its tasks: %w", err)
	}
	before := ""
	if current := found.Info.RoutingConfig.CurrentVersion; current != nil {
		before = current.BuildID
	}
	if before == r.Build {
		return nil
	}
	// Queues that the build before had are not waited for. The token has this fail if another agent has routed in between.
	if _, err := deployment.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
		BuildID: r.Build, ConflictToken: found.ConflictToken, IgnoreMissingTaskQueues: true,
	}); err != nil {
		return fmt.Errorf("having Temporal give its tasks to %s: %w", nameBuild(r.Build), err)
	}
	message := fmt.Sprintf("Temporal gives its tasks to %s from now on, and no longer to %s", nameBuild(r.Build), nameBuild(before))
	r.Log.Info("Temporal gives its tasks to another build from now on", "build", r.Build, "before", before)
	if r.Tell != nil {
		r.Tell(message)
	}
	return nil
}

func nameBuild(build string) string {
	if build == "" {
		return "workers without a build"
	}
	return "build " + build
}

// checkBuilds returns an error if Temporal cannot give tasks to builds: a worker that names one would get none.
func checkBuilds(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	_, err := c.WorkerDeploymentClient().GetHandle(Deployment).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	switch {
	case err == nil:
		return nil
	case isAdminDenied(err):
		return fmt.Errorf("the Temporal server is too old for worker versions, has them disabled, or denies them to this client; start the "+
			"agent without --temporal-worker-versions: %w", err)
	}
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return nil
	}
	return fmt.Errorf("asking Temporal for worker versions: %w", err)
}
