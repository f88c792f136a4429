package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

func TestATallyTellsWhatWaitsForWhat(t *testing.T) {
	var tally rollout.Tally
	assert.Empty(t, tally.Text(3, "stage prod"))
	assert.Empty(t, tally.Reason())
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	one := rollout.Wait{Kind: rollout.BrakeHold, Object: "incident", Reason: "HoldInForce", Why: "payments down"}
	other := rollout.Wait{Kind: rollout.BrakeHold, Object: "east", Reason: "HoldInForce", Why: "storm", Until: noon}
	for _, wait := range []rollout.Wait{one, other, one} {
		tally.Add(wait)
	}
	assert.Equal(t, 3, tally.Count())
	assert.Equal(t, "HoldInForce", tally.Reason())
	assert.Equal(t, noon, tally.Until())
	assert.Equal(t, "2 of 12 cluster(s) of stage prod wait for hold incident (payments down); "+
		"1 of 12 cluster(s) of stage prod wait for hold east (storm) until 2026-11-22T12:00:00Z", tally.Text(12, "stage prod"))
}

func TestATextSaysThatItNamesTheFirstCausesOnly(t *testing.T) {
	var tally rollout.Tally
	for i := range 7 {
		assert.Equal(t, i > 5, rollout.NamesFirst(tally.Text(7, "stage prod")), "%d causes", i)
		tally.Add(rollout.Wait{Kind: rollout.BrakeHold, Object: string(rune('a' + i)), Reason: "HoldInForce", Why: "storm; and for 1 more reason"})
	}
	assert.False(t, rollout.NamesFirst(""))
}
