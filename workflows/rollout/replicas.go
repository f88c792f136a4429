package rollout

import (
	"cmp"
	"slices"
)

// ReplicaShare is what one cluster has of a divided workload.
type ReplicaShare struct {
	Cluster string
	// Decided are the replicas that it is to run, InForce those that it was told last, 0 if none. Ready are
	// those that it reports as ready since then.
	Decided, InForce, Ready int
	// Frozen says that nothing is to be written for it: it counts as it is.
	Frozen bool
}

// serves returns how many ready replicas of the cluster will stay.
func (s ReplicaShare) serves() int { return min(s.Ready, s.InForce) }

// NextShares returns the clusters that get what is decided for them now: those that grow at once, and those that shrink
// as far as the others make up for it: what is ready on them, with what stays, must not be below what was in force in
// all, or below what is decided in all, if that is less. The others follow when more replicas are ready.
func NextShares(shares []ReplicaShare) []string {
	shares = slices.SortedFunc(slices.Values(shares), func(a, b ReplicaShare) int { return cmp.Compare(a.Cluster, b.Cluster) })
	var now []string
	total := 0
	inForce := 0
	serving := 0
	for i := range shares {
		s := &shares[i]
		if s.Decided > s.InForce && !s.Frozen {
			now = append(now, s.Cluster)
			s.InForce = s.Decided
		}
		total += s.Decided
		inForce += s.InForce
		serving += s.serves()
	}
	for i := range shares {
		s := &shares[i]
		if s.Decided >= s.InForce || s.Frozen || serving-s.serves()+s.Decided < min(inForce, total) {
			continue
		}
		now = append(now, s.Cluster)
		serving -= s.serves()
		inForce -= s.InForce - s.Decided
		s.InForce = s.Decided
		serving += s.serves()
	}
	return now
}
