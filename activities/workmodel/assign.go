package workmodel

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// DividedCluster is what is known of one cluster when replicas are scaled.
type DividedCluster struct {
	Binding placementv1beta1.BindingObject
	// Works of the binding, with what the member reports.
	Works []placementv1beta1.Work
	// Frozen says that nothing is to be written for the cluster: it counts as it is.
	Frozen bool
}

// AssignmentChange is what the binding of a cluster is to have in force from now on.
type AssignmentChange struct {
	Binding     placementv1beta1.BindingObject
	Assignments []placementv1beta1.ReplicaAssignment
	// Shrinks says that there are fewer replicas of a workload than before: others, which grow, go first.
	Shrinks bool
}

// HasPendingAssignments reports whether a cluster has not in force what is decided for it. What is not divided any more is taken out of
// force once the cluster has the latest snapshot: an older one may have other numbers.
func HasPendingAssignments(binding placementv1beta1.BindingObject, latest string) bool {
	spec := binding.GetBindingSpec()
	if !isScaled(binding) {
		return false
	}
	decided := assignmentsByWorkload(spec.ClusterDecision.Assignments)
	inForce := assignmentsByWorkload(spec.ReplicaAssignments)
	for workload, wanted := range decided {
		if has, assigned := inForce[workload]; !assigned || !isSameAssignment(wanted, has) {
			return true
		}
		delete(inForce, workload)
	}
	return len(inForce) > 0 && spec.ResourceSnapshotName == latest
}

// isScaled reports whether the replicas of a cluster are scaled: it is picked, and has been given resources.
func isScaled(binding placementv1beta1.BindingObject) bool {
	spec := binding.GetBindingSpec()
	return rules.IsLiveBinding(binding) && spec.State == placementv1beta1.BindingStateBound && spec.ResourceSnapshotName != ""
}

func isSameAssignment(a, b placementv1beta1.ReplicaAssignment) bool {
	return equality.Semantic.DeepEqual(withoutReason(a), withoutReason(b))
}

// NextAssignments works out which clusters are to get other replicas now, given the latest snapshot: growth comes into force at
// once, and fewer replicas as soon as enough others are ready. Clusters that leave the placement count for nothing.
func NextAssignments(clusters []DividedCluster, latest string) []AssignmentChange {
	divisions := make([]division, 0, len(clusters))
	shares := map[rules.Workload][]rollout.ReplicaShare{}
	for _, c := range clusters {
		if !rules.IsLiveBinding(c.Binding) {
			continue
		}
		d := divisionOf(c)
		divisions = append(divisions, d)
		for workload, wanted := range d.decided {
			shares[workload] = append(shares[workload], rollout.ReplicaShare{
				Cluster: c.Binding.GetName(), Decided: int(wanted.Replicas), InForce: int(d.inForce[workload].Replicas), Ready: d.ready[workload],
				Frozen: c.Frozen || !d.scaled,
			})
		}
	}
	for workload := range shares {
		for _, d := range divisions { // one that nothing was decided for counts as it is
			if _, told := d.decided[workload]; !told {
				has := int(d.inForce[workload].Replicas)
				shares[workload] = append(shares[workload], rollout.ReplicaShare{Cluster: d.Binding.GetName(), Decided: has, InForce: has,
					Ready: d.ready[workload], Frozen: true})
			}
		}
	}
	next := map[rules.Workload][]string{}
	for workload, all := range shares {
		next[workload] = rollout.NextShares(all)
	}
	var changes []AssignmentChange
	for _, d := range divisions {
		if change, changed := d.nextChange(next, latest); changed {
			changes = append(changes, change)
		}
	}
	return changes
}

// division is how workloads are divided on one cluster.
type division struct {
	DividedCluster
	scaled           bool
	decided, inForce map[rules.Workload]placementv1beta1.ReplicaAssignment
	// ready are the pods that the member has reported since it has what is in force.
	ready map[rules.Workload]int
}

func divisionOf(c DividedCluster) division {
	spec := c.Binding.GetBindingSpec()
	d := division{
		DividedCluster: c, scaled: isScaled(c.Binding), decided: assignmentsByWorkload(spec.ClusterDecision.Assignments),
		ready: map[rules.Workload]int{},
	}
	if d.scaled {
		d.inForce = assignmentsByWorkload(spec.ReplicaAssignments)
	}
	hash := hashAssignments(c.Binding)
	for i := range c.Works {
		if work := &c.Works[i]; Owns(c.Binding, work) && work.DeletionTimestamp.IsZero() && work.Annotations[AssignmentsAnnotation] == hash {
			maps.Copy(d.ready, readyReplicas(work))
		}
	}
	if reportsDiff(spec) { // nothing is applied there, so that nothing is missed
		for workload, has := range d.inForce {
			d.ready[workload] = int(has.Replicas)
		}
	}
	return d
}

