package toolchain

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// usualCost is what building a program takes in seconds of CPU time with an empty build cache, each after those of its module
// that stand before it in the catalogue. Measured on two cores; what has ended on this machine corrects it.
var usualCost = map[string]float64{
	"kube-apiserver":          291,
	"kube-controller-manager": 31,
	"kube-scheduler":          62,
	"temporal":                166,
	"kwok":                    23,
	"etcd":                    15,
}

// smallCost is taken for programs that were not measured: few packages are theirs alone.
const smallCost = 60

// job is one program to build.
type job struct {
	// cost is the CPU time it is expected to take, in seconds.
	cost float64
	// began and ended are zero until it has.
	began, ended time.Time
}

// remaining returns how long jobs take that have not ended. All cores are taken to be busy, with as many jobs side by side as there
// are lanes; once jobs have ended, the time they took says how fast it really goes.
func remaining(jobs []job, lanes, cores int, now time.Time) time.Duration {
	speed := float64(cores)
	var done, took float64
	for _, j := range jobs {
		if !j.ended.IsZero() {
			done = done + j.cost
			took = took + j.ended.Sub(j.began).Seconds()
		}
	}
	if done > 0 && took > 0 {
		speed = float64(lanes) * done / took
	}
	left := 0.0
	for _, j := range jobs {
		switch {
		case !j.ended.IsZero():
		case j.began.IsZero():
			left += j.cost
		default:
			// What takes longer than expected is taken to be nearly done.
			left += max(j.cost-now.Sub(j.began).Seconds()*speed/float64(lanes), j.cost/10)
		}
	}
	return time.Duration(left / speed * float64(time.Second))
}

// inWords writes how long something takes as people say it.
func inWords(d time.Duration) string {
	switch minutes := int(math.Ceil(d.Minutes())); {
	case d < 30*time.Second:
		return "less than half a minute"
	case minutes == 1:
		return "about a minute"
	default:
		return fmt.Sprintf("about %d minutes", minutes)
	}
}

func countPrograms(n int) string {
	if n == 1 {
		return "1 program"
	}
	return fmt.Sprintf("%d programs", n)
}

// tally follows what is built and says what is left.
type tally struct {
	lanes, cores int
	clock        clock.PassiveClock

	mu   sync.Mutex
	jobs map[string]*job
}

func newTally(tools []pinned, costs map[string]float64, lanes, cores int, c clock.PassiveClock) *tally {
	t := &tally{lanes: lanes, cores: cores, clock: c, jobs: map[string]*job{}}
	for _, p := range tools {
		cost := float64(smallCost)
		for _, known := range []map[string]float64{usualCost, costs} {
			if measured, found := known[p.Binary]; found {
				cost = measured
			}
		}
		t.jobs[p.Binary] = &job{cost: cost}
	}
	return t
}

func (t *tally) begin(binary string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs[binary].began = t.clock.Now()
}

func (t *tally) end(binary string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs[binary].ended = t.clock.Now()
}

// remember keeps what a program took for the next time.
func (t *tally) remember(cache, binary string, took time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return saveCost(cache, binary, took)
}

// left returns how long the rest takes, in words.
func (t *tally) left() string {
	_, left := t.sum()
	return inWords(left)
}

// remark returns how many programs are done and how long the rest takes.
func (t *tally) remark() string {
	done, left := t.sum()
	return fmt.Sprintf("%d of %s done, %s left", done, countPrograms(len(t.jobs)), inWords(left))
}

func (t *tally) sum() (done int, left time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var jobs []job
	for _, j := range t.jobs {
		jobs = append(jobs, *j)
		if !j.ended.IsZero() {
			done++
		}
	}
	return done, remaining(jobs, t.lanes, t.cores, t.clock.Now())
}

// costsFile is what the cache keeps of how long builds took on this machine.
const costsFile = "build-seconds.json"

// loadCosts returns the CPU seconds that programs took to build on this machine; none where that is not known, or cannot be read.
func loadCosts(cache string) map[string]float64 {
	costs := map[string]float64{}
	content, err := os.ReadFile(filepath.Join(cache, costsFile))
	if err != nil || json.Unmarshal(content, &costs) != nil {
		return map[string]float64{}
	}
	return costs
}

// saveCost remembers what a program took. A build that took less than what is remembered counts half: the Go command may have
// had parts of it from before, which says little of the next.
func saveCost(cache, binary string, took time.Duration) error {
	costs := loadCosts(cache)
	costs[binary] = math.Round(max(took.Seconds(), (costs[binary]+took.Seconds())/2))
	content, err := json.MarshalIndent(costs, "", "  ")
	if err != nil {
		return fmt.Errorf("writing how long builds took: %w", err)
	}
	if err := os.WriteFile(filepath.Join(cache, costsFile), append(content, '\n'), 0o644); err != nil {
		return &storeError{err}
	}
	return nil
}
