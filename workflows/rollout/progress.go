package rollout

// ClusterPhase is how far one cluster of a stage is.
type ClusterPhase int

// The phases of a cluster. A cluster that has failed within the stage's budget, or that is
// skipped, is no longer in flight: the stage goes on without it. A failed one may still become
// done, and both may be asked to try again, which makes them wait for their turn once more.
const (
	ClusterWaiting ClusterPhase = iota
	ClusterUpdating
	ClusterDone
	ClusterFailed
	ClusterSkipped
)

// String returns the phase as users see it in a table.
func (p ClusterPhase) String() string {
	return [...]string{"-", "updating", "done", "failed", "skipped"}[p]
}

// Progress is how far the clusters of a stage are, in update order. Workflows ask it, so that its answers are part of histories: another
// one to the same clusters is behind workflow.GetVersion.
type Progress []ClusterPhase

// Next returns the indexes of clusters to start now, in order: those that wait, while fewer
// than maxConcurrency are in flight.
func (p Progress) Next(maxConcurrency int) []int {
	started := make([]bool, len(p))
	settled := make([]bool, len(p))
	for i, phase := range p {
		started[i] = phase != ClusterWaiting
		settled[i] = phase != ClusterWaiting && phase != ClusterUpdating
	}
	return Window(started, settled, maxConcurrency)
}

// In returns the indexes of the clusters in a phase.
func (p Progress) In(phase ClusterPhase) []int {
	var in []int
	for i, is := range p {
		if is == phase {
			in = append(in, i)
		}
	}
	return in
}

// Count returns how many clusters are in a phase.
func (p Progress) Count(phase ClusterPhase) int { return len(p.In(phase)) }

// Settled reports whether no cluster waits or is in flight.
func (p Progress) Settled() bool { return p.Count(ClusterWaiting)+p.Count(ClusterUpdating) == 0 }

// GiveUp decides, of clusters that are past their deadline, without how many a stage goes on:
// failed are those it already goes on without. It never goes on without more than maxFailures;
// exceeded says that it would have to.
func GiveUp(failed, overdue, maxFailures int) (without int, exceeded bool) {
	return max(0, min(overdue, maxFailures-failed)), failed+overdue > maxFailures
}
