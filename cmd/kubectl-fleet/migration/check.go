package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// The directions of a move.
const (
	ToFleetflow = "fleetflow"
	ToKubeFleet = "kubefleet"
)

const (
	// heartbeats is after how many of them a member's agent, or the hub agent that copies them, counts as away.
	heartbeats = 3
	// defaultHeartbeat is the period of a member that names none.
	defaultHeartbeat = 60 * time.Second
)

// checker decides about one state.
type checker struct {
	*State
	report *Report
	now    time.Time
	// byPlacement has the live bindings by their placement.
	byPlacement map[types.NamespacedName][]placementv1beta1.BindingObject
}

// Check returns what fleetflow would make of a hub.
func Check(state *State, now time.Time) *Report {
	c := newChecker(state, ToFleetflow, now)
	c.checkKubeFleetAgents()
	c.checkReleases()
	c.checkBindings()
	c.checkHeld()
	c.listUnderWay()
	c.checkCounterparts()
	c.countTakeOverWrites()
	return c.finishReport()
}

func newChecker(state *State, to string, now time.Time) *checker {
	c := &checker{State: state, report: &Report{To: to}, now: now, byPlacement: map[types.NamespacedName][]placementv1beta1.BindingObject{}}
	for _, binding := range state.Bindings {
		if rules.IsLiveBinding(binding) {
			key := bindingParent(binding)
			c.byPlacement[key] = append(c.byPlacement[key], binding)
		}
	}
	c.report.Agents.KubeFleet = holderOf(state.KubeFleetLease, now)
	c.report.Agents.Fleetflow = holderOf(state.OurLease, now)
	for i := range state.Mailboxes {
		c.countMemberAgent(&state.Mailboxes[i])
	}
	c.listPlacements()
	return c
}

func (c *checker) finishReport() *Report {
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rankWeight(a.Weight), rankWeight(b.Weight)), cmp.Compare(a.Object, b.Object))
	})
	return c.report
}

func rankWeight(w Weight) int { return slices.Index([]Weight{InTheWay, NoCounterpart, Note}, w) }

// parentOf returns the key of the placement that an object was made for.
func parentOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[placementv1beta1.ParentPlacementLabel]}
}

// bindingParent returns the key of the placement of a binding.
func bindingParent(binding placementv1beta1.BindingObject) types.NamespacedName {
	return types.NamespacedName{Namespace: binding.GetNamespace(), Name: rules.PlacementNameOf(binding)}
}

