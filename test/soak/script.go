package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// step is one thing that a user or the world does to the fleet. It is written to the bundle as it is.
type step struct {
	// At is when it was begun, counted from the beginning of the soak.
	At time.Duration `json:"at"`
	// Verb says what is done, and is a key of acts.
	Verb string `json:"verb"`
	// Target is the placement, cluster, component or hold that it is done to.
	Target string `json:"target,omitempty"`
	// Kind and N say more, by verb: a policy, a behaviour, a strategy; a number of clusters, a share, a version.
	Kind string `json:"kind,omitempty"`
	N    int    `json:"n,omitempty"`
	// External asks for a placement that is left to update runs.
	External bool `json:"external,omitempty"`
	// For is how long what is done lasts.
	For time.Duration `json:"for,omitempty"`
	// Pause is how long nothing follows.
	Pause time.Duration `json:"pause"`
	// Problem is why it could not be done.
	Problem string `json:"problem,omitempty"`
}

// verb is one thing that may come next.
type verb struct {
	name   string
	weight int
	// fill makes the rest of the step, by chance.
	fill func(s *script, now *step)
}

// script tells what happens next. A seed and a size always give the same steps: chance is asked by nothing else.
type script struct {
	random     *rand.Rand
	placements []string
	hollow     []string
	real       []string
	verbs      []verb
	total      int
	mean       time.Duration
	versions   int
	// opening is how many placements have been made at the beginning.
	opening int
}

// size is that of a fleet under soak.
type size struct {
	Placements int `json:"placements"`
	Hollow     int `json:"hollow"`
	Members    int `json:"members"`
}

// userScript returns what users do. They begin with all placements; every other one is left to update runs.
func userScript(seed uint64, of size) *script {
	s := newScript(seed, 1, of, 800*time.Millisecond, []verb{
		{"place", 12, (*script).place},
		{"change", 26, (*script).change},
		{"resize", 6, (*script).resize},
		{"limit", 4, (*script).resize},
		{"pause", 2, (*script).onPlacement},
		{"unpause", 4, (*script).onPlacement},
		{"remove", 3, (*script).onPlacement},
		{"run", 18, (*script).run},
		{"approve", 12, nothing},
		{"stop", 3, (*script).onPlacement},
		{"resume", 6, (*script).onPlacement},
		{"forget", 2, (*script).onPlacement},
		{"evict", 5, (*script).evict},
		{"budget", 3, (*script).resize},
		{"unbudget", 3, (*script).onPlacement},
		{"hold", 2, (*script).hold},
		{"release", 8, (*script).hold},
		{"shut", 2, (*script).window},
		{"open", 8, (*script).window},
	})
	s.opening = of.Placements
	return s
}

// worldScript returns what happens to the fleet. In an upgrade, builds of agents are exchanged too.
func worldScript(seed uint64, of size, upgraded bool) *script {
	verbs := []verb{
		{"leave", 6, (*script).onHollow},
		{"join", 9, (*script).onHollow},
		{"behave", 20, (*script).behave},
		{"kill", 16, (*script).component},
		{"freeze", 16, (*script).component},
		{"slow", 6, (*script).component},
		{"partition", 8, (*script).partition},
		{"fill", 5, (*script).fill},
		{"cut", 6, (*script).cut},
		{"wipe", 3, func(_ *script, now *step) { now.Target = "temporal" }},
	}
	if upgraded {
		verbs = append(verbs, verb{"exchange", 16, (*script).exchange})
	}
	return newScript(seed, 2, of, 6*time.Second, verbs)
}

func newScript(seed, stream uint64, of size, mean time.Duration, verbs []verb) *script {
	s := &script{random: rand.New(rand.NewPCG(seed, stream)), verbs: verbs, mean: mean}
	for i := range of.Placements {
		s.placements = append(s.placements, fmt.Sprintf("soak-%d", i))
	}
	for i := range of.Hollow {
		s.hollow = append(s.hollow, hollowName(i))
	}
	for i := range of.Members {
		s.real = append(s.real, fmt.Sprintf("member-%d", i+1))
	}
	for _, v := range verbs {
		s.total += v.weight
	}
	return s
}

// next returns the step that follows.
func (s *script) next() step {
	if s.opening > 0 {
		s.opening--
		now := step{Verb: "place"}
		s.place(&now)
		s.aim(&now, s.opening)
		return now
	}
	at := s.random.IntN(s.total)
	for _, v := range s.verbs {
		if at -= v.weight; at < 0 {
			now := step{Verb: v.name, Pause: time.Duration(s.random.Int64N(int64(2 * s.mean)))}
			v.fill(s, &now)
			return now
		}
	}
	panic("the weights of the verbs do not add up")
}

