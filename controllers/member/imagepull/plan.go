package imagepull

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// maxNodes is how many nodes pull an image at most.
	maxNodes = 100
	// imagesOfPod is how many images one Pod pulls.
	imagesOfPod = 10
)

// task is one Pod that pulls images.
type task struct {
	node   string
	pods   *fleetflowv1alpha1.ImagesOfPods
	images []string
}

// plan returns the tasks by which nodes pull images, by node, and records what no node will pull. It is pure.
func plan(nodes []corev1.Node, asked []fleetflowv1alpha1.ImagesOfPods, seen *results) [][]task {
	ofNode := map[string][]task{}
	for i := range asked {
		pods := &asked[i]
		names := nodesOf(nodes, pods)
		if len(names) == 0 {
			for _, image := range pods.Images {
				seen.add(image, verdict{fleetflowv1alpha1.RehearsalUnknown, "no node that is ready would run it"})
			}
			continue
		}
		if more := len(names) - maxNodes; more > 0 {
			names = names[:maxNodes]
			for _, image := range pods.Images {
				seen.add(image, verdict{fleetflowv1alpha1.RehearsalUnknown, fmt.Sprintf("%d more nodes would run it, and at most %d pull it", more, maxNodes)})
			}
		}
		for _, node := range names {
			for images := range slices.Chunk(pods.Images, imagesOfPod) {
				ofNode[node] = append(ofNode[node], task{node, pods, images})
			}
		}
	}
	byNode := make([][]task, 0, len(ofNode))
	for _, tasks := range ofNode {
		byNode = append(byNode, tasks)
	}
	slices.SortFunc(byNode, func(a, b []task) int { return cmp.Compare(a[0].node, b[0].node) })
	return byNode
}

// nodesOf returns the names, in order, of the nodes that would run Pods: that are ready, take Pods, and match what the Pods say.
func nodesOf(nodes []corev1.Node, pods *fleetflowv1alpha1.ImagesOfPods) []string {
	likePods := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: pods.NodeSelector}}
	if pods.RequiredNodes != nil {
		likePods.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: pods.RequiredNodes,
		}}
	}
	required := nodeaffinity.GetRequiredNodeAffinity(likePods)
	var names []string
	for i := range nodes {
		node := &nodes[i]
		if pods.NodeName != "" && node.Name != pods.NodeName || !isReady(node) || !tolerates(pods, node) {
			continue
		}
		if matches, err := required.Match(node); err == nil && matches {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return names
}

func isReady(node *corev1.Node) bool {
	return node.DeletionTimestamp.IsZero() && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// tolerates reports whether Pods may be on a node. That a node is cordoned is a taint, too.
func tolerates(pods *fleetflowv1alpha1.ImagesOfPods, node *corev1.Node) bool {
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for i := range taints {
		if taints[i].Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !slices.ContainsFunc(pods.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(logr.Discard(), &taints[i], false)
		}) {
			return false
		}
	}
	return true
}
