package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// follower prints the live view of one run while the story goes on, and lets the story wait for points in it.
type follower struct {
	story *story
	name  string
	view  liveView

	mu      sync.Mutex
	latest  *placementv1beta1.ClusterStagedUpdateRun
	changed chan struct{}
	err     error
}

// follow begins to follow a run, until the context ends.
func (s *story) follow(ctx context.Context, name string) *follower {
	f := &follower{story: s, name: name, changed: make(chan struct{})}
	go func() {
		err := access.Watch(ctx, s.Hub, client.ObjectKey{Name: name}, f.see)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err = err
		close(f.changed)
		f.changed = make(chan struct{})
	}()
	return f
}

// see takes a state of the run.
func (f *follower) see(run *placementv1beta1.ClusterStagedUpdateRun) (bool, error) {
	if run == nil {
		return false, nil
	}
	for _, l := range f.view.see(run, time.Now()) {
		f.story.screen.live(l)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest = run
	close(f.changed)
	f.changed = make(chan struct{})
	return false, nil
}

// until returns the run once it is at a point; it fails when the run fails, or does not get there within the limit.
func (f *follower) until(ctx context.Context, limit time.Duration, point string,
	reached func(*placementv1beta1.ClusterStagedUpdateRun) bool) (*placementv1beta1.ClusterStagedUpdateRun, error) {
	object := "ClusterStagedUpdateRun " + f.name
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		f.mu.Lock()
		run := f.latest
		changed := f.changed
		err := f.err
		f.mu.Unlock()
		if run != nil && reached(run) {
			return run, nil
		}
		if finding := failed(run); finding != "" {
			return nil, f.story.failure(ctx, object, "the run "+point, finding, nil)
		}
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("following run %s: %w", f.name, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			return nil, f.story.failure(ctx, object, "the run "+point, fmt.Sprintf("after %s %s", limit, where(run)), nil)
		}
	}
}

// failed returns how a run has failed; "" if it has not. It is pure.
func failed(run *placementv1beta1.ClusterStagedUpdateRun) string {
	if run == nil {
		return ""
	}
	for _, kind := range []string{placementv1beta1.ConditionTypeInitialized, placementv1beta1.ConditionTypeSucceeded} {
		if c := meta.FindStatusCondition(run.Status.Conditions, kind); c != nil && c.Status == "False" {
			return fmt.Sprintf("%s is False: %s: %s", kind, c.Reason, c.Message)
		}
	}
	return ""
}

// where returns how far a run is. It is pure.
func where(run *placementv1beta1.ClusterStagedUpdateRun) string {
	if run == nil {
		return "there is no such run"
	}
	for i := range run.Status.StagesStatus {
		stage := &run.Status.StagesStatus[i]
		if updaterun.StageOver(stage) {
			continue
		}
		c := meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionTypeProgressing)
		if c == nil {
			return fmt.Sprintf("stage %s has not begun", stage.StageName)
		}
		if updating := updaterun.NamesIn(stage, updaterun.PhaseRunning); len(updating) > 0 {
			return fmt.Sprintf("stage %s still updates %s", stage.StageName, strings.Join(updating, ", "))
		}
		return fmt.Sprintf("stage %s is at %s: %s", stage.StageName, c.Reason, c.Message)
	}
	if len(run.Status.StagesStatus) == 0 {
		return "the run is not initialized"
	}
	return "all stages are done, but not the run"
}

// soaking reports whether the staging stage waits for its time to pass. It is pure.
func soaking(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	for i := range run.Status.StagesStatus {
		if stage := &run.Status.StagesStatus[i]; stage.StageName == stagingStage {
			return !updaterun.WaitsSince(stage, updaterun.StageConfig(run, i), stagetask.After).IsZero()
		}
	}
	return false
}

// asksApproval reports whether the canary stage waits for an approval, or has had it. It is pure.
func asksApproval(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	return !canaryApproval(run).Begun.IsZero()
}

// approved reports whether the canary stage has been approved. It is pure.
func approved(run *placementv1beta1.ClusterStagedUpdateRun) bool { return canaryApproval(run).Done() }

// canaryApproval returns the approval after the canary stage.
func canaryApproval(run *placementv1beta1.ClusterStagedUpdateRun) stagetask.State {
	for _, stage := range updaterun.Read(run).Stages {
		if i := slices.IndexFunc(stage.After, func(task stagetask.State) bool { return task.Approvable }); stage.Name == canaryStage && i >= 0 {
			return stage.After[i]
		}
	}
	return stagetask.State{}
}

// succeeded is the end of a run. It is pure.
func succeeded(run *placementv1beta1.ClusterStagedUpdateRun) bool {
	return updaterun.Read(run).Phase == updaterun.PhaseSucceeded
}
