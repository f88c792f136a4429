package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/brake"
	"github.com/fleetflow/fleetflow/activities/rollingupdate"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/selection"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
	"github.com/fleetflow/fleetflow/controllers/hub/waker"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Snapshot names a resource snapshot by its master.
type Snapshot struct {
	// Name of the master, empty if there is no snapshot.
	Name string
	// Index of the snapshot.
	Index int
	// UID of the master.
	UID types.UID
	// Parts it has, the master included.
	Parts int
	// Created is when it was taken.
	Created metav1.Time
	// TriggeredRun is the update run that the fleet has created for it, or found; empty if there is none.
	TriggeredRun string
}

// Facts are what the status of a placement and the need for its workflow are computed from. The objects may belong to
// the cache and must not be changed.
type Facts struct {
	// Placement as stored.
	Placement placementv1beta1.PlacementObject
	// Verdict of the last selection; its generation is 0 before the first.
	Verdict snapshot.Verdict
	// Policy is the latest policy snapshot, nil before the first.
	Policy placementv1beta1.PolicySnapshotObject
	// Latest resource snapshot.
	Latest Snapshot
	// Snapshots that are complete, by name of the master.
	Snapshots map[string]Snapshot
	// Bindings of the placement, those being deleted included.
	Bindings []placementv1beta1.BindingObject
	// Overrides that concern the placement.
	Overrides Overrides
	// Rivals is the fingerprint of the other placements with a priority that may select the same objects; empty if there are none.
	Rivals string
	// Trigger is read where the fleet creates the placement's update runs.
	Trigger triggerFacts
	// Held are removals that wait until a user accepts them; nil if there are none.
	Held *rules.HeldRemovals
	// Scalable are the clusters that can be given the replicas that are decided for them now, each with what it gets.
	Scalable []workmodel.AssignmentChange
	// NoPriorityClass is the PriorityClass that the placement names, if it does not exist.
	NoPriorityClass string
	// Overdue identifies the clusters that are to be left because of the health of what is placed there, and those that were and
	// are to be thought of again; overdueAt is when the next one is, if nothing changes.
	Overdue   string
	overdueAt time.Time
	// Unlearnt are the workloads and clusters of which members report pods that no node takes, which the scheduler does not know
	// yet.
	Unlearnt []string
	// Eviction is the uid of the youngest eviction that waits for an outcome, of those that can be decided now.
	Eviction string
	// Closed are what closes clusters for what they are not up to date for, by the name of their bindings.
	Closed map[string]rollout.Wait
	// EvictionsClosed are why evictions wait whose clusters are closed for them.
	EvictionsClosed []rollout.Wait
	// closing is what closes clusters.
	closing closing
	// standings are how the rollout stands at the instants that were asked for; nil if the facts may still change.
	standings map[time.Time]standing
}

// closing is what closes clusters: chain is nil if nothing does, opens is when time alone may change what it says.
type closing struct {
	chain *brake.Chain
	opens time.Time
}

// applyStrategy returns what the placement wants now; nil if it leaves it open.
func (f *Facts) applyStrategy() *placementv1beta1.ApplyStrategy {
	if f.Placement.GetPlacementSpec().Strategy == nil {
		return nil
	}
	return f.Placement.GetPlacementSpec().Strategy.ApplyStrategy
}

// policyInForce returns the policy by which clusters are picked now.
func (f *Facts) policyInForce() *placementv1beta1.PlacementPolicy {
	return rules.PolicyInForce(f.Placement, f.Policy)
}

// leftToScheduler reports whether another scheduler has everything that it needs to pick clusters, and has not yet.
func (f *Facts) leftToScheduler() bool {
	return rules.WaitsForScheduler(f.Placement, f.Policy) && f.Policy != nil &&
		f.Policy.GetAnnotations()[placementv1beta1.CRPGenerationAnnotation] == strconv.FormatInt(f.Placement.GetGeneration(), 10)
}

// pickedUntold reports whether another scheduler has picked clusters, and the policy snapshot does not tell yet what has become of them.
func (f *Facts) pickedUntold() bool {
	if rules.SchedulerOf(f.Placement) == "" || !f.isScheduled() {
		return false
	}
	picked := f.policyInForce().ClusterNames
	return meta.FindStatusCondition(f.Policy.GetPolicySnapshotStatus().Conditions, placementv1beta1.ConditionTypeScheduled) == nil ||
		slices.ContainsFunc(scheduler.StateOf(f.Policy).NotFound, func(name string) bool { return !slices.Contains(picked, name) })
}