func nothing(*script, *step) {}

func (s *script) onPlacement(now *step) { now.Target = s.placements[s.random.IntN(len(s.placements))] }

func (s *script) onHollow(now *step) { now.Target = s.hollow[s.random.IntN(len(s.hollow))] }

// anyCluster returns a real or a simulated member.
func (s *script) anyCluster() string {
	i := s.random.IntN(len(s.hollow) + len(s.real))
	if i < len(s.real) {
		return s.real[i]
	}
	return s.hollow[i-len(s.real)]
}

var policies = []string{"PickAll", "Zone", "PickN", "PickN", "PickFixed"}

func (s *script) place(now *step) {
	s.resize(now)
	now.Kind = policies[s.random.IntN(len(policies))]
	s.aim(now, s.random.IntN(len(s.placements)))
}

// aim names the i-th placement, which always has the same strategy.
func (s *script) aim(now *step, i int) {
	now.Target = s.placements[i]
	now.External = i%2 == 0
}

func (s *script) change(now *step) {
	s.onPlacement(now)
	s.versions++
	now.N = s.versions
}

// resize gives a placement another number of clusters, or other limits.
func (s *script) resize(now *step) {
	s.onPlacement(now)
	now.N = 1 + s.random.IntN(len(s.hollow))
}

var strategies = []string{"zones", "gated", "wide"}

func (s *script) run(now *step) {
	now.Target = s.placements[s.random.IntN((len(s.placements)+1)/2)*2]
	now.Kind = strategies[s.random.IntN(len(strategies))]
}

func (s *script) evict(now *step) {
	s.onPlacement(now)
	now.Kind = s.anyCluster()
}

func (s *script) hold(now *step) {
	s.obstacle(now, holdName)
}

func (s *script) window(now *step) { s.obstacle(now, windowName) }

// obstacles is how many holds and how many windows there may be at once.
const obstacles = 2

func holdName(i int) string { return fmt.Sprintf("hold-%d", i) }

func windowName(i int) string { return fmt.Sprintf("window-%d", i) }

// obstacle names what stands in the way of rollouts, and the zone that it is about; none for all of them.
func (s *script) obstacle(now *step, name func(int) string) {
	now.Target = name(s.random.IntN(obstacles))
	now.Kind = append([]string{""}, zones...)[s.random.IntN(1+len(zones))]
}

var behaviours = []string{"usual", "usual", "usual", "slow", "failing", "unavailable", "vanished", "ahead", "behind"}

func (s *script) behave(now *step) {
	s.onHollow(now)
	now.Kind = behaviours[s.random.IntN(len(behaviours))]
}

// component names what is killed, frozen or slow for a while. Etcd is not killed: without it there is no record of writes.
func (s *script) component(now *step) {
	all := []string{"hub-agent", "hub-agent", "hub-agent", beside, "temporal", "hub/apiserver"}
	switch now.Verb {
	case "freeze":
		all = append(all, "hub/etcd")
	case "slow":
		all = append(all, "hub/etcd", "hub/etcd", "hub/etcd")
	}
	for _, member := range s.real {
		all = append(all, member+"/agent")
	}
	now.Target = all[s.random.IntN(len(all))]
	now.For = time.Duration(200+s.random.IntN(8000)) * time.Millisecond
}

// partition names what the fleet's hub agent is cut off from, for longer than its lease and its steps may be silent.
func (s *script) partition(now *step) {
	now.Target = []string{linkToHub, linkToTemporal}[s.random.IntN(2)]
	now.For = time.Duration(2+s.random.IntN(16)) * time.Second
}

// fill names whose disk is full for a while.
func (s *script) fill(now *step) {
	all := []string{"hub/etcd", "temporal"}
	for _, member := range s.real {
		all = append(all, member+"/etcd")
	}
	now.Target = all[s.random.IntN(len(all))]
	now.For = time.Duration(1+s.random.IntN(10)) * time.Second
}

// cut keeps a member's API server away for a while.
func (s *script) cut(now *step) {
	if len(s.real) > 0 {
		now.Target = s.real[s.random.IntN(len(s.real))] + "/apiserver"
	}
	now.For = time.Duration(2+s.random.IntN(10)) * time.Second
}

// exchange has an agent run the old or the new build from now on.
func (s *script) exchange(now *step) {
	all := []string{"hub-agent", "hub-agent", beside, beside}
	for _, member := range s.real {
		all = append(all, member+"/agent")
	}
	now.Target = all[s.random.IntN(len(all))]
	now.Kind = []string{theOld, theNew}[s.random.IntN(2)]
}
