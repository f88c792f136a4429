package live

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// terminal understands what Screen writes.
type terminal struct {
	rows   []string
	row    int
	column int
	writes int
}

func (t *terminal) Write(p []byte) (int, error) {
	t.writes++
	for text := string(p); text != ""; {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexAny(text, "AKJ")
			t.escape(text[2:end], text[end])
			text = text[end+1:]
		case text[0] == '\r':
			t.column = 0
			text = text[1:]
		case text[0] == '\n':
			t.row = t.row + 1
			t.column = 0
			text = text[1:]
		default:
			row := t.at(t.row)
			*row = (*row)[:min(t.column, len(*row))] + text[:1] + (*row)[min(t.column+1, len(*row)):]
			t.column = t.column + 1
			text = text[1:]
		}
	}
	return len(p), nil
}

func (t *terminal) at(row int) *string {
	for len(t.rows) <= row {
		t.rows = append(t.rows, "")
	}
	return &t.rows[row]
}

func (t *terminal) escape(argument string, what byte) {
	switch what {
	case 'A':
		up, err := strconv.Atoi(argument)
		if err != nil {
			panic(err)
		}
		t.row -= up
	case 'K':
		row := t.at(t.row)
		*row = (*row)[:min(t.column, len(*row))]
	case 'J':
		t.rows = t.rows[:min(t.row, len(t.rows))]
	}
}

func TestTheScreenShowsTheLatestPictureWhateverWasThere(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	shown := &terminal{}
	screen := &Screen{Out: shown, Size: func() (int, int) { return 80, 0 }}
	for range 500 {
		var lines []string
		for i := range chance.IntN(8) + 1 {
			lines = append(lines, fmt.Sprintf("line %d %s", i, strings.Repeat("x", chance.IntN(3))))
		}
		require.NoError(t, screen.Draw(lines))
		require.Equal(t, lines, shown.rows)
	}
}

func TestTheScreenRewritesOnlyLinesThatDifferInOneWrite(t *testing.T) {
	out := &bytes.Buffer{}
	screen := &Screen{Out: out, Size: func() (int, int) { return 80, 0 }}
	require.NoError(t, screen.Draw([]string{"one", "two", "three"}))
	out.Reset()
	require.NoError(t, screen.Draw([]string{"one", "2", "three"}))
	assert.Equal(t, "\x1b[3A\r\n\r2\x1b[K\n\n", out.String())
	out.Reset()
	require.NoError(t, screen.Draw([]string{"one", "2", "three"}))
	assert.Empty(t, out.String(), "nothing has changed")
}

func TestTheScreenLeavesOutWhatDoesNotFit(t *testing.T) {
	out := &bytes.Buffer{}
	screen := &Screen{Out: out, Size: func() (int, int) { return 80, 4 }}
	require.NoError(t, screen.Draw([]string{"1", "2", "3", "4", "5"}))
	assert.Equal(t, "1\x1b[K\n2\x1b[K\n… 3 more lines: make the window higher\x1b[K\n", out.String())
}

func TestEventsTellOfEveryChangeOnce(t *testing.T) {
	events := &Events{}
	cluster := tree.Node{Kind: "cluster", Name: "member-1", State: updaterun.PhaseRunning}
	stage := tree.Node{Kind: "stage", Name: "canary", State: updaterun.PhaseRunning, Count: &updaterun.Counts{Total: 2}, Children: []tree.Node{cluster, {Kind: "cluster", Name: "member-2", State: updaterun.PhasePending}}}
	root := tree.Node{Kind: "run", Name: "run/web", State: updaterun.PhaseRunning, Children: []tree.Node{stage}}
	assert.Equal(t, []string{"run/web  Running", "run/web › canary  Running  0/2"}, events.Changes(root))
	assert.Empty(t, events.Changes(root))
	root.Children[0].Children[0].State = updaterun.PhaseSucceeded
	assert.Equal(t, []string{"run/web › canary › member-1  Succeeded"}, events.Changes(root))
}

func TestTheLoopDrawsAtMostFiveTimesASecond(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	changed := make(chan struct{}, 1)
	drawn := make(chan time.Time, 100)
	pictures := 0
	loop := &Loop{Clock: clock, Changed: changed, Picture: func() Picture {
		pictures++
		return Picture{Over: pictures == 6}
	}, Show: func(Picture) error {
		drawn <- clock.Now()
		select {
		case changed <- struct{}{}: // there is always something new
		default:
		}
		return nil
	}}
	done := make(chan error, 1)
	go func() { done <- loop.Run(context.Background()) }()
	previous := <-drawn
	for range 5 {
		require.Eventually(t, func() bool { return clock.HasWaiters() }, time.Second, time.Millisecond)
		var next time.Time
		for next.IsZero() {
			clock.Step(Frame / 4)
			select {
			case next = <-drawn:
			case <-time.After(5 * time.Millisecond):
			}
		}
		assert.GreaterOrEqual(t, next.Sub(previous), Frame)
		previous = next
	}
	require.NoError(t, <-done)
}
