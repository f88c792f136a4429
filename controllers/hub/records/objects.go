package records

import (
	"cmp"
	"maps"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// state is what the facts of an object other than a run follow from.
type state struct {
	teller
	// seen is what the records say that there are.
	seen glance
	// oldest is how old a fact may be that is recorded.
	oldest time.Time
}

// versions are what the changes of a spec are recorded as.
type versions struct {
	created, changed fleetflowv1alpha1.AuditRecordType
	// found is for an object that was there long before there were records: later changes are told from it.
	found   fleetflowv1alpha1.AuditRecordType
	comment string
	data    map[string]string
}

// versions tells that an object was created, and that its spec was changed. A change has no time of its own; of several at once only the last is
// told.
func (s *state) versions(o client.Object, v versions) {
	generation := rules.AskedGeneration(o)
	told := func(kind fleetflowv1alpha1.AuditRecordType, change string, of int64, at time.Time) {
		found := fact{kind: kind, which: []string{strconv.FormatInt(of, 10)}, at: at, comment: v.comment, data: map[string]string{
			changeKey: change, generationKey: strconv.FormatInt(of, 10),
		}}
		maps.Copy(found.data, v.data)
		switch {
		case change == changeFound:
			found.which = []string{changeFound}
			found.message = "It was created at " + o.GetCreationTimestamp().UTC().Format(time.RFC3339) + ", before there were records of it"
		case of != generation:
			found.by = unknown() // the API server has noted the last change only
		default:
			found.by, _ = changerOf(o, rules.ChangedSpec)
		}
		s.add(found)
	}
	created := o.GetCreationTimestamp().Time
	switch {
	case !created.Before(s.oldest):
		told(v.created, changeCreated, 1, created)
	case s.seen.first == 0:
		told(v.found, changeFound, generation, s.now)
		return
	}
	if generation > max(s.seen.generation, 1) {
		told(v.changed, changeChanged, generation, s.now)
	}
}

// What the data of a record has about an object other than a run.
const (
	changeKey   = "change"
	reasonKey   = "reason"
	snapshotKey = "snapshot"

	changeCreated = "created"
	changeFound   = "found"
	changeChanged = "changed"
	changeDeleted = "deleted"
)

// ofPlacement tells what was asked for of a placement, which snapshots there are of its resources, and which of them were rolled out.
func (s *state) ofPlacement(o client.Object) {
	placement, is := o.(placementv1beta1.PlacementObject)
	if !is {
		return
	}
	s.placement = o.GetName()
	strategy := ""
	if spec := placement.GetPlacementSpec(); spec.Strategy != nil {
		strategy = string(spec.Strategy.Type)
	}
	s.versions(o, versions{
		created: fleetflowv1alpha1.RecordPlacementCreated, found: fleetflowv1alpha1.RecordPlacementFound, changed: fleetflowv1alpha1.RecordPlacementChanged,
		data: map[string]string{"strategy": strategy},
	})
	status := placement.GetPlacementStatus()
	for _, snapshot := range status.ResourceSnapshots {
		s.add(fact{
			kind: fleetflowv1alpha1.RecordSnapshotCreated, which: []string{snapshot.Index}, at: snapshot.CreationTime.Time,
			data: map[string]string{snapshotKey: snapshot.Index},
		})
	}
	if !rules.IsDeleting(o) {
		s.rollout(o, status)
	} else {
		s.gone(fleetflowv1alpha1.RecordPlacementDeleted, o.GetDeletionTimestamp().Time, o.GetAnnotations()[placementv1beta1.ReasonAnnotation], nil)
	}
}

// rollout tells that a snapshot is available on all clusters of a placement, or that some could not take it: each once of a snapshot
// and a spec, however often a cluster comes and goes.
func (s *state) rollout(o client.Object, status *placementv1beta1.PlacementStatus) {
	current := func(kind string) *metav1.Condition {
		said := meta.FindStatusCondition(status.Conditions, placementv1beta1.ScopeOf(o).PlacementConditionType(kind))
		if said == nil || said.ObservedGeneration != o.GetGeneration() {
			return nil
		}
		return said
	}
	if status.ObservedResourceIndex == "" {
		return
	}
	found := fact{inOrder: true, which: []string{status.ObservedResourceIndex, strconv.FormatInt(o.GetGeneration(), 10)}}
	found.data = map[string]string{snapshotKey: status.ObservedResourceIndex, generationKey: found.which[1]}
	for _, kind := range []string{placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeApplied} {
		if said := current(kind); said != nil && said.Status == metav1.ConditionFalse {
			found.kind = fleetflowv1alpha1.RecordPlacementFailed
			found.at = said.LastTransitionTime.Time
			found.message = said.Message
			found.data[reasonKey] = said.Reason
			s.add(found)
			return
		}
	}
	scheduled := current(placementv1beta1.ConditionTypeScheduled)
	if said := current(placementv1beta1.ConditionTypeAvailable); isTrue(said) && isTrue(scheduled) {
		found.kind = fleetflowv1alpha1.RecordPlacementRolledOut
		found.at = said.LastTransitionTime.Time
		found.message = said.Message
		found.data[clustersKey] = countOf(status)
		s.add(found)
	}
}

// clustersKey has, in the data of a record, how many clusters there are.
const clustersKey = "clusters"

func countOf(status *placementv1beta1.PlacementStatus) string {
	if status.Clusters == nil {
		return ""
	}
	return strconv.Itoa(int(status.Clusters.Selected))
}

// gone tells that an object is not there any more, or will not be.
func (s *state) gone(kind fleetflowv1alpha1.AuditRecordType, at time.Time, comment string, data map[string]string) {
	s.add(fact{kind: kind, which: []string{changeDeleted}, at: at, inOrder: true, by: unknown(), comment: comment, data: data})
}

// ofOverride tells what was asked for of an override.
func (s *state) ofOverride(o client.Object) {
	override, is := o.(placementv1beta1.OverrideObject)
	if !is {
		return
	}
	data := map[string]string{}
	if of := override.GetOverridePlacement(); of != nil {
		s.placement = of.Name
		if o.GetNamespace() != "" && of.Scope == placementv1beta1.ClusterScoped {
			data[fleetflowv1alpha1.PlacementScopeKey] = string(of.Scope)
		}
	}
	changed := fleetflowv1alpha1.RecordOverrideChanged
	s.versions(o, versions{created: changed, found: changed, changed: changed, data: data})
	if rules.IsDeleting(o) {
		s.gone(changed, o.GetDeletionTimestamp().Time, o.GetAnnotations()[placementv1beta1.ReasonAnnotation], withChange(data, changeDeleted))
	}
}

// withChange adds how an object was changed to the data of its record.
func withChange(data map[string]string, change string) map[string]string {
	all := maps.Clone(data)
	all[changeKey] = change
	return all
}

// ofHold tells that a hold was set, or set in another way, and that it has expired.
func (s *state) ofHold(o client.Object) {
	hold, is := o.(*fleetflowv1alpha1.RolloutHold)
	if !is {
		return
	}
	set := fleetflowv1alpha1.RecordHoldSet
	data := map[string]string{}
	if expires := hold.Expires(); !expires.IsZero() {
		data["expires"] = expires.UTC().Format(time.RFC3339)
	}
	s.versions(o, versions{created: set, found: set, changed: set, comment: hold.Spec.Message, data: data})
	effective := meta.FindStatusCondition(hold.Status.Conditions, fleetflowv1alpha1.ConditionTypeEffective)
	if effective != nil && effective.Status == metav1.ConditionFalse && effective.Reason == fleetflowv1alpha1.ReasonHoldExpired {
		s.add(fact{
			kind: fleetflowv1alpha1.RecordHoldExpired, which: []string{data["expires"]}, at: hold.Expires(), inOrder: true, message: effective.Message,
		})
	}
}

// ofEviction tells that an eviction was asked for, and what has come of it.
func (s *state) ofEviction(o client.Object) {
	eviction, is := o.(*placementv1beta1.ClusterResourcePlacementEviction)
	if !is {
		return
	}
	s.placement = eviction.Spec.PlacementName
	data := map[string]string{clusterKey: eviction.Spec.ClusterName}
	by, _ := changerOf(o, rules.ChangedSpec)
	s.add(fact{
		kind: fleetflowv1alpha1.RecordEvictionAsked, at: o.GetCreationTimestamp().Time, by: by,
		comment: o.GetAnnotations()[placementv1beta1.ReasonAnnotation], data: data,
	})
	if !eviction.Ended() {
		return
	}
	executed := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionTypeExecuted)
	valid := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionTypeValid)
	ended := fact{kind: fleetflowv1alpha1.RecordEvictionRefused, inOrder: true, data: data}
	if isTrue(executed) {
		ended.kind = fleetflowv1alpha1.RecordEvictionExecuted
	}
	if said := cmp.Or(executed, valid); said != nil {
		ended.at = said.LastTransitionTime.Time
		ended.message = said.Message
	}
	s.add(ended)
}