// workParent returns the key of the placement that a Work was made for.
func workParent(work metav1.Object) types.NamespacedName {
	labels := work.GetLabels()
	return types.NamespacedName{Namespace: labels[placementv1beta1.ParentNamespaceLabel], Name: labels[placementv1beta1.ParentPlacementLabel]}
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func kindOf(o placementv1beta1.Object, kind string) string {
	if o.GetNamespace() == "" && kind != "Work" {
		return "Cluster" + kind
	}
	return kind
}

// nameOfPlacement, nameOfBinding and nameOfRun name objects of either scope.
func nameOfPlacement(p placementv1beta1.PlacementObject) string {
	return nameOf(kindOf(p, "ResourcePlacement"), p)
}

func nameOfBinding(b placementv1beta1.BindingObject) string {
	return nameOf(kindOf(b, "ResourceBinding"), b)
}

func nameOfRun(r placementv1beta1.UpdateRunObject) string {
	return nameOf(kindOf(r, "StagedUpdateRun"), r)
}

// countMemberAgent counts whose agent last wrote the status of a mailbox.
func (c *checker) countMemberAgent(mailbox *clusterv1beta1.InternalMemberCluster) {
	theirs := writtenBy(mailbox, kubefleet.MemberAgentManager)
	ours := writtenBy(mailbox, "member-agent")
	members := &c.report.Agents.Members
	switch {
	case theirs.IsZero() && ours.IsZero():
		members.Unknown++
	case ours.Before(&theirs):
		members.KubeFleet++
	default:
		members.Fleetflow++
	}
}

// listPlacements counts what there is of each placement.
func (c *checker) listPlacements() {
	index := map[types.NamespacedName]int{}
	for _, placement := range c.Placements {
		line := Placement{Object: nameOfPlacement(placement), Strategy: "RollingUpdate", Adopted: true}
		if rules.IsExternal(placement) {
			line.Strategy = "External"
		}
		clusters := map[string]bool{}
		for _, binding := range c.byPlacement[keyOf(placement)] {
			clusters[binding.GetBindingSpec().TargetCluster] = true
			if isAvailable(binding) {
				line.Available++
			}
		}
		line.Clusters = len(clusters)
		index[keyOf(placement)] = len(c.report.Placements)
		c.report.Placements = append(c.report.Placements, line)
	}
	add := func(key types.NamespacedName, field func(*Placement) *int) {
		if at, known := index[key]; known {
			*field(&c.report.Placements[at])++
		}
	}
	for _, binding := range c.Bindings {
		add(bindingParent(binding), func(p *Placement) *int { return &p.Bindings })
	}
	for _, policy := range c.Policy {
		add(parentOf(policy), func(p *Placement) *int { return &p.Policies })
	}
	for i := range c.Resources {
		add(parentOf(&c.Resources[i]), func(p *Placement) *int { return &p.Snapshots })
	}
	for i := range c.Works {
		add(workParent(&c.Works[i]), func(p *Placement) *int { return &p.Works })
	}
	for _, run := range c.Runs {
		add(types.NamespacedName{Namespace: run.GetNamespace(), Name: run.GetUpdateRunSpec().PlacementName},
			func(p *Placement) *int { return &p.Runs })
	}
	slices.SortFunc(c.report.Placements, func(a, b Placement) int { return cmp.Compare(a.Object, b.Object) })
	total := &c.report.Total
	total.Object = strconv.Itoa(len(c.report.Placements)) + " placements"
	for _, p := range c.report.Placements {
		total.Clusters = total.Clusters + p.Clusters
		total.Available = total.Available + p.Available
		total.Bindings = total.Bindings + p.Bindings
		total.Policies = total.Policies + p.Policies
		total.Snapshots = total.Snapshots + p.Snapshots
		total.Works = total.Works + p.Works
		total.Runs = total.Runs + p.Runs
	}
}

// checkKubeFleetAgents says whether KubeFleet's agents still run, and what they leave behind that would refuse writes.
func (c *checker) checkKubeFleetAgents() {
	held := c.report.Agents.KubeFleet
	if held != "" {
		c.report.find(InTheWay, "KubeFleetHubAgentRuns", "", fmt.Sprintf(
			"KubeFleet's hub agent (%s) holds its lease: scale it to zero; its lease ends up to 90 s later", held))
	}
	for i := range c.Members {
		member := &c.Members[i]
		last := writtenBy(member, kubefleet.HubAgentManager)
		until := last.Add(heartbeats * periodOf(member))
		if held == "" && c.now.Before(until) && last.After(endOfLease(c.KubeFleetLease)) {
			c.report.find(InTheWay, "KubeFleetHubAgentWrites", nameOf("MemberCluster", member), fmt.Sprintf(
				"KubeFleet's hub agent wrote this at %s, without holding a lease: if it still runs, scale it to zero; if it has ended, look again at %s",
				last.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)))
			break
		}
	}
	for _, policy := range c.TheirPolicies {
		c.report.find(InTheWay, "KubeFleetPolicyRemains", policy,
			"KubeFleet has left this admission policy, which refuses Pods and accounts whatever the values of fleetflow's chart allow: kubectl delete "+strings.Replace(policy, "/", " ", 1))
	}
	for _, webhook := range c.Webhooks {
		c.report.find(InTheWay, "KubeFleetWebhookRemains", webhook,
			"KubeFleet has left this webhook, and what it intercepts is refused while its agent does not run: kubectl delete "+
				strings.Replace(webhook, "/", " ", 1))
	}
	if agents := c.report.Agents.Members; agents.KubeFleet > 0 {
		c.report.find(Note, "KubeFleetMemberAgentsRun", "", fmt.Sprintf(
			"%d member agent(s) are KubeFleet's: they go on with the Works that there are; replace them one after the other", agents.KubeFleet))
	}
}

// endOfLease returns until when the last holder of a lease might write; zero if there is no lease. What was written until then says
// nothing of an agent that writes without one.
func endOfLease(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
}

// periodOf returns the heartbeat period of a member.
func periodOf(member *clusterv1beta1.MemberCluster) time.Duration {
	if seconds := member.Spec.HeartbeatPeriodSeconds; seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultHeartbeat
}

