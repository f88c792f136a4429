package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

func labelled(name string, labels ...string) rollout.Member {
	m := rollout.Member{Name: name, Labels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

func has(key, value string) func(rollout.Member) bool {
	return func(m rollout.Member) bool { return m.Labels[key] == value }
}

func TestOrder(t *testing.T) {
	for sentence, test := range map[string]struct {
		order    rollout.Order
		clusters []rollout.Member
		want     []string
	}{
		"without an order, clusters go by name": {
			clusters: []rollout.Member{labelled("b"), labelled("a")}, want: []string{"a", "b"},
		},
		"by a label, the highest integer comes first and clusters without it last": {
			order:    rollout.Order{Labels: []rollout.OrderLabel{{Key: "wave"}}},
			clusters: []rollout.Member{labelled("a", "wave", "wave-5"), labelled("b", "wave", "wave-10"), labelled("c")},
			want:     []string{"b", "a", "c"},
		},
		"ascending, the lowest does, and clusters without the label still come last": {
			order:    rollout.Order{Labels: []rollout.OrderLabel{{Key: "wave", Ascending: true}}},
			clusters: []rollout.Member{labelled("a", "wave", "wave-5"), labelled("b", "wave", "wave-10"), labelled("c"), labelled("d", "wave", "none")},
			want:     []string{"d", "a", "b", "c"},
		},
		"the first label that a cluster has counts, and those with an earlier label come first": {
			order:    rollout.Order{Labels: []rollout.OrderLabel{{Key: "first"}, {Key: "second"}}},
			clusters: []rollout.Member{labelled("a", "second", "9"), labelled("b", "first", "1", "second", "10"), labelled("c", "first", "2")},
			want:     []string{"c", "b", "a"},
		},
		"an integer that no computer holds is the highest": {
			order:    rollout.Order{Labels: []rollout.OrderLabel{{Key: "n"}}},
			clusters: []rollout.Member{labelled("a", "n", "7"), labelled("b", "n", "99999999999999999999999999")},
			want:     []string{"b", "a"},
		},
		"weights add up": {
			order:    rollout.Order{Weights: []rollout.Weight{{50, has("env", "foo")}, {30, has("tier", "bar")}}},
			clusters: []rollout.Member{labelled("a"), labelled("b", "tier", "bar"), labelled("c", "env", "foo"), labelled("d", "env", "foo", "tier", "bar")},
			want:     []string{"d", "c", "b", "a"},
		},
		"scatter spreads the values of a label": {
			order: rollout.Order{Scatter: "region"},
			clusters: []rollout.Member{
				labelled("e1", "region", "east"), labelled("e2", "region", "east"), labelled("e3", "region", "east"), labelled("e4", "region", "east"),
				labelled("w1", "region", "west"), labelled("w2", "region", "west"), labelled("a1", "region", "asia"), labelled("a2", "region", "asia"),
			},
			want: []string{"e1", "a1", "w1", "e2", "e3", "a2", "w2", "e4"},
		},
		"only among clusters of equal priority": {
			order: rollout.Order{Labels: []rollout.OrderLabel{{Key: "wave"}}, Scatter: "region"},
			clusters: []rollout.Member{
				labelled("a", "region", "east", "wave", "2"), labelled("b", "region", "east", "wave", "2"),
				labelled("c", "region", "west", "wave", "1"), labelled("d", "region", "east", "wave", "1"), labelled("e", "region", "east", "wave", "1"),
			},
			want: []string{"a", "b", "d", "c", "e"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.want, test.order.Sort(test.clusters))
		})
	}
}

// The order does not depend on the order in which clusters are told.
func TestTheOrderFollowsFromLabelsAlone(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		order := rollout.Order{Labels: []rollout.OrderLabel{{Key: "wave", Ascending: r.IntN(2) == 0}}, Scatter: "region"}
		var clusters []rollout.Member
		for i := range 1 + r.IntN(20) {
			clusters = append(clusters, labelled(fmt.Sprintf("c%02d", i), "wave", strconv.Itoa(r.IntN(3)), "region", strconv.Itoa(r.IntN(3))))
		}
		want := order.Sort(clusters)
		r.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
		assert.Equal(t, want, order.Sort(clusters), "seed %d", seed)
	}
}

// BenchmarkDecideInOrder plans a rollout of 5,000 clusters by weights and a scattered label.
func BenchmarkDecideInOrder(b *testing.B) {
	order := rollout.Order{Weights: []rollout.Weight{{50, has("env", "prod")}, {30, has("tier", "1")}}, Scatter: "region"}
	members := make([]rollout.Member, 5000)
	clusters := make([]rollout.Cluster, 5000)
	for i := range clusters {
		clusters[i] = outdated(fmt.Sprintf("c%05d", i))
		members[i] = labelled(clusters[i].Name, "env", []string{"prod", "dev"}[i%2], "tier", strconv.Itoa(i%3), "region", strconv.Itoa(i%17))
	}
	for b.Loop() {
		places := make(map[string]int, len(members))
		for place, name := range order.Sort(members) {
			places[name] = place
		}
		for i := range clusters {
			clusters[i].Order = places[clusters[i].Name]
			clusters[i].Scatter = members[i].Labels["region"]
		}
		rollout.Decide(rollout.Facts{Clusters: clusters, Limits: rollout.Limits{Target: 5000, MaxUnavailable: 1250, MaxSurge: 0, Partition: 500, MaxInFlight: 40}})
	}
}
