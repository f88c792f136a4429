//go:build integration

package differential

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var (
	verbose = flag.Bool("notes", false, "print what is told of objects that are not as wanted")
	most    = flag.Int("faults", 10, "after how many faults to stop")
	longest = flag.Duration("for", 0, "after how long to begin no further trial; 0 makes all of them")
)

// Namespaces of the trials. Limits of a namespace would change the others' objects.
const (
	trials = "trials"
	limits = "limits"
)

// pairsOfATrial is how many changes from one manifest to the next a trial has.
const pairsOfATrial = 2

// parallel is how many trials are made at a time.
const parallel = 4

func TestObjectsAreWhatTheirManifestsSay(t *testing.T) {
	kinds, err := readList("testdata/kinds.yaml")
	require.NoError(t, err)
	setUp(t)
	t.Run("once found", testPairsOnceFound)
	requireKindsTaken(t, kinds)
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	t.Logf("%d pairs of seed %d; to repeat: go test -tags integration ./test/differential -pairs %d -seed %d", *pairs, from, *pairs, from)
	numbers := make(chan int)
	begin := time.Now()
	made := 0
	go func() {
		defer close(numbers)
		for n := range (*pairs + pairsOfATrial - 1) / pairsOfATrial {
			if *longest > 0 && time.Since(begin) > *longest {
				return
			}
			if *only < 0 || *only == n {
				numbers <- n
				made++
			}
		}
	}()
	var group sync.WaitGroup
	var mu sync.Mutex
	tally := map[string]int{}
	counts := map[string]count{}
	faults := 0
	for id := range parallel {
		w, err := newWorker(id, cluster, kinds)
		require.NoError(t, err)
		group.Go(func() {
			for n := range numbers {
				mu.Lock()
				enough := faults >= *most
				mu.Unlock()
				if enough {
					continue
				}
				fault, err := w.tryOne(t.Context(), rand.New(rand.NewPCG(from, uint64(n))))
				if fault == "" && err == nil {
					continue
				}
				mu.Lock()
				faults++
				mu.Unlock()
				if err != nil {
					t.Errorf("trial %d: %v", n, err)
					continue
				}
				t.Errorf("trial %d of seed %d: %s", n, from, fault)
			}
			mu.Lock()
			defer mu.Unlock()
			for what, times := range w.tally {
				tally[what] += times
			}
			for kind, of := range w.counts {
				counts[kind] = counts[kind].plus(*of)
			}
		})
	}
	group.Wait()
	t.Logf("%d trials in %.1f s", made, time.Since(begin).Seconds())
	for _, what := range slices.Sorted(maps.Keys(tally)) {
		t.Logf("%6d %s", tally[what], what)
	}
	checkCounts(t, counts)
}

// At most these shares of the manifests get no change, and are not judged, in percent: of all, and of each kind of which enough are
// drawn. Every API server refuses some, such as a change of an immutable field.
const (
	mostUnchanged       = 3
	mostUnjudged        = 5
	mostUnchangedOfKind = 20
	mostUnjudgedOfKind  = 30
	enoughDrawn         = 12
)

// checkCounts checks that the manifests of each kind are taken and judged. Otherwise a run without a fault says little.
func checkCounts(t *testing.T, counts map[string]count) {
	t.Helper()
	var all count
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		c := counts[kind]
		all = all.plus(c)
		t.Logf("%-32s %s", kind, c)
		if c.drawn < enoughDrawn {
			continue
		}
		assert.LessOrEqual(t, c.unchanged*100, c.drawn*mostUnchangedOfKind, "of what is drawn of a %s, the API server takes most", kind)
		assert.LessOrEqual(t, (c.drawn-c.judged)*100, c.drawn*mostUnjudgedOfKind, "of the manifests of a %s, most are applied and judged", kind)
	}
	t.Logf("%-32s %s", "all", all)
	if *only < 0 {
		assert.LessOrEqual(t, all.unchanged*100, all.drawn*mostUnchanged, "of what is drawn, the API server takes nearly all")
		assert.LessOrEqual(t, (all.drawn-all.judged)*100, all.drawn*mostUnjudged, "nearly all manifests are applied and judged")
	}
}

func (c count) String() string {
	return fmt.Sprintf("%5d drawn, %3d without a change; %5d applied, %5d judged", c.drawn, c.unchanged, c.applied, c.judged)
}