// checkBindings says which bindings would not be adopted, and why.
func (c *checker) checkBindings() {
	inFleet := map[string]bool{}
	complete := c.findCompleteSnapshots()
	taken := map[string]placementv1beta1.BindingObject{}
	for i := range c.Members {
		inFleet[c.Members[i].Name] = true
	}
	placements := map[types.NamespacedName]placementv1beta1.PlacementObject{}
	for _, placement := range c.Placements {
		placements[keyOf(placement)] = placement
	}
	for _, binding := range c.Bindings {
		if !rules.IsLiveBinding(binding) {
			continue
		}
		name := nameOfBinding(binding)
		spec := binding.GetBindingSpec()
		parent := bindingParent(binding)
		placement := placements[parent]
		labelled := binding.GetLabels()[placementv1beta1.ParentPlacementLabel] != ""
		switch {
		case placement == nil && !labelled:
			c.report.find(InTheWay, "BindingWithoutPlacement", name,
				"it does not say of which placement it is: label it "+placementv1beta1.ParentPlacementLabel+
					"=<placement>, or delete it, which removes what it has placed on "+spec.TargetCluster)
			continue
		case placement == nil:
			c.report.find(InTheWay, "PlacementGone", name, fmt.Sprintf(
				"its placement %s does not exist: create the placement again, or delete the binding, which removes what it has placed on %s",
				parent.Name, spec.TargetCluster))
			continue
		case rules.KinshipOf(binding, rules.PlacementOwner(placement)) == rules.KinshipDisputed:
			c.report.find(InTheWay, "BindingDisputed", name, "it names another placement as its owner than its label does, and is left alone: correct one of them")
		case !inFleet[spec.TargetCluster]:
			c.report.find(InTheWay, "ClusterGone", name, fmt.Sprintf(
				"its cluster %s is not in the fleet: create the MemberCluster again, or the binding is let go", spec.TargetCluster))
		case spec.ResourceSnapshotName != "" && !complete[types.NamespacedName{Namespace: parent.Namespace, Name: spec.ResourceSnapshotName}]:
			c.report.find(InTheWay, "SnapshotIncomplete", name, fmt.Sprintf(
				"resource snapshot %s, which it places, is missing or lacks parts: what is placed stays, and cannot be repaired until there is another snapshot", spec.ResourceSnapshotName))
		}
		place := parent.String() + " on " + spec.TargetCluster
		if other := taken[place]; other != nil {
			holder := other
			second := binding
			if rules.CompareHolders(binding, other) < 0 {
				holder = binding
				second = other
			}
			c.report.find(InTheWay, "TwoBindings", nameOfBinding(second),
				fmt.Sprintf("%s has the same placement and cluster and stays; this one is let go", nameOfBinding(holder)))
			binding = holder
		}
		taken[place] = binding
	}
}

// findCompleteSnapshots returns the masters of the resource snapshots that have all their parts.
func (c *checker) findCompleteSnapshots() map[types.NamespacedName]bool {
	parts := map[string]int{}
	series := func(o metav1.Object) string {
		return parentOf(o).String() + " " + o.GetLabels()[placementv1beta1.ResourceIndexLabel]
	}
	for i := range c.Resources {
		parts[series(&c.Resources[i])]++
	}
	complete := map[types.NamespacedName]bool{}
	for i := range c.Resources {
		snapshot := &c.Resources[i]
		count, err := strconv.Atoi(snapshot.Annotations[placementv1beta1.NumberOfResourceSnapshotsAnnotation])
		if err == nil && parts[series(snapshot)] >= count {
			complete[keyOf(snapshot)] = true
		}
	}
	return complete
}

// checkHeld lists what fleetflow's hub agent holds back.
func (c *checker) checkHeld() {
	for _, placement := range c.Placements {
		if held := rules.HeldRemovalsOf(placement); held != nil && held.Namespace != "" { // KubeFleet would remove it
			c.report.find(InTheWay, "RemovalsHeld", nameOfPlacement(placement), fmt.Sprintf(
				"its namespace is being deleted, and %d cluster(s) keep what is placed: to let it go, %s", held.Total,
				rules.AcceptCommand(placement)))
		} else if held != nil {
			c.report.find(InTheWay, "RemovalsHeld", nameOfPlacement(placement), fmt.Sprintf(
				"the hub agent would let %d binding(s) go, and nothing explains it: put back what is missing, or %s", held.Total,
				rules.AcceptCommand(placement)))
		}
		if lost, _ := snapshot.LossOf(placement); lost != nil { // KubeFleet would remove it
			c.report.find(InTheWay, "RemovalsHeld", nameOfPlacement(placement), fmt.Sprintf(
				"%d of %d objects are no longer selected, and the clusters keep them: put back what is missing, or %s", lost.Total, lost.Before,
				rules.AcceptCommand(placement)))
		}
	}
}

