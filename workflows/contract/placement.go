package contract

import "time"

// Activities of the placement workflow.
const (
	LoadPlacement    = "LoadPlacement"
	SelectResources  = "SelectResources"
	ScheduleClusters = "ScheduleClusters"
	ScaleReplicas    = "ScaleReplicas"
	AdvancePlacement = "AdvancePlacement"
	RefuseEvictions  = "RefuseEvictions"
)

// PlacementState is what a placement workflow must know before it does
// anything; LoadPlacement reads it live.
type PlacementState struct {
	// Found is false when a live Get said that the placement does not exist.
	Found    bool   `json:"found"`
	UID      string `json:"uid,omitempty"`
	Deleting bool   `json:"deleting,omitempty"`
	// External says that update runs, not this workflow, write to clusters.
	External   bool  `json:"external,omitempty"`
	Generation int64 `json:"generation,omitempty"`
	// Evictions says that some wait for an outcome.
	Evictions bool `json:"evictions,omitempty"`
	// Divides says that replicas of workloads are divided over the clusters.
	Divides bool `json:"divides,omitempty"`
}

// SelectResult names the snapshot that holds what the placement selects now.
type SelectResult struct {
	// Gone says that the placement was deleted or replaced meanwhile.
	Gone bool `json:"gone,omitempty"`
	// Invalid says that the selectors cannot be resolved, or that required overrides are missing;
	// the reason is in the selection verdict on the placement.
	Invalid bool `json:"invalid,omitempty"`
	// OverridesLacking are the required overrides that are missing, as messages name them.
	OverridesLacking []string `json:"overridesLacking,omitempty"`
	// LossHeld says that the snapshot keeps objects that are no longer selected, until a user accepts that they go.
	LossHeld bool `json:"lossHeld,omitempty"`
	// Snapshot is the name of the master ClusterResourceSnapshot.
	Snapshot string `json:"snapshot,omitempty"`
	Index    int    `json:"index"`
	// Created says that a new snapshot was written.
	Created bool `json:"created,omitempty"`
	// WakeAt is when to select again: by then what is selected now, and is kept back to
	// collect further changes, may become a snapshot. Zero if nothing is kept back.
	WakeAt time.Time `json:"wakeAt,omitzero"`
	// Overrides are the override snapshots that concern the selection: name, or
	// namespace/name of namespaced ones. Which of them apply depends on the cluster.
	Overrides []string `json:"overrides,omitempty"`
	// Demand tells apart what the workloads ask for whose replicas are divided over clusters; empty if none are divided.
	Demand string `json:"demand,omitempty"`
	// Reschedule says that a changed policy may have waited for the snapshot.
	Reschedule bool `json:"reschedule,omitempty"`
}

// ScheduleResult counts what the scheduler decided.
type ScheduleResult struct {
	Gone           bool   `json:"gone,omitempty"`
	PolicySnapshot string `json:"policySnapshot,omitempty"`
	// Selected clusters by the latest policy, of which Created are new.
	Selected    int `json:"selected"`
	Created     int `json:"created,omitempty"`
	Unscheduled int `json:"unscheduled,omitempty"`
	// WakeAt is when time alone may have clusters picked from an earlier affinity group, or replicas
	// divided differently; zero if it cannot.
	WakeAt time.Time `json:"wakeAt,omitzero"`
	// Held is how many removals wait until a user accepts them; nothing was scheduled then.
	Held int `json:"held,omitempty"`
}

// ScaleRequest brings divided replicas into force.
type ScaleRequest struct {
	Placement Ref `json:"placement"`
	// Snapshot is the latest master snapshot; empty if there is none.
	Snapshot string `json:"snapshot,omitempty"`
}

// ScaleResult counts the clusters that were given other replicas.
type ScaleResult struct {
	Gone   bool `json:"gone,omitempty"`
	Scaled int  `json:"scaled,omitempty"`
}

// Operations on one cluster of a rolling update.
const (
	OpUpdate = "update" // in place, to the target snapshot
	OpAdd    = "add"    // first write to a newly picked cluster
	// OpAddStable is a first write of an older snapshot: the target is not to spread further.
	OpAddStable = "addStable"
	OpRemove    = "remove" // delete the binding of a cluster no longer picked
	// OpPrepareUpdate and OpPrepareRemove note on the binding that the cluster goes out of service for
	// a change that a hook holds, OpGiveUpChange that the change is no longer wanted.
	OpPrepareUpdate = "prepareUpdate"
	OpPrepareRemove = "prepareRemove"
	OpGiveUpChange  = "giveUpChange"
	// OpEvict deletes the binding of a cluster that a user evicts, and writes the
	// outcome; OpConclude only writes the outcome of an eviction.
	OpEvict    = "evict"
	OpConclude = "conclude"
)

// Verdict is how an eviction was decided.
type Verdict struct {
	Code      string `json:"code"`
	Available int    `json:"available,omitempty"`
	Total     int    `json:"total,omitempty"`
}