// ofMember tells that a member has joined, and that the hub has lost it or has it back.
func (s *state) ofMember(o client.Object) {
	member, is := o.(*clusterv1beta1.MemberCluster)
	if !is {
		return
	}
	if joined := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeJoined); isTrue(joined) {
		by, generation := changerOf(o, rules.ChangedSpec)
		if generation != "1" {
			by = unknown() // who has changed it since may be another than who has had it join
		}
		s.add(fact{kind: fleetflowv1alpha1.RecordMemberJoined, at: joined.LastTransitionTime.Time, by: by})
	}
	healthy := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if healthy == nil || rules.IsDeleting(o) {
		return
	}
	found := fact{which: []string{instant(healthy)}, at: healthy.LastTransitionTime.Time, message: healthy.Message, data: map[string]string{reasonKey: healthy.Reason}}
	isLost := healthy.Reason == clusterv1beta1.ReasonMemberClusterHeartbeatMissed || healthy.Reason == clusterv1beta1.ReasonMemberClusterOutOfReach
	wasLost := s.seen.last[fleetflowv1alpha1.RecordMemberLost] > s.seen.last[fleetflowv1alpha1.RecordMemberBack]
	switch {
	case isLost && !wasLost:
		found.kind = fleetflowv1alpha1.RecordMemberLost
	case healthy.Status == metav1.ConditionTrue && wasLost:
		found.kind = fleetflowv1alpha1.RecordMemberBack
	default:
		return
	}
	s.add(found)
}