// listUnderWay lists runs that are not over and rollouts that have not reached all clusters.
func (c *checker) listUnderWay() {
	for _, run := range c.Runs {
		if !rules.IsRunOver(run) {
			c.report.UnderWay = append(c.report.UnderWay, UnderWay{nameOfRun(run), describeRun(run)})
		}
	}
	for _, placement := range c.Placements {
		waiting := count(c.byPlacement[keyOf(placement)], func(binding placementv1beta1.BindingObject) bool { return !isAvailable(binding) })
		if waiting > 0 {
			c.report.UnderWay = append(c.report.UnderWay, UnderWay{nameOfPlacement(placement),
				fmt.Sprintf("%d cluster(s) are not available yet", waiting)})
		}
	}
}

// isAvailable reports whether a cluster has what it should have: available, or with its differences reported, if that is all that is asked.
func isAvailable(binding placementv1beta1.BindingObject) bool {
	conditions := binding.GetBindingStatus().Conditions
	return meta.IsStatusConditionTrue(conditions, placementv1beta1.ConditionTypeAvailable) ||
		meta.IsStatusConditionTrue(conditions, placementv1beta1.ConditionTypeDiffReported)
}

// describeRun returns where a run that is not over stands.
func describeRun(run placementv1beta1.UpdateRunObject) string {
	status := run.GetUpdateRunStatus()
	if !meta.IsStatusConditionTrue(status.Conditions, placementv1beta1.ConditionTypeInitialized) {
		return "not initialized yet"
	}
	for i := range status.StagesStatus {
		stage := &status.StagesStatus[i]
		if updaterun.StageOver(stage) {
			continue
		}
		for task := range stagetask.Statuses(stage) {
			if task.ApprovalRequestName != "" && meta.IsStatusConditionTrue(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestCreated) &&
				!meta.IsStatusConditionTrue(task.Conditions, placementv1beta1.ConditionTypeApprovalRequestApproved) {
				return fmt.Sprintf("%sstage %s waits for approval %s", describeStop(run), stage.StageName, task.ApprovalRequestName)
			}
		}
		return fmt.Sprintf("%sin stage %s: %d of %d cluster(s) updated", describeStop(run), stage.StageName,
			updaterun.CountIn(stage, updaterun.PhaseSucceeded), len(stage.Clusters))
	}
	return describeStop(run) + "in the deletion stage"
}

// describeStop begins what is said of a run that its user has stopped; it is empty for others.
func describeStop(run placementv1beta1.UpdateRunObject) string {
	said := meta.FindStatusCondition(run.GetConditions(), placementv1beta1.ConditionTypeProgressing)
	switch {
	case said == nil:
		return ""
	case said.Reason == placementv1beta1.ReasonUpdateRunStopped:
		return "stopped, "
	case said.Reason == placementv1beta1.ReasonUpdateRunStopping:
		return "being stopped, "
	}
	return ""
}

// checkCounterparts says what fleetflow does not do of what the hub uses.
func (c *checker) checkCounterparts() {
	for _, placement := range c.Placements {
		c.checkFinalizers(nameOfPlacement(placement), placement)
	}
	for _, run := range c.Runs {
		c.checkFinalizers(nameOfRun(run), run)
	}
	for _, binding := range c.Bindings {
		c.checkFinalizers(nameOfBinding(binding), binding)
	}
	for object, fields := range c.Unknown {
		c.report.find(NoCounterpart, "UnknownFields", object, "fields that fleetflow's API does not have are dropped: "+
			strings.Join(fields, ", "))
	}
	for kind, objects := range c.TheirOwn {
		c.report.find(NoCounterpart, "KindUnknown", kind+"."+kubefleet.OwnGroup, fmt.Sprintf(
			"fleetflow does not have this kind, and what KubeFleet has made of %d object(s) stays as it is: %s", len(objects),
			updaterun.ListNames(objects)))
	}
	for i := range c.Members {
		for _, agent := range c.Members[i].Status.AgentStatus {
			if agent.Type != clusterv1beta1.MemberAgent {
				c.report.find(NoCounterpart, "NetworkingAgent", nameOf("MemberCluster", &c.Members[i]),
					fmt.Sprintf("fleetflow does not wait for the %s, which runs on without it", agent.Type))
			}
		}
	}
}

