package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestTheReasonOfAHoldIsNoMarkdown(t *testing.T) {
	for reason, want := range map[string]string{
		"![x](https://a.example/p.png)": `!\[x\](https:\//a.example/p.png)`,
		"<img src=x>\n\n# big":          `\<img src=x\>  # big`,
		"*a* | `b` | _c_":               "\\*a\\* \\| \\`b\\` \\| \\_c\\_",
		"see www.a.example &lt;":        `see www\.a.example \&lt;`,
		"storm (ticket 12)":             "storm (ticket 12)",
	} {
		assert.Equal(t, "\n\n**Held**: "+want+".", describeClosed(wf.AdvanceResult{Closed: 1, ClosedBy: reason}))
	}
}

func TestTheWordsOfWhatARolloutWaitsFor(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	said := describeProgress(wf.AdvanceResult{
		Next: []wf.Change{{Cluster: "a"}}, InFlight: 2, Blocked: 3, HeldBack: 4, Hooked: 5, Closed: 6, Refused: 7,
		ClosedBy: "6 of 9 cluster(s) of the placement wait for hold incident (payments down)", Held: "with maxUnavailable 0 none may become unavailable",
		Waiting: []wf.Waiting{{Cluster: "b", Since: since, Step: "Available", Reason: "NotAllWorkAreAvailable", Object: "Deployment app/web"}, {Cluster: "c", Step: "hook preUpdate"}},
	}, since, since.Add(wf.StuckAfter))
	assert.Equal(t, `

| changing next | in flight | waiting for the limits |
|---|---|---|
| 1 | 2 | 3 |

**Stuck** since 2026-01-02T03:04:05Z.

The partition or a pause keeps 4 cluster(s) as they are.

5 cluster(s) wait for the answer to a lifecycle hook.

**Held**: 6 of 9 cluster(s) of the placement wait for hold incident (payments down).

The bindings of 7 cluster(s) cannot be written, which is tried again; the status of the placement says why.

The limits hold it back: with maxUnavailable 0 none may become unavailable.

| not available | since | step | reason | object |
|---|---|---|---|---|
| b | 2026-01-02T03:04:05Z | Available | NotAllWorkAreAvailable | Deployment app/web |
| c |  | hook preUpdate |  |  |`, said)
}
