package demo

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/realnode"
)

// Names of the how-to.
const (
	namespaceName  = "test-namespace"
	configMapName  = "test-cm"
	configKey      = "key"
	deploymentName = "test-app"
	placementName  = "example-placement"
	strategyName   = "example-strategy"
	replicas       = 2

	stagingStage = "staging"
	canaryStage  = "canary"
	// productionStage is for the members of a larger fleet: every picked cluster has to be in a stage.
	productionStage = "production"
	environment     = "environment"
	orderLabel      = "order"
)

// runName returns the name of the n-th run: example-run, example-run-2 and so on.
func runName(n int) string {
	if n == 1 {
		return "example-run"
	}
	return "example-run-" + strconv.Itoa(n)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func inNamespace(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespaceName}
}

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: inNamespace(configMapName), Data: map[string]string{configKey: value}}
}

// deployment is what runs on members. If one has a real node, its containers are of a program that this repository brings.
func deployment(isReal bool) *appsv1.Deployment {
	labels := map[string]string{"app": deploymentName}
	container := corev1.Container{Name: "app", Image: "registry.k8s.io/pause:3.10"}
	var deadline *int32
	if isReal {
		container = corev1.Container{
			Name: "app", Image: realnode.Workload + ":1", Args: []string{"serve"},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)},
			}, PeriodSeconds: 1},
		}
		deadline = ptr.To[int32](progressDeadline)
	}
	return &appsv1.Deployment{
		ObjectMeta: inNamespace(deploymentName),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](replicas), ProgressDeadlineSeconds: deadline,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
			},
		},
	}
}

func placement() *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: named(placementName),
		Spec: placementv1beta1.PlacementSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: namespaceName}},
			Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType},
			Strategy:          &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType},
		},
	}
}

func strategy(soak time.Duration, members int) *placementv1beta1.ClusterStagedUpdateStrategy {
	stages := []placementv1beta1.StageConfig{
		{
			Name: stagingStage, LabelSelector: inEnvironment(stagingStage),
			AfterStageTasks: []placementv1beta1.StageTask{{
				Type: placementv1beta1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: soak},
			}},
		},
		{
			Name: canaryStage, LabelSelector: inEnvironment(canaryStage), SortingLabelKey: new(orderLabel),
			AfterStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}},
		},
	}
	if members > minMembers {
		stages = append(stages, placementv1beta1.StageConfig{
			Name: productionStage, LabelSelector: inEnvironment(productionStage), SortingLabelKey: new(orderLabel),
		})
	}
	return &placementv1beta1.ClusterStagedUpdateStrategy{
		ObjectMeta: named(strategyName), Spec: placementv1beta1.UpdateStrategySpec{Stages: stages},
	}
}

func inEnvironment(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{environment: name}}
}

// updateRun returns a run to a snapshot, the latest when the index is empty.
func updateRun(name, index string) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: named(name),
		Spec: placementv1beta1.UpdateRunSpec{
			PlacementName: placementName, StagedUpdateStrategyName: strategyName, ResourceSnapshotIndex: index,
		},
	}
}

// updateOrder returns the order in which a run has to write to the clusters: staging, then canary by the order label, where
// member-3 comes before member-1, then the rest by name.
func updateOrder(members int) []string {
	order := []string{"member-2", "member-3", "member-1"}
	for i := minMembers + 1; i <= members; i++ {
		order = append(order, fmt.Sprintf("member-%d", i))
	}
	return order
}
