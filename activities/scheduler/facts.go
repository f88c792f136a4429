package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Facts are all that a decision rests on.
type Facts struct {
	// PolicySnapshot is the name of the latest policy snapshot; bindings made for
	// it are never reconsidered, unless fewer clusters are wanted.
	PolicySnapshot string
	// Namespace of a placement in one; empty for a cluster-scoped placement.
	Namespace string
	// Policy of the placement; nil picks all clusters.
	Policy *placementv1beta1.PlacementPolicy
	// Clusters of the fleet, in any order.
	Clusters []clusterv1beta1.MemberCluster
	// Bindings of the placement, terminating ones included.
	Bindings []Binding
	// Groups are what was recorded of the policy's affinity groups.
	Groups GroupRecord
	// Failover says when the placement leaves a cluster for another; nil if it stays.
	Failover *placementv1beta1.FailoverStrategy
	// Bars are the clusters that it has left because what is placed there was not available, by name; Resources tells what is placed
	// now from what was placed then.
	Bars      map[string]Bar
	Resources string
	// Now is when the decision is made.
	Now time.Time
	// Kinds are those of what is placed that clusters have to serve, if the policy asks for that; nil if they are not known.
	Kinds []schema.GroupVersionKind
	// Demands are what the workloads ask for that the policy divides, in order; nil if that is not known: then assignments
	// stay what they are.
	Demands []rules.ReplicaDemand
	// Undecided says why nothing is to be picked yet: what is placed stays. It is empty if there is no such reason.
	Undecided string
	// Replacing is what counts where a cluster that the placement has is to go to the one that replaces it.
	Replacing Replacing
	// Afresh picks clusters and divides replicas as if everything had been placed for an earlier policy. A placement that names its
	// clusters has nothing to pick.
	Afresh bool
}

// WhyUndecided says that another scheduler is to pick the clusters of a placement and has not yet; empty otherwise.
func WhyUndecided(placement placementv1beta1.PlacementObject, latest placementv1beta1.PolicySnapshotObject) string {
	if !rules.WaitsForScheduler(placement, latest) {
		return ""
	}
	return fmt.Sprintf("scheduler %q has not picked the clusters of generation %d of the placement yet: what is placed stays",
		rules.SchedulerOf(placement), placement.GetGeneration())
}

// isSettled reports whether a binding was picked for the policy as it is, so that its cluster is not reconsidered.
func (f *Facts) isSettled(binding Binding) bool {
	return binding.PolicySnapshot == f.PolicySnapshot && (!f.Afresh || typeOf(f.Policy) == placementv1beta1.PickFixedPlacementType)
}

// Binding is what the scheduler knows about a binding that exists.
type Binding struct {
	Name    string
	Cluster string
	State   placementv1beta1.BindingState
	// Previous is the state an Unscheduled binding had before.
	Previous placementv1beta1.BindingState
	// PolicySnapshot the binding was last picked for.
	PolicySnapshot string
	// Decision that picked it.
	Decision placementv1beta1.ClusterDecision
	// Terminating says that the binding is being deleted.
	Terminating bool
	// Disputed says that the binding names another placement as its owner. It is left
	// alone, and its cluster cannot be picked.
	Disputed bool
	// Created is when the binding was made.
	Created time.Time
	// Marked says that a user wants the cluster replaced by another.
	Marked bool
	// Available says that the cluster is.
	Available bool
	// DeletionCost is what it costs to take the placement off the cluster; nil if the cluster says.
	DeletionCost *int32
	// Health is what is remembered of the health of what is placed; nil if that does not matter.
	Health *placementv1beta1.BindingHealth
	// AvailableSince is since when the cluster is Available; zero if it is not.
	AvailableSince time.Time
	// LeftAt is when the placement has left the cluster for another, LeftBecause why; zero if it has not.
	LeftAt      time.Time
	LeftBecause placementv1beta1.FailoverCause
	// ReplacedBy is the cluster whose copy takes the place of this one, which stays until that is available; empty if none does.
	ReplacedBy string
	// Asked is the cluster that a user has asked for in its place when it was left; empty if it was not left for that.
	Asked string
	// TakesPlaceOf is the cluster in whose place the binding was made; empty if it was not made for that.
	TakesPlaceOf string
	// Placed says that something was rolled out to the cluster.
	Placed bool
	// Runs says that pods of divided workloads are in force there. Those of Jobs do not count: they are divided once.
	Runs bool
	// Short are the divided workloads of which the member tells that no node takes some of the pods.
	Short map[rules.Workload]placementv1beta1.ReplicaStatus
}

