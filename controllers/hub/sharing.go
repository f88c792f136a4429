package hub

import (
	"encoding/json"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// shareStrings lets objects share the memory of what most of them say alike: keys and names, conditions and why a cluster was picked.
// There may be 100,000 bindings and Works, and as many clusters in the statuses of placements, policy snapshots and update runs; each is
// decoded with strings, and room for further parts, of its own.
func shareStrings(next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if o, ok := object.(client.Object); ok {
			shareMetadata(o)
		}
		switch o := object.(type) {
		case *placementv1beta1.Work:
			o.Status.Conditions = shareConditions(o.Status.Conditions)
		case placementv1beta1.BindingObject:
			o.SetLabels(shareMap(o.GetLabels()))
			o.SetAnnotations(shareMap(o.GetAnnotations()))
			shareDecision(&o.GetBindingSpec().ClusterDecision)
			shareAll(&o.GetBindingSpec().ResourceSnapshotName, &o.GetBindingSpec().SchedulingPolicySnapshotName, &o.GetBindingSpec().TargetCluster)
			o.GetBindingStatus().Conditions = shareConditions(o.GetBindingStatus().Conditions)
		case placementv1beta1.PlacementObject:
			sharePlacementStatus(o.GetPlacementStatus())
		case placementv1beta1.PolicySnapshotObject:
			decisions := trimCapacity(o.GetPolicySnapshotStatus().ClusterDecisions)
			for i := range decisions {
				shareDecision(&decisions[i])
			}
			o.GetPolicySnapshotStatus().ClusterDecisions = decisions
		case placementv1beta1.UpdateRunObject:
			stages := o.GetUpdateRunStatus().StagesStatus
			for i := range stages {
				shareStageStatus(&stages[i])
			}
			if deletion := o.GetUpdateRunStatus().DeletionStageStatus; deletion != nil {
				shareStageStatus(deletion)
			}
		}
		return next(object)
	}
}

func sharePlacementStatus(status *placementv1beta1.PlacementStatus) {
	status.Conditions = shareConditions(status.Conditions)
	status.PerClusterPlacementStatuses = trimCapacity(status.PerClusterPlacementStatuses)
	for i := range status.PerClusterPlacementStatuses {
		cluster := &status.PerClusterPlacementStatuses[i]
		shareAll(&cluster.ClusterName, &cluster.ObservedResourceIndex)
		cluster.Conditions = shareConditions(cluster.Conditions)
	}
	status.SelectedResources = trimCapacity(status.SelectedResources)
	for i := range status.SelectedResources {
		id := &status.SelectedResources[i]
		shareAll(&id.Group, &id.Version, &id.Kind, &id.Namespace)
	}
}

func shareStageStatus(stage *placementv1beta1.StageUpdatingStatus) {
	stage.Clusters = trimCapacity(stage.Clusters)
	for i := range stage.Clusters {
		cluster := &stage.Clusters[i]
		shareAll(&cluster.ClusterName, &cluster.ResourceSnapshotIndex)
		cluster.Conditions = shareConditions(cluster.Conditions)
	}
}

// trimCapacity returns a list in as little room as it needs.
func trimCapacity[T any](all []T) []T {
	if len(all) == cap(all) {
		return all
	}
	return slices.Clone(all)
}

// shareString returns the one copy of a string that all share. It goes when nothing has it any more.
func shareString(s string) string { return unique.Make(s).Value() }

func shareMetadata(object client.Object) {
	object.SetNamespace(shareString(object.GetNamespace()))
	labels := shareKeys(object.GetLabels())
	for key, value := range labels {
		labels[key] = shareString(value)
	}
	object.SetLabels(labels)
	object.SetAnnotations(shareKeys(object.GetAnnotations())) // many of their values are times and UIDs, which differ
	for i, finalizer := range object.GetFinalizers() {
		object.GetFinalizers()[i] = shareString(finalizer)
	}
}

// shareKeys returns a map of its own with shared keys.
func shareKeys(all map[string]string) map[string]string {
	if len(all) == 0 {
		return all
	}
	with := make(map[string]string, len(all))
	for key, value := range all {
		with[shareString(key)] = value
	}
	return with
}

// sharedMaps are the labels and annotations of bindings that were seen last, by content: most bindings of a placement have the same.
// They are enough for 10,000 placements.
var sharedMaps = lru.New(20_000)

// longestShared is how many bytes labels or annotations have at most that are shared: longer ones are of one binding.
const longestShared = 512

// shareMap returns the one map of a content that all bindings share, which is only read, as everything in the cache is. A map of one
// key takes as much room as one of eight.
func shareMap(all map[string]string) map[string]string {
	if len(all) == 0 {
		return all
	}
	content, err := json.Marshal(all) // sorts the keys; no two maps are written alike
	if err != nil || len(content) > longestShared {
		return all
	}
	if known, found := sharedMaps.Get(string(content)); found {
		return known.(map[string]string)
	}
	sharedMaps.Add(string(content), all)
	return all
}

// shareAll replaces strings by those that all share.
func shareAll(texts ...*string) {
	for _, text := range texts {
		*text = shareString(*text)
	}
}

func shareDecision(decision *placementv1beta1.ClusterDecision) {
	shareAll(&decision.ClusterName, &decision.Reason)
}

// shareConditions returns the conditions in as little room as they need.
func shareConditions(all []metav1.Condition) []metav1.Condition {
	conditions := trimCapacity(all)
	for i := range conditions {
		c := &conditions[i]
		c.Type, c.Reason, c.Message = shareString(c.Type), shareString(c.Reason), shareString(c.Message)
		c.Status = metav1.ConditionStatus(shareString(string(c.Status)))
	}
	return conditions
}
