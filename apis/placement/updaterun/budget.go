package updaterun

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Budget is the failure budget of a stage in numbers.
type Budget struct {
	// Exists says that the stage has one.
	Exists bool
	// MaxFailures is how many clusters may fail.
	MaxFailures int
	// OnExceeded is what to do when more have failed.
	OnExceeded placementv1beta1.FailureBudgetAction
}

// BudgetOf returns the failure budget of a stage.
func BudgetOf(run placementv1beta1.UpdateRunObject, index int) Budget {
	clusters := 0
	if stages := run.GetUpdateRunStatus().StagesStatus; index < len(stages) {
		clusters = len(stages[index].Clusters)
	}
	return readBudget(StageConfig(run, index).FailureBudget, clusters)
}

func readBudget(config *placementv1beta1.FailureBudget, clusters int) Budget {
	if config == nil {
		return Budget{}
	}
	budget := Budget{Exists: true, OnExceeded: cmp.Or(config.OnExceeded, placementv1beta1.FailureBudgetWait)}
	if config.MaxFailures != nil {
		// Admission has checked its form; what cannot be read allows nothing.
		failures, _ := intstr.GetScaledValueFromIntOrPercent(config.MaxFailures, clusters, false)
		budget.MaxFailures = max(0, failures)
	}
	return budget
}

// OverBudget reports whether more clusters of a stage have failed than may. A run that was paused for that reason stays so until
// its clusters are skipped or tried again.
func OverBudget(run placementv1beta1.UpdateRunObject, index int) bool {
	return isOverBudget(StageAt(run, index), StageConfig(run, index))
}

func isOverBudget(stage *placementv1beta1.StageUpdatingStatus, config placementv1beta1.StageConfig) bool {
	budget := readBudget(config.FailureBudget, len(stage.Clusters))
	return budget.Exists && CountIn(stage, PhaseFailed) > budget.MaxFailures
}

// BudgetExceededText returns which clusters of a stage failed, and how many may.
func BudgetExceededText(run placementv1beta1.UpdateRunObject, index int) string {
	stage := &run.GetUpdateRunStatus().StagesStatus[index]
	failed := NamesIn(stage, PhaseFailed)
	return fmt.Sprintf("the failure budget of stage `%s` is exceeded: %s failed (%d, at most %d may)",
		stage.StageName, ListNames(failed), len(failed), BudgetOf(run, index).MaxFailures)
}

// pauseText says of a stopped run which stage has exceeded its failure budget; nothing if none has.
func pauseText(run placementv1beta1.UpdateRunObject) string {
	for i := range run.GetUpdateRunStatus().StagesStatus {
		if OverBudget(run, i) {
			return ": " + BudgetExceededText(run, i)
		}
	}
	return ""
}

// ShownNames bounds the names in a message.
const ShownNames = 10

// ListNames returns names as a message shows them.
func ListNames(names []string) string {
	if len(names) <= ShownNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:ShownNames], ", "), len(names)-ShownNames)
}

// ExceptionsText says without which clusters stages were done; nothing if with all.
func ExceptionsText(stages ...placementv1beta1.StageUpdatingStatus) string {
	var failed, skipped []string
	for i := range stages {
		failed = append(failed, NamesIn(&stages[i], PhaseFailed)...)
		skipped = append(skipped, NamesIn(&stages[i], PhaseSkipped)...)
	}
	text := ""
	if len(failed) > 0 {
		text += fmt.Sprintf(", %d failed within the failure budget (%s)", len(failed), ListNames(failed))
	}
	if len(skipped) > 0 {
		text += fmt.Sprintf(", %d skipped (%s)", len(skipped), ListNames(skipped))
	}
	return text
}
