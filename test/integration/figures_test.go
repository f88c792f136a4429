//go:build integration

package integration

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// samples is of how many measurements each figure is the median.
const samples = 5

// saneAtMost only catches what is no figure at all, such as a wait for a timer: how fast a machine is, is not for a test.
const saneAtMost = 10 * time.Second

// TestFigures measures what the fleet takes for its main jobs and prints it. It is to be run on a machine that does
// nothing else:
//
//	go test -tags integration -run TestFigures -v ./test/integration
func TestFigures(t *testing.T) {
	t.Run("a staged run over 3 clusters in 2 stages without gates, from its creation to Succeeded", func(t *testing.T) {
		s := newSpec(t)
		s.externalPlacement()
		s.strategy(staging(), canary())
		s.awaitSucceeded(s.startRun("first", "0"))
		s.measure(func(i int) time.Duration {
			s.changeTo(fmt.Sprintf("change%d", i))
			snapshot := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
				Name: placementv1beta1.ResourceSnapshotName(s.name, i+1, 0),
			}}
			await(s, s.hub, snapshot, "to be taken", func(*placementv1beta1.ClusterResourceSnapshot) error { return nil })
			return s.timed(func() { s.awaitSucceeded(s.startRun(fmt.Sprintf("run%d", i), "")) })
		})
	})
	t.Run("a placement to 3 clusters, from its creation to Available", func(t *testing.T) {
		newSpec(t).measure(func(int) time.Duration {
			s := newSpec(t)
			s.namespaceWithConfigMap()
			return s.timed(func() {
				s.place()
				s.awaitAvailable("0")
			})
		})
	})
	t.Run("a ResourcePlacement to 3 clusters that have its namespace, from its creation to Available", func(t *testing.T) {
		newSpec(t).measure(func(int) time.Duration {
			s := newSpec(t)
			s.namespaceWithConfigMap()
			s.placeNamespaceAlone()
			return s.timed(func() {
				s.placeInTeam()
				s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
			})
		})
	})
	t.Run("a staged run in a namespace over 3 clusters in 2 stages without gates, from its creation to Succeeded", func(t *testing.T) {
		s := newSpec(t)
		s.externalInTeam()
		s.teamStrategy("two", staging(), canary())
		s.create(s.teamRun("first", "two", "0"))
		s.awaitTeamRunSucceeded("first")
		s.measure(func(i int) time.Duration {
			s.changeTo(fmt.Sprintf("change%d", i))
			snapshot := &placementv1beta1.ResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
				Name: placementv1beta1.ResourceSnapshotName("web", i+1, 0), Namespace: s.name,
			}}
			await(s, s.hub, snapshot, "to be taken", func(*placementv1beta1.ResourceSnapshot) error { return nil })
			return s.timed(func() {
				s.create(s.teamRun(fmt.Sprintf("run%d", i), "two", ""))
				s.awaitTeamRunSucceeded(fmt.Sprintf("run%d", i))
			})
		})
	})
	t.Run("a ConfigMap, from its change on the hub to its being on 3 members, one at a time", func(t *testing.T) {
		s := newSpec(t)
		s.namespaceWithConfigMap()
		s.place()
		s.awaitAvailable("0")
		s.measure(func(i int) time.Duration {
			value := fmt.Sprintf("change%d", i)
			took := s.timed(func() {
				s.changeTo(value)
				s.awaitValue(value, allMembers...)
			})
			s.awaitAvailable(fmt.Sprint(i + 1))
			return took
		})
	})
	t.Run("the idle hub agent", func(t *testing.T) { newSpec(t).measureIdle() })
}

func (s *spec) timed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// measure prints the median of several samples.
func (s *spec) measure(sample func(i int) time.Duration) {
	s.Helper()
	took := make([]time.Duration, samples)
	for i := range took {
		took[i] = sample(i).Round(time.Millisecond)
	}
	inOrder := slices.Sorted(slices.Values(took))
	s.Logf("median %s of %v", inOrder[samples/2], took)
	require.Less(s, inOrder[samples/2], saneAtMost)
}

const (
	// idleFor is for how long the idle hub agent is looked at.
	idleFor = 20 * time.Second
	// ticks is how many units of CPU time Linux counts in a second.
	ticks = 100
	// saneMemory and saneShare are bounds of the same kind as saneAtMost.
	saneMemory = 500 << 20
	saneShare  = 0.2
)

// measureIdle prints what the hub agent needs while nothing changes.
func (s *spec) measureIdle() {
	s.Helper()
	status, err := s.Control.Status(s.Context())
	require.NoError(s, err)
	agent, found := status.Component(hubAgent)
	require.True(s, found)
	awaitAll(s, s.hub, "to be cleared, so that the hub agent is idle", func(all []*placementv1beta1.ClusterResourcePlacement) error {
		for _, p := range all {
			if !p.DeletionTimestamp.IsZero() {
				return fmt.Errorf("%s is being cleared", p.Name)
			}
		}
		return nil
	})
	before := s.cpuTime(agent.PID)
	s.during(nil, idleFor)
	share := (s.cpuTime(agent.PID) - before) / idleFor.Seconds()
	s.Logf("%.2f %% of a core, %d MiB", share*100, agent.Memory>>20)
	require.Less(s, share, saneShare)
	require.Less(s, agent.Memory, int64(saneMemory))
}

// cpuTime is how many seconds of CPU time a process has had.
func (s *spec) cpuTime(pid int) float64 {
	s.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if os.IsNotExist(err) {
		s.Skip("only Linux tells the CPU time of a process in this way")
	}
	require.NoError(s, err)
	// The name of the program stands in brackets and may have spaces; user and system time are the 12th and 13th field
	// after it.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	var user, system float64
	_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	require.NoError(s, err)
	return (user + system) / ticks
}