func (c count) plus(other count) count {
	return count{
		drawn: c.drawn + other.drawn, unchanged: c.unchanged + other.unchanged,
		applied: c.applied + other.applied, judged: c.judged + other.judged,
	}
}

// requireKindsTaken checks that the API server takes the rich object of each kind. Otherwise most of what is drawn of the kind is
// compared with nothing.
func requireKindsTaken(t *testing.T, kinds []map[string]any) {
	t.Helper()
	w, err := newWorker(parallel, cluster, kinds)
	require.NoError(t, err)
	for i := range kinds {
		kind := kinds[i]["kind"].(string)
		namespace, name := w.where(kind)
		right, err := w.fresh(t.Context(), trial{Kind: i, Steps: []step{{}}}.manifest(kinds, 0, namespace, name))
		require.NoError(t, err, kind)
		assert.NotNil(t, right, "the API server takes a %s as testdata/kinds.yaml has it; texts such as y and n are in quotes", kind)
	}
}

// tryOne draws a trial and makes it. If it fails, it is made smaller as long as it fails.
func (w *worker) tryOne(ctx context.Context, r *rand.Rand) (string, error) {
	t, err := w.draw(ctx, r)
	if err != nil {
		return "", fmt.Errorf("drawing: %w", err)
	}
	fault, err := w.run(ctx, t)
	if fault == "" || err != nil {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, t.describe(w.kinds))
		}
		return "", err
	}
	t, fault = w.shrink(ctx, t, fault)
	out := t.describe(w.kinds) + "\n  " + fault
	for i := range t.Steps {
		text, err := yaml.Marshal(t.manifest(w.kinds, i, "", "name"))
		if err != nil {
			return "", fmt.Errorf("printing a manifest: %w", err)
		}
		if len(text) < 6000 {
			out += fmt.Sprintf("\n--- manifest %d\n%s", i, text)
		}
	}
	return out, nil
}

// shrink leaves out what a failure does not need.
func (w *worker) shrink(ctx context.Context, t trial, fault string) (trial, string) {
	for again := true; again; {
		again = false
		for _, smaller := range t.smaller() {
			if found, err := w.run(ctx, smaller); err == nil && found != "" {
				t = smaller
				fault = found
				again = true
				break
			}
		}
	}
	return t, fault
}

// smaller returns trials that have one thing less.
func (t trial) smaller() []trial {
	var out []trial
	if t.Prior != byNobody {
		out = append(out, trial{Kind: t.Kind, Prior: byNobody, Steps: t.Steps})
	}
	for i := range t.Steps {
		if len(t.Steps) > 1 {
			steps := slices.Clone(t.Steps)
			if i+1 < len(steps) { // what it changes is changed by the next
				steps[i+1].Changes = slices.Concat(steps[i].Changes, steps[i+1].Changes)
			}
			out = append(out, trial{Kind: t.Kind, Prior: t.Prior, Steps: slices.Delete(steps, i, i+1)})
		}
	}
	for i, s := range t.Steps {
		if s.Held {
			steps := slices.Clone(t.Steps)
			steps[i].Held = false
			out = append(out, trial{Kind: t.Kind, Prior: t.Prior, Steps: steps})
		}
		for k := range s.Changes {
			steps := slices.Clone(t.Steps)
			steps[i].Changes = slices.Delete(slices.Clone(s.Changes), k, k+1)
			out = append(out, trial{Kind: t.Kind, Prior: t.Prior, Steps: steps})
		}
	}
	return out
}

// setUp makes the namespaces and the custom resource of the trials.
func setUp(t *testing.T) {
	t.Helper()
	c, err := client.New(cluster, client.Options{})
	require.NoError(t, err)
	for _, name := range []string{trials, limits} {
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}}))
	}
	text, err := os.ReadFile("testdata/widgets.yaml")
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &definition.Object))
	require.NoError(t, c.Create(t.Context(), definition))
	widgets := &unstructured.UnstructuredList{}
	widgets.SetAPIVersion("differential.example.com/v1")
	widgets.SetKind("WidgetList")
	require.Eventually(t, func() bool { return c.List(t.Context(), widgets) == nil }, startTimeout, 100*time.Millisecond, "the kind is served")
}
