package stagedupdate

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/planning"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// userError ends a run: trying again does not help until the user changes something. Its text goes into the run's status.
type userError struct{ text string }

func (e *userError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &userError{fmt.Sprintf(format, args...)} }

// cannotContinue returns the message of a run that ends because of text.
func cannotContinue(text string) string { return "Cannot go on: " + text }

// cannotStart returns the message of a run that is not begun because of text. What stands in parentheses is KubeFleet's, for scripts that
// look for it: KubeFleet has this outcome, too.
func cannotStart(text string) string {
	return "Cannot start: " + text + " (" + kubeFleetClientError + ")"
}

// planOutdated returns the message of a run whose plan does not hold any more because of text. KubeFleet speaks of initializing there, too.
func planOutdated(text string) string {
	return "Cannot go on: " + text + " (" + kubeFleetClientError + ")"
}

const (
	kubeFleetCannotContinue = "cannot continue the ClusterStagedUpdateRun"
	kubeFleetClientError    = kubeFleetCannotContinue + ": failed to initialize the clusterStagedUpdateRun: failed to process the request due to a client error"
)

// facts are what the plan of a run is made from.
type facts struct {
	placement placementv1beta1.PlacementObject
	policy    placementv1beta1.PolicySnapshotObject
	bindings  []placementv1beta1.BindingObject
	strategy  placementv1beta1.UpdateStrategyObject
	clusters  []clusterv1beta1.MemberCluster
	runs      []placementv1beta1.UpdateRunObject
	// windows are those that the stages of the strategy name and that there are, by name.
	windows map[string]*fleetflowv1alpha1.RolloutWindow
}

// checkReferences refuses the names of a run that no object can have, which the API server would not look up: a run finds
// its placement, strategy and the run that it rolls back in its own namespace.
func checkReferences(run placementv1beta1.UpdateRunObject) error {
	spec := run.GetUpdateRunSpec()
	isNone := func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) > 0 }
	switch {
	case isNone(spec.PlacementName) || len(spec.PlacementName) > validation.LabelValueMaxLength:
		return refuse("parent clusterResourcePlacement not found: `%s` is the name of none", spec.PlacementName)
	case isNone(spec.StagedUpdateStrategyName):
		return refuse("referenced clusterStagedUpdateStrategy not found: `%s` is the name of none; a run uses a strategy of its own scope",
			spec.StagedUpdateStrategyName)
	case spec.RollbackOf != "" && isNone(spec.RollbackOf):
		return refuse("clusterStagedUpdateRun `%s` to roll back not found", spec.RollbackOf)
	}
	return nil
}

// checkPlacement returns why a run cannot work on a placement.
func checkPlacement(placement placementv1beta1.PlacementObject) error {
	if placement == nil || !placement.GetDeletionTimestamp().IsZero() {
		return refuse("parent clusterResourcePlacement not found")
	}
	kind := cmp.Or(rules.StrategyOf(placement).Type, placementv1beta1.RollingUpdateRolloutStrategyType)
	if kind != placementv1beta1.ExternalRolloutStrategyType {
		return refuse("parent clusterResourcePlacement does not have an external rollout strategy, current strategy: %s; set spec.strategy.type to External", kind)
	}
	return nil
}

// checkBeginning returns why a run cannot begin to work on a placement, or may not use its strategy on it.
func checkBeginning(run placementv1beta1.UpdateRunObject, placement placementv1beta1.PlacementObject) error {
	if err := checkPlacement(placement); err != nil {
		return err
	}
	name := run.GetUpdateRunSpec().StagedUpdateStrategyName
	allowed := rules.AllowedInsteadOf(rules.StrategyOf(placement).External, name)
	if len(allowed) == 0 {
		return nil
	}
	return refuse("clusterResourcePlacement `%s` does not allow runs with clusterStagedUpdateStrategy `%s`: create the run with one of %s, "+
		"or have a user who may change the placement add it to spec.strategy.external.allowedStrategies",
		placement.GetName(), name, strings.Join(allowed, ", "))
}

// strategyInForce returns how a placement has its resources applied.
func strategyInForce(placement placementv1beta1.PlacementObject) *placementv1beta1.ApplyStrategy {
	return new(rules.EffectiveApplyStrategy(rules.StrategyOf(placement).ApplyStrategy))
}

