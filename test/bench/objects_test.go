//go:build bench

package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// setUpAtOnce is how many objects are created at the same time.
	setUpAtOnce = 16
	// patience is for waits that no figure rests on.
	patience = 15 * time.Minute
)

// named are n names for what a measurement creates.
func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", prefix, i)
	}
	return names
}

// each does something for all names, several at a time.
func each(t *testing.T, names []string, do func(ctx context.Context, i int, name string) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(within(t, patience))
	group.SetLimit(setUpAtOnce)
	for i, name := range names {
		group.Go(func() error { return do(ctx, i, name) })
	}
	require.NoError(t, group.Wait())
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bench", Namespace: name}, Data: map[string]string{"key": value}}
}

// content creates a namespace with a ConfigMap for each name.
func (f *fleet) content(t *testing.T, names ...string) {
	t.Helper()
	each(t, names, func(ctx context.Context, _ int, name string) error {
		if err := f.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		return f.hub.Create(ctx, configMap(name, "value-0"))
	})
	t.Cleanup(func() {
		for _, name := range names {
			_ = f.hub.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}) // the wait below tells
		}
		f.awaitNoNamespace(t, names)
	})
}

// awaitNoNamespace waits until namespaces are gone: emptying them is work for the API server, which is not to be counted
// with what is measured next.
func (f *fleet) awaitNoNamespace(t *testing.T, names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, name := range names {
		for ctx.Err() == nil && !apierrors.IsNotFound(f.hub.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})) {
			pause(200 * time.Millisecond)
		}
	}
	if ctx.Err() != nil {
		t.Errorf("the namespaces were not gone within %s", patience)
	}
}

// change gives the ConfigMaps another value.
func (f *fleet) change(t *testing.T, value string, names ...string) {
	t.Helper()
	each(t, names, func(ctx context.Context, _ int, name string) error { return f.hub.Update(ctx, configMap(name, value)) })
}

func allOf(size int) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickAllPlacementType,
		Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{
				ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{withinLabel + fmt.Sprint(size): "true"}},
				}},
			},
		}},
	}
}

func external() *placementv1beta1.RolloutStrategy {
	return &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
}

func rolling(maxUnavailable string) *placementv1beta1.RolloutStrategy {
	share := intstr.Parse(maxUnavailable)
	return &placementv1beta1.RolloutStrategy{
		Type: placementv1beta1.RollingUpdateRolloutStrategyType, RollingUpdate: &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &share},
	}
}

// place creates placements, each of the namespace of its name, and takes them away in the end.
func (f *fleet) place(t *testing.T, policy func(i int) *placementv1beta1.PlacementPolicy, strategy *placementv1beta1.RolloutStrategy, names ...string) {
	t.Helper()
	each(t, names, func(ctx context.Context, i int, name string) error {
		return f.hub.Create(ctx, placementOf(name, name, policy(i), strategy))
	})
	t.Cleanup(func() { f.clear(t, names...) })
}

// placementOf places a namespace.
func placementOf(name, namespace string, policy *placementv1beta1.PlacementPolicy, strategy *placementv1beta1.RolloutStrategy) *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1beta1.PlacementSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: namespace}},
			Policy:            policy, Strategy: strategy,
		},
	}
}

// clear deletes placements and waits until nothing is left of them.
func (f *fleet) clear(t *testing.T, names ...string) {
	began := time.Now()
	for _, name := range names {
		_ = f.hub.Delete(context.Background(), &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}) // the wait below tells
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ctx.Err() == nil {
		left := 0
		for _, name := range names {
			if f.cache.Get(ctx, client.ObjectKey{Name: name}, &placementv1beta1.ClusterResourcePlacement{}) == nil {
				left++
			}
		}
		if left == 0 {
			t.Logf("cleared %d placements in %s", len(names), seconds(time.Since(began)))
			return
		}
		pause(200 * time.Millisecond)
	}
	t.Errorf("the placements were not cleared away within %s", patience)
}