// awaitsDecision reports whether clusters are to be picked by the placement as it is, by the built-in scheduler.
func (f *Facts) awaitsDecision() bool { return !f.isScheduled() && !f.leftToScheduler() }

// policyDue reports whether a policy has waited for a resource snapshot that there is by now.
func (f *Facts) policyDue() bool {
	if f.Policy == nil {
		return false
	}
	since, waits := rules.PolicyWaits(f.Policy)
	return waits && f.Latest.Index > since && f.Verdict.Index == f.Latest.Index
}

// isScheduled reports whether the policy as it is now has been scheduled.
func (f *Facts) isScheduled() bool {
	return f.Policy != nil && f.Policy.GetPolicySnapshotStatus().ObservedCRPGeneration == f.Placement.GetGeneration()
}

// Gather reads the facts about a placement from the cache.
func Gather(ctx context.Context, cached client.Reader, placement placementv1beta1.PlacementObject, gates Gates) (*Facts, error) {
	facts := &Facts{Placement: placement, Held: rules.HeldRemovalsOf(placement)}
	// A verdict that cannot be read counts as none: the next selection replaces it.
	facts.Verdict, _ = snapshot.DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])

	scope := placementv1beta1.ScopeOf(placement)
	mine := []client.ListOption{client.InNamespace(scope.Namespace), client.MatchingFields{fieldindex.ByPlacement: placement.GetName()},
		client.UnsafeDisableDeepCopy}
	policies := scope.NewPolicySnapshotList()
	if err := cached.List(ctx, policies, mine...); err != nil {
		return nil, fmt.Errorf("listing the policy snapshots of %s: %w", placement.GetName(), err)
	}
	facts.Policy = findLatestPolicy(policies.Objects(), placement.GetUID())
	snapshots := fieldindex.SnapshotMetadataList(scope)
	if err := cached.List(ctx, snapshots, mine...); err != nil {
		return nil, fmt.Errorf("listing the resource snapshots of %s: %w", placement.GetName(), err)
	}
	facts.Snapshots, facts.Latest = findCompleteSnapshots(snapshots.Items, placement.GetUID())
	bindings := scope.NewBindingList()
	if err := cached.List(ctx, bindings, mine...); err != nil {
		return nil, fmt.Errorf("listing the bindings of %s: %w", placement.GetName(), err)
	}
	facts.Bindings = bindings.Objects()
	if err := facts.findPriorityClass(ctx, cached); err != nil {
		return nil, err
	}
	if rule := rules.ApplicationFailoverOf(placement); rule != nil {
		facts.Overdue, facts.overdueAt = rules.Overdue(rule, facts.Bindings, facts.barsCluster(), gates.Clock.Now())
	}
	rivals, err := selection.Rivals(ctx, cached, placement)
	if err != nil {
		return nil, err
	}
	facts.Rivals = snapshot.FingerprintRivals(placement, rivals)
	if facts.Scalable, err = findScalable(ctx, cached, facts); err != nil {
		return nil, err
	}
	if facts.Unlearnt, err = findUnlearnt(ctx, cached, facts); err != nil {
		return nil, err
	}
	if err := facts.readGate(ctx, cached, gates); err != nil {
		return nil, err
	}
	if facts.Eviction, err = findNewestEviction(ctx, cached, placement, facts.keepsEviction(ctx, cached, gates)); err != nil {
		return nil, err
	}
	if err := facts.gatherTrigger(ctx, cached); err != nil {
		return nil, err
	}
	if err := facts.gatherOverrides(ctx, cached); err != nil {
		return nil, fmt.Errorf("reading the overrides of %s: %w", placement.GetName(), err)
	}
	if err := facts.findClosed(ctx, cached, gates); err != nil {
		return nil, err
	}
	facts.standings = map[time.Time]standing{}
	return facts, nil
}

// barsCluster makes what says that the placement keeps off a cluster that it has left, as the latest policy snapshot notes.
func (f *Facts) barsCluster() func(cluster string) bool {
	bars := scheduler.StateOf(f.Policy).Bars
	return func(cluster string) bool {
		_, barred := bars[cluster]
		return barred
	}
}

// findPriorityClass finds out whether the PriorityClass exists that the placement names.
func (f *Facts) findPriorityClass(ctx context.Context, cached client.Reader) error {
	policy := f.Placement.GetPlacementSpec().Policy
	if policy == nil || policy.QueuePriorityClassName == "" {
		return nil
	}
	class, err := waker.ReadPriorityClass(ctx, cached, policy.QueuePriorityClassName)
	if err != nil {
		return fmt.Errorf("reading PriorityClass %s of %s: %w", policy.QueuePriorityClassName, f.Placement.GetName(), err)
	}
	if class == nil {
		f.NoPriorityClass = policy.QueuePriorityClassName
	}
	return nil
}

