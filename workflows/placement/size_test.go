package placement_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// A rollout on thousands of clusters must not repeat those that are in flight, and names each that it changes twice, as briefly as can be.
// What a server of Temporal makes of it, test/histories measures.
func TestTheHistoryOfALargePlacementStaysSmall(t *testing.T) {
	const clusters, batch, burst = 5000, 1000, 70
	for sentence, test := range map[string]struct {
		window, calls, most int
		change              wf.Change
	}{
		"first placements, which go together": {clusters, 6, 500_000, wf.Change{Op: wf.OpAdd, FromState: "Scheduled"}},
		"updates of a quarter at a time":      {clusters / 4, 60, 600_000, wf.Change{Op: wf.OpUpdate, FromState: "Bound", FromRevision: "5ca1ab1e0ddba11"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			size, calls, proposed, written, landed := 0, 0, 0, 0, 0
			count := func(payload any) {
				text, err := json.Marshal(payload)
				require.NoError(t, err)
				size += len(text)
			}
			h.env.OnActivity(wf.AdvancePlacement, mock.Anything, mock.Anything).Return(func(_ context.Context, in wf.AdvanceRequest) (wf.AdvanceResult, error) {
				count(in)
				calls++
				written += len(in.Batch)
				if written == proposed && test.window < clusters && calls > 1 {
					landed = min(landed+burst, written)
				}
				out := wf.AdvanceResult{Epoch: int64(calls), Basis: "2fqxk3v8w9z1a", InFlight: written - landed}
				for len(out.Next) < batch && proposed < clusters && proposed-landed < test.window {
					change := test.change
					change.Cluster = fmt.Sprintf("member-cluster-of-edge-%04d", proposed)
					change.UID = fmt.Sprintf("%08x", proposed)
					out.Next = append(out.Next, change)
					proposed++
				}
				out.Settled = len(out.Next) == 0
				count(out)
				return out, nil
			})
			h.run()
			require.NoError(t, h.env.GetWorkflowError())
			t.Logf("%d bytes in %d calls", size, calls)
			assert.Equal(t, clusters, written)
			assert.Less(t, size, test.most)
			assert.LessOrEqual(t, calls, test.calls)
		})
	}
}
