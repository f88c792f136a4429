//go:build integration

package integration

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// configMapName is that of the ConfigMap in every spec's namespace, as in the how-to.
const configMapName = "test-cm"

// The values the ConfigMap takes, in their order: resource snapshot 0 has the first, 1 the second.
const (
	value1 = "value1"
	value2 = "value2"
)

// namespaceWithConfigMap creates the spec's namespace with the ConfigMap in it.
func (s *spec) namespaceWithConfigMap() {
	s.Helper()
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	s.create(s.configMap(value1))
}

func (s *spec) configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: configMapName, Namespace: s.name}, Data: map[string]string{"key": value},
	}
}

// changeTo gives the ConfigMap on the hub another value.
func (s *spec) changeTo(value string) {
	s.Helper()
	update(s, s.hub, s.configMap(""), func(c *corev1.ConfigMap) { c.Data["key"] = value })
}

// awaitValue waits until the ConfigMap on each of the members has a value.
func (s *spec) awaitValue(value string, names ...string) {
	s.Helper()
	for _, name := range names {
		await(s, s.member(name), s.configMap(""), "to have "+value, func(c *corev1.ConfigMap) error {
			if c.Data["key"] != value {
				return fmt.Errorf("it has %v", c.Data)
			}
			return nil
		})
	}
}

// requireNothingOn asserts that a member has none of the spec's namespace.
func (s *spec) requireNothingOn(names ...string) {
	s.Helper()
	for _, name := range names {
		err := s.member(name).Get(s.Context(), client.ObjectKey{Name: s.name}, &corev1.Namespace{})
		require.NoError(s, client.IgnoreNotFound(err))
		require.Error(s, err, "namespace %s must not be on %s", s.name, name)
	}
}

// awaitCleared waits until the members have nothing of the spec's namespace any more.
func (s *spec) awaitCleared(names ...string) {
	s.Helper()
	for _, name := range names {
		awaitGone(s, s.member(name), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	}
}

// placementOption changes a placement before it is created.
type placementOption func(*placementv1beta1.PlacementSpec)

// place creates a placement of the spec's namespace to all members.
func (s *spec) place(options ...placementOption) *placementv1beta1.ClusterResourcePlacement {
	s.Helper()
	placement := s.placement(options...)
	s.create(placement)
	return placement
}

func (s *spec) placement(options ...placementOption) *placementv1beta1.ClusterResourcePlacement {
	placement := &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: placementv1beta1.PlacementSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: s.name}},
			Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType},
		},
	}
	for _, option := range options {
		option(&placement.Spec)
	}
	return placement
}

func external(p *placementv1beta1.PlacementSpec) {
	p.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
}

func pickFixed(names ...string) placementOption {
	return func(p *placementv1beta1.PlacementSpec) {
		p.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: names}
	}
}

// pickN asks for a number of clusters of an environment.
func pickN(n int32, environment string) placementOption {
	return func(p *placementv1beta1.PlacementSpec) {
		p.Policy = &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickNPlacementType, NumberOfClusters: new(n),
			Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{
					ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: in(environment)}},
				},
			}},
		}
	}
}

func selecting(terms ...placementv1beta1.ResourceSelectorTerm) placementOption {
	return func(p *placementv1beta1.PlacementSpec) { p.ResourceSelectors = terms }
}

func in(environment string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"environment": environment}}
}

// Stages of the how-to: member-2 is staging, member-3 and member-1 are canary in that order.

func staging(tasks ...placementv1beta1.StageTask) placementv1beta1.StageConfig {
	return placementv1beta1.StageConfig{Name: "staging", LabelSelector: in("staging"), AfterStageTasks: tasks}
}

func canary(tasks ...placementv1beta1.StageTask) placementv1beta1.StageConfig {
	return placementv1beta1.StageConfig{
		Name: "canary", LabelSelector: in("canary"), SortingLabelKey: new("order"), AfterStageTasks: tasks,
	}
}

// everywhere is one stage of all clusters.
func everywhere(tasks ...placementv1beta1.StageTask) placementv1beta1.StageConfig {
	return placementv1beta1.StageConfig{Name: "everywhere", LabelSelector: &metav1.LabelSelector{}, AfterStageTasks: tasks}
}

var approval = placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeApproval}

func soak(wait time.Duration) placementv1beta1.StageTask {
	return placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: wait}}
}

// strategy creates the spec's strategy.
func (s *spec) strategy(stages ...placementv1beta1.StageConfig) {
	s.Helper()
	s.strategyNamed(s.name, stages...)
}

func (s *spec) strategyNamed(name string, stages ...placementv1beta1.StageConfig) {
	s.Helper()
	s.create(&placementv1beta1.ClusterStagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placementv1beta1.UpdateStrategySpec{Stages: stages},
	})
}

// startRun creates a run of the spec's placement by its strategy; an empty index asks for the latest snapshot.
func (s *spec) startRun(suffix, index string) *placementv1beta1.ClusterStagedUpdateRun {
	s.Helper()
	run := s.run(suffix, index)
	s.create(run)
	return run
}

func (s *spec) run(suffix, index string) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + suffix},
		Spec: placementv1beta1.UpdateRunSpec{
			PlacementName: s.name, ResourceSnapshotIndex: index, StagedUpdateStrategyName: s.name,
		},
	}
}

// externalPlacement creates the spec's namespace and an External placement of it, and waits until resource snapshot 0
// exists and the clusters are picked.
func (s *spec) externalPlacement(options ...placementOption) *placementv1beta1.ClusterResourcePlacement {
	s.Helper()
	s.namespaceWithConfigMap()
	placement := s.place(append([]placementOption{external}, options...)...)
	s.awaitIndex("0")
	return placement
}

// awaitIndex waits until the placement observes a resource snapshot and its clusters are picked.
func (s *spec) awaitIndex(index string) *placementv1beta1.ClusterResourcePlacement {
	s.Helper()
	return await(s, s.hub, s.placement(), "to observe resource index "+index, func(p *placementv1beta1.ClusterResourcePlacement) error {
		if p.Status.ObservedResourceIndex != index {
			return fmt.Errorf("it observes %q", p.Status.ObservedResourceIndex)
		}
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeScheduled), p.Generation)
	})
}

// deployment is one of two replicas that its nodes run at once.
func (s *spec) deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: s.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:1"}}},
			},
		},
	}
}

func (s *spec) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: s.name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}