// findScalable finds the clusters that can be given other replicas now. Where nothing is divided, no report is read.
func findScalable(ctx context.Context, cached client.Reader, facts *Facts) ([]workmodel.AssignmentChange, error) {
	pending := slices.ContainsFunc(facts.Bindings, func(binding placementv1beta1.BindingObject) bool {
		return workmodel.HasPendingAssignments(binding, facts.Latest.Name)
	})
	if !pending || rules.IsDeleting(facts.Placement) {
		return nil, nil
	}
	clusters, err := rollingupdate.DividedClusters(ctx, cached, facts.Placement, facts.Bindings)
	return workmodel.NextAssignments(clusters, facts.Latest.Name), err
}

// findUnlearnt finds of what workloads and clusters the scheduler has to learn that no node takes further pods. Where nothing is
// divided, no report is read, only the reports with such pods are.
func findUnlearnt(ctx context.Context, cached client.Reader, facts *Facts) ([]string, error) {
	placement := facts.Placement
	if !rules.DividesReplicas(placement.GetPlacementSpec().Policy) {
		return nil, nil
	}
	var works placementv1beta1.WorkList
	of := client.MatchingFields{fieldindex.ByUnschedulable: fieldindex.OfPlacement(placement.GetNamespace(), placement.GetName())}
	if err := cached.List(ctx, &works, of, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Works of %s whose pods no node takes: %w", placement.GetName(), err)
	}
	if len(works.Items) == 0 {
		return nil, nil
	}
	bindings := scheduler.BindingsOf(placement, facts.Bindings)
	scheduler.AddShort(bindings, works.Items)
	return scheduler.UnlearntLimits(bindings), nil
}

// findLatestPolicy returns the policy snapshot that is labelled as the latest; of several the one with the highest
// index.
func findLatestPolicy(policies []placementv1beta1.PolicySnapshotObject, owner types.UID) placementv1beta1.PolicySnapshotObject {
	owned := slices.DeleteFunc(policies, func(policy placementv1beta1.PolicySnapshotObject) bool { return !ownedBy(policy, owner) })
	return rules.LatestSnapshot(owned, placementv1beta1.PolicyIndexLabel)
}

// findCompleteSnapshots finds the resource snapshots that have all their parts, and the latest of them: one that is
// labelled so comes before others, then the highest index counts.
func findCompleteSnapshots(objects []metav1.PartialObjectMetadata, owner types.UID) (all map[string]Snapshot, latest Snapshot) {
	parts := map[int]int{}
	var masters []*metav1.PartialObjectMetadata
	for i := range objects {
		object := &objects[i]
		if !ownedBy(object, owner) || !object.DeletionTimestamp.IsZero() {
			continue
		}
		parts[resourceIndexOf(object)]++
		if _, isPart := object.Annotations[placementv1beta1.SubindexOfResourceSnapshotAnnotation]; !isPart {
			masters = append(masters, object)
		}
	}
	slices.SortFunc(masters, func(a, b *metav1.PartialObjectMetadata) int {
		return cmp.Or(
			-cmp.Compare(asInt(rules.IsLatestSnapshot(a)), asInt(rules.IsLatestSnapshot(b))),
			-cmp.Compare(resourceIndexOf(a), resourceIndexOf(b)),
		)
	})
	all = map[string]Snapshot{}
	for _, master := range masters {
		found := Snapshot{Name: master.Name, Index: resourceIndexOf(master), UID: master.UID, Created: master.CreationTimestamp,
			TriggeredRun: master.Annotations[placementv1beta1.TriggeredRunAnnotation]}
		count, err := strconv.Atoi(master.Annotations[placementv1beta1.NumberOfResourceSnapshotsAnnotation])
		if err != nil || parts[found.Index] < count {
			continue
		}
		found.Parts = count
		all[found.Name] = found
		if latest.Name == "" {
			latest = found
		}
	}
	return all, latest
}

// ownedBy reports whether an object belongs to this placement and not to an earlier one of the same name. An object without
// owner references belongs to it.
func ownedBy(object metav1.Object, owner types.UID) bool {
	references := object.GetOwnerReferences()
	return len(references) == 0 || slices.ContainsFunc(references, func(r metav1.OwnerReference) bool { return r.UID == owner })
}

// resourceIndexOf returns the index of a resource snapshot; -1 if its label is broken.
func resourceIndexOf(object metav1.Object) int {
	number, err := strconv.Atoi(object.GetLabels()[placementv1beta1.ResourceIndexLabel])
	if err != nil {
		return -1
	}
	return number
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
