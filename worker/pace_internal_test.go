package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/call"
)

func TestHeartbeatsComeInTimeAndSeldom(t *testing.T) {
	for sentence, test := range map[string]struct {
		timeout, outage time.Duration
	}{
		"a step that waits, also while Temporal is away": {call.HeartbeatTimeout, call.Outage},
		"a step that waits for a build before":           {20 * time.Second, call.Outage},
		"a short step":                                   {call.ShortHeartbeatTimeout, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			pace := paceOf(test.timeout)
			assert.Less(t, pace.Pause+test.outage+pace.Attempt+pace.Again, test.timeout)
		})
	}
	// The server looks after the timeout of a heartbeat, and then anew from the newest one.
	pause := paceOf(call.HeartbeatTimeout).Pause
	looks := call.HeartbeatTimeout.Truncate(pause)
	assert.LessOrEqual(t, 1/pause.Seconds()+1/looks.Seconds(), 0.17, "writes a second of an idle rollout, as the bench allows them")
}