// conditionOf is whether a placement's condition is true for its present generation.
func conditionOf(p *placementv1beta1.ClusterResourcePlacement, kind string) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.Scope{}.PlacementConditionType(kind))
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == p.Generation
}

// awaitPlacements waits until placements observe a snapshot and have a condition.
func (f *fleet) awaitPlacements(t *testing.T, kind, index string, names ...string) {
	t.Helper()
	f.await(t, patience, "placements to be "+kind, func() string {
		for i, name := range names {
			p := &placementv1beta1.ClusterResourcePlacement{}
			if err := f.cache.Get(t.Context(), client.ObjectKey{Name: name}, p); err != nil {
				return err.Error()
			}
			if p.Status.ObservedResourceIndex != index || !conditionOf(p, kind) {
				return fmt.Sprintf("%s, the %d. of %d, observes %q: %+v", name, i+1, len(names), p.Status.ObservedResourceIndex, p.Status.Conditions)
			}
		}
		return ""
	})
}

// staged is a strategy of the three stages with half of each at a time.
func staged(name string, tasks ...placementv1beta1.StageTask) *placementv1beta1.ClusterStagedUpdateStrategy {
	half := intstr.FromString("50%")
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, stage := range stages {
		strategy.Spec.Stages = append(strategy.Spec.Stages, placementv1beta1.StageConfig{
			Name: stage, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{stageLabel: stage}},
			MaxConcurrency: &half, AfterStageTasks: tasks,
		})
	}
	return strategy
}

// strategy creates a strategy for as long as the measurement takes.
func (f *fleet) strategy(t *testing.T, strategy *placementv1beta1.ClusterStagedUpdateStrategy) {
	t.Helper()
	require.NoError(t, f.hub.Create(t.Context(), strategy))
	t.Cleanup(func() { _ = f.hub.Delete(context.Background(), strategy) }) // the next measurement does not mind what remains
}

// startRuns creates a run for each placement at once, and returns when each was created.
func (f *fleet) startRuns(t *testing.T, suffix, strategy string, placements ...string) map[string]time.Time {
	t.Helper()
	started := make([]time.Time, len(placements))
	each(t, placements, func(ctx context.Context, i int, name string) error {
		started[i] = time.Now()
		return f.hub.Create(ctx, &placementv1beta1.ClusterStagedUpdateRun{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + suffix},
			Spec:       placementv1beta1.UpdateRunSpec{PlacementName: name, StagedUpdateStrategyName: strategy},
		})
	})
	runs := map[string]time.Time{}
	for i, name := range placements {
		runs[name+"-"+suffix] = started[i]
	}
	t.Cleanup(func() {
		for name := range runs {
			_ = f.hub.Delete(context.Background(), &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}}) // as above
		}
	})
	return runs
}

// awaitRuns waits until all runs have ended well, and returns how long each took.
func (f *fleet) awaitRuns(t *testing.T, limit time.Duration, runs map[string]time.Time) []time.Duration {
	t.Helper()
	f.await(t, limit, "runs to succeed", func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		left := 0
		for name := range runs {
			if _, over := f.ended[name]; !over {
				left++
			}
		}
		if left > 0 {
			return fmt.Sprintf("%d of %d are under way", left, len(runs))
		}
		return ""
	})
	took := make([]time.Duration, 0, len(runs))
	for name, began := range runs {
		run := f.run(t, name)
		require.True(t, meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded), "%s: %+v", name, run.Status.Conditions)
		f.mu.Lock()
		took = append(took, f.ended[name].Sub(began))
		f.mu.Unlock()
	}
	return took
}

func (f *fleet) run(t *testing.T, name string) *placementv1beta1.ClusterStagedUpdateRun {
	t.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, f.hub.Get(t.Context(), client.ObjectKey{Name: name}, run))
	return run
}