// finalizers are those that KubeFleet and fleetflow put on what they make, and take off again.
var finalizers = map[string]bool{
	placementv1beta1.PlacementCleanupFinalizer: true, placementv1beta1.WorkFinalizer: true, placementv1beta1.UpdateRunFinalizer: true,
	placementv1beta1.SchedulerCleanupFinalizer: true, placementv1beta1.SchedulerBindingFinalizer: true,
	placementv1beta1.PlacementStatusFinalizer: true,
	metav1.FinalizerDeleteDependents:          true, metav1.FinalizerOrphanDependents: true,
}

func (c *checker) checkFinalizers(name string, o metav1.Object) {
	for _, finalizer := range o.GetFinalizers() {
		if !finalizers[finalizer] {
			c.report.find(Note, "UnknownFinalizer", name, "finalizer "+finalizer+" keeps it from being deleted until its controller takes it off")
		}
	}
}

// countTakeOverWrites counts what fleetflow writes on the hub when it takes over. On the members it writes nothing.
func (c *checker) countTakeOverWrites() {
	owners := map[types.NamespacedName]metav1.OwnerReference{}
	unread := count(c.Placements, func(placement placementv1beta1.PlacementObject) bool {
		owners[keyOf(placement)] = rules.PlacementOwner(placement)
		return placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation] == ""
	})
	isInherited := func(o metav1.Object) bool {
		owner, ours := owners[parentOf(o)]
		return ours && rules.KinshipOf(o, owner) == rules.KinshipInherited
	}
	unowned := count(c.Policy, func(policy placementv1beta1.PolicySnapshotObject) bool { return isInherited(policy) }) +
		count(c.Resources, func(snapshot metav1.PartialObjectMetadata) bool { return isInherited(&snapshot) })
	isAdopted := func(binding placementv1beta1.BindingObject) bool {
		_, ours := owners[bindingParent(binding)]
		return ours && rules.IsLiveBinding(binding)
	}
	isUnlabelled := func(binding placementv1beta1.BindingObject) bool {
		return isAdopted(binding) && binding.GetLabels()[placementv1beta1.ParentPlacementLabel] == ""
	}
	c.report.write("placement", unread, "annotated with what its selection came to")
	c.report.write("snapshot", unowned, "gets its placement, which has another UID, as its owner")
	c.report.write("binding", count(c.Bindings, isUnlabelled), "labelled with its placement again")
	c.report.write("binding", count(c.Bindings, func(binding placementv1beta1.BindingObject) bool {
		return isAdopted(binding) && !isUnlabelled(binding) && lacksOverrideInputs(binding)
	}), "annotated with what its overrides are applied from")
	c.report.write("work", count(c.Works, func(work metav1.PartialObjectMetadata) bool {
		_, ours := owners[workParent(&work)]
		return ours && !rules.IsSigned(&work)
	}), "annotated with its binding and revision; its content stays")
}

// count returns how many items are as wanted.
func count[T any](items []T, wanted func(T) bool) (n int) {
	for _, item := range items {
		if wanted(item) {
			n++
		}
	}
	return n
}

// lacksOverrideInputs reports whether a binding names overrides and does not say what they are applied from.
func lacksOverrideInputs(binding placementv1beta1.BindingObject) bool {
	_, noted := binding.GetAnnotations()[placementv1beta1.OverrideInputsAnnotation]
	spec := binding.GetBindingSpec()
	return !noted && len(spec.ClusterResourceOverrideSnapshots)+len(spec.ResourceOverrideSnapshots) > 0
}

// HeldBindings returns the bindings that `kubectl fleet migrate accept` deletes: their placement is gone.
func HeldBindings(state *State) []placementv1beta1.BindingObject {
	placements := map[types.NamespacedName]bool{}
	for _, placement := range state.Placements {
		placements[keyOf(placement)] = true
	}
	var orphans []placementv1beta1.BindingObject
	for _, binding := range state.Bindings {
		if parent := parentOf(binding); rules.IsLiveBinding(binding) && parent.Name != "" && !placements[parent] {
			orphans = append(orphans, binding)
		}
	}
	return orphans
}
