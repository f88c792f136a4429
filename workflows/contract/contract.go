// Package contract is what the controllers, the workflows, the activities and a person with the Temporal CLI agree on: workflow types,
// IDs, task queues, signals, updates and queries; names, requests and results of activities. It imports the standard library only,
// because what is recorded in a history may not follow a change of the Kubernetes types.
//
// Payloads are references and small deltas: never a manifest (histories are plain text and limited to 2 MiB a payload) and never an
// error text (those are written to the object concerned).
//
// Histories outlive releases, and for a while the workers of two may have the same execution by turns. From the first tag on:
//
//   - Fields and constants are added, never renamed, retyped or taken away (testdata/contract.golden).
//   - Whatever alters which commands a workflow gives, in which order, is behind workflow.GetVersion. That includes a reaction to a new
//     field of a result or to a new cause of a poke: that no old history has it protects while one release follows the other, and not
//     while the activities of the new one answer the workflow code of the old one.
//   - Constants of workflows/call and workflows/placement, and the functions that workflows call, are such code, too: Positions here
//     and rollout.Progress.
package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// DefaultNamespace is the Temporal namespace of the fleet's workflows, unless an operator names another one: who may
// write to it controls the rollouts, so it is not the one that all other applications share.
const DefaultNamespace = "fleetflow"

// Task queues. Workflows and short activities share one, so that activities
// are handed over eagerly; activities that wait for clusters have their own, so
// that a thousand waits never take the slots of a short step, and those that
// measure theirs, so that an endpoint that hangs takes no slot of a cluster.
// Selections and schedules have theirs, too: after a change that concerns a
// thousand placements they wait in Temporal, the most urgent first, and take
// neither a slot of a short step nor the time that they may take.
const (
	TaskQueue        = "fleetflow"
	LongTaskQueue    = "fleetflow-long"
	AdvanceTaskQueue = "fleetflow-advance"
	MeasureTaskQueue = "fleetflow-measure"
)

// TaskTimeout is after how long a step of a workflow that a killed worker had
// taken is given to another.
const TaskTimeout = 5 * time.Second

// StuckAfter is how long a cluster may take before its rollout is called stuck, unless a strategy says otherwise.
const StuckAfter = 5 * time.Minute

// ErrorUser is the type of an application error that only a person can correct. It is not retried.
const ErrorUser = "UserError"

// Workflow types as they appear in the Temporal UI.
const (
	PlacementWorkflow = "Placement"
	UpdateRunWorkflow = "UpdateRun"
	StageWorkflow     = "Stage"
)

// Signals, updates and queries a workflow answers to.
const (
	// PokeSignal says "look again"; its payload is a Poke.
	PokeSignal = "poke"
	// ApproveSignal and ApproveUpdate carry an Approval to an update run.
	ApproveSignal = "approve"
	ApproveUpdate = "approve"
	// StatusQuery returns the progress of the placement or run as the workflow knows it.
	StatusQuery = "status"
)

// Search attributes, all of type Keyword.
const (
	PlacementAttribute = "FleetPlacement"
	RunAttribute       = "FleetRun"
	StageAttribute     = "FleetStage"
	PhaseAttribute     = "FleetPhase"
)

// PhaseRolling is the value of PhaseAttribute with which the execution of a placement begins.
const PhaseRolling = "Rolling"

// Kinds of the objects that workflows work for.
const (
	KindClusterResourcePlacement = "ClusterResourcePlacement"
	KindClusterStagedUpdateRun   = "ClusterStagedUpdateRun"
	KindResourcePlacement        = "ResourcePlacement"
	KindStagedUpdateRun          = "StagedUpdateRun"
)

// Ref names the object a workflow works for. It is the whole input of a
// workflow: everything else is read from the object itself, so that an
// execution can be lost and started again.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// UID tells this object from an earlier one of the same name.
	UID string `json:"uid"`
}