// BindingsOf returns the bindings with the name of a placement, as the scheduler knows them.
func BindingsOf(placement placementv1beta1.PlacementObject, stored []placementv1beta1.BindingObject) []Binding {
	bindings := make([]Binding, 0, len(stored))
	owner := rules.PlacementOwner(placement)
	for _, binding := range stored {
		spec := binding.GetBindingSpec()
		cost, _ := rules.DeletionCost(binding) // what cannot be read counts as 0
		bindings = append(bindings, Binding{
			Name:           binding.GetName(),
			Cluster:        spec.TargetCluster,
			State:          spec.State,
			Previous:       placementv1beta1.BindingState(binding.GetAnnotations()[placementv1beta1.PreviousBindingStateAnnotation]),
			PolicySnapshot: spec.SchedulingPolicySnapshotName,
			Decision:       spec.ClusterDecision,
			Terminating:    binding.GetDeletionTimestamp() != nil,
			Disputed:       rules.KinshipOf(binding, owner) == rules.KinshipDisputed,
			Created:        binding.GetCreationTimestamp().Time,
			Marked:         rules.IsMarkedForDelete(binding),
			Available:      rules.SaysAvailable(binding),
			DeletionCost:   cost,
		})
		bindings[len(bindings)-1].AddHealth(binding)
	}
	return bindings
}

// AddHealth adds what failover depends on.
func (b *Binding) AddHealth(stored placementv1beta1.BindingObject) {
	b.Health = stored.GetBindingStatus().Health
	b.Placed = stored.GetBindingSpec().ResourceSnapshotName != ""
	b.AvailableSince = rules.AvailableSince(stored)
	b.Runs = rules.RunsReplicas(stored)
	b.ReplacedBy = rules.ReplacedBy(stored)
	b.Asked = rules.ReplacementAsked(stored)
	b.TakesPlaceOf = stored.GetAnnotations()[placementv1beta1.TakesPlaceOfAnnotation]
	if since, left := rules.LeftSince(stored); left {
		b.LeftAt = since
		b.LeftBecause = rules.LeftBecauseOf(stored)
	}
}

// AddShort adds to bindings of what workloads their Works tell that no node takes some of the pods.
func AddShort(bindings []Binding, works []placementv1beta1.Work) {
	of := map[string]map[rules.Workload]placementv1beta1.ReplicaStatus{}
	for i := range works {
		for _, said := range works[i].Status.ManifestConditions {
			if said.ReplicaStatus == nil || said.ReplicaStatus.Unschedulable <= 0 {
				continue
			}
			name := works[i].Labels[placementv1beta1.ParentBindingLabel]
			id := said.Identifier
			if of[name] == nil {
				of[name] = map[rules.Workload]placementv1beta1.ReplicaStatus{}
			}
			of[name][rules.Workload{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}] = *said.ReplicaStatus
		}
	}
	for i := range bindings {
		bindings[i].Short = of[bindings[i].Name]
	}
}

// UnlearntLimits names, in order, the workloads and clusters of which members report pods that no node takes, which the decisions
// do not know yet.
func UnlearntLimits(bindings []Binding) []string {
	var unlearnt []string
	for i := range bindings {
		b := &bindings[i]
		if !b.holdsCluster() {
			continue
		}
		for j := range b.Decision.Assignments {
			a := &b.Decision.Assignments[j]
			limit, learnt := learnLimit(b.Short[rules.AssignedWorkload(a)])
			if learnt && !rules.AssignedWorkload(a).IsJob() && (a.Capacity == nil || *a.Capacity != limit) {
				unlearnt = append(unlearnt, fmt.Sprintf("%s %s %d", b.Cluster, rules.AssignedWorkload(a), limit))
			}
		}
	}
	slices.Sort(unlearnt)
	return unlearnt
}

