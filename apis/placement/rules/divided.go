package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/apis/quantity"
)

// MaxDividedWorkloads is how many workloads of a placement are divided at most.
const MaxDividedWorkloads = 1000

// ReplicaFields are the fields of an object that a division writes.
type ReplicaFields struct {
	// Replicas is the path of the replicas; of a Job, of its parallelism.
	Replicas []string
	// Completions is the path of the completions of a Job; nil for other kinds.
	Completions []string
}

// dividedKinds are the kinds whose replicas can be divided.
var dividedKinds = map[schema.GroupKind]ReplicaFields{
	{Group: "apps", Kind: "Deployment"}:         {Replicas: []string{"spec", "replicas"}},
	{Group: "apps", Kind: "ReplicaSet"}:         {Replicas: []string{"spec", "replicas"}},
	{Group: "apps", Kind: "StatefulSet"}:        {Replicas: []string{"spec", "replicas"}},
	{Group: "apps.kruise.io", Kind: "CloneSet"}: {Replicas: []string{"spec", "replicas"}},
	{Group: "batch", Kind: "Job"}:               {Replicas: []string{"spec", "parallelism"}, Completions: []string{"spec", "completions"}},
}

// ReplicaFieldsOf returns the fields that a division writes in objects of a kind; false if the kind cannot be divided.
func ReplicaFieldsOf(kind schema.GroupKind) (ReplicaFields, bool) {
	fields, ok := dividedKinds[kind]
	return fields, ok
}

// Workload identifies an object that runs pods, in whatever version.
type Workload struct {
	Group, Kind, Namespace, Name string
}

// String returns the workload for people, such as apps/Deployment web/front.
func (w Workload) String() string {
	kind := w.Kind
	name := w.Name
	if w.Group != "" {
		kind = w.Group + "/" + kind
	}
	if w.Namespace != "" {
		name = w.Namespace + "/" + name
	}
	return kind + " " + name
}

// IsJob reports whether the workload is a Job: it is divided once.
func (w Workload) IsJob() bool { return w.Group == "batch" && w.Kind == "Job" }

// Compare orders workloads by group, kind, namespace and name.
func (w Workload) Compare(other Workload) int {
	return cmp.Or(
		cmp.Compare(w.Group, other.Group), cmp.Compare(w.Kind, other.Kind), cmp.Compare(w.Namespace, other.Namespace),
		cmp.Compare(w.Name, other.Name),
	)
}

