package plan

import (
	"slices"
	"time"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Opening is when a wave may begin, if holds or windows keep it from beginning at once.
type Opening struct {
	// Wave counts from 1.
	Wave int `json:"wave"`
	// Cluster of the wave that opens last.
	Cluster string `json:"cluster"`
	// Opens is when time alone opens it; nil if it never does.
	Opens *time.Time `json:"opens,omitempty"`
	// For is what it waits for.
	For string `json:"for"`
}

// maxBoundaries bounds how many openings and closings are looked at until a cluster is open.
const maxBoundaries = 1000

// AddOpenings works out when the waves of each stage may begin, as holds, windows and exemptions are now. Each wave begins when the
// one before it has: how long updates take is not known. So the end that follows is the earliest. Of a run under way, what is done waits
// for nothing. It is pure.
func (p *Plan) AddOpenings(gateOf func(stage Stage) *brake.Chain, labels map[string]map[string]string, now time.Time) {
	at := now
	waited := false
	for i := range p.Stages {
		stage := &p.Stages[i]
		if stage.over {
			continue
		}
		stage.Earliest.Begins = at
		begun, opens := stage.addOpenings(gateOf(*stage), labels, at)
		waited = waited || len(stage.Openings) > 0
		if !opens {
			return // what comes after it waits for it
		}
		stage.Earliest.Opened = begun
		at = begun.Add(stage.soak)
		if stage.soaks.After(at) {
			at = stage.soaks
		}
		stage.Earliest.Ends = at
	}
	if waited {
		p.EarliestEnd = &at
	}
}

// addOpenings works out when the waves of a stage may begin that comes at an instant, and returns when the last of them has. With
// opens false, time alone never opens one of them.
func (s *Stage) addOpenings(gate *brake.Chain, labels map[string]map[string]string, at time.Time) (last time.Time, opens bool) {
	last = at
	opens = true
	for n, wave := range s.Waves {
		from := last
		if s.SkipsHeld {
			from = at // it need not wait for those before it
		}
		opening, waits := waveOpens(gate, wave, labels, from)
		if !waits {
			continue
		}
		opening.Wave = n + 1
		s.Openings = append(s.Openings, opening)
		switch {
		case opening.Opens != nil && opening.Opens.After(last):
			last = *opening.Opens
		case opening.Opens == nil && !s.SkipsHeld:
			return last, false
		case opening.Opens == nil:
			opens = false
		}
	}
	return last, opens
}

// CheckWindows notes windows that stages name and that are not there, or cannot be named: a run would not be initialized.
func (p *Plan) CheckWindows(windows []fleetflowv1alpha1.RolloutWindow) {
	for _, stage := range p.Stages {
		for _, name := range stage.Windows {
			var window *fleetflowv1alpha1.RolloutWindow
			if i := slices.IndexFunc(windows, func(w fleetflowv1alpha1.RolloutWindow) bool { return w.Name == name }); i >= 0 {
				window = &windows[i]
			}
			if why := brake.WhyNotNamed(window); why != "" {
				p.addProblem("stage %s names rollout window %s in windows: %s", stage.Name, name, why)
			}
		}
	}
}

// waveOpens returns when the cluster of a wave opens that opens last, and for what it waits until then; a wave that is open waits for
// nothing.
func waveOpens(gate *brake.Chain, wave []Cluster, labels map[string]map[string]string, at time.Time) (last Opening, waits bool) {
	for _, cluster := range wave {
		if cluster.begun {
			continue
		}
		start := fleetflowv1alpha1.StartUpdates
		if cluster.From == "" {
			start = fleetflowv1alpha1.StartFirstPlacements
		}
		opens, closure, closed := clusterOpens(gate, brake.Cluster{Name: cluster.Name, Labels: labels[cluster.Name]}, start, at)
		if !closed {
			continue
		}
		opening := Opening{Cluster: cluster.Name, For: closure.Text()}
		if !opens.IsZero() {
			opening.Opens = &opens
		}
		if !waits || last.Opens != nil && (opening.Opens == nil || last.Opens.Before(opens)) {
			last = opening
			waits = true
		}
	}
	return last, waits
}

// clusterOpens returns when a cluster that is closed at an instant is open, zero if time alone never opens it, and what closes it last
// until then.
func clusterOpens(gate *brake.Chain, cluster brake.Cluster, start brake.Start,
	at time.Time) (opens time.Time, last rollout.Wait, closed bool) {
	for range maxBoundaries {
		closure, is := gate.Closed(cluster, start, at)
		if !is {
			return at, last, closed
		}
		last = closure
		closed = true
		if closure.Until.IsZero() || !closure.Until.After(at) {
			return time.Time{}, last, true
		}
		at = closure.Until
	}
	return time.Time{}, last, closed
}

// longestSoak returns the longest time that a stage waits for by its tasks.
func longestSoak(soaks []time.Duration) time.Duration {
	if len(soaks) == 0 {
		return 0
	}
	return slices.Max(soaks)
}