// holdsCluster reports whether the binding holds its cluster for the placement.
func (b Binding) holdsCluster() bool {
	return !b.Terminating && b.State != placementv1beta1.BindingStateUnscheduled
}

// Decision is what is to be done, and how to explain it.
type Decision struct {
	// Selected clusters, by name.
	Selected []placementv1beta1.ClusterDecision
	// Unselected clusters and why, at most MaxUnselected of them.
	Unselected []placementv1beta1.ClusterDecision
	// Create names the selected clusters that have no binding yet.
	Create []placementv1beta1.ClusterDecision
	// Keep are existing bindings of selected clusters as they should be.
	Keep []Kept
	// Unschedule are names of existing bindings that are no longer selected and not
	// yet marked so.
	Unschedule []string
	// FailedOver says why bindings are unscheduled because the placement leaves clusters for others, by the name of the
	// binding: all that are then, those of clusters included that are left because an affinity group is.
	FailedOver map[string]string
	// Ill are those of them that go because of the health of what is placed there.
	Ill map[string]bool
	// NewlyWithheld are the bindings of clusters that get no replicas any more because the placement fails over from them and stays there, by
	// name.
	NewlyWithheld []string
	// Replaced are the clusters to which bindings go that are unscheduled because a user has their cluster replaced, by the name of the
	// binding. A binding that goes already may wait for another cluster from now on, or, if that is empty, for none.
	Replaced map[string]string `json:",omitempty"`
	// AskedAnew are those of the Replaced that went for another cluster than the user asks for by now, by name.
	AskedAnew []string `json:",omitempty"`
	// Stays says why the placement stays on clusters that a user wants replaced, by name of the cluster.
	Stays map[string]string `json:",omitempty"`
	// Withdrawn are bindings that go because the cluster whose place they were to take has recovered, by name.
	Withdrawn []string
	// Returned are the bindings that go because the clusters whose place they took are picked again. What is on them stays until it is
	// available there, as it does where a cluster is replaced.
	Returned []string `json:",omitempty"`
	// Bars are to be noted: the clusters that the placement has left for that reason, by name.
	Bars map[string]Bar
	// FitSince is since when affinity groups before the one that clusters are picked from have had
	// enough of them, by name; only if the policy goes back to one.
	FitSince map[string]time.Time
	// LeaveAt is when the placement is to leave a cluster for another if nothing changes; zero if it is to stay.
	LeaveAt time.Time
	// WakeAt is when to decide again because time has passed: one of them will have had enough for long enough, what
	// was learnt of a cluster counts no more, or a cluster is to be left; zero if there is no need.
	WakeAt time.Time
	// Satisfied says that every cluster the policy asks for was found.
	Satisfied bool
	// Message explains Satisfied, Unplaced and Undivided.
	Message string
	// Unplaced says, in words, of which workloads replicas find no place, and how many.
	Unplaced []string
	// Undivided says, in words, which workloads are not divided although a rule selects them, and why.
	Undivided []string
}

// earliest returns the earlier of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// named is how many workloads a message names.
const named = 3

// listWorkloads lists what is said of workloads, and counts the rest if it is much.
func listWorkloads(said []string) string {
	if len(said) <= named {
		return strings.Join(said, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(said[:named], ", "), len(said)-named)
}

// describeDivision returns what a message adds about workloads whose replicas find no place, or that are not divided.
func (d *Decision) describeDivision() string {
	message := ""
	if len(d.Unplaced) > 0 {
		message += "; " + listWorkloads(d.Unplaced)
	}
	if len(d.Undivided) > 0 {
		message += "; replicaScheduling does not divide " + listWorkloads(d.Undivided)
	}
	return message
}

// Kept is an existing binding that stays, or that is picked again.
type Kept struct {
	Name     string
	State    placementv1beta1.BindingState
	Decision placementv1beta1.ClusterDecision
}

// MaxUnselected bounds how many clusters that were not picked are explained.
const MaxUnselected = 20
