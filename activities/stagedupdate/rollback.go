package stagedupdate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// errNameTaken says that other runs have the names that a rollback would have.
var errNameTaken = errors.New("others have its names")

// createRollback creates the run that rolls another back, and returns its name. If a rollback of an
// earlier run has that name, the new one gets a longer name.
func (s runStore) createRollback(ctx context.Context, of placementv1beta1.UpdateRunObject) (string, error) {
	for _, name := range []string{placementv1beta1.RollbackName(of.GetName(), of.GetUID()),
		placementv1beta1.UniqueRollbackName(of.GetName(), of.GetUID())} {
		run := placementv1beta1.ScopeOf(of).NewUpdateRun(name)
		run.SetAnnotations(map[string]string{placementv1beta1.RollbackOfUIDAnnotation: string(of.GetUID())})
		*run.GetUpdateRunSpec() = placementv1beta1.UpdateRunSpec{
			PlacementName: of.GetUpdateRunSpec().PlacementName, StagedUpdateStrategyName: of.GetUpdateRunSpec().StagedUpdateStrategyName,
			RollbackOf: of.GetName(), State: placementv1beta1.StateRun,
		}
		err := s.client.Create(ctx, run)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("creating run %s to roll back %s: %w", name, of.GetName(), err)
		}
		if err != nil {
			if err := s.live.Get(ctx, client.ObjectKeyFromObject(run), run); err != nil {
				// One that is gone again is no refusal: the next attempt creates it.
				return "", fmt.Errorf("reading run %s to roll back %s: %s", name, of.GetName(), err.Error())
			}
		}
		if run.GetAnnotations()[placementv1beta1.RollbackOfUIDAnnotation] == string(of.GetUID()) {
			return name, nil
		}
	}
	return "", fmt.Errorf("creating a run to roll back %s: %w", of.GetName(), errNameTaken)
}

// rollBackRun ends a run and creates another that takes its clusters back. If that must not be created, the run ends all the
// same, and says how to create it.
func (s runStore) rollBackRun(ctx context.Context, run placementv1beta1.UpdateRunObject, why string) error {
	name, err := s.createRollback(ctx, run)
	refused, is := bind.RefusalOf(err)
	byHand := "kubectl fleet rollback " + run.GetName()
	switch {
	case err == nil:
		return refuse("%s", cannotContinue(why+fmt.Sprintf("; clusterStagedUpdateRun `%s` takes its clusters back", name)))
	case errors.Is(err, errNameTaken):
		refused = err.Error()
		byHand = byHand + " --name NAME"
	case !is:
		return err
	}
	text := fmt.Sprintf("the run that takes its clusters back could not be created: %s; create it by hand once it can be: %s", refused, byHand)
	s.emitWarning(run, eventRollbackRefused, text)
	return refuse("%s", cannotContinue(why+"; "+text))
}

// makeRollbackPlan freezes the plan of a run that rolls another back. That one has to end first.
func (p *planner) makeRollbackPlan(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	of, err := p.readRolledBack(ctx, run)
	if err != nil {
		return err
	}
	f, err := p.readPlacementFacts(ctx, run.GetUpdateRunSpec().PlacementName, "")
	if err != nil {
		return err
	}
	if err := checkBeginning(run, f.placement); err != nil {
		return err
	}
	if err := p.readBindings(ctx, f); err != nil {
		return err
	}
	if err := p.readMemberClusters(ctx, f); err != nil {
		return err
	}
	kept, err := p.readSnapshotHashes(ctx, run.GetUpdateRunSpec().PlacementName)
	if err != nil {
		return err
	}
	if f.policy != nil {
		run.GetUpdateRunStatus().PolicySnapshotIndexUsed = f.policy.GetLabels()[placementv1beta1.PolicyIndexLabel]
	}
	if err := p.readOtherRuns(ctx, f); err != nil {
		return err
	}
	if err := checkConcurrent(run, f.runs); err != nil {
		return err
	}
	freezeRollback(run, of, *f, kept)
	run.GetUpdateRunStatus().RestoresSucceeded = restoresSucceeded(run, f.runs)
	if err := p.addRollbackOverrides(ctx, run, f); err != nil {
		return err
	}
	return sealPlan(run, f, kept)
}

