package placement

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Phases of a placement in the search attribute FleetPhase. Its executions begin with PhaseRolling: the poke that starts one has it.
const (
	PhaseRolling = wf.PhaseRolling
	// PhaseHeld says that clusters are closed, PhaseBlocked that the limits have let nothing begin for wf.StuckAfter.
	PhaseHeld    = "Held"
	PhaseBlocked = "Blocked"
)

// Status is the answer to the status query.
type Status struct {
	Placement string `json:"placement"`
	Phase     string `json:"phase"`
	Snapshot  string `json:"resourceSnapshot,omitempty"`
	Policy    string `json:"policySnapshot,omitempty"`
	Clusters  int    `json:"clusters,omitempty"`
	// Changing clusters are those of the newest batch, InFlight those of earlier ones that are not available yet, Blocked those
	// that wait for the limits.
	Changing int `json:"changing,omitempty"`
	InFlight int `json:"inFlight,omitempty"`
	Blocked  int `json:"blocked,omitempty"`
	// Since is when the rollout last came forward, WaitsFor what closes clusters, why writes are
	// refused, or why the limits hold the rollout back.
	Since    time.Time `json:"since,omitzero"`
	WaitsFor string    `json:"waitsFor,omitempty"`
}

// registerStatus answers the status query.
func registerStatus(ctx workflow.Context, e *execution) error {
	answer := func() (Status, error) { return e.status(), nil }
	err := workflow.SetQueryHandlerWithOptions(ctx, wf.StatusQuery, answer, workflow.QueryHandlerOptions{
		Description: "How far the rollout of the placement is.",
	})
	if err != nil {
		return fmt.Errorf("registering the status query: %w", err)
	}
	return nil
}

func (e *execution) status() Status {
	s := e.state
	return Status{
		Placement: s.ref.Key(), Phase: s.phase, Snapshot: s.selected.Snapshot, Policy: s.scheduled.PolicySnapshot,
		Clusters: s.scheduled.Selected, Changing: len(s.result.Next), InFlight: s.result.InFlight, Blocked: s.result.Blocked,
		Since: s.progress, WaitsFor: cmp.Or(s.result.ClosedBy, describeRefused(s.result), s.result.Held),
	}
}

var phaseKey = temporal.NewSearchAttributeKeyKeyword(wf.PhaseAttribute)

// publishedPhase returns the phase that an execution begins with. One that older versions have begun has none.
func publishedPhase(ctx workflow.Context) string {
	if phase, ok := workflow.GetTypedSearchAttributes(ctx).GetKeyword(phaseKey); ok {
		return phase
	}
	return PhaseRolling
}

// publishPhase publishes another phase: a visibility write, and events of the history, so it does when that has changed only. An execution
// that an older version has begun may have been held without it.
func (e *execution) publishPhase(ctx workflow.Context) {
	if e.state.phase == e.published || workflow.GetVersion(ctx, "placement-phase", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return
	}
	e.published = e.state.phase
	if err := workflow.UpsertTypedSearchAttributes(ctx, phaseKey.ValueSet(e.state.phase)); err != nil {
		workflow.GetLogger(ctx).Warn("The phase of the placement was not published", "error", err)
	}
}
