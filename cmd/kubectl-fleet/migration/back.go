package migration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// hubAgentManager is the field manager by which fleetflow's hub agent writes: the name of its program.
const hubAgentManager = "hub-agent"

// backChecker decides about a move back to KubeFleet.
type backChecker struct{ *checker }

// CheckBack returns what KubeFleet's controllers would make of a hub that fleetflow has run, and what they would not accept.
func CheckBack(state *State, now time.Time) *Report {
	c := backChecker{newChecker(state, ToKubeFleet, now)}
	c.checkOurAgents()
	c.checkBindings()
	c.checkHeld()
	c.listUnderWay()
	c.checkRunsBack()
	c.checkStrategiesBack()
	c.checkPlacementsBack()
	c.checkPoliciesBack()
	c.checkSnapshotsBack()
	c.checkContentBack()
	c.checkBindingsBack()
	c.countGiveBackWrites()
	return c.finishReport()
}

func (c backChecker) checkOurAgents() {
	if held := c.report.Agents.Fleetflow; held != "" {
		c.report.find(InTheWay, "HubAgentRuns", "", fmt.Sprintf("fleetflow's hub agent (%s) holds its lease: scale it to zero", held))
	}
	for _, policy := range c.Policies {
		c.report.find(InTheWay, "PolicyRemains", policy,
			"fleetflow's admission policies refuse what KubeFleet's agents write: uninstall the chart, or kubectl delete "+
				strings.Replace(policy, "/", " ", 1))
	}
	if agents := c.report.Agents.Members; agents.Fleetflow > 0 {
		c.report.find(Note, "MemberAgentsRun", "", fmt.Sprintf("%d member agent(s) are fleetflow's: replace them one after the other",
			agents.Fleetflow))
	}
}

// checkRunsBack: KubeFleet compares a run under way with the words and the names that it would have written itself.
func (c backChecker) checkRunsBack() {
	for _, run := range c.Runs {
		name := nameOfRun(run)
		spec := run.GetUpdateRunSpec()
		if !rules.IsRunOver(run) {
			c.report.find(InTheWay, "RunUnderWay", name,
				"KubeFleet asks for its approvals under other names and fails runs whose plan it would have made otherwise: let it end, or delete it")
		}
		c.checkFieldsBack("StagedUpdateRun", run, spec)
	}
}

// checkFieldsBack says which fields of an object KubeFleet's CRDs drop: all that they have not, whatever they mean here.
func (c backChecker) checkFieldsBack(kind string, o placementv1beta1.Object, spec any) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return // a spec always encodes
	}
	kind = kindOf(o, kind)
	if dropped := kubefleet.Prune(kind, placementv1beta1.GroupVersion.Version, fields); len(dropped) > 0 {
		c.report.find(NoCounterpart, "FieldsDropped", nameOf(kind, o), "KubeFleet's CRDs drop "+strings.Join(dropped, ", "))
	}
}

func (c backChecker) checkStrategiesBack() {
	for _, strategy := range c.Strategies {
		name := nameOf(kindOf(strategy, "StagedUpdateStrategy"), strategy)
		spec := strategy.GetUpdateStrategySpec()
		c.checkFieldsBack("StagedUpdateStrategy", strategy, spec)
		for i := range spec.Stages {
			stage := &spec.Stages[i]
			if stage.LabelSelector == nil {
				c.report.find(InTheWay, "StageWithoutSelector", name, fmt.Sprintf(
					"stage %s has no labelSelector: here that is all clusters, for KubeFleet none; write labelSelector: {}", stage.Name))
			}
		}
	}
}

func (c backChecker) checkPlacementsBack() {
	for _, placement := range c.Placements {
		name := nameOfPlacement(placement)
		strategy := placement.GetPlacementSpec().Strategy
		c.checkFinalizers(name, placement)
		c.checkFieldsBack("ResourcePlacement", placement, placement.GetPlacementSpec())
		if strategy == nil {
			continue
		}
		if s := strategy.DeleteStrategy; s != nil && s.PropagationPolicy == placementv1beta1.DeletePropagationPolicyAbandon {
			c.report.find(NoCounterpart, "AbandonNotDone", name, "deleteStrategy Abandon is accepted and not done: to delete the placement then takes what it has placed from the clusters")
		}
		if s := strategy.ReportBackStrategy; s != nil && s.Type == placementv1beta1.ReportBackStrategyTypeMirror {
			c.report.find(NoCounterpart, "ReportBackNotDone", name, "reportBackStrategy is accepted and not done: the statuses on the hub grow old")
		}
	}
}

