package stagedupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestATimeIsSaidAsShortAsItCanBe(t *testing.T) {
	now := time.Date(2026, 1, 2, 13, 5, 0, 0, time.UTC)
	for then, want := range map[time.Time]string{
		now.Add(time.Hour):                                       "14:05Z",
		now.Add(time.Hour + 7*time.Second):                       "14:05:07Z",
		now.Add(time.Hour).In(time.FixedZone("elsewhere", 7200)): "14:05Z",
		now.Add(48 * time.Hour):                                  "2026-01-04 13:05Z",
	} {
		assert.Equal(t, want, formatClock(now, then))
	}
}

func TestARunThatIsToStopWaitsForWhatItHasBegun(t *testing.T) {
	s := wf.RunState{Found: true, Initialized: true, DesiredState: "Stop", Stages: []wf.StageState{
		{Name: "one", Phase: wf.PhaseSucceeded, Clusters: 1, Done: 1}, {Name: "two", Phase: wf.PhaseUpdating, Clusters: 2, InFlight: 1},
	}}
	for sentence, test := range map[string]struct {
		change func()
		want   step
		phase  string
	}{
		"a cluster of a stage": {func() {}, stepUpdate, PhaseStopping},
		"a cluster of the deletion stage": {func() {
			s.Stages[1].InFlight = 0
			s.DeletionInFlight = 1
		}, stepDeletion, PhaseStopping},
		"nothing, when nothing is underway": {func() {
			s.Stages[1].InFlight = 0
			s.DeletionInFlight = 0
		}, stepPause, PhasePaused},
	} {
		t.Run(sentence, func(t *testing.T) {
			s.Stages[1].InFlight = 1
			s.DeletionInFlight = 0
			test.change()
			what, _ := chooseStep(s)
			assert.Equal(t, test.want, what)
			assert.Equal(t, test.phase, (&run{state: s}).phaseOf(what))
		})
	}
}