// WorkloadOf returns the workload that an object is.
func WorkloadOf(object *unstructured.Unstructured) Workload {
	gvk := object.GroupVersionKind()
	return Workload{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// AssignedWorkload returns the workload that the assignment is for.
func AssignedWorkload(a *placementv1beta1.ReplicaAssignment) Workload {
	return Workload{Group: a.Group, Kind: a.Kind, Namespace: a.Namespace, Name: a.Name}
}

// selectsWorkload reports whether a selector, which may be nil, selects a workload.
func selectsWorkload(s *placementv1beta1.WorkloadSelector, w Workload) bool {
	fits := func(wanted, is string) bool { return wanted == "" || wanted == is }
	return s == nil || fits(s.Group, w.Group) && fits(s.Kind, w.Kind) && fits(s.Namespace, w.Namespace) && fits(s.Name, w.Name)
}

// DividingRuleOf returns the rule by which a policy, which may be nil, divides the replicas of a workload; nil if it does not.
func DividingRuleOf(policy *placementv1beta1.PlacementPolicy, w Workload) *placementv1beta1.ReplicaSchedulingRule {
	if policy == nil {
		return nil
	}
	for i := range policy.ReplicaScheduling {
		if rule := &policy.ReplicaScheduling[i]; selectsWorkload(rule.Selector, w) {
			if rule.Type == placementv1beta1.ReplicasDuplicated {
				return nil
			}
			return rule
		}
	}
	return nil
}

// RunsReplicas reports whether replicas of divided workloads are in force on a binding. Those of Jobs do not count: they are divided once.
func RunsReplicas(binding placementv1beta1.BindingObject) bool {
	return slices.ContainsFunc(binding.GetBindingSpec().ReplicaAssignments,
		func(a placementv1beta1.ReplicaAssignment) bool {
			return a.Replicas > 0 && !AssignedWorkload(&a).IsJob()
		})
}

// DividesReplicas reports whether a policy, which may be nil, has a rule that divides replicas.
func DividesReplicas(policy *placementv1beta1.PlacementPolicy) bool {
	return policy != nil && slices.ContainsFunc(policy.ReplicaScheduling,
		func(rule placementv1beta1.ReplicaSchedulingRule) bool {
			return rule.Type != placementv1beta1.ReplicasDuplicated
		})
}

// CountsRoom reports whether a rule, which may be nil, divides replicas by how many more the clusters have room for.
func CountsRoom(r *placementv1beta1.ReplicaSchedulingRule) bool {
	return r != nil && r.Type != placementv1beta1.ReplicasDuplicated &&
		(r.Division == placementv1beta1.DivisionAggregated || r.DynamicWeight != "")
}

// ReplicaDemand is how many replicas the object of a workload asks for.
type ReplicaDemand struct {
	Workload
	// Replicas of the workload; of a Job its parallelism, which is never more than its completions.
	Replicas int32
	// Completions of a Job; nil if it leaves them open.
	Completions *int32
	// Requests are what each of its pods requests of a node.
	Requests corev1.ResourceList
	// CountsRoom says that the rule that divides the workload counts for how many more of its pods the clusters have room.
	CountsRoom bool
	// Obstacle is why the workload cannot be divided, in words; empty if it can.
	Obstacle string
}

// ReplicaDemandOf reads what an object asks for; false if it is no workload.
func ReplicaDemandOf(object *unstructured.Unstructured) (ReplicaDemand, bool) {
	demand := ReplicaDemand{Workload: WorkloadOf(object)}
	fields, divisible := ReplicaFieldsOf(object.GroupVersionKind().GroupKind())
	if !divisible {
		demand.Obstacle = "this kind cannot be divided"
		return demand, runsPods(object)
	}
	if object.GetAnnotations()[placementv1beta1.RetainReplicasAnnotation] == "true" {
		demand.Obstacle = "its annotation " + placementv1beta1.RetainReplicasAnnotation + " leaves the replicas to the clusters"
	}
	demand.Replicas = ptr.Deref(readCount(object, fields.Replicas), 1)
	if fields.Completions != nil {
		demand.Completions = readCount(object, fields.Completions)
	}
	if demand.Completions != nil {
		demand.Replicas = min(demand.Replicas, *demand.Completions)
	}
	return demand, true
}

// readPodRequests reads what a pod of a workload will request, as the scheduler counts it; nil if nothing.
func readPodRequests(object *unstructured.Unstructured) corev1.ResourceList {
	template, found, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err != nil || !found {
		return nil
	}
	pod := &corev1.Pod{}
	if quantity.CheckContent(reflect.TypeFor[corev1.PodSpec](), template) != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod.Spec) != nil {
		return nil
	}
	requestLimits(pod.Spec.InitContainers)
	requestLimits(pod.Spec.Containers)
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for name, quantity := range requests {
		if quantity.Sign() <= 0 {
			delete(requests, name)
		}
	}
	return requests
}

// requestLimits lets containers request what they are limited to, where they do not say: so does the API server for pods.
func requestLimits(containers []corev1.Container) {
	for i := range containers {
		resources := &containers[i].Resources
		for name, limit := range resources.Limits {
			if _, said := resources.Requests[name]; said {
				continue
			}
			if resources.Requests == nil {
				resources.Requests = corev1.ResourceList{}
			}
			resources.Requests[name] = limit
		}
	}
}

// readCount reads a number that is not negative; nil if there is none.
func readCount(object *unstructured.Unstructured, path []string) *int32 {
	value, found, err := unstructured.NestedInt64(object.Object, path...)
	if err != nil || !found {
		return nil
	}
	return new(int32(max(0, min(value, 1<<31-1))))
}

// runsPods reports whether an object of an unknown kind looks like one that runs pods.
func runsPods(object *unstructured.Unstructured) bool {
	spec, ok := object.Object["spec"].(map[string]any)
	if !ok {
		return false
	}
	for _, field := range []string{"replicas", "template", "jobTemplate"} {
		if _, has := spec[field]; has {
			return true
		}
	}
	return false
}

// ReadReplicaDemands reads what the workloads ask for that a policy divides, from the manifests of a placement, in the order of
// workloads; nil if it divides none. What is in envelopes is not looked at. Those beyond MaxDividedWorkloads have an obstacle.
func ReadReplicaDemands(policy *placementv1beta1.PlacementPolicy, manifests [][]byte) ([]ReplicaDemand, error) {
	if !DividesReplicas(policy) {
		return nil, nil
	}
	demands := []ReplicaDemand{}
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(manifest); err != nil {
			return nil, fmt.Errorf("decoding an object to divide its replicas: %w", err)
		}
		demand, ok := ReplicaDemandOf(object)
		if rule := DividingRuleOf(policy, demand.Workload); ok && rule != nil {
			demand.Requests = readPodRequests(object)
			demand.CountsRoom = CountsRoom(rule)
			demands = append(demands, demand)
		}
	}
	slices.SortFunc(demands, func(a, b ReplicaDemand) int { return a.Compare(b.Workload) })
	divided := 0
	for i := range demands {
		if demands[i].Obstacle != "" {
			continue
		}
		if divided++; divided > MaxDividedWorkloads {
			demands[i].Obstacle = fmt.Sprintf("a placement divides %d workloads at most", MaxDividedWorkloads)
		}
	}
	return demands, nil
}