// checkPoliciesBack: KubeFleet needs one latest policy snapshot of each placement, and takes another one where the hash is
// not its own.
func (c backChecker) checkPoliciesBack() {
	latest := map[types.NamespacedName]int{}
	for _, policy := range c.Policy {
		name := nameOf(kindOf(policy, "SchedulingPolicySnapshot"), policy)
		c.checkIndex(name, policy, placementv1beta1.PolicyIndexLabel)
		if !rules.IsLatestSnapshot(policy) {
			continue
		}
		latest[parentOf(policy)]++
		spec := policy.GetPolicySnapshotSpec()
		if _, err := strconv.Atoi(policy.GetAnnotations()[placementv1beta1.CRPGenerationAnnotation]); err != nil {
			c.report.find(InTheWay, "PolicyWithoutGeneration", name, "annotation "+placementv1beta1.CRPGenerationAnnotation+" has no number")
		}
		if p := spec.Policy; p != nil && p.PlacementType == placementv1beta1.PickNPlacementType {
			if _, err := strconv.Atoi(policy.GetAnnotations()[placementv1beta1.NumberOfClustersAnnotation]); err != nil {
				c.report.find(InTheWay, "PolicyWithoutNumber", name, "annotation "+placementv1beta1.NumberOfClustersAnnotation+" has no number")
			}
		}
		if string(spec.PolicyHash) != kubeFleetHash(spec.Policy) {
			c.report.find(Note, "PolicyHashDiffers", name, "KubeFleet has another hash of this policy, makes a snapshot of its own and looks at the clusters again: those that still fit keep what they have")
		}
	}
	c.checkLatest(latest, "policy")
}