// readyReplicas returns the pods that a member reports as ready, since it has carried out what the Work asks for.
func readyReplicas(work *placementv1beta1.Work) map[rules.Workload]int {
	if applied := currentCondition(work, placementv1beta1.ConditionTypeApplied); applied == nil || applied.Status == metav1.ConditionUnknown {
		return nil
	}
	ready := map[rules.Workload]int{}
	for _, said := range work.Status.ManifestConditions {
		if id := said.Identifier; said.ReplicaStatus != nil {
			ready[rules.Workload{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}] = int(said.ReplicaStatus.Ready)
		}
	}
	return ready
}

// ReplicasReportedSince reports whether a Work has other numbers of ready pods, or of pods that no node takes, than it had before.
func ReplicasReportedSince(before, after *placementv1beta1.Work) bool {
	return !maps.Equal(readyReplicas(before), readyReplicas(after)) ||
		!slices.Equal(unschedulableReplicas(before), unschedulableReplicas(after))
}

// unschedulableReplicas returns the pods that no node takes, of the workloads that have some, as a member reports them.
func unschedulableReplicas(work *placementv1beta1.Work) []int32 {
	var counts []int32
	for _, said := range work.Status.ManifestConditions {
		if said.ReplicaStatus != nil && said.ReplicaStatus.Unschedulable > 0 {
			counts = append(counts, int32(said.Identifier.Ordinal), said.ReplicaStatus.Replicas, said.ReplicaStatus.Unschedulable) //nolint:gosec // a Work has fewer manifests
		}
	}
	return counts
}

// HasUnschedulable reports whether a member reports pods of divided workloads of a Work that no node takes.
func HasUnschedulable(work *placementv1beta1.Work) bool { return len(unschedulableReplicas(work)) > 0 }

// nextChange returns what the cluster is to have in force, if the clusters in next get what is decided of each workload.
func (d *division) nextChange(next map[rules.Workload][]string, latest string) (change AssignmentChange, changed bool) {
	if !d.scaled || d.Frozen {
		return change, false
	}
	wanted := maps.Clone(d.inForce)
	for workload, decision := range d.decided {
		has, assigned := d.inForce[workload]
		if assigned && (isSameAssignment(has, decision) || has.Replicas != decision.Replicas &&
			!slices.Contains(next[workload], d.Binding.GetName())) {
			continue
		}
		wanted[workload] = withoutNotes(decision)
		changed = true
		change.Shrinks = change.Shrinks || assigned && decision.Replicas < has.Replicas
	}
	for workload := range d.inForce {
		if _, stays := d.decided[workload]; !stays && d.Binding.GetBindingSpec().ResourceSnapshotName == latest {
			delete(wanted, workload)
			changed = true
		}
	}
	change.Binding = d.Binding
	change.Assignments = sortAssignments(wanted)
	return change, changed
}

func sortAssignments(assignments map[rules.Workload]placementv1beta1.ReplicaAssignment) []placementv1beta1.ReplicaAssignment {
	return slices.SortedFunc(maps.Values(assignments), func(a, b placementv1beta1.ReplicaAssignment) int {
		return rules.AssignedWorkload(&a).Compare(rules.AssignedWorkload(&b))
	})
}

// AssignmentsWithVersion returns what a binding is to have in force once it is given a snapshot: a cluster gets workloads that are new
// to it with what is decided of them, and what is not divided any more goes with the snapshot that is left.
func AssignmentsWithVersion(spec *placementv1beta1.ResourceBindingSpec, snapshot string) []placementv1beta1.ReplicaAssignment {
	decided := assignmentsByWorkload(spec.ClusterDecision.Assignments)
	inForce := assignmentsByWorkload(spec.ReplicaAssignments)
	wanted := map[rules.Workload]placementv1beta1.ReplicaAssignment{}
	for workload, decision := range decided {
		wanted[workload] = withoutNotes(decision)
		if has, assigned := inForce[workload]; assigned && spec.ResourceSnapshotName != "" {
			wanted[workload] = has
		}
	}
	for workload, has := range inForce {
		if _, stays := decided[workload]; !stays && spec.ResourceSnapshotName == snapshot {
			wanted[workload] = has
		}
	}
	return sortAssignments(wanted)
}
