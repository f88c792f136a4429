package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// routingPatience is for how long routing may fail until that is a problem of Temporal: an agent that begins is not known to it at once.
const routingPatience = 30 * time.Second

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
	// Workers returns an error while the workers of this process do not run: no tasks are given to a build without workers.
	Workers func() error
	Log     logr.Logger
	// Tell, if set, is told that tasks go to this build from now on.
	Tell func(message string)

	mu      sync.Mutex
	failing time.Time
	problem error
}

// NeedLeaderElection reports whether only the agent that leads routes: when the lease moves, all executions move with it.
func (r *Routing) NeedLeaderElection() bool { return true }

// Problem returns why it is not known for some time whether Temporal gives its tasks to this build: rollouts may stand still.
func (r *Routing) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problem == nil || time.Since(r.failing) < routingPatience {
		return nil
	}
	return r.problem
}

func (r *Routing) note(problem error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problem == nil {
		r.failing = time.Now()
	}
	r.problem = problem
}

// Start routes until the context ends. Where no worker has ever named a build and this one does not, there is nothing to route.
func (r *Routing) Start(ctx context.Context) error {
	retry := minRetryDelay
	for {
		wait := routedEvery
		routed, err := r.route(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it ends without an error when its context ends
		}
		r.note(err)
		switch {
		case err != nil:
			r.log().Info("It is not known whether Temporal gives its tasks to this build; trying again", "after", retry.String(), "cause", err.Error())
			wait = retry
			retry = min(2*retry, maxRetryDelay)
		case !routed:
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

// log returns where it is told that routing fails: who has not asked for it is not told at once.
func (r *Routing) log() logr.Logger {
	if r.Build == "" {
		return r.Log.V(1)
	}
	return r.Log
}

// route makes this build the current one, unless it is. It also returns whether there are builds to route to.
func (r *Routing) route(ctx context.Context) (routed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	deployment := r.Client.WorkerDeploymentClient().GetHandle(Deployment)
	found, err := deployment.Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if r.Build == "" && isAdminDenied(err) {
		r.Log.Info("Temporal does not tell whether it gives tasks to workers that name a build; if it does, those of this agent get none", "cause", err.Error())
		return false, nil
	}
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing && r.Build == "" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking Temporal which build gets its tasks: %w", err)
	}
	before := ""
	if current := found.Info.RoutingConfig.CurrentVersion; current != nil {
		before = current.BuildID
	}
	if before == r.Build {
		return true, nil
	}
	if err := r.Workers(); err != nil {
		return false, fmt.Errorf("having Temporal give its tasks to %s: %w", nameBuild(r.Build), err)
	}
	// Queues that the build before had are not waited for. The token has this fail if another agent has routed in between.
	if _, err := deployment.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{
		BuildID: r.Build, ConflictToken: found.ConflictToken, IgnoreMissingTaskQueues: true,
	}); err != nil {
		return false, fmt.Errorf("having Temporal give its tasks to %s: %w", nameBuild(r.Build), err)
	}
	r.Log.Info("Temporal gives its tasks to another build from now on", "build", r.Build, "before", before)
	if r.Tell != nil {
		r.Tell(fmt.Sprintf("Temporal gives its tasks to %s from now on, and not to %s", nameBuild(r.Build), nameBuild(before)))
	}
	return true, nil
}

func nameBuild(build string) string {
	if build == "" {
		return "workers without a build"
	}
	return "build " + build
}

// checkBuilds returns an error if Temporal says that it cannot give tasks to builds: a worker that names one would get none.
func checkBuilds(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	_, err := c.WorkerDeploymentClient().GetHandle(Deployment).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
	if isAdminDenied(err) {
		return fmt.Errorf("the Temporal server has no Worker Deployments, or denies them to this client; start the agent without "+
			"--temporal-worker-versions: %w", err)
	}
	return nil
}