// kubeFleetHash is KubeFleet's hash of a policy, in which the number of clusters does not count.
func kubeFleetHash(policy *placementv1beta1.PlacementPolicy) string {
	counted := policy.DeepCopy()
	if counted != nil {
		counted.NumberOfClusters = nil
	}
	data, err := json.Marshal(counted)
	if err != nil {
		return "" // a policy always encodes
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (c backChecker) checkIndex(name string, o metav1.Object, label string) {
	if index, err := strconv.Atoi(o.GetLabels()[label]); err != nil || index < 0 {
		c.report.find(InTheWay, "SnapshotWithoutIndex", name, "label "+label+" has no index")
	}
}

// checkLatest says which placements have none or several of a kind of snapshot that are labelled as the latest: KubeFleet
// stops at these with an error.
func (c backChecker) checkLatest(latest map[types.NamespacedName]int, what string) {
	for _, placement := range c.Placements {
		if count := latest[keyOf(placement)]; count != 1 && len(c.byPlacement[keyOf(placement)]) > 0 {
			c.report.find(InTheWay, "NotOneLatest", nameOfPlacement(placement), fmt.Sprintf(
				"%d of its %s snapshots carry the label %s=true, and KubeFleet needs one", count, what, placementv1beta1.IsLatestSnapshotLabel))
		}
	}
}

func (c backChecker) checkSnapshotsBack() {
	latest := map[types.NamespacedName]int{}
	for i := range c.Resources {
		snapshot := &c.Resources[i]
		name := nameOf(snapshot.Kind, snapshot)
		c.checkIndex(name, snapshot, placementv1beta1.ResourceIndexLabel)
		if snapshot.Annotations[placementv1beta1.ResourceGroupHashAnnotation] == "" {
			if _, err := strconv.Atoi(snapshot.Annotations[placementv1beta1.SubindexOfResourceSnapshotAnnotation]); err != nil {
				c.report.find(InTheWay, "SnapshotWithoutHash", name, "it is neither a master, with annotation "+
					placementv1beta1.ResourceGroupHashAnnotation+", nor a part of one")
			}
			continue
		}
		if rules.IsLatestSnapshot(snapshot) {
			latest[parentOf(snapshot)]++
		}
	}
	c.checkLatest(latest, "resource")
}

// checkContentBack says which placements KubeFleet takes for changed: the hash that their latest resource snapshot states is not
// the one that it computes of the same content.
func (c backChecker) checkContentBack() {
	differs := map[types.NamespacedName]bool{}
	for i := range c.Resources {
		snapshot := &c.Resources[i]
		hash, known := c.Hashes[keyOf(snapshot).String()]
		if known && rules.IsLatestSnapshot(snapshot) && hash != snapshot.Annotations[placementv1beta1.ResourceGroupHashAnnotation] {
			differs[parentOf(snapshot)] = true
		}
	}
	resnapshot := 0
	again := 0
	for _, placement := range c.Placements {
		if !differs[keyOf(placement)] {
			continue
		}
		resnapshot++
		name := nameOfPlacement(placement)
		clusters := len(c.byPlacement[keyOf(placement)])
		if rules.IsExternal(placement) {
			c.report.find(Note, "SnapshotHashDiffers", name, fmt.Sprintf(
				"KubeFleet has another hash of what is selected, and makes a resource snapshot of its own with the same content: the next run takes it to its %d cluster(s)", clusters))
			continue
		}
		again += clusters
		c.report.rolledOutAgain(name, clusters)
		c.report.find(Note, "SnapshotHashDiffers", name, fmt.Sprintf(
			"KubeFleet has another hash of what is selected, makes a resource snapshot of its own with the same content and rolls it out to its %d cluster(s) again, within the limits of its strategy", clusters))
	}
	c.report.write("placement", resnapshot, "gets a resource snapshot of KubeFleet's own, with the content that the latest has")
	c.report.write("binding", again, "rolled out again with that snapshot, as the strategy of its placement has it, and its Works written")
}

// checkBindingsBack: KubeFleet goes by the label, the state and the conditions of a binding, whatever its name.
func (c backChecker) checkBindingsBack() {
	for _, binding := range c.Bindings {
		name := nameOfBinding(binding)
		c.checkFinalizers(name, binding)
		switch state := binding.GetBindingSpec().State; state {
		case placementv1beta1.BindingStateScheduled, placementv1beta1.BindingStateUnscheduled:
		case placementv1beta1.BindingStateBound:
			said := meta.FindStatusCondition(binding.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeRolloutStarted)
			if said == nil || said.ObservedGeneration != binding.GetGeneration() {
				c.report.find(Note, "RolloutNotStarted", name, "KubeFleet repairs no Works of it until a rollout has started anew: its condition RolloutStarted is of another generation")
			}
		default:
			c.report.find(InTheWay, "StateUnknown", name, fmt.Sprintf("KubeFleet knows no state %q", state))
		}
	}
}

// countGiveBackWrites counts what KubeFleet writes when it takes the hub back.
func (c backChecker) countGiveBackWrites() {
	lacks := func(o metav1.Object, finalizer string) bool { return !slices.Contains(o.GetFinalizers(), finalizer) }
	c.report.write("placement", count(c.Placements, func(placement placementv1beta1.PlacementObject) bool {
		return lacks(placement, placementv1beta1.SchedulerCleanupFinalizer)
	}), "gets the finalizer of KubeFleet's scheduler")
	c.report.write("binding", count(c.Bindings, func(binding placementv1beta1.BindingObject) bool {
		return lacks(binding, placementv1beta1.SchedulerBindingFinalizer)
	}), "lacks the finalizer by which KubeFleet's scheduler notices its deletion; those that it makes have it")
	c.report.write("work", count(c.Works, func(work metav1.PartialObjectMetadata) bool {
		return work.Annotations[placementv1beta1.ParentResourceSnapshotNameAnnotation] == "" ||
			work.Annotations[placementv1beta1.ParentClusterResourceOverrideSnapshotHashAnnotation] == ""
	}), "lacks annotations of KubeFleet's, and is written once more with the same content")
	c.report.writeOn(onMembers, "work", count(c.Works, isWrittenByUs),
		"its content was written by fleetflow: its Secrets, what an earlier version has applied, and what is applied server-side with labels or annotations of Kubernetes' domains, are written once more, metadata only")
}

// isWrittenByUs reports whether fleetflow's hub agent has written the content of a Work. One that it has only signed is KubeFleet's.
func isWrittenByUs(work metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(work.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == hubAgentManager && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:spec"`)
	})
}
