package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// A row is a request at an instant, after those before it: what was granted is kept, as the status of the cluster keeps it.
func TestGrantBusy(t *testing.T) {
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	ask := func(until float64) *clusterv1beta1.BusyRequest {
		end := metav1.NewTime(at(until))
		return &clusterv1beta1.BusyRequest{Until: &end, Message: "month-end"}
	}
	type step struct {
		hour    float64
		asked   *clusterv1beta1.BusyRequest
		until   float64 // until when the cluster is busy; not after hour if it is not
		refusal string
	}
	tests := map[string][]step{
		"no request":         {{hour: 0}},
		"an hour":            {{hour: 0, asked: ask(1), until: 1}, {hour: 0.5, asked: ask(1), until: 1}, {hour: 1, asked: ask(1), until: 1, refusal: "is over"}},
		"it is taken back":   {{hour: 0, asked: ask(4), until: 4}, {hour: 1, until: 1}, {hour: 2, until: 1}},
		"it is made shorter": {{hour: 0, asked: ask(4), until: 4}, {hour: 1, asked: ask(2), until: 2}},
		"a year":             {{hour: 0, asked: ask(365 * 24), until: 12}, {hour: 12, asked: ask(365 * 24), until: 12, refusal: "from 2026-12-01 12:00:00 UTC on"}},
		"renewed every hour": {{hour: 0, asked: ask(1), until: 1}, {hour: 11, asked: ask(12), until: 12}, {hour: 11.9, asked: ask(13), until: 12}, {hour: 12, asked: ask(14), until: 12, refusal: "as long as it does"},
			{hour: 23.9, asked: ask(25), until: 12, refusal: "as long as it does"}, {hour: 24, asked: ask(25), until: 25}},
		"taken back and asked anew":            {{hour: 0, asked: ask(4), until: 4}, {hour: 1, until: 1}, {hour: 8, asked: ask(30), until: 12}, {hour: 13, until: 12}, {hour: 14, asked: ask(20), until: 12, refusal: "as long as it does"}},
		"without an end":                       {{hour: 0, asked: &clusterv1beta1.BusyRequest{}, refusal: "until when"}},
		"without an end, in the agent's words": {{hour: 0, asked: &clusterv1beta1.BusyRequest{Message: "until is \"soon\""}, refusal: `until is "soon"`}},
		"in the past":                          {{hour: 0, asked: ask(-1), refusal: "is over"}},
		"the hub's clock goes back a day":      {{hour: 48, asked: ask(50), until: 50}, {hour: 24, asked: ask(25), until: 25}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var busy *clusterv1beta1.Busy
			for _, s := range steps {
				var refusal string
				busy, refusal = GrantBusy(busy, s.asked, at(s.hour))
				assert.Equal(t, s.until > s.hour, busy.IsNow(at(s.hour)), "at %v", s.hour)
				if s.until != 0 {
					require.NotNil(t, busy)
					assert.Equal(t, at(s.until), busy.Until.Time, "at %v", s.hour)
				}
				assert.Contains(t, refusal, s.refusal)
				assert.Equal(t, s.refusal == "", refusal == "", refusal)
				again, _ := GrantBusy(busy, s.asked, at(s.hour))
				assert.Equal(t, busy, again, "looking twice changes nothing")
			}
		})
	}
}

// However a member lies, the fleet waits for it no more than half of the time.
func FuzzGrantBusy(f *testing.F) {
	f.Add([]byte{0, 1, 2, 200, 255, 13, 12, 11, 10, 9, 8, 7, 6})
	f.Fuzz(func(t *testing.T, choices []byte) {
		now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
		begun := now
		var busy *clusterv1beta1.Busy
		var waited time.Duration
		for _, choice := range choices {
			var asked *clusterv1beta1.BusyRequest
			if choice%3 != 0 {
				end := metav1.NewTime(now.Add(time.Duration(choice) * 30 * time.Minute))
				asked = &clusterv1beta1.BusyRequest{Until: &end}
			}
			busy, _ = GrantBusy(busy, asked, now)
			next := now.Add(time.Duration(choice%7) * 47 * time.Minute)
			if busy != nil {
				waited += max(0, min(next.Sub(now), busy.Until.Sub(now)))
				assert.LessOrEqual(t, busy.Until.Sub(busy.Since.Time), clusterv1beta1.MaxBusy)
			}
			now = next
		}
		periods := now.Sub(begun)/(2*clusterv1beta1.MaxBusy) + 1
		assert.LessOrEqual(t, waited, periods*clusterv1beta1.MaxBusy)
	})
}

func TestAMessageOfAMemberIsOneLine(t *testing.T) {
	end := metav1.NewTime(time.Date(2026, 11, 30, 13, 0, 0, 0, time.UTC))
	busy, _ := GrantBusy(nil, &clusterv1beta1.BusyRequest{Until: &end, Message: "a\nb\x1b[31m\tc" + strings.Repeat("x", 400)}, end.Add(-time.Hour))
	assert.True(t, strings.HasPrefix(busy.Message, "a b [31m cx"), busy.Message)
	assert.Len(t, busy.Message, clusterv1beta1.MaxBusyMessage)
}
