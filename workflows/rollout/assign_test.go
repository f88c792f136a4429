package rollout_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

func everything(map[string]string) bool { return true }

func environment(value string) func(map[string]string) bool {
	return func(labels map[string]string) bool { return labels["environment"] == value }
}

func member(name string, labels ...string) rollout.Member {
	m := rollout.Member{Name: name, Labels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

func TestAssignStages(t *testing.T) {
	twelve := make([]rollout.Member, 12)
	for i := range twelve {
		twelve[i] = member(fmt.Sprintf("member%02d", 12-i))
	}
	for sentence, test := range map[string]struct {
		stages  []rollout.Stage
		members []rollout.Member
		want    [][]string
		err     string
	}{
		"the how-to: order 1 before order 2, whatever the names": {
			stages: []rollout.Stage{
				{Name: "staging", Match: environment("staging")},
				{Name: "canary", Match: environment("canary"), SortingLabelKey: "order"},
			},
			members: []rollout.Member{
				member("member1", "environment", "canary", "order", "2"),
				member("member2", "environment", "staging"),
				member("member3", "environment", "canary", "order", "1"),
			},
			want: [][]string{{"member2"}, {"member3", "member1"}},
		},
		"without a sorting label clusters go by name": {
			stages:  []rollout.Stage{{Name: "all", Match: everything}},
			members: []rollout.Member{member("c"), member("a"), member("b")},
			want:    [][]string{{"a", "b", "c"}},
		},
		"numbers are compared as numbers, ties by name, clusters without the label last": {
			stages: []rollout.Stage{{Name: "all", Match: everything, SortingLabelKey: "order"}},
			members: []rollout.Member{
				member("a"), member("b", "order", "10"), member("d", "order", "9"), member("c", "order", "9"), member("e", "order", "-1"),
			},
			want: [][]string{{"e", "c", "d", "b", "a"}},
		},
		"the greatest and the smallest number do not overflow": {
			stages: []rollout.Stage{{Name: "all", Match: everything, SortingLabelKey: "order"}},
			members: []rollout.Member{
				member("a", "order", strconv.Itoa(math.MaxInt)), member("b", "order", strconv.Itoa(math.MinInt)),
			},
			want: [][]string{{"b", "a"}},
		},
		"a stage may have no clusters": {
			stages:  []rollout.Stage{{Name: "none", Match: environment("x")}, {Name: "all", Match: everything}},
			members: []rollout.Member{member("a")},
			want:    [][]string{{}, {"a"}},
		},
		"a cluster in two stages is refused": {
			stages:  []rollout.Stage{{Name: "one", Match: everything}, {Name: "two", Match: environment("x")}},
			members: []rollout.Member{member("a"), member("b", "environment", "x")},
			err:     "cluster `b` appears in more than one stages: its labels match those of `one` and of `two`, narrow the labelSelector of one",
		},
		"a cluster in no stage is refused": {
			stages:  []rollout.Stage{{Name: "one", Match: environment("x")}},
			members: []rollout.Member{member("b"), member("a")},
			err:     "some clusters are not placed in any stage, total 2, showing up to 10: a, b",
		},
		"of many clusters in no stage ten are named": {
			stages:  []rollout.Stage{{Name: "one", Match: environment("x")}},
			members: twelve,
			err: "some clusters are not placed in any stage, total 12, showing up to 10: " +
				"member01, member02, member03, member04, member05, member06, member07, member08, member09, member10",
		},
		"a sorting label that is no integer is refused": {
			stages:  []rollout.Stage{{Name: "one", Match: everything, SortingLabelKey: "order"}},
			members: []rollout.Member{member("a", "order", "first")},
			err:     "the sorting label `order:first` on cluster `a` is not valid: it must be an integer",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := rollout.AssignStages(test.stages, test.members, nil)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestConcurrency(t *testing.T) {
	for sentence, test := range map[string]struct {
		value    string
		clusters int
		want     int
	}{
		"a number is itself":            {"3", 10, 3},
		"a number may exceed the stage": {"5", 2, 5},
		"50% of 3 is rounded down to 1": {"50%", 3, 1},
		"10% of 3 is still one cluster": {"10%", 3, 1},
		"100% is the whole stage":       {"100%", 7, 7},
		"an empty stage has one":        {"50%", 0, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := rollout.Concurrency(test.value, test.clusters)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	for _, bad := range []string{"", "0", "0%", "-1", "all"} {
		_, err := rollout.Concurrency(bad, 10)
		assert.ErrorContains(t, err, "is neither a positive number nor a percentage", "value %q", bad)
	}
}

func TestWindow(t *testing.T) {
	const y, n = true, false
	for sentence, test := range map[string]struct {
		started, done []bool
		max           int
		want          []int
	}{
		"an empty stage starts nothing":               {nil, nil, 2, nil},
		"a stage begins with as many as may go":       {[]bool{n, n, n}, []bool{n, n, n}, 2, []int{0, 1}},
		"a full window waits":                         {[]bool{y, y, n}, []bool{n, n, n}, 2, nil},
		"the next follows when one is done":           {[]bool{y, y, n}, []bool{y, n, n}, 2, []int{2}},
		"one that overtook makes room too":            {[]bool{y, y, n}, []bool{n, y, n}, 2, []int{2}},
		"a cluster that was not started goes first":   {[]bool{n, y, n}, []bool{n, n, n}, 2, []int{0}},
		"no more start than there are":                {[]bool{n}, []bool{n}, 5, []int{0}},
		"more in flight than allowed start no others": {[]bool{y, y, y, n}, []bool{n, n, n, n}, 1, nil},
		"done without a start counts as done":         {[]bool{n, n}, []bool{y, n}, 1, []int{1}},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.want, rollout.Window(test.started, test.done, test.max))
		})
	}
}

// The window never has more than maxConcurrency in flight, starts in order,
// and finishes a stage whatever the order in which clusters become available.
func TestWindowKeepsItsSizeInAnyOrder(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		size := 1 + r.IntN(12)
		most := 1 + r.IntN(5)
		started := make([]bool, size)
		done := make([]bool, size)
		var flying []int
		finished := 0
		for finished < size {
			for _, i := range rollout.Window(started, done, most) {
				require.False(t, started[i], "seed %d: cluster %d started twice", seed, i)
				require.Less(t, i, finished+most, "seed %d: cluster %d started too early", seed, i)
				started[i] = true
				flying = append(flying, i)
			}
			require.NotEmpty(t, flying, "seed %d: the stage stands still", seed)
			require.LessOrEqual(t, len(flying), most, "seed %d", seed)
			at := r.IntN(len(flying))
			done[flying[at]] = true
			flying = append(flying[:at], flying[at+1:]...)
			finished++
		}
	}
}