// readRolledBack reads the run that is to be rolled back and makes sure that it has ended.
func (p *planner) readRolledBack(ctx context.Context, run placementv1beta1.UpdateRunObject) (placementv1beta1.UpdateRunObject, error) {
	of := p.scope.NewUpdateRun(run.GetUpdateRunSpec().RollbackOf)
	err := p.acts.Live.Get(ctx, client.ObjectKeyFromObject(of), of)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading run %s: %w", run.GetUpdateRunSpec().RollbackOf, err)
	}
	if err != nil {
		of = nil
	}
	if err := checkRollback(run, of); err != nil {
		return nil, err
	}
	if rules.IsRunOver(of) || rules.IsDeleting(of) {
		return of, nil
	}
	if of.GetAnnotations()[placementv1beta1.RolledBackByAnnotation] == "" {
		before := client.MergeFrom(placementv1beta1.DeepCopyOf(of))
		annotations := maps.Clone(of.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[placementv1beta1.RolledBackByAnnotation] = run.GetName()
		of.SetAnnotations(annotations)
		if err := p.acts.Client.Patch(ctx, of, before); err != nil {
			return nil, fmt.Errorf("telling run %s that %s rolls it back: %w", of.GetName(), run.GetName(), err)
		}
	}
	waiting := placementv1beta1.DeepCopyOf(run)
	_, err = p.acts.runs().recordStatus(ctx, waiting, func(r updaterun.Recorder) {
		r.RunCondition(placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunWaiting,
			fmt.Sprintf("The updateRun is waiting for run %s, which it rolls back, to end", of.GetName()))
	})
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("run %s, which %s rolls back, has not ended yet", of.GetName(), run.GetName())
}

// checkRollback returns why a run cannot roll back another; of is nil if there is none.
func checkRollback(run, of placementv1beta1.UpdateRunObject) error {
	uid := run.GetAnnotations()[placementv1beta1.RollbackOfUIDAnnotation]
	switch {
	case of == nil || uid != "" && uid != string(of.GetUID()):
		return refuse("clusterStagedUpdateRun `%s` to roll back not found", run.GetUpdateRunSpec().RollbackOf)
	case of.GetUpdateRunSpec().PlacementName != run.GetUpdateRunSpec().PlacementName:
		return refuse("clusterStagedUpdateRun `%s` to roll back is of clusterResourcePlacement `%s`: name that one in placementName",
			of.GetName(), of.GetUpdateRunSpec().PlacementName)
	case of.GetUpdateRunSpec().StagedUpdateStrategyName != run.GetUpdateRunSpec().StagedUpdateStrategyName:
		return refuse("clusterStagedUpdateRun `%s` to roll back uses clusterStagedUpdateStrategy `%s`: name that one in stagedRolloutStrategyName", of.GetName(), of.GetUpdateRunSpec().StagedUpdateStrategyName)
	case of.GetUpdateRunSpec().RollbackOf != "":
		return refuse("%s", rollsRollbackBack(of))
	case !meta.IsStatusConditionTrue(of.GetUpdateRunStatus().Conditions, placementv1beta1.ConditionTypeInitialized):
		return refuse("clusterStagedUpdateRun `%s` to roll back has updated no cluster: it was not initialized", of.GetName())
	}
	return nil
}

// rollsRollbackBack returns why a rollback is not rolled back: its clusters would get what was taken from them, without the
// approvals and past the holds that a run forward waits for.
func rollsRollbackBack(of placementv1beta1.UpdateRunObject) string {
	return fmt.Sprintf("clusterStagedUpdateRun `%s` to roll back is a rollback itself, of `%s`: create a run with the resourceSnapshotIndex that the clusters are to have",
		of.GetName(), of.GetUpdateRunSpec().RollbackOf)
}

// checkEnding ends a run when another rolls it back, or a later resource snapshot takes its place.
func checkEnding(run placementv1beta1.UpdateRunObject) error {
	if why := rules.WhyRunEnds(run); why != "" {
		return refuse("%s", cannotContinue(why))
	}
	return nil
}

// readSnapshotHashes returns the hashes of what is in the resource snapshots that are kept, by index.
func (p *planner) readSnapshotHashes(ctx context.Context, placement string) (map[string]string, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(p.scope.ResourceSnapshotKind().Kind + "List"))
	if err := p.acts.Live.List(ctx, &list, client.InNamespace(p.scope.Namespace),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement}); err != nil {
		return nil, fmt.Errorf("listing the resource snapshots of placement %s: %w", placement, err)
	}
	kept := map[string]string{}
	for i := range list.Items {
		if index := list.Items[i].Labels[placementv1beta1.ResourceIndexLabel]; snapshotIndexOf(placement, list.Items[i].Name) == index {
			kept[index] = list.Items[i].Annotations[placementv1beta1.ResourceGroupHashAnnotation] // its master is there
		}
	}
	return kept, nil
}

// snapshotIndexOf returns the index in the name of a master snapshot; empty if it is none.
func snapshotIndexOf(placement, name string) string {
	index, ok := strings.CutPrefix(name, placement+"-")
	if !ok {
		return ""
	}
	index, ok = strings.CutSuffix(index, "-snapshot")
	if _, err := strconv.Atoi(index); !ok || err != nil {
		return ""
	}
	return index
}

