package stagedupdate

import (
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetflow/fleetflow/activities/override"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// userError is what only a person can mend; its text goes to the run.
type userError struct{ text string }

func (e *userError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &userError{fmt.Sprintf(format, args...)} }

// The texts around a user error, as the documents print them.
func cannotContinue(text string) string {
	return "cannot continue the ClusterStagedUpdateRun: " + text
}

func clientError(text string) string {
	return cannotContinue("failed to initialize the clusterStagedUpdateRun: failed to process the request due to a client error: " + text)
}

// facts are what the plan of a run is made from.
type facts struct {
	placement *placementv1beta1.ClusterResourcePlacement
	policy    *placementv1beta1.ClusterSchedulingPolicySnapshot
	bindings  []placementv1beta1.ClusterResourceBinding
	strategy  *placementv1beta1.ClusterStagedUpdateStrategy
	clusters  []clusterv1beta1.MemberCluster
	runs      []placementv1beta1.ClusterStagedUpdateRun
}

// checkPlacement says why a run cannot work on a placement.
func checkPlacement(placement *placementv1beta1.ClusterResourcePlacement) error {
	if placement == nil || !placement.DeletionTimestamp.IsZero() {
		return refuse("parent clusterResourcePlacement not found")
	}
	kind := placementv1beta1.RollingUpdateRolloutStrategyType
	if s := placement.Spec.Strategy; s != nil && s.Type != "" {
		kind = s.Type
	}
	if kind != placementv1beta1.ExternalRolloutStrategyType {
		return refuse("parent clusterResourcePlacement does not have an external rollout strategy, current strategy: %s; set spec.strategy.type to External", kind)
	}
	return nil
}

// plan freezes policy, apply strategy, stages and clusters into the status of
// the run. It is pure. What was found before an error stays in the status, as
// users know it from the reference.
func plan(run *placementv1beta1.ClusterStagedUpdateRun, f facts) (note string, err error) {
	status := &run.Status
	status.PolicySnapshotIndexUsed = f.policy.Labels[placementv1beta1.PolicyIndexLabel]
	selected, removed := split(f.bindings)
	if len(selected) == 0 && len(removed) == 0 {
		return "", refuse("no scheduled or to-be-deleted clusterResourceBindings found for the latest policy snapshot %s", f.policy.Name)
	}
	status.PolicyObservedClusterCount = len(selected)
	status.AppliedStrategy = nil
	if s := f.placement.Spec.Strategy; s != nil {
		status.AppliedStrategy = s.ApplyStrategy.DeepCopy()
	}
	status.DeletionStageStatus = &placementv1beta1.StageUpdatingStatus{
		StageName: placementv1beta1.DeletionStageName, Clusters: clusterStatuses(removed),
	}
	if err := checkConcurrent(run, f.runs); err != nil {
		return "", err
	}
	if f.strategy == nil {
		return "", refuse("referenced clusterStagedUpdateStrategy not found: `%s`", run.Spec.StagedRolloutStrategyName)
	}
	if err := checkStages(f.strategy.Spec.Stages); err != nil {
		return "", err
	}
	strategy := f.strategy.Spec.DeepCopy()
	assigned, note, err := assign(strategy, selected, f.clusters)
	if err != nil {
		return "", err
	}
	status.StagedUpdateStrategySnapshot = strategy
	status.StagesStatus = nil
	for i, config := range strategy.Stages {
		status.StagesStatus = append(status.StagesStatus, newStage(run.Name, config, assigned[i]))
	}
	return note, nil
}

// checkConcurrent refuses a run whose placement another run that came before, and has
// not ended, takes through other stages. Admission does so, too, but sees only what was
// stored a moment ago.
func checkConcurrent(run *placementv1beta1.ClusterStagedUpdateRun, others []placementv1beta1.ClusterStagedUpdateRun) error {
	for i := range others {
		other := &others[i]
		if other.Name == run.Name || other.Spec.PlacementName != run.Spec.PlacementName ||
			other.Spec.StagedRolloutStrategyName == run.Spec.StagedRolloutStrategyName || placementv1beta1.IsRunOver(other) || placementv1beta1.IsDeleting(other) || !before(other, run) {
			continue
		}
		return refuse("clusterStagedUpdateRun `%s` of the same placement has not ended and uses clusterStagedUpdateStrategy `%s`; "+
			"all concurrent runs of a placement must use the same strategy: use that one in another run, or wait for `%s` to end, or delete it",
			other.Name, other.Spec.StagedRolloutStrategyName, other.Name)
	}
	return nil
}

// before orders runs by when they were created, those of the same second by name.
func before(a, b *placementv1beta1.ClusterStagedUpdateRun) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// split sorts the clusters of a placement into those the policy selects and
// those it no longer does.
func split(bindings []placementv1beta1.ClusterResourceBinding) (selected, removed []string) {
	for i := range bindings {
		b := &bindings[i]
		switch {
		case !b.DeletionTimestamp.IsZero():
		case b.Spec.State == placementv1beta1.BindingStateUnscheduled:
			removed = append(removed, b.Spec.TargetCluster)
		default:
			selected = append(selected, b.Spec.TargetCluster)
		}
	}
	slices.Sort(selected)
	slices.Sort(removed)
	return selected, removed
}

// checkStages refuses what admission cannot.
func checkStages(stages []placementv1beta1.StageConfig) error {
	seen := map[string]bool{}
	for _, s := range stages {
		if seen[s.Name] {
			return refuse("stage name `%s` is used more than once", s.Name)
		}
		seen[s.Name] = true
		if problem := stagetask.Validate(s); problem != "" {
			return refuse("%s", problem)
		}
	}
	return nil
}

// assign puts the selected clusters into stages; note is about those that are in none.
func assign(strategy *placementv1beta1.UpdateStrategySpec, selected []string, clusters []clusterv1beta1.MemberCluster) (assigned [][]string, note string, err error) {
	labels := labelsOf(clusters)
	members := make([]rollout.Member, len(selected))
	for i, name := range selected {
		members[i] = rollout.Member{Name: name, Labels: labels[name]}
	}
	stages := make([]rollout.Stage, len(strategy.Stages))
	for i, config := range strategy.Stages {
		match, err := matcher(config.LabelSelector)
		if err != nil {
			return nil, "", refuse("the stage label selector of stage `%s` is invalid: %v", config.Name, err)
		}
		stages[i] = rollout.Stage{Name: config.Name, Match: match}
		if config.SortingLabelKey != nil {
			stages[i].SortingLabelKey = *config.SortingLabelKey
		}
	}
	if strategy.UnassignedClusters == "" || strategy.UnassignedClusters == placementv1beta1.UnassignedClustersFail {
		assigned, err = rollout.AssignStages(stages, members)
	} else {
		var left []string
		assigned, left, err = rollout.AssignSome(stages, members)
		if err == nil {
			assigned, note = withUnassigned(strategy, assigned, left)
		}
	}
	if err != nil {
		return nil, "", refuse("%v", err)
	}
	return assigned, note, nil
}

// matcher is a stage's selector; without one the stage has all clusters (API
// reference, StageConfig).
func matcher(selector *metav1.LabelSelector) (func(map[string]string) bool, error) {
	if selector == nil {
		return func(map[string]string) bool { return true }, nil
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	return func(m map[string]string) bool { return s.Matches(labels.Set(m)) }, nil
}

func newStage(run string, config placementv1beta1.StageConfig, clusters []string) placementv1beta1.StageUpdatingStatus {
	return placementv1beta1.StageUpdatingStatus{
		StageName: config.Name, Clusters: clusterStatuses(clusters),
		BeforeStageTaskStatus: stagetask.Freeze(run, config.Name, stagetask.Before, config.BeforeStageTasks),
		AfterStageTaskStatus:  stagetask.Freeze(run, config.Name, stagetask.After, config.AfterStageTasks),
	}
}

// applyOverrides freezes which overrides apply to the clusters of each stage.
func applyOverrides(status *placementv1beta1.UpdateRunStatus, overrides *override.Matcher, clusters []clusterv1beta1.MemberCluster) {
	labels := labelsOf(clusters)
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			cluster := &status.StagesStatus[i].Clusters[j]
			setOverrides(cluster, overrides, labels[cluster.ClusterName])
		}
	}
}

