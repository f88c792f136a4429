package fleetview

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Strategy is a row about a strategy of staged update runs.
type Strategy struct {
	Name, Age string
	// Stages are the stages in their order, each with what a run waits for there; Selects has the clusters of each.
	Stages, Selects []string
	Labels          map[string]string
}

// StrategyOf sums a strategy up.
func StrategyOf(s placementv1beta1.UpdateStrategyObject, now time.Time) Strategy {
	row := Strategy{Name: qualifiedName(s), Age: Age(s.GetCreationTimestamp().Time, now), Labels: s.GetLabels()}
	stages := s.GetUpdateStrategySpec().Stages
	for i := range stages {
		row.Stages = append(row.Stages, stageText(&stages[i]))
		selects := "all clusters"
		if stages[i].LabelSelector != nil {
			selects = metav1.FormatLabelSelector(stages[i].LabelSelector)
		}
		row.Selects = append(row.Selects, stages[i].Name+": "+selects)
	}
	return row
}

// qualifiedName returns the name of an object as users give it: with its namespace, if it has one.
func qualifiedName(o metav1.Object) string {
	return hub.Ref{Namespace: o.GetNamespace(), Name: o.GetName()}.Qualified()
}

// stageText names a stage, and the tasks before, during and after it.
func stageText(stage *placementv1beta1.StageConfig) string {
	var waits []string
	for _, side := range []struct {
		when  string
		tasks []placementv1beta1.StageTask
	}{{"before", stage.BeforeStageTasks}, {"during", stage.DuringStageTasks}, {"after", stage.AfterStageTasks}} {
		for i := range side.tasks {
			waits = append(waits, side.when+": "+taskText(&side.tasks[i]))
		}
	}
	if len(waits) == 0 {
		return stage.Name
	}
	return stage.Name + " (" + strings.Join(waits, ", ") + ")"
}

// taskText names what a run waits for.
func taskText(task *placementv1beta1.StageTask) string {
	if task.Type == placementv1beta1.StageTaskTypeTimedWait && task.WaitTime != nil {
		return tree.Elapsed(task.WaitTime.Duration)
	}
	return strings.ToLower(string(task.Type))
}

// Override is a row about an override.
type Override struct {
	Name, Placement, State, Message, Age string
	// Changes are the objects that it changes, and Rules how many rules say for which clusters and how.
	Changes []string
	Rules   int
	Labels  map[string]string
}

// overrideWords are the states of overrides that the hub does not go by, by their reasons.
var overrideWords = map[string]string{
	placementv1beta1.ReasonOverrideConflict: "not in use: conflict", placementv1beta1.ReasonOverrideLimitExceeded: "not in use: too many",
	placementv1beta1.ReasonOverridePlacementNotFound: "not in use: no placement",
}

// OverrideOf sums an override up.
func OverrideOf(o placementv1beta1.OverrideObject, now time.Time) Override {
	row := Override{
		Name: qualifiedName(o), Placement: "all", State: notSeenYet, Age: Age(o.GetCreationTimestamp().Time, now),
		Rules: len(o.GetOverridePolicy().OverrideRules), Labels: o.GetLabels(),
	}
	if of := o.GetOverridePlacement(); of != nil {
		row.Placement = of.Name
	}
	for _, selected := range o.GetOverrideSelectors() {
		row.Changes = append(row.Changes, selected.Kind+"/"+selected.Name)
	}
	said := meta.FindStatusCondition(o.GetConditions(), placementv1beta1.ConditionTypeValid)
	if said == nil {
		return row
	}
	row.Message = said.Message
	row.State = "in use"
	if said.Status != metav1.ConditionTrue {
		row.State = cmp.Or(overrideWords[said.Reason], "not in use: "+said.Reason)
	}
	return row
}

// notSeenYet is the state of an object on which the hub agent has said nothing.
const notSeenYet = "not seen yet"

// Eviction is a row about an eviction.
type Eviction struct {
	Name, Placement, Cluster, State, Message, Age string
	Labels                                        map[string]string
}

// EvictionOf sums an eviction up. One without an outcome may still happen.
func EvictionOf(e *placementv1beta1.ClusterResourcePlacementEviction, now time.Time) Eviction {
	row := Eviction{
		Name: e.Name, Placement: e.Spec.PlacementName, Cluster: e.Spec.ClusterName, State: "pending",
		Age: Age(e.CreationTimestamp.Time, now), Labels: e.Labels,
	}
	for _, said := range []struct{ condition, met, unmet string }{
		{placementv1beta1.ConditionTypeValid, row.State, "not valid"}, {placementv1beta1.ConditionTypeExecuted, "executed", "not allowed"},
	} {
		condition := meta.FindStatusCondition(e.Status.Conditions, said.condition)
		if condition == nil {
			continue
		}
		row.Message = condition.Message
		row.State = said.met
		if condition.Status == metav1.ConditionFalse {
			row.State = said.unmet
		}
	}
	return row
}