// HashReplicaDemands tells demands apart, also none from some; it is empty if nothing is divided, which nil says.
func HashReplicaDemands(demands []ReplicaDemand) string {
	if demands == nil {
		return ""
	}
	digest := sha256.New()
	for _, d := range demands {
		// Writing to a hash never fails.
		_, _ = io.WriteString(digest, fmt.Sprintf("%s %d %d %s\n", d.Workload, d.Replicas, ptr.Deref(d.Completions, -1), d.Obstacle))
		for _, name := range slices.Sorted(maps.Keys(d.countedRequests())) {
			quantity := d.Requests[name]
			_, _ = io.WriteString(digest, fmt.Sprintf("%s %s\n", name, quantity.String()))
		}
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

// countedRequests returns the requests of the pods, if it depends on them how the workload is divided.
func (d *ReplicaDemand) countedRequests() corev1.ResourceList {
	if !d.CountsRoom {
		return nil
	}
	return d.Requests
}

// divided returns the demands of workloads that can be divided.
func divided(demands []ReplicaDemand) []ReplicaDemand {
	return slices.DeleteFunc(slices.Clone(demands), func(d ReplicaDemand) bool { return d.Obstacle != "" })
}

// WithoutReplicas returns manifests without the replicas of the workloads in demands that are divided: by what is left, it is told
// whether the content of a snapshot is the same. The manifests are not changed.
func WithoutReplicas(manifests [][]byte, demands []ReplicaDemand) ([][]byte, error) {
	is := map[Workload]bool{}
	for _, d := range divided(demands) {
		is[d.Workload] = true
	}
	if len(is) == 0 {
		return manifests, nil
	}
	without := slices.Clone(manifests)
	for i, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(manifest); err != nil {
			return nil, fmt.Errorf("decoding an object to divide its replicas: %w", err)
		}
		if !is[WorkloadOf(object)] {
			continue
		}
		fields, _ := ReplicaFieldsOf(object.GroupVersionKind().GroupKind())
		unstructured.RemoveNestedField(object.Object, fields.Replicas...)
		if fields.Completions != nil {
			unstructured.RemoveNestedField(object.Object, fields.Completions...)
		}
		var err error
		if without[i], err = object.MarshalJSON(); err != nil {
			return nil, fmt.Errorf("encoding an object to divide its replicas: %w", err)
		}
	}
	return without, nil
}

// EncodeReplicaCounts returns the value of ReplicaCountsAnnotation: the replicas and completions of the workloads that are divided, in
// their order, with a hash of which these are; empty if there are none.
func EncodeReplicaCounts(demands []ReplicaDemand) string {
	text := &strings.Builder{}
	for _, d := range divided(demands) {
		_, _ = fmt.Fprintf(text, ",%d/%d", d.Replicas, ptr.Deref(d.Completions, -1)) // writing to a builder never fails
	}
	if text.Len() == 0 {
		return ""
	}
	return hashWorkloads(demands) + text.String()
}

func hashWorkloads(demands []ReplicaDemand) string {
	digest := sha256.New()
	for _, d := range divided(demands) {
		_, _ = io.WriteString(digest, d.Workload.String()+"\n") // writing to a hash never fails
	}
	return hex.EncodeToString(digest.Sum(nil)[:6])
}

// WithReplicaCounts returns the demands with what ReplicaCountsAnnotation says, if it is about the same workloads.
func WithReplicaCounts(demands []ReplicaDemand, encoded string) []ReplicaDemand {
	of, counts, _ := strings.Cut(encoded, ",")
	if of != hashWorkloads(demands) {
		return demands
	}
	demands = slices.Clone(demands)
	each := strings.Split(counts, ",")
	for i := range demands {
		if demands[i].Obstacle != "" || len(each) == 0 {
			continue
		}
		var replicas, completions int32
		if _, err := fmt.Sscanf(each[0], "%d/%d", &replicas, &completions); err == nil {
			demands[i].Replicas = replicas
			demands[i].Completions = nil
			if completions >= 0 {
				demands[i].Completions = &completions
			}
		}
		each = each[1:]
	}
	return demands
}