func setOverrides(cluster *placementv1beta1.ClusterUpdatingStatus, overrides *override.Matcher, labels map[string]string) {
	if overrides == nil {
		return
	}
	applicable := overrides.Applicable(override.Cluster{Name: cluster.ClusterName, Labels: labels})
	cluster.ClusterResourceOverrideSnapshots = applicable.ClusterResourceOverrideSnapshots
	cluster.ResourceOverrideSnapshots = applicable.ResourceOverrideSnapshots
}

// labelsOf are the labels of clusters by name.
func labelsOf(clusters []clusterv1beta1.MemberCluster) map[string]map[string]string {
	out := make(map[string]map[string]string, len(clusters))
	for i := range clusters {
		out[clusters[i].Name] = clusters[i].Labels
	}
	return out
}

func clusterStatuses(names []string) []placementv1beta1.ClusterUpdatingStatus {
	out := make([]placementv1beta1.ClusterUpdatingStatus, len(names))
	for i, name := range names {
		out[i].ClusterName = name
	}
	return out
}

// parseIndex checks a pinned resource snapshot index.
func parseIndex(index string) error {
	if n, err := strconv.Atoi(index); err != nil || n < 0 {
		return refuse("invalid resource snapshot index `%s` provided, expected an integer >= 0", index)
	}
	return nil
}
