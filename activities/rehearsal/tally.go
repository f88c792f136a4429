package rehearsal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

const (
	// maxGroups is how many groups a status tells, namedClusters how many clusters of each it names.
	maxGroups     = 100
	namedClusters = 10
	// keptGroups bounds the groups in memory, keptOfCluster those that one cluster begins, and toldOfCluster those of a cluster alone in
	// a status: a member that lies could make any number of them, and is to crowd out those of no other.
	keptGroups    = 20_000
	keptOfCluster = 1_000
	toldOfCluster = 20
)

// Tally is what the answers of clusters say together. It is the same in whichever order they come.
type Tally struct {
	clusters map[string]verdict
	groups   map[groupKey]*group
	// omitted are lines that there is no room for in memory.
	omitted int
	// lost are clusters whose names are not known any more.
	lost int
}

// verdict is what was found on one cluster.
type verdict struct {
	outcome fleetflowv1alpha1.RehearsalOutcome
	digest  string
}

// groupKey is what is alike in the lines of a group.
type groupKey struct {
	outcome                     fleetflowv1alpha1.RehearsalOutcome
	object, by, message, fields string
}

type group struct {
	// message is, of those that differ by numbers only, the one that is first in the alphabet.
	message string
	fields  []string
	// clusters are the first ones by name, count is how many there are.
	clusters []string
	count    int32
}

// NewTally returns one of no answers.
func NewTally() *Tally {
	return &Tally{clusters: map[string]verdict{}, groups: map[groupKey]*group{}}
}

// Has reports whether the answer of a cluster is counted.
func (t *Tally) Has(cluster string) bool {
	_, has := t.clusters[cluster]
	return has
}

// Clusters returns how many clusters are counted.
func (t *Tally) Clusters() int { return len(t.clusters) }

// Add counts the answer of a cluster, with what the hub knows of it in addition. Only the first answer of a cluster counts.
func (t *Tally) Add(cluster string, answer Answer, known ...Line) {
	if t.Has(cluster) {
		return
	}
	for _, line := range known {
		answer.add(line)
	}
	t.clusters[cluster] = verdict{outcome: answer.Outcome, digest: answer.digest(cluster)}
	slices.SortStableFunc(answer.Lines, func(a, b Line) int { return cmp.Compare(rank(a.Outcome), rank(b.Outcome)) })
	seen := map[groupKey]bool{}
	begun := 0
	for _, line := range answer.Lines {
		key := keyOf(line, cluster)
		if seen[key] {
			continue
		}
		seen[key] = true
		if t.groups[key] == nil {
			if begun++; begun > keptOfCluster || len(t.groups) >= keptGroups {
				t.omitted++
				continue
			}
		}
		t.count(key, line, cluster)
	}
}

// AddLost counts clusters as unknown whose names are not known any more.
func (t *Tally) AddLost(count int, why string) {
	t.lost += count
	key := groupKey{outcome: fleetflowv1alpha1.RehearsalUnknown, message: why}
	t.groups[key] = &group{message: why, count: int32(t.lost)} //nolint:gosec // at most 10,000
}

func keyOf(line Line, cluster string) groupKey {
	if line.Outcome == fleetflowv1alpha1.RehearsalSame || line.Outcome == fleetflowv1alpha1.RehearsalPulled {
		return groupKey{outcome: line.Outcome}
	}
	return groupKey{
		outcome: line.Outcome, object: line.Object, by: line.By, message: normalise(line.Message, cluster),
		fields: strings.Join(line.Fields, "\n"),
	}
}

func (t *Tally) count(key groupKey, line Line, cluster string) {
	g := t.groups[key]
	if g == nil {
		g = &group{message: line.Message, fields: line.Fields}
		if key.outcome == fleetflowv1alpha1.RehearsalSame || key.outcome == fleetflowv1alpha1.RehearsalPulled {
			g = &group{}
		}
		t.groups[key] = g
	}
	if g.message > line.Message {
		g.message = line.Message
	}
	g.count++
	at, _ := slices.BinarySearch(g.clusters, cluster)
	if at < namedClusters {
		g.clusters = slices.Insert(g.clusters, at, cluster)
		g.clusters = g.clusters[:min(len(g.clusters), namedClusters)]
	}
}

// Counts says how many clusters have each outcome.
func (t *Tally) Counts() (counts fleetflowv1alpha1.RehearsalCounts) {
	for _, v := range t.clusters {
		*counts.Of(v.outcome)++
	}
	counts.Unknown += int32(t.lost) //nolint:gosec // at most 10,000
	return counts
}

// Digest tells what was found on all clusters about a revision of a placement apart from what else could have been. The new values of
// fields follow from the revision: no digest of a Secret is in it.
func (t *Tally) Digest(placement, revision string) string {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%q %q\n", placement, revision) // writing to a hash never fails
	for _, cluster := range slices.Sorted(maps.Keys(t.clusters)) {
		v := t.clusters[cluster]
		_, _ = fmt.Fprintf(hash, "%q %s %s\n", cluster, v.outcome, v.digest)
	}
	if t.lost > 0 {
		_, _ = fmt.Fprintf(hash, "%d lost\n", t.lost)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Groups returns what is alike on several clusters, what matters most first, and how many groups there is no room for.
func (t *Tally) Groups() (groups []fleetflowv1alpha1.RehearsalGroup, omitted int32) {
	keys := slices.SortedFunc(maps.Keys(t.groups), func(a, b groupKey) int {
		return cmp.Or(
			cmp.Compare(rank(a.outcome), rank(b.outcome)), cmp.Compare(t.groups[b].count, t.groups[a].count),
			cmp.Compare(a.object, b.object), cmp.Compare(a.by, b.by), cmp.Compare(a.message, b.message), cmp.Compare(a.fields, b.fields),
		)
	})
	alone := map[string]int{}
	for _, key := range keys {
		g := t.groups[key]
		if g.count == 1 && len(g.clusters) == 1 && t.Clusters() > 1 {
			alone[g.clusters[0]]++
		}
		if len(groups) == maxGroups || g.count == 1 && len(g.clusters) == 1 && alone[g.clusters[0]] > toldOfCluster {
			omitted++
			continue
		}
		groups = append(groups, fleetflowv1alpha1.RehearsalGroup{
			Outcome: key.outcome, Object: key.object, By: key.by, Message: g.message, Fields: g.fields,
			ClusterCount: g.count, Clusters: slices.Clone(g.clusters),
		})
	}
	return groups, omitted + int32(t.omitted) //nolint:gosec // far fewer
}

// DescribeCounts says how many clusters have which outcome, what matters most first.
func DescribeCounts(counts fleetflowv1alpha1.RehearsalCounts) string {
	var told []string
	for _, outcome := range fleetflowv1alpha1.RehearsalOutcomes() {
		if count := *counts.Of(outcome); count > 0 {
			told = append(told, fmt.Sprintf("%d %s", count, outcome))
		}
	}
	if len(told) == 0 {
		return "none"
	}
	return strings.Join(told, ", ")
}
