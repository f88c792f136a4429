package stagedupdate

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Phases of a run in the search attribute FleetPhase, beside those of a stage and of the tasks that a
// run waits for.
const (
	PhaseInitializing     = "Initializing"
	PhaseDeleting         = "Deleting"
	PhaseStopping         = "Stopping"
	PhasePaused           = "Paused"
	PhaseFailed           = "Failed"
	PhaseRunSucceeded     = wf.PhaseSucceeded
	PhaseAbandoned        = "Abandoned"
	PhaseRunUpdating      = wf.PhaseUpdating
	phaseBetweenTwoChecks = wf.PhaseGates
)

// Status is the answer to the status query.
type Status struct {
	Run       string          `json:"run"`
	Placement string          `json:"placement,omitempty"`
	Snapshot  string          `json:"resourceSnapshotIndex,omitempty"`
	Phase     string          `json:"phase"`
	Stage     string          `json:"stage,omitempty"`
	WaitsFor  string          `json:"waitsFor,omitempty"`
	Stages    []wf.StageState `json:"stages,omitempty"`
}

func (r *run) status() (Status, error) {
	return Status{
		Run: r.ref.Key(), Placement: r.state.Placement, Snapshot: r.state.SnapshotIndex,
		Phase: r.published.phase, Stage: r.published.stage, WaitsFor: r.gate.describeWaits(), Stages: r.state.Stages,
	}, nil
}

// registerStatus answers the status query.
func registerStatus(ctx workflow.Context, status func() (Status, error)) error {
	err := workflow.SetQueryHandlerWithOptions(ctx, wf.StatusQuery, status, workflow.QueryHandlerOptions{
		Description: "The run's progress, stage by stage.",
	})
	if err != nil {
		return fmt.Errorf("registering the status query: %w", err)
	}
	return nil
}

// searchAttributes returns those of an execution; a visibility write each, so they change with the phase
// only. The execution of a stage has no phase: it keeps its attributes when it has ended, and users who
// search for a phase want runs.
func searchAttributes(placement, runName, stage, phase string) []temporal.SearchAttributeUpdate {
	updates := []temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(wf.PlacementAttribute).ValueSet(placement),
		temporal.NewSearchAttributeKeyKeyword(wf.RunAttribute).ValueSet(runName),
		temporal.NewSearchAttributeKeyKeyword(wf.StageAttribute).ValueSet(stage),
	}
	if phase != "" {
		updates = append(updates, temporal.NewSearchAttributeKeyKeyword(wf.PhaseAttribute).ValueSet(phase))
	}
	return updates
}

// publishProgress publishes how far the run is: search attributes when the phase or the
// stage has changed, the progress table always (it costs no event).
func (r *run) publishProgress(ctx workflow.Context, what step, stage int) {
	phase := r.phaseOf(what)
	name := ""
	if what != stepEnd && stage < len(r.state.Stages) {
		name = r.state.Stages[stage].Name
	}
	if phase != phaseBetweenTwoChecks && (phase != r.published.phase || name != r.published.stage) {
		r.published.phase = phase
		r.published.stage = name
		err := workflow.UpsertTypedSearchAttributes(ctx, searchAttributes(r.state.Placement, r.ref.Key(), name, phase)...)
		if err != nil {
			workflow.GetLogger(ctx).Warn("Search attributes were not updated", "error", err)
		}
	}
	workflow.SetCurrentDetails(ctx, r.progressTable())
}

func (r *run) phaseOf(what step) string {
	if (what == stepUpdate || what == stepDeletion) && wantsStop(r.state) {
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
	case stepTasksBefore, stepTasksAfter:
		return r.gate.runPhase()
	}
	switch {
	case r.state.Succeeded:
		return PhaseRunSucceeded
	case r.state.Terminal:
		return PhaseFailed
	}
	return PhaseAbandoned
}

// progressTable returns the progress of the run in Markdown, for the Temporal UI.
func (r *run) progressTable() string {
	lines := []string{fmt.Sprintf("**%s** → snapshot %s of %s: **%s**\n",
		r.ref.Key(), orDash(r.state.SnapshotIndex), orDash(r.state.Placement), orDash(r.published.phase))}
	if waits := r.gate.describeWaits(); waits != "" {
		lines = append(lines, fmt.Sprintf("Waits for %s.\n", waits))
		if r.gate.state.NeedsApproval() {
			lines = append(lines, fmt.Sprintf("Approve with signal or update `approve` and input `{\"stage\":\"%s\"}`.\n", r.gate.name))
		}
	}
	lines = append(lines, "| stage | clusters | done | phase |", "|---|---|---|---|")
	for _, st := range r.state.Stages {
		if st.Phase == wf.PhaseUpdating {
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

// table returns the progress of one stage in Markdown; of a long stage it shows the
// clusters around those in flight.
func (p *stageProgress) table() string {
	lines := []string{fmt.Sprintf("Stage **%s**: %d of %d done, %d at a time.\n", p.request.Stage, p.countDone(), len(p.clusters),
		p.maxConcurrency)}
	if p.waiting != "" {
		lines = append(lines, fmt.Sprintf("Longest in flight: %s.\n", p.waiting))
	}
	lines = append(lines, "| # | cluster | state |", "|---|---|---|")
	first := max(0, min(p.countDone()-maxRows/2, len(p.clusters)-maxRows))
	for i := first; i < min(first+maxRows, len(p.clusters)); i++ {
		lines = append(lines, fmt.Sprintf("| %d | %s | %s |", i+1, p.clusters[i], p.phases[i]))
	}
	return strings.Join(lines, "\n") + "\n"
}