// freezeRollback plans a rollback: the stages of the run that is rolled back in reverse order, with the
// clusters it has written to, those that are not available first. It is pure.
func freezeRollback(run, of placementv1beta1.UpdateRunObject, f facts, kept map[string]string) {
	bindings := make(map[string]placementv1beta1.BindingObject, len(f.bindings))
	for i := range f.bindings {
		bindings[f.bindings[i].GetBindingSpec().TargetCluster] = f.bindings[i]
	}
	status := run.GetUpdateRunStatus()
	status.ApplyStrategy = strategyInForce(f.placement)
	status.DeletionStageStatus = &placementv1beta1.StageUpdatingStatus{
		StageName: placementv1beta1.DeletionStageName, Clusters: []placementv1beta1.ClusterUpdatingStatus{},
	}
	status.UpdateStrategySnapshot = &placementv1beta1.UpdateStrategySpec{OnMembershipChange: placementv1beta1.MembershipChangeContinue,
		HeldClusters: heldClusters(of)}
	status.StagesStatus = nil
	status.PolicyObservedClusterCount = 0
	approvals := keepsApprovals(of)
	for i := len(of.GetUpdateRunStatus().StagesStatus) - 1; i >= 0; i-- {
		config := rollbackConfigOf(updaterun.StageConfig(of, i), approvals)
		stage := planning.FreezeStage(stagetask.NamesOf(run), config)
		stage.Clusters = clustersToTakeBack(run, of, &of.GetUpdateRunStatus().StagesStatus[i], bindings, kept)
		status.UpdateStrategySnapshot.Stages = append(status.UpdateStrategySnapshot.Stages, config)
		status.StagesStatus = append(status.StagesStatus, stage)
		status.PolicyObservedClusterCount += len(stage.Clusters)
	}
	status.ResourceSnapshotIndexUsed = sharedIndex(status.StagesStatus)
}

// restoresSucceeded reports whether a rollback takes each of its clusters to nothing but a resource snapshot that a run forward
// had brought to that cluster and that has succeeded. Users who create runs choose which one is rolled back, and which clusters a
// run has: to go by the name, or by a run that had no cluster, would let a version past holds that was replaced because it was
// bad. A record that is missing, as that run was deleted, counts as none. It is pure.
func restoresSucceeded(run placementv1beta1.UpdateRunObject, runs []placementv1beta1.UpdateRunObject) bool {
	type arrival struct{ cluster, index string }
	brought := map[arrival]bool{}
	for _, other := range runs {
		spec := other.GetUpdateRunSpec()
		status := other.GetUpdateRunStatus()
		if spec.PlacementName != run.GetUpdateRunSpec().PlacementName || spec.RollbackOf != "" ||
			!meta.IsStatusConditionTrue(status.Conditions, placementv1beta1.ConditionTypeSucceeded) {
			continue
		}
		for i := range status.StagesStatus {
			for j := range status.StagesStatus[i].Clusters {
				if c := &status.StagesStatus[i].Clusters[j]; updaterun.WasStarted(c) && updaterun.ClusterPhase(c) != updaterun.PhaseSkipped {
					brought[arrival{c.ClusterName, status.ResourceSnapshotIndexUsed}] = true
				}
			}
		}
	}
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for j := range stages[i].Clusters {
			if c := &stages[i].Clusters[j]; c.ResourceSnapshotIndex != "" && !brought[arrival{c.ClusterName, c.ResourceSnapshotIndex}] {
				return false
			}
		}
	}
	return true
}

// keepsApprovals reports whether to roll a run back takes the approvals of its strategy. They protect clusters from a version
// that was taken back before. The strategy says so if it takes none: also by a failure budget that asks for the rollback.
func keepsApprovals(of placementv1beta1.UpdateRunObject) bool {
	for i := range of.GetUpdateRunStatus().StagesStatus {
		if updaterun.OverBudget(of, i) && updaterun.BudgetOf(of, i).OnExceeded == placementv1beta1.FailureBudgetRollback {
			return false
		}
	}
	strategy := of.GetUpdateRunStatus().UpdateStrategySnapshot
	return strategy == nil || strategy.RollbackApprovals != placementv1beta1.RollbackApprovalsSkip
}

// rollbackConfigOf returns the configuration of a stage of a rollback: as many clusters at once as before, no
// tasks but approvals, if they are kept, and a failure budget that lets all clusters fail, so that none keeps the others
// from going back.
func rollbackConfigOf(config placementv1beta1.StageConfig, keepApprovals bool) placementv1beta1.StageConfig {
	all := intstr.FromString("100%")
	isDropped := func(task placementv1beta1.StageTask) bool {
		return !keepApprovals || task.Type != placementv1beta1.StageTaskTypeApproval
	}
	config.BeforeStageTasks = slices.DeleteFunc(slices.Clone(config.BeforeStageTasks), isDropped)
	config.AfterStageTasks = slices.DeleteFunc(slices.Clone(config.AfterStageTasks), isDropped)
	config.DuringStageTasks = nil
	for _, tasks := range [][]placementv1beta1.StageTask{config.BeforeStageTasks, config.AfterStageTasks} {
		for i := range tasks {
			tasks[i].StartsAfter = nil // what an approval would come after is dropped
		}
	}
	config.FailureBudget = &placementv1beta1.FailureBudget{MaxFailures: &all, OnExceeded: placementv1beta1.FailureBudgetWait}
	return config
}

