package planning

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Assignment is which clusters are in which stage.
type Assignment struct {
	// Strategy is what the run freezes: the given strategy and, if it asks for that, a last stage for the clusters that
	// are in none of its stages.
	Strategy *placementv1beta1.UpdateStrategySpec
	// Clusters are those of each stage of Strategy, in the order in which they are updated.
	Clusters [][]string
	// Unassigned are the clusters in no stage of the given strategy, by name.
	Unassigned []string
}

// SelectorError says that the label selector of a stage is invalid.
type SelectorError struct {
	Stage string
	Err   error
}

// Error implements error.
func (e *SelectorError) Error() string {
	return fmt.Sprintf("reading the label selector of stage %s: %v", e.Stage, e.Err)
}

// Unwrap returns what is wrong with the selector.
func (e *SelectorError) Unwrap() error { return e.Err }

// SplitClusters sorts the clusters of a placement into those it selects and those it no longer does.
func SplitClusters(bindings []placementv1beta1.BindingObject) (selected, removed []string) {
	for _, b := range bindings {
		switch cluster := b.GetBindingSpec().TargetCluster; {
		case rules.IsLiveBinding(b):
			selected = append(selected, cluster)
		case !rules.IsDeleting(b):
			removed = append(removed, cluster)
		}
	}
	slices.Sort(selected)
	slices.Sort(removed)
	return selected, removed
}

// BasesOf returns what the clusters of bindings have, by the names of clusters: the resource snapshot, and the revision of the
// binding. A cluster without is one that nothing was placed on.
func BasesOf(bindings []placementv1beta1.BindingObject) map[string]string {
	bases := map[string]string{}
	for _, b := range bindings {
		if base := BaseOf(b); base != planhash.None {
			bases[b.GetBindingSpec().TargetCluster] = base
		}
	}
	return bases
}

// BaseOf returns what the cluster of a binding has, as plans name it.
func BaseOf(binding placementv1beta1.BindingObject) string {
	revision := workmodel.Revision(binding)
	if revision == "" {
		return planhash.None
	}
	return binding.GetBindingSpec().ResourceSnapshotName + "@" + revision
}

// AssignClusters assigns the selected clusters to the stages of a strategy by the labels of the clusters. An assignment
// that comes with an error has its Unassigned only.
func AssignClusters(strategy placementv1beta1.UpdateStrategySpec, selected []string,
	labelsOf map[string]map[string]string) (Assignment, error) {
	a := Assignment{Strategy: strategy.DeepCopy()}
	stages := make([]rollout.Stage, len(strategy.Stages))
	for i, config := range strategy.Stages {
		match, err := matcherOf(config.LabelSelector)
		if err != nil {
			return Assignment{}, &SelectorError{config.Name, err}
		}
		stages[i] = rollout.Stage{Name: config.Name, Match: match}
		if config.Sample != nil {
			stages[i].Sample = &rollout.Sample{Percent: int(config.Sample.Percent), Seed: config.Sample.Seed}
		}
		if config.SortingLabelKey != nil {
			stages[i].SortingLabelKey = *config.SortingLabelKey
		}
		if config.Order != nil {
			stages[i].Order = new(CompileOrder(config.Order))
		}
	}
	everyone := make([]rollout.Member, 0, len(selected))
	for _, name := range selected {
		everyone = append(everyone, rollout.Member{Name: name, Labels: labelsOf[name]})
	}
	drawn := rollout.DrawSamples(stages, everyone)
	var members []rollout.Member
	for _, member := range everyone {
		_, isDrawn := drawn[member.Name]
		if isDrawn || slices.ContainsFunc(stages, func(s rollout.Stage) bool { return s.Sample == nil && s.Match(member.Labels) }) {
			members = append(members, member)
		} else {
			a.Unassigned = append(a.Unassigned, member.Name)
		}
	}
	var err error
	if a.Clusters, err = rollout.AssignStages(stages, members, drawn); err != nil {
		return Assignment{Unassigned: a.Unassigned}, err
	}
	if len(a.Unassigned) > 0 && strategy.UnassignedClusters == placementv1beta1.UnassignedClustersLast {
		a.addStageOfUnassigned()
	}
	return a, nil
}

// matcherOf returns the selector of a stage; without one the stage has all clusters.
func matcherOf(selector *metav1.LabelSelector) (func(map[string]string) bool, error) {
	if selector == nil {
		return func(map[string]string) bool { return true }, nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	return func(of map[string]string) bool { return compiled.Matches(labels.Set(of)) }, nil
}

// addStageOfUnassigned adds a stage that is like the last one, except for what says which clusters it has and in which order, and
// without tasks.
func (a *Assignment) addStageOfUnassigned() {
	stage := *a.Strategy.Stages[len(a.Strategy.Stages)-1].DeepCopy()
	stage.Name = placementv1beta1.UnassignedStageName
	stage.LabelSelector = nil
	stage.Sample = nil
	stage.SortingLabelKey = nil
	stage.Order = nil
	stage.BeforeStageTasks = nil
	stage.DuringStageTasks = nil
	stage.AfterStageTasks = nil
	a.Strategy.Stages = append(a.Strategy.Stages, stage)
	a.Clusters = append(a.Clusters, a.Unassigned)
	// A reader of the frozen strategy sees a stage like the others.
	a.Strategy.UnassignedClusters = ""
}

// Freeze writes the assignment into the status of a run.
func (a Assignment) Freeze(status *placementv1beta1.UpdateRunStatus, names stagetask.Names) {
	status.UpdateStrategySnapshot = a.Strategy
	status.StagesStatus = nil
	for i, config := range a.Strategy.Stages {
		stage := FreezeStage(names, config)
		stage.Clusters = ClusterStatuses(a.Clusters[i])
		status.StagesStatus = append(status.StagesStatus, stage)
	}
}

// FreezeStage returns the status that a stage begins with, without its clusters.
func FreezeStage(names stagetask.Names, config placementv1beta1.StageConfig) placementv1beta1.StageUpdatingStatus {
	return placementv1beta1.StageUpdatingStatus{
		StageName:             config.Name,
		BeforeStageTaskStatus: stagetask.Freeze(names, config.Name, stagetask.Before, config.BeforeStageTasks),
		DuringStageTaskStatus: stagetask.Freeze(names, config.Name, stagetask.During, config.DuringStageTasks),
		AfterStageTaskStatus:  stagetask.Freeze(names, config.Name, stagetask.After, config.AfterStageTasks),
	}
}

// ClusterStatuses returns the statuses that clusters begin with.
func ClusterStatuses(names []string) []placementv1beta1.ClusterUpdatingStatus {
	statuses := make([]placementv1beta1.ClusterUpdatingStatus, len(names))
	for i, name := range names {
		statuses[i].ClusterName = name
	}
	return statuses
}
