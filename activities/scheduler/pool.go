package scheduler

import (
	"cmp"
	"container/heap"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// candidate is a cluster that passed the filters, with what ranks it.
type candidate struct {
	cluster *clusterv1beta1.MemberCluster
	score   framework.Score
}

// compareCandidates ranks the better candidate first: by score, at last by name, the
// highest first.
func compareCandidates(a, b candidate) int {
	return cmp.Or(a.score.Compare(b.score), cmp.Compare(b.cluster.Name, a.cluster.Name))
}

// candidateHeap gives candidates in order, the best first. To sort all of them would cost
// more than is needed.
type candidateHeap []candidate

// Len, Less, Swap, Push and Pop are for container/heap.
func (h candidateHeap) Len() int           { return len(h) }
func (h candidateHeap) Less(i, j int) bool { return compareCandidates(h[i], h[j]) < 0 }
func (h candidateHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is not used: candidates are appended before the heap is made.
func (h *candidateHeap) Push(x any) { *h = append(*h, x.(candidate)) }

// Pop takes the last off.
func (h *candidateHeap) Pop() any {
	last := len(*h) - 1
	taken := (*h)[last]
	*h = (*h)[:last]
	return taken
}

// pool holds the candidates and gives out the best ones. What plug-ins make of a cluster
// from pick to pick is the same for all clusters of a class; so a pick costs a look at
// every class, not at every cluster.
type pool struct {
	run     *runner
	byClass map[int]*class
	// classes are those in byClass.
	classes []*class
}

// class are candidates that no plug-in tells apart from pick to pick.
type class struct {
	number  int
	waiting candidateHeap
	// reason keeps the class out of the next batch, said by a filter; extra is added
	// to the scores.
	reason string
	by     int
	extra  framework.Score
}

// newPool makes candidates of the clusters that passed the filters.
func newPool(run *runner, passed []*clusterv1beta1.MemberCluster) *pool {
	p := &pool{run: run, byClass: map[int]*class{}}
	for _, cluster := range passed {
		key := run.classOf(cluster)
		found, ok := p.byClass[key]
		if !ok {
			found = &class{number: key}
			p.byClass[key] = found
			p.classes = append(p.classes, found)
		}
		found.waiting = append(found.waiting, candidate{cluster: cluster, score: run.scoreCluster(cluster)})
	}
	return p
}

// takeBatches takes the best candidates out, in the order they are picked: batch by batch, if
// some plug-in wants that. There may be fewer than are wanted.
func (p *pool) takeBatches(count int) []candidate {
	if count <= 0 {
		return nil
	}
	for _, class := range p.classes {
		heap.Init(&class.waiting)
	}
	var picked []candidate
	for len(picked) < count {
		batch := count - len(picked)
		if p.run.batch > 0 {
			batch = min(batch, p.run.batch)
		}
		p.askPlugins()
		before := len(picked)
		for range batch {
			best, ok := p.takeBest()
			if !ok {
				break
			}
			picked = append(picked, best)
		}
		if len(picked) == before {
			return picked
		}
		for _, one := range picked[before:] {
			p.run.reserveCluster(one.cluster)
		}
	}
	return picked
}

// askPlugins asks the plug-ins about every class anew.
func (p *pool) askPlugins() {
	for _, class := range p.classes {
		if len(class.waiting) == 0 {
			continue
		}
		class.reason, class.by = p.run.batchFilter(class.number)
		class.extra = p.run.batchScore(class.number)
	}
}

// takeBest takes the best candidate out.
func (p *pool) takeBest() (candidate, bool) {
	var best candidate
	var from *class
	for _, class := range p.classes {
		if len(class.waiting) == 0 || class.reason != "" {
			continue
		}
		first := class.waiting[0]
		first.score = first.score.Add(class.extra)
		if from == nil || compareCandidates(first, best) < 0 {
			best = first
			from = class
		}
	}
	if from == nil {
		return candidate{}, false
	}
	heap.Pop(&from.waiting)
	return best, true
}