// clustersToTakeBack returns the clusters of a stage that the run has written to, in the order in which they
// go back.
func clustersToTakeBack(run, of placementv1beta1.UpdateRunObject, stage *placementv1beta1.StageUpdatingStatus,
	bindings map[string]placementv1beta1.BindingObject, kept map[string]string) []placementv1beta1.ClusterUpdatingStatus {
	type ranked struct {
		status placementv1beta1.ClusterUpdatingStatus
		done   int
	}
	var clusters []ranked
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		b := bindings[c.ClusterName]
		held := b != nil && b.GetAnnotations()[placementv1beta1.UpdateRunUIDAnnotation] == string(of.GetUID())
		if !held && !updaterun.WasStarted(c) {
			continue
		}
		back := placementv1beta1.ClusterUpdatingStatus{ClusterName: c.ClusterName}
		index, why := previousSnapshotOf(of, b, held, kept)
		back.ResourceSnapshotIndex = index
		if why != "" {
			back.Conditions = []metav1.Condition{{
				Type: placementv1beta1.ConditionTypeSucceeded, Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonClusterUpdatingSkipped,
				Message: why, ObservedGeneration: run.GetGeneration(), LastTransitionTime: run.GetCreationTimestamp(),
			}}
		}
		r := ranked{status: back}
		if updaterun.ClusterPhase(c) == updaterun.PhaseSucceeded {
			r.done = 1
		}
		clusters = append(clusters, r)
	}
	slices.Reverse(clusters)
	slices.SortStableFunc(clusters, func(a, b ranked) int { return cmp.Compare(a.done, b.done) })
	out := make([]placementv1beta1.ClusterUpdatingStatus, len(clusters))
	for i := range clusters {
		out[i] = clusters[i].status
	}
	return out
}

// previousSnapshotOf returns the snapshot that a cluster had before, or why it stays as it is.
func previousSnapshotOf(of placementv1beta1.UpdateRunObject, b placementv1beta1.BindingObject, held bool,
	kept map[string]string) (index, why string) {
	if b == nil || !rules.IsLiveBinding(b) {
		return "", updaterun.LeftText
	}
	if !held && heldBefore(b, of) {
		return "", "Left as it is: the run has not written to it"
	}
	if !held {
		return "", fmt.Sprintf("Left as it is: run %s has updated the cluster since", b.GetAnnotations()[placementv1beta1.UpdateRunAnnotation])
	}
	name := b.GetAnnotations()[placementv1beta1.PreviousResourceSnapshotAnnotation]
	if name == "" {
		return "", "Left as it is: it had nothing before"
	}
	index = snapshotIndexOf(of.GetUpdateRunSpec().PlacementName, name)
	if _, is := kept[index]; !is {
		return "", fmt.Sprintf("Left as it is: resource snapshot %s, which it had before, is gone", name)
	}
	return index, ""
}

// sharedIndex returns the snapshot that all clusters go back to; empty if there is none.
func sharedIndex(stages []placementv1beta1.StageUpdatingStatus) string {
	indexes := map[string]bool{}
	for i := range stages {
		for j := range stages[i].Clusters {
			if index := stages[i].Clusters[j].ResourceSnapshotIndex; index != "" {
				indexes[index] = true
			}
		}
	}
	if len(indexes) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(indexes))[0]
}

// addRollbackOverrides freezes which overrides apply to each cluster with the snapshot it goes back
// to.
func (p *planner) addRollbackOverrides(ctx context.Context, run placementv1beta1.UpdateRunObject, f *facts) error {
	matchers := map[string]*override.Matcher{}
	labels := labelsOf(f.clusters)
	for i := range run.GetUpdateRunStatus().StagesStatus {
		clusters := run.GetUpdateRunStatus().StagesStatus[i].Clusters
		for j := range clusters {
			index := clusters[j].ResourceSnapshotIndex
			if index == "" {
				continue
			}
			if _, read := matchers[index]; !read {
				overrides, err := p.readOverrides(ctx, f.placement, index)
				if err != nil {
					return err
				}
				matchers[index] = overrides
			}
			setOverrides(&clusters[j], matchers[index], labels[clusters[j].ClusterName])
		}
	}
	return nil
}
