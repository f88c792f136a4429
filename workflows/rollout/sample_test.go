package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// manyMembers are clusters with every third in production.
func manyMembers(count int) []rollout.Member {
	var members []rollout.Member
	for i := range count {
		labels := map[string]string{"environment": "staging"}
		if i%3 == 0 {
			labels["environment"] = "production"
		}
		members = append(members, rollout.Member{Name: fmt.Sprintf("member-%03d", i), Labels: labels})
	}
	return members
}

func sampling(name string, match func(map[string]string) bool, percent int, seed string) rollout.Stage {
	return rollout.Stage{Name: name, Match: match, Sample: &rollout.Sample{Percent: percent, Seed: seed}}
}

func assign(stages []rollout.Stage, members []rollout.Member) ([][]string, error) {
	return rollout.AssignStages(stages, members, rollout.DrawSamples(stages, members))
}

func TestStagesOfDrawnClusters(t *testing.T) {
	members := manyMembers(100)
	stages := []rollout.Stage{sampling("canary", everything, 5, "a"), sampling("early", everything, 20, "a"), {Name: "rest", Match: everything}}
	got, err := assign(stages, members)
	require.NoError(t, err)
	assert.Len(t, got[0], 5)
	assert.Len(t, got[1], 19, "20 percent of the 95 that are left")
	assert.Len(t, got[2], 76)
	all := slices.Sorted(slices.Values(slices.Concat(got...)))
	assert.Len(t, slices.Compact(all), 100, "every cluster is in one stage")

	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	again, err := assign(stages, members)
	require.NoError(t, err)
	assert.Equal(t, got, again)

	stages[0].Sample.Seed = "b"
	other, err := assign(stages, members)
	require.NoError(t, err)
	assert.NotEqual(t, got[0], other[0], "another seed draws others")
}

func TestASampleIsOfWhatItsStageSelects(t *testing.T) {
	got, err := assign([]rollout.Stage{
		{Name: "staging", Match: environment("staging")}, sampling("canary", everything, 10, ""), {Name: "production", Match: environment("production")},
	}, manyMembers(30))
	require.NoError(t, err)
	assert.Len(t, got[0], 20)
	assert.Len(t, got[1], 1, "those in an earlier stage are not drawn")
	assert.Len(t, got[2], 9)

	_, err = assign([]rollout.Stage{sampling("canary", everything, 10, "")}, manyMembers(30))
	require.ErrorContains(t, err, "some clusters are not placed in any stage, total 27")
	_, err = assign([]rollout.Stage{{Name: "one", Match: everything}, sampling("canary", everything, 50, ""), {Name: "two", Match: everything}}, manyMembers(3))
	require.ErrorContains(t, err, "appears in more than one stages", "that of stages that draw nothing is still told")
}

func TestAStageThatDrawsHasACluster(t *testing.T) {
	for count, want := range map[int]int{0: 0, 1: 1, 19: 1, 39: 1, 40: 2, 100: 5} {
		assert.Len(t, rollout.DrawSamples([]rollout.Stage{sampling("canary", everything, 5, "")}, manyMembers(count)), want, "of %d", count)
	}
}

// A cluster that joins displaces one of those drawn at most, so that the canaries of a fleet stay its canaries.
func TestAClusterThatJoinsChangesLittle(t *testing.T) {
	stages := []rollout.Stage{sampling("canary", everything, 10, "x")}
	before := rollout.DrawSamples(stages, manyMembers(100))
	after := rollout.DrawSamples(stages, manyMembers(101))
	stayed := 0
	for name := range before {
		if _, is := after[name]; is {
			stayed++
		}
	}
	assert.GreaterOrEqual(t, stayed, 9)
}

// What is drawn is like the fleet: over many seeds, a group of a third of the clusters has about a third of those drawn, and names that
// follow each other are not drawn together.
func TestWhatIsDrawnIsLikeTheFleet(t *testing.T) {
	members := manyMembers(300)
	production := 0
	neighbours := 0
	for seed := range 200 {
		drawn := rollout.DrawSamples([]rollout.Stage{sampling("canary", everything, 10, fmt.Sprint(seed))}, members)
		for i, m := range members {
			if _, is := drawn[m.Name]; !is {
				continue
			}
			if m.Labels["environment"] == "production" {
				production++
			}
			if i > 0 {
				if _, too := drawn[members[i-1].Name]; too {
					neighbours++
				}
			}
		}
	}
	assert.InDelta(t, 200*10, production, 200)
	assert.InDelta(t, 200*30*0.1, neighbours, 120)
}