// Key returns the name users know the object by: "name" or "namespace/name".
func (r Ref) Key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Poke asks a workflow to look at its object again. It never carries state.
type Poke struct {
	UID        string `json:"uid"`
	Generation int64  `json:"generation,omitempty"`
	// Cause is one word for people who read the history, such as "spec",
	// "resources", "clusters", "availability", "approval" or "audit".
	Cause string `json:"cause,omitempty"`
}

// Causes of a poke. A placement repeats its selection for every cause but
// CauseAvailability, which only matters to a rollout that was blocked, and
// CauseReplicas, for which divided replicas are brought into force.
const (
	CauseSpec         = "spec"
	CauseResources    = "resources"
	CauseClusters     = "clusters"
	CauseOverrides    = "overrides"
	CauseBindings     = "bindings"
	CauseAvailability = "availability"
	CauseReplicas     = "replicas"
	CauseEvictions    = "evictions"
	CauseApproval     = "approval"
	CauseGates        = "gates"
	CauseAudit        = "audit"
)

// Approval is what a person sends to let a run pass the gate of a stage.
type Approval struct {
	Stage   string `json:"stage"`
	Comment string `json:"comment,omitempty"`
	// PlanHash is the plan that the approval is for, or its beginning with 12 digits or more.
	PlanHash string `json:"planHash,omitempty"`
}

// maxID keeps IDs within the 255 characters of Temporal's SQL stores.
const maxID = 255

// PlacementID is the workflow ID of a placement; namespace is empty for a
// ClusterResourcePlacement.
func PlacementID(namespace, name string) string { return workflowID("placement", namespace, name) }

// UpdateRunID is the workflow ID of an update run; namespace is empty for a
// ClusterStagedUpdateRun.
func UpdateRunID(namespace, name string) string { return workflowID("updaterun", namespace, name) }

// StageID is the workflow ID of one stage of the run with the given ID.
func StageID(runID, stage string) string { return boundID(runID + "/stage/" + stage) }

// Stuck is an open execution whose workflow tasks fail again and again: it goes on only after it has been ended and started again.
type Stuck struct {
	ID, RunID, Type string
	// Root is the workflow ID of the object that it works for: that of the run for a stage, else its own.
	Root string
}

// Execution is the workflow of an object, or of a stage of a run: its type, and the ID by which there is
// one at a time.
type Execution struct{ Type, ID string }

// PlacementExecution returns the execution of a placement.
func PlacementExecution(ref Ref) Execution {
	return Execution{Type: PlacementWorkflow, ID: PlacementID(ref.Namespace, ref.Name)}
}

// RunExecution returns the execution of an update run.
func RunExecution(ref Ref) Execution {
	return Execution{Type: UpdateRunWorkflow, ID: UpdateRunID(ref.Namespace, ref.Name)}
}

// StageExecution returns the execution of a stage of an update run.
func StageExecution(run Ref, stage string) Execution {
	return Execution{Type: StageWorkflow, ID: StageID(RunExecution(run).ID, stage)}
}

// Execution returns the execution of the object of a reference, by its kind.
func (r Ref) Execution() Execution {
	if r.Kind == KindClusterStagedUpdateRun || r.Kind == KindStagedUpdateRun {
		return RunExecution(r)
	}
	return PlacementExecution(r)
}

// ID is the workflow ID for a reference, by its kind.
func (r Ref) ID() string { return r.Execution().ID }

func workflowID(kind, namespace, name string) string {
	parts := []string{kind, name}
	if namespace != "" {
		parts = []string{kind, namespace, name}
	}
	return boundID(strings.Join(parts, "/"))
}

// boundID shortens an ID that is too long, keeping it unique by a hash of the
// whole and readable by its beginning.
func boundID(s string) string {
	if len(s) <= maxID {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	suffix := "-" + hex.EncodeToString(sum[:8])
	return s[:maxID-len(suffix)] + suffix
}
