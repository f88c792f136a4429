package stagedupdate

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	act "github.com/fleetflow/fleetflow/activities/contract"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Phases of a run in the search attribute FleetPhase, beside those of a stage.
const (
	PhaseInitializing     = "Initializing"
	PhaseWaitingApproval  = "WaitingApproval"
	PhaseSoaking          = "Soaking"
	PhaseDeleting         = "Deleting"
	PhaseStopping         = "Stopping"
	PhasePaused           = "Paused"
	PhaseFailed           = "Failed"
	PhaseRunSucceeded     = act.PhaseSucceeded
	PhaseAbandoned        = "Abandoned"
	PhaseRunUpdating      = act.PhaseUpdating
	phaseBetweenTwoChecks = act.PhaseGates
)

// Status is the answer to the status query.
type Status struct {
	Run       string           `json:"run"`
	Placement string           `json:"placement,omitempty"`
	Snapshot  string           `json:"resourceSnapshotIndex,omitempty"`
	Phase     string           `json:"phase"`
	Stage     string           `json:"stage,omitempty"`
	WaitsFor  string           `json:"waitsFor,omitempty"`
	Stages    []act.StageState `json:"stages,omitempty"`
}

func (r *run) status() (Status, error) {
	return Status{
		Run: r.ref.Key(), Placement: r.state.Placement, Snapshot: r.state.SnapshotIndex,
		Phase: r.phase, Stage: r.stage, WaitsFor: r.waitsFor(), Stages: r.state.Stages,
	}, nil
}

// attributes are the search attributes of an execution; a visibility write each, so they change
// with the phase only. The execution of a stage has no phase: it has no say in it once it has
// ended, and whoever asks for what is in a phase wants runs.
func attributes(placement, runName, stage, phase string) temporal.SearchAttributes {
	list := []temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(wf.PlacementAttribute).ValueSet(placement),
		temporal.NewSearchAttributeKeyKeyword(wf.RunAttribute).ValueSet(runName),
		temporal.NewSearchAttributeKeyKeyword(wf.StageAttribute).ValueSet(stage),
	}
	if phase != "" {
		list = append(list, temporal.NewSearchAttributeKeyKeyword(wf.PhaseAttribute).ValueSet(phase))
	}
	return temporal.NewSearchAttributes(list...)
}

// show publishes where the run stands: search attributes when the phase or the
// stage has changed, the progress table always (it costs no event).
func (r *run) show(ctx workflow.Context, what step, stage int) {
	phase := r.phaseOf(what)
	name := ""
	if what != stepEnd && stage < len(r.state.Stages) {
		name = r.state.Stages[stage].Name
	}
	if phase != phaseBetweenTwoChecks && (phase != r.phase || name != r.stage) {
		r.phase, r.stage = phase, name
		a := attributes(r.state.Placement, r.ref.Key(), name, phase)
		if err := workflow.UpsertTypedSearchAttributes(ctx, searchUpdates(a)...); err != nil {
			workflow.GetLogger(ctx).Warn("Search attributes were not updated", "error", err)
		}
	}
	workflow.SetCurrentDetails(ctx, r.table())
}

func searchUpdates(a temporal.SearchAttributes) []temporal.SearchAttributeUpdate {
	var updates []temporal.SearchAttributeUpdate
	for _, name := range []string{wf.PlacementAttribute, wf.RunAttribute, wf.StageAttribute, wf.PhaseAttribute} {
		key := temporal.NewSearchAttributeKeyKeyword(name)
		if value, ok := a.GetKeyword(key); ok {
			updates = append(updates, key.ValueSet(value))
		}
	}
	return updates
}

func (r *run) phaseOf(what step) string {
	if wish := r.state.State; (what == stepUpdate || what == stepDeletion) && wish != "" && wish != stateRun {
		return PhaseStopping
	}
	switch what {
	case stepInitialize:
		return PhaseInitializing
	case stepPause:
		return PhasePaused
	case stepUpdate:
		return PhaseRunUpdating
	case stepDeletion:
		return PhaseDeleting
	case stepBeforeGates, stepGates:
		return r.gatePhase()
	}
	switch {
	case r.state.Succeeded:
		return PhaseRunSucceeded
	case r.state.Terminal:
		return PhaseFailed
	}
	return PhaseAbandoned
}

func (r *run) gatePhase() string {
	switch {
	case r.gate == nil:
		return phaseBetweenTwoChecks
	case r.gate.state.NeedsApproval:
		return PhaseWaitingApproval
	}
	return PhaseSoaking
}

// waitsFor says in words what a run that stands still waits for.
func (r *run) waitsFor() string {
	if r.gate == nil {
		return ""
	}
	var parts []string
	if r.gate.state.NeedsApproval {
		parts = append(parts, "approval of "+r.gate.state.Request)
	}
	if until := r.gate.state.WaitUntil; !until.IsZero() {
		parts = append(parts, "soak until "+until.UTC().Format("2006-01-02 15:04:05Z"))
	}
	return strings.Join(parts, " and ")
}

// table is the progress of the run in Markdown, for the Temporal UI.
func (r *run) table() string {
	lines := []string{fmt.Sprintf("**%s** → snapshot %s of %s: **%s**\n",
		r.ref.Key(), orDash(r.state.SnapshotIndex), orDash(r.state.Placement), orDash(r.phase))}
	if waits := r.waitsFor(); waits != "" {
		lines = append(lines, fmt.Sprintf("Waits for %s.\n", waits))
		if r.gate.state.NeedsApproval {
			lines = append(lines, fmt.Sprintf("Approve with signal or update `approve` and input `{\"stage\":\"%s\"}`.\n", r.gate.name))
		}
	}
	lines = append(lines, "| stage | clusters | done | phase |", "|---|---|---|---|")
	for _, st := range r.state.Stages {
		if st.Phase == act.PhaseUpdating {
			lines = append(lines, fmt.Sprintf("| %s | %d | live in `%s` | %s |", st.Name, st.Clusters, wf.StageID(r.id, st.Name), st.Phase))
			continue
		}
		lines = append(lines, fmt.Sprintf("| %s | %d | %d | %s |", st.Name, st.Clusters, st.Done, st.Phase))
	}
	return strings.Join(lines, "\n") + "\n"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// maxRows bounds the table of a stage: current details may hold 20 kB.
const maxRows = 100

// table is the progress of one stage in Markdown; of a long stage it shows the
// clusters around the window.
func (w *window) table() string {
	lines := []string{fmt.Sprintf("Stage **%s**: %d of %d done, %d at a time.\n", w.request.Stage, w.count(), len(w.clusters), w.max)}
	if w.waiting != "" {
		lines = append(lines, fmt.Sprintf("Longest in flight: %s.\n", w.waiting))
	}
	lines = append(lines, "| # | cluster | state |", "|---|---|---|")
	first := max(0, min(w.count()-maxRows/2, len(w.clusters)-maxRows))
	for i := first; i < min(first+maxRows, len(w.clusters)); i++ {
		lines = append(lines, fmt.Sprintf("| %d | %s | %s |", i+1, w.clusters[i], w.progress[i]))
	}
	return strings.Join(lines, "\n") + "\n"
}
