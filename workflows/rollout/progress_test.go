package rollout_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

const (
	waits   = rollout.ClusterWaiting
	updates = rollout.ClusterUpdating
	isDone  = rollout.ClusterDone
	givenUp = rollout.ClusterFailed
	leftOut = rollout.ClusterSkipped
)

func TestProgress(t *testing.T) {
	for sentence, test := range map[string]struct {
		progress rollout.Progress
		max      int
		next     []int
		settled  bool
	}{
		"nothing is there":                                 {max: 1, settled: true},
		"the first go first":                               {progress: rollout.Progress{waits, waits, waits}, max: 2, next: []int{0, 1}},
		"a cluster in flight holds its place":              {progress: rollout.Progress{updates, waits}, max: 1},
		"a cluster that is done gives its place back":      {progress: rollout.Progress{isDone, waits}, max: 1, next: []int{1}},
		"a failed cluster gives its place back":            {progress: rollout.Progress{givenUp, waits}, max: 1, next: []int{1}},
		"a skipped cluster gives its place back":           {progress: rollout.Progress{leftOut, waits}, max: 1, next: []int{1}},
		"one that is asked to try again comes in order":    {progress: rollout.Progress{waits, isDone, updates, waits}, max: 2, next: []int{0}},
		"one that is asked to try again waits for a place": {progress: rollout.Progress{waits, isDone, updates, updates}, max: 2},
		"all that is left has failed or is skipped":        {progress: rollout.Progress{isDone, givenUp, leftOut}, max: 1, settled: true},
		"one is in flight":                                 {progress: rollout.Progress{isDone, updates}, max: 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.next, test.progress.Next(test.max))
			assert.Equal(t, test.settled, test.progress.Settled())
		})
	}
	assert.Equal(t, []int{0, 2}, rollout.Progress{givenUp, isDone, givenUp}.In(givenUp))
	assert.Equal(t, 2, rollout.Progress{givenUp, isDone, givenUp}.Count(givenUp))
	assert.Equal(t, "failed", givenUp.String())
	assert.Equal(t, "-", waits.String())
}

func TestGiveUp(t *testing.T) {
	for sentence, test := range map[string]struct {
		failed, overdue, max int
		without              int
		exceeded             bool
	}{
		"nothing is late":                          {0, 0, 1, 0, false},
		"one is late and may be":                   {0, 1, 1, 1, false},
		"one is late and may not be":               {0, 1, 0, 0, true},
		"of three that are late, two may be":       {0, 3, 2, 2, true},
		"the budget is spent":                      {2, 1, 2, 0, true},
		"the budget is spent and nothing is late":  {2, 0, 2, 0, false},
		"a run that was paused is over its budget": {3, 0, 2, 0, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			without, exceeded := rollout.GiveUp(test.failed, test.overdue, test.max)
			assert.Equal(t, test.without, without)
			assert.Equal(t, test.exceeded, exceeded)
		})
	}
}

// stageOfFleet is a random stage: what happens to its clusters is drawn at every step.
type stageOfFleet struct {
	rng           *rand.Rand
	progress      rollout.Progress
	max, failures int
	lost, actions float64 // how likely a cluster in flight is to miss its deadline, and to be skipped or retried
}

func randomStage(seed uint64) *stageOfFleet {
	rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test that can be repeated
	n := 1 + rng.IntN(40)
	return &stageOfFleet{
		rng: rng, progress: make(rollout.Progress, n), max: 1 + rng.IntN(n), failures: rng.IntN(n),
		lost: rng.Float64() / 2, actions: rng.Float64() / 10,
	}
}

// step lets one thing happen to each cluster and says whether the budget was exceeded.
func (f *stageOfFleet) step() (exceeded bool) {
	var overdue []int
	for i, phase := range f.progress {
		switch {
		case f.rng.Float64() < f.actions && phase != isDone:
			f.act(i, phase)
		case phase == givenUp && f.rng.Float64() < 0.05:
			f.progress[i] = isDone // it recovers
		case phase == updates && f.rng.Float64() < f.lost:
			overdue = append(overdue, i)
		case phase == updates && f.rng.Float64() < 0.5:
			f.progress[i] = isDone
		}
	}
	without, exceeded := rollout.GiveUp(f.progress.Count(givenUp), len(overdue), f.failures)
	for _, i := range overdue[:without] {
		f.progress[i] = givenUp
	}
	return exceeded
}

// act skips or retries a cluster.
func (f *stageOfFleet) act(i int, phase rollout.ClusterPhase) {
	switch {
	case f.rng.IntN(2) == 0:
		f.progress[i] = leftOut
	case phase == givenUp, phase == leftOut:
		f.progress[i] = waits
	}
}

// Whatever fails, is skipped or tried again: never more than maxConcurrency are in flight, never
// more than the budget allows are gone on without, and a stage that does not exceed its budget
// comes to its end.
func TestNoLimitIsEverExceeded(t *testing.T) {
	ended := 0
	over := 0
	for seed := range uint64(2000) {
		f := randomStage(seed)
		for step := 0; !f.progress.Settled(); step++ {
			require.Less(t, step, 10000, "fleet %d must come to its end", seed)
			for _, i := range f.progress.Next(f.max) {
				require.Equal(t, waits, f.progress[i], "fleet %d", seed)
				f.progress[i] = updates
			}
			inFlight := f.progress.Count(updates)
			require.LessOrEqual(t, inFlight, f.max, "fleet %d, step %d", seed, step)
			if f.progress.Count(waits) > 0 {
				require.Equal(t, f.max, inFlight, "fleet %d, step %d: no place is wasted", seed, step)
			}
			exceeded := f.step()
			require.LessOrEqual(t, f.progress.Count(givenUp), f.failures, "fleet %d, step %d", seed, step)
			if exceeded {
				over++
				break // abort, pause, rollback; waiting goes on below the budget
			}
		}
		ended++
	}
	assert.Equal(t, 2000, ended)
	assert.Greater(t, over, 200, "the budget must be exceeded often enough")
	assert.Less(t, over, 1800, "and kept often enough")
}