// Change is one write the workflow has decided on. It pins what the decision
// was based on, so that an attempt never writes over something newer.
type Change struct {
	Cluster string `json:"cluster,omitempty"`
	Op      string `json:"op"`
	// Binding is empty if it has the name that the scheduler gives to the binding of the cluster. UID is the beginning of its UID.
	Binding string `json:"binding,omitempty"`
	UID     string `json:"uid,omitempty"`
	// FromState and FromRevision are the binding's as seen when deciding.
	FromState    string `json:"fromState,omitempty"`
	FromRevision string `json:"fromRevision,omitempty"`
	// Snapshot is the one to write if it is not the target.
	Snapshot string `json:"snapshot,omitempty"`
	// Eviction and EvictionUID name the eviction that asks for the change, Verdict says
	// how it was decided.
	Eviction    string   `json:"eviction,omitempty"`
	EvictionUID string   `json:"evictionUID,omitempty"`
	Verdict     *Verdict `json:"verdict,omitempty"`
}

// AdvanceRequest makes the recorded Batch true, then waits for something to
// decide on.
type AdvanceRequest struct {
	Placement Ref `json:"placement"`
	// Snapshot is the master snapshot the batch brings clusters to.
	Snapshot string `json:"snapshot"`
	// Overrides are those that were picked with the snapshot.
	Overrides []string `json:"overrides,omitempty"`
	Batch     Batch    `json:"batch,omitempty"`
	// Epoch is that of the claim under which the batch is written. An attempt that finds
	// a later one writes nothing.
	Epoch int64 `json:"epoch,omitempty"`
	// Basis identifies the bindings that the call before has ended with; empty if there was none. A worker whose cache has others
	// reads them past it: it may lag behind, and count a cluster as available that is being changed.
	Basis string `json:"basis,omitempty"`
	// EvictionsOnly leaves the rollout to update runs: nothing is waited for.
	EvictionsOnly bool `json:"evictionsOnly,omitempty"`
	// InFlight is how many clusters of earlier batches have not been seen available yet. Which ones, bindings and Works say.
	InFlight int `json:"inFlightCount,omitempty"`
	// WakeAt bounds the wait, for objects whose availability is a matter of
	// time.
	WakeAt time.Time `json:"wakeAt,omitzero"`
}

// AdvanceResult is the delta since the request and a proposal for the next
// batch.
type AdvanceResult struct {
	Gone bool `json:"gone,omitempty"`
	// Changed says that something the plan rests on is no longer what it was:
	// select again.
	Changed bool `json:"changed,omitempty"`
	// Reschedule says that it is not only other resources: schedule again, too.
	Reschedule bool `json:"reschedule,omitempty"`
	// InFlight is how many clusters are not available yet with what they were given, ProgressAt when there was last one less of
	// them during the call; zero if there never was.
	InFlight   int       `json:"inFlightCount,omitempty"`
	ProgressAt time.Time `json:"progressAt,omitzero"`
	// Done are clusters that have become available, as builds before ProgressAt reported it. Their histories are replayed.
	Done []string `json:"done,omitempty"`
	Next Batch    `json:"next,omitempty"`
	// Epoch is that of the claim for the next batch.
	Epoch int64 `json:"epoch,omitempty"`
	// Basis identifies the bindings that the call has ended with.
	Basis string `json:"basis,omitempty"`
	// Settled says that nothing is left to write.
	Settled bool `json:"settled,omitempty"`
	// Blocked is the number of clusters that wait for the limits to allow them, HeldBack of
	// those that the partition or a pause keeps as they are.
	Blocked  int `json:"blocked,omitempty"`
	HeldBack int `json:"heldBack,omitempty"`
	// Hooked is the number of clusters that wait for the answer to a lifecycle hook.
	Hooked int `json:"hooked,omitempty"`
	// WakeAt is when time alone will change the plan.
	WakeAt time.Time `json:"wakeAt,omitzero"`
	// Waiting are clusters that are not available, those that are not for the longest
	// time first, and not all if there are many. Held says why the limits alone hold a
	// rollout back, if they do.
	Waiting []Waiting `json:"waiting,omitempty"`
	Held    string    `json:"held,omitempty"`
	// Closed is the number of clusters whose change must not begin now, ClosedBy says what they wait for, and OpensAt when time
	// alone opens the first of them, if it does.
	Closed   int       `json:"closed,omitempty"`
	ClosedBy string    `json:"closedBy,omitempty"`
	OpensAt  time.Time `json:"opensAt,omitzero"`
	// Refused is the number of clusters whose bindings the API server refuses to write. Why, the placement says: its answers are not for
	// histories.
	Refused int `json:"refused,omitempty"`
}

// Waiting is a cluster that a rollout waits for.
type Waiting struct {
	Cluster string    `json:"cluster"`
	Since   time.Time `json:"since,omitzero"`
	// Step that is not done, and why, as the binding says.
	Step   string `json:"step"`
	Reason string `json:"reason,omitempty"`
	// Object that is concerned first, if one is known; or what a hook asks for.
	Object string `json:"object,omitempty"`
}
