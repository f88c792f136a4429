//go:build bench

package member

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// The targets. They hold on a machine that does nothing else; the times are printed on any.
const (
	appliedWithin  = 150 * time.Millisecond
	noticedWithin  = time.Second
	memoryAtMost   = 150 << 20
	startsWithin   = 30 * time.Second
	idleAtMost     = 0.01 // of a core
	callsAtMost    = 5
	removedASecond = 40 // Works: the agent's budget for the hub is 50 requests a second
)

// worksEnv names another number of Works than that of the targets.
const worksEnv = "FLEETFLOW_BENCH_WORKS"

const (
	defaultWorks = 5000
	patience     = 9 * time.Minute
)

var (
	rig *onemember.Rig
	// works is how many Works the member carries.
	works = defaultWorks
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	if text := os.Getenv(worksEnv); text != "" {
		var err error
		if works, err = strconv.Atoi(text); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", worksEnv, err)
			return 1
		}
	}
	dir, err := os.MkdirTemp("", "fleetflow-bench-member-")
	if err == nil {
		rig, err = onemember.Start("../../..", dir)
	}
	if err == nil {
		// They look at every object and its owner, which is not the agent's doing.
		err = rig.Do(context.Background(), control.Stop, onemember.Controllers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	code := m.Run()
	rig.Close()
	if code == 0 {
		_ = os.RemoveAll(dir) // what stays is in the folder for temporary files
	}
	return code
}

// TestFigures measures one agent, from its first Work to the removal of thousands. The parts build on each other:
//
//	go test -count=1 -tags bench -timeout 30m -v ./test/bench/member
func TestFigures(t *testing.T) {
	b := &bench{T: t}
	b.part("a Work with one ConfigMap, from its creation to applied and reported", (*bench).latency)
	b.part("a drift, from the change on the member to its being undone", (*bench).correction)
	b.part("a drift, from the change on the member to its report on the hub", (*bench).report)
	b.part(fmt.Sprintf("%d Works, from their creation to applied and reported", works), (*bench).fill)
	b.part("the agent with all of them, when nothing happens", (*bench).idle)
	b.part("one of the Works is changed on the hub", (*bench).changeOne)
	b.part("one object of a Work with a hundred is changed on the hub", (*bench).changeOneOfMany)
	b.part("one object is changed on the member", (*bench).driftOne)
	b.part("the agent starts with all of them applied", (*bench).coldStart)
	b.part("all of them are deleted", (*bench).removeAll)
}

type bench struct{ *testing.T }

// part runs one part; the next ones need not make sense if it fails.
func (b *bench) part(name string, do func(*bench)) {
	if !b.Run(name, func(t *testing.T) { do(&bench{T: t}) }) {
		b.FailNow()
	}
}

func (b *bench) context() context.Context {
	ctx, cancel := context.WithTimeout(b.T.Context(), patience)
	b.Cleanup(cancel)
	return ctx
}

// tell prints a figure with the machine's load, which says what it is worth.
func (b *bench) tell(format string, args ...any) {
	b.Helper()
	load, _ := os.ReadFile("/proc/loadavg") // not everywhere
	one, _, _ := strings.Cut(string(load), " ")
	b.Logf("%s   [load %s]", fmt.Sprintf(format, args...), one)
}

// told marks a figure that misses its target. How fast a machine is, is not for a test: times and shares of a core are only told.
func told(missed bool) string {
	if missed {
		return " MISSED"
	}
	return ""
}

// judge prints the spread of times and holds the median against a target.
func (b *bench) judge(times []time.Duration, target time.Duration) {
	b.Helper()
	slices.Sort(times)
	median := times[len(times)/2]
	b.tell("median %s, p90 %s, max %s of %d; target %s", round(median), round(times[len(times)*9/10]), round(times[len(times)-1]), len(times), target)
	require.LessOrEqual(b, median, target)
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// calls is what both API servers were asked.
type calls struct{ hub, member onemember.Calls }

func (b *bench) calls(ctx context.Context) calls {
	b.Helper()
	hub, err := rig.Calls(ctx, state.Hub)
	require.NoError(b, err)
	member, err := rig.Calls(ctx, onemember.Member)
	require.NoError(b, err)
	return calls{hub: hub, member: member}
}

func (c calls) since(before calls) calls {
	return calls{hub: c.hub.Since(before.hub), member: c.member.Since(before.member)}
}

func (c calls) total() int { return c.hub.Total() + c.member.Total() }

func (c calls) String() string {
	return fmt.Sprintf("hub: %s; member: %s", c.hub, c.member)
}