// freezePlan freezes policy, apply strategy, stages and clusters into the status of
// the run. It is pure. With an error, the status keeps what was found before, as in KubeFleet.
func freezePlan(run placementv1beta1.UpdateRunObject, f facts) (note string, err error) {
	status := run.GetUpdateRunStatus()
	status.PolicySnapshotIndexUsed = f.policy.GetLabels()[placementv1beta1.PolicyIndexLabel]
	selected, removed := planning.SplitClusters(f.bindings)
	if len(selected) == 0 && len(removed) == 0 {
		return "", refuse("no scheduled or to-be-deleted clusterResourceBindings found for the latest policy snapshot %s", f.policy.GetName())
	}
	status.PolicyObservedClusterCount = len(selected)
	status.ApplyStrategy = strategyInForce(f.placement)
	status.DeletionStageStatus = &placementv1beta1.StageUpdatingStatus{
		StageName: placementv1beta1.DeletionStageName, Clusters: planning.ClusterStatuses(removed),
	}
	if err := checkConcurrent(run, f.runs); err != nil {
		return "", err
	}
	if f.strategy == nil {
		return "", refuse("referenced clusterStagedUpdateStrategy not found: `%s`", run.GetUpdateRunSpec().StagedUpdateStrategyName)
	}
	if err := checkStages(f.strategy.GetUpdateStrategySpec().Stages); err != nil {
		return "", err
	}
	if err := checkNamedWindows(f.strategy.GetUpdateStrategySpec().Stages, f.windows); err != nil {
		return "", err
	}
	assigned, note, err := assignClusters(*f.strategy.GetUpdateStrategySpec(), selected, f.clusters)
	if err != nil {
		return "", err
	}
	assigned.Freeze(status, stagetask.NamesOf(run))
	return note, nil
}

// maxDifferences is how many differences from a plan that was reviewed a message names.
const maxDifferences = 6

// sealPlan notes the hash of a plan that is made in the status of its run, and refuses a run that is to follow another plan.
func sealPlan(run placementv1beta1.UpdateRunObject, f *facts, resources map[string]string) error {
	bases := planning.BasesOf(f.bindings)
	made := planhash.Make(run.GetUpdateRunStatus(), planhash.Facts{
		Placement: f.placement, RollbackOf: run.GetUpdateRunSpec().RollbackOf, Bases: bases, Resources: resources,
	})
	noteBases(run.GetUpdateRunStatus(), bases)
	run.GetUpdateRunStatus().PlanHash = made.Hash()
	expected := run.GetUpdateRunSpec().ExpectedPlanHash
	if expected == "" || expected == made.Hash() {
		return nil
	}
	differences := []string{fmt.Sprintf("plan %s -> %s", planhash.Short(expected), planhash.Short(made.Hash()))}
	if reviewed := planhash.ReadOutline(run.GetAnnotations()[placementv1beta1.ExpectedPlanAnnotation]); reviewed != nil {
		differences = append(differences, reviewed.Differences(made.Outline())...)
	}
	if more := len(differences) - maxDifferences; more > 0 {
		differences = append(differences[:maxDifferences], fmt.Sprintf("%d more differences", more))
	}
	return refuse("the plan has changed since it was reviewed: %s; look at the plan as it is now with kubectl fleet plan, "+
		"and create another run for it", strings.Join(differences, "; "))
}

// noteBases notes in the status of a run what each of its clusters has when the plan is made, if its strategy has that verified.
func noteBases(status *placementv1beta1.UpdateRunStatus, bases map[string]string) {
	if status.UpdateStrategySnapshot == nil || !status.UpdateStrategySnapshot.VerifyBase {
		return
	}
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			cluster := &status.StagesStatus[i].Clusters[j]
			cluster.Base = cmp.Or(bases[cluster.ClusterName], planhash.None)
		}
	}
}

