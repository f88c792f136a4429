package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNextShares(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		shares []ReplicaShare
		want   []string
	}{
		"nothing is written if what is decided is in force": {
			shares: []ReplicaShare{{Cluster: "a", Decided: 5, InForce: 5}, {Cluster: "b", Decided: 0, InForce: 0}},
		},
		"growth is written at once, whatever is ready": {
			shares: []ReplicaShare{{Cluster: "b", Decided: 8, InForce: 2}, {Cluster: "a", Decided: 5, InForce: 4}},
			want:   []string{"a", "b"},
		},
		"a cluster does not shrink before the other has grown": {
			shares: []ReplicaShare{{Cluster: "a", Decided: 3, InForce: 10, Ready: 10}, {Cluster: "b", Decided: 7, InForce: 0}},
			want:   []string{"b"},
		},
		"a cluster shrinks once the other is ready": {
			shares: []ReplicaShare{{Cluster: "a", Decided: 3, InForce: 10, Ready: 10}, {Cluster: "b", Decided: 7, InForce: 7, Ready: 7}},
			want:   []string{"a"},
		},
		"replicas that are ready and not in force any more do not count": {
			shares: []ReplicaShare{{Cluster: "a", Decided: 3, InForce: 10, Ready: 10}, {Cluster: "b", Decided: 7, InForce: 7, Ready: 6}, {Cluster: "c", InForce: 0, Ready: 5}},
		},
		"all shrink at once if there are to be fewer": {
			shares: []ReplicaShare{{Cluster: "a", Decided: 5, InForce: 10, Ready: 10}, {Cluster: "b", Decided: 5, InForce: 10, Ready: 10}},
			want:   []string{"a", "b"},
		},
		"a cluster keeps what another that is broken does not have": {
			shares: []ReplicaShare{
				{Cluster: "a", Decided: 5, InForce: 10, Ready: 10}, {Cluster: "b", Decided: 5, InForce: 10, Ready: 10}, {Cluster: "c", Decided: 5, InForce: 10},
			},
			want: []string{"a", "c"},
		},
		"nothing keeps a workload from being scaled to none": {
			shares: []ReplicaShare{{Cluster: "a", InForce: 10}, {Cluster: "b", InForce: 10, Ready: 3}},
			want:   []string{"a", "b"},
		},
		"a frozen cluster counts as it is": {
			shares: []ReplicaShare{
				{Cluster: "a", Decided: 3, InForce: 10, Ready: 10}, {Cluster: "b", Decided: 0, InForce: 7, Ready: 7, Frozen: true}, {Cluster: "c", Decided: 14, InForce: 7, Frozen: true},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, NextShares(tc.shares))
		})
	}
}

// replicaFleet is a simulated fleet that runs one divided workload.
type replicaFleet struct {
	shares []ReplicaShare
	// running is what is ready in truth; the shares say what was reported.
	running []int
}

func newReplicaFleet(random *rand.Rand) *replicaFleet {
	f := &replicaFleet{}
	for i := range 1 + random.IntN(6) {
		n := random.IntN(12)
		f.shares = append(f.shares, ReplicaShare{Cluster: fmt.Sprintf("c%d", i), Decided: n, InForce: n, Ready: n})
		f.running = append(f.running, n)
	}
	return f
}

func (f *replicaFleet) ready() (sum int) {
	for _, n := range f.running {
		sum += n
	}
	return sum
}

// advance lets a random cluster start or report some of its pods.
func (f *replicaFleet) advance(random *rand.Rand) {
	i := random.IntN(len(f.shares))
	if f.running[i] < f.shares[i].InForce {
		f.running[i] += 1 + random.IntN(f.shares[i].InForce-f.running[i])
	}
	i = random.IntN(len(f.shares))
	f.shares[i].Ready = f.running[i]
}

// write carries out the first of the planned writes, as many as are given: a crash may come between two of them. It checks
// that no shrink takes more than it may.
func (f *replicaFleet) write(t *testing.T, most int) (written int) {
	t.Helper()
	next := NextShares(f.shares)
	for _, cluster := range next[:min(most, len(next))] {
		i := slices.IndexFunc(f.shares, func(s ReplicaShare) bool { return s.Cluster == cluster })
		s := &f.shares[i]
		require.NotEqual(t, s.Decided, s.InForce, "a write that changes nothing")
		total := 0
		inForce := 0
		for _, other := range f.shares {
			total += other.Decided
			inForce += other.InForce
		}
		before := f.ready()
		s.InForce = s.Decided
		f.running[i] = min(f.running[i], s.InForce) // the member removes what is too many at once
		s.Ready = 0                                 // what was reported was about another number
		if after := f.ready(); after < before {
			require.GreaterOrEqual(t, after, min(before, inForce, total), "the ready replicas sag")
		}
		written++
	}
	return written
}

func TestScalingNeverLetsReadyReplicasSag(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		fleet := newReplicaFleet(random)
		for range 1 + random.IntN(4) { // decisions, each of which may come while the last is being carried out
			for i := range fleet.shares {
				fleet.shares[i].Decided = random.IntN(12)
			}
			for range random.IntN(20) {
				fleet.write(t, random.IntN(3))
				fleet.advance(random)
			}
		}
		for step := 0; slices.ContainsFunc(fleet.shares, func(s ReplicaShare) bool { return s.InForce != s.Decided }); step++ {
			require.Less(t, step, 2000, "seed %d: what is decided does not come into force: %+v", seed, fleet.shares)
			fleet.write(t, random.IntN(3))
			fleet.advance(random)
		}
		require.Zero(t, fleet.write(t, 100), "seed %d: a write although nothing is to change", seed)
	}
}
