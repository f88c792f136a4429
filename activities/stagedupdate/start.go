package stagedupdate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"github.com/fleetflow/fleetflow/activities/bindingwrite"
	"github.com/fleetflow/fleetflow/activities/overridesource"
	"github.com/fleetflow/fleetflow/activities/throttle"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// start writes bindings and Works, and records the start beside it. Should the
// process die in between, the same clusters are started again, which changes
// nothing.
func (s *stageAdvance) start(ctx context.Context, clusters []string) error {
	target := s.run.DeepCopy() // s.run is written to beside it
	// One cluster that cannot be written to does not keep the others waiting.
	var g errgroup.Group
	g.SetLimit(throttle.MaxClusterWrites)
	g.Go(func() error {
		return s.store(ctx, s.run, func(r updaterun.Recorder) {
			stage := r.Stage(s.in.Index)
			r.ClustersSucceeded(stage, s.in.Done)
			r.ClustersStarted(stage, append(slices.Clone(clusters), s.in.InFlight...))
			switch {
			case s.stopping && len(s.in.InFlight) > 0:
				r.Stopping(stage)
			case !s.stopping && s.moves(r.Run):
				r.Progressing()
			}
		})
	})
	for _, name := range clusters {
		g.Go(func() error { return s.unlessRefused(s.unlessLeft(s.startCluster(ctx, target, name))) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return s.sayRefused(ctx)
}

// moves says that this call is progress; a run that is stuck stays so while it
// only waits on.
func (s *stageAdvance) moves(run placementv1beta1.UpdateRunObject) bool {
	return len(s.in.Start)+len(s.in.Done) > 0 || !updaterun.IsStuck(run)
}

// startCluster points a cluster's binding to the run's snapshot, unless a later
// run has it, and writes its Works.
func (s *stageAdvance) startCluster(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, cluster string) error {
	release, err := throttle.Acquire(ctx, s.ClusterWrites)
	if err != nil {
		return err
	}
	defer release()
	binding, err := s.takeBinding(ctx, run, cluster)
	if err != nil {
		return err
	}
	s.refused.forget(s.uid, cluster)
	s.view.Record(binding)
	if err := s.Works.Sync(ctx, binding); err != nil {
		// The binding controller tries again and says on the binding what is wrong;
		// here the cluster is in flight, and stuck in the end.
		activity.GetLogger(ctx).Warn("The Works of a cluster could not be written", "cluster", cluster, "error", err)
	}
	return nil
}

// fencedTries is how often a binding is read and written again that somebody else writes to at
// the same time.
const fencedTries = 3

// takeBinding makes a cluster's binding the run's. A *refusedError says that the API server will
// not have it so.
func (s *stageAdvance) takeBinding(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, cluster string) (*placementv1beta1.ClusterResourceBinding, error) {
	var failed error
	seen := ""
	for try := range fencedTries {
		binding, verdict, err := s.judge(ctx, run, cluster, try == 0)
		if err != nil || verdict == bindingOurs {
			return binding, err
		}
		if binding.ResourceVersion == seen {
			break // nobody has changed it: it was not the fence that failed
		}
		bound, err := s.bind(ctx, run, cluster, binding)
		if !errors.Is(err, bindingwrite.ErrFenced) {
			return bound, err
		}
		failed, seen = err, binding.ResourceVersion
	}
	return nil, failed
}

// known is a cluster's binding as the cache has it, if the run may take it as it is there: should it
// be another one by now, the fence keeps it from being written. Nil if it has to be read live.
func (s *stageAdvance) known(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, cluster string) *placementv1beta1.ClusterResourceBinding {
	binding, err := s.view.Get(ctx, placementv1beta1.BindingName(s.placement.Name, s.placement.UID, cluster))
	if err != nil || binding == nil {
		return nil
	}
	if verdict, err := judgeBinding(run, s.in.Stage, cluster, binding); err != nil || verdict != bindingFree {
		return nil
	}
	return binding
}

// judge decides whose a cluster's binding is: as it is live or, where that will do, as the cache has it.
func (s *stageAdvance) judge(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, cluster string, cached bool) (*placementv1beta1.ClusterResourceBinding, bindingVerdict, error) {
	if cached {
		if known := s.known(ctx, run, cluster); known != nil {
			return known, bindingFree, nil
		}
	}
	binding, err := s.liveBinding(ctx, s.placement, cluster)
	if err != nil {
		return nil, bindingFree, err
	}
	holder, err := s.holder(ctx, run, binding)
	if err != nil {
		return nil, bindingFree, err
	}
	verdict, err := judgeBinding(run, s.in.Stage, cluster, holder)
	return binding, verdict, err
}

// bind writes a cluster's binding, provided that it is as it was read and that the run is still on.
func (s *stageAdvance) bind(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, cluster string, binding *placementv1beta1.ClusterResourceBinding) (*placementv1beta1.ClusterResourceBinding, error) {
	to := targetOf(run, s.in.Index, cluster, binding)
	if err := s.fingerprint(ctx, &to, cluster); err != nil {
		return nil, err
	}
	if err := s.stillOn(ctx, &s.look); err != nil {
		return nil, err
	}
	bound, err := bindingwrite.Bind(ctx, s.Client, binding, to)
	if err != nil {
		return nil, refusedIf(cluster, fmt.Errorf("starting cluster %s: %w", cluster, err))
	}
	return bound, nil
}

// fingerprint notes in a target what its overrides are applied from. What is gone of them
// is shown when they are applied.
func (s *stageAdvance) fingerprint(ctx context.Context, to *bindingwrite.Target, cluster string) error {
	inputs, err := overridesource.Inputs(ctx, s.Client, s.Live, overridesource.Refs(to.ClusterResourceOverrideSnapshots, to.ResourceOverrideSnapshots), cluster)
	if _, gone := errors.AsType[*overridesource.MissingError](err); gone {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the overrides of cluster %s: %w", cluster, err)
	}
	maps.Copy(to.Annotations, overridesource.Annotations(inputs))
	return nil
}

// holder returns the binding as it counts for the run. Which of two runs
// created in the same second is the later one cannot be told; one that has ended
// does not stand in the way of the other.
func (s *stageAdvance) holder(ctx context.Context, run *placementv1beta1.ClusterStagedUpdateRun, b *placementv1beta1.ClusterResourceBinding) (*placementv1beta1.ClusterResourceBinding, error) {
	if b == nil || !sameSecond(b, run) {
		return b, nil
	}
	other, err := s.active(ctx, wf.Ref{Name: b.Annotations[placementv1beta1.UpdateRunAnnotation], UID: b.Annotations[placementv1beta1.UpdateRunUIDAnnotation]})
	if err != nil || other != nil {
		return b, err
	}
	b = b.DeepCopy()
	delete(b.Annotations, placementv1beta1.UpdateRunUIDAnnotation)
	return b, nil
}