// checkStatusSize refuses a planned run whose status the API server could not store when it has come further: it would have
// begun then, and could not go on.
func checkStatusSize(run placementv1beta1.UpdateRunObject) error {
	size := updaterun.LargestStatus(run)
	if size <= updaterun.MaxStatus {
		return nil
	}
	return refuse("the status of a clusterStagedUpdateRun of %d clusters would become %d KiB, and has room for %d KiB: "+
		"let several placements select the clusters, such as one for each region, or shorten the names of overrides",
		run.GetUpdateRunStatus().PolicyObservedClusterCount, size>>10, updaterun.MaxStatus>>10)
}

// checkConcurrent refuses a run if another run of the same placement has not ended and uses another strategy: one that was
// created before, or has begun. Admission does not refuse it: to compare runs there costs time for each run on the hub.
func checkConcurrent(run placementv1beta1.UpdateRunObject, others []placementv1beta1.UpdateRunObject) error {
	for i := range others {
		other := others[i]
		if other.GetName() == run.GetName() || other.GetUpdateRunSpec().PlacementName != run.GetUpdateRunSpec().PlacementName ||
			other.GetUpdateRunSpec().StagedUpdateStrategyName == run.GetUpdateRunSpec().StagedUpdateStrategyName ||
			rules.IsRunOver(other) || rules.IsDeleting(other) || !goesBefore(other, run) {
			continue
		}
		return refuse("clusterStagedUpdateRun `%s` of the same placement has not ended and uses clusterStagedUpdateStrategy `%s`; "+
			"all concurrent runs of a placement must use the same strategy: use that one in another run, or wait for `%s` to end, or delete it",
			other.GetName(), other.GetUpdateRunSpec().StagedUpdateStrategyName, other.GetName())
	}
	return nil
}

// goesBefore reports whether a run was created before another or has begun before it, as two of the same second can.
func goesBefore(a, b placementv1beta1.UpdateRunObject) bool {
	return wasCreatedBefore(a, b) || meta.IsStatusConditionTrue(a.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeInitialized)
}

// wasCreatedBefore orders runs by when they were created, those of the same second by name.
func wasCreatedBefore(a, b placementv1beta1.UpdateRunObject) bool {
	if a.GetCreationTimestamp().Time.Equal(b.GetCreationTimestamp().Time) {
		return a.GetName() < b.GetName()
	}
	return a.GetCreationTimestamp().Time.Before(b.GetCreationTimestamp().Time)
}

// checkStages refuses stages that admission cannot check.
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

// assignClusters assigns the selected clusters to stages; note is about those that are in none.
func assignClusters(strategy placementv1beta1.UpdateStrategySpec, selected []string,
	clusters []clusterv1beta1.MemberCluster) (assigned planning.Assignment, note string, err error) {
	assigned, err = planning.AssignClusters(strategy, selected, labelsOf(clusters))
	if invalid, is := errors.AsType[*planning.SelectorError](err); is {
		return assigned, "", refuse("the stage label selector of stage `%s` is invalid: %v", invalid.Stage, invalid.Err)
	}
	if err != nil {
		return assigned, "", refuse("%v", err)
	}
	left := assigned.Unassigned
	switch {
	case len(left) == 0 || strategy.UnassignedClusters == placementv1beta1.UnassignedClustersLast:
		return assigned, "", nil
	case strategy.UnassignedClusters == placementv1beta1.UnassignedClustersIgnore:
		return assigned, fmt.Sprintf("%d clusters are in no stage and are left as they are: %s", len(left), updaterun.ListNames(left)), nil
	}
	return assigned, "", refuse("%v", rollout.UnassignedError(left))
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

// labelsOf returns the labels of clusters by name.
func labelsOf(clusters []clusterv1beta1.MemberCluster) map[string]map[string]string {
	out := make(map[string]map[string]string, len(clusters))
	for i := range clusters {
		out[clusters[i].Name] = clusters[i].Labels
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

// checkNamedWindows refuses stages that name windows which are not there, or cannot be named.
func checkNamedWindows(stages []placementv1beta1.StageConfig, windows map[string]*fleetflowv1alpha1.RolloutWindow) error {
	for _, stage := range stages {
		for _, name := range stage.Windows {
			if why := brake.WhyNotNamed(windows[name]); why != "" {
				return refuse("stage `%s` names rolloutWindow `%s` in windows: %s", stage.Name, name, why)
			}
		}
	}
	return nil
}
