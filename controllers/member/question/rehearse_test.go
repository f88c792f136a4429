package question

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/work"
)

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

func unzipped(t *testing.T, data []byte) (out []fleetflowv1alpha1.RehearsedObject) {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func TestAChangeIsReadOrRefused(t *testing.T) {
	good := func() *fleetflowv1alpha1.RehearseQuestion {
		return &fleetflowv1alpha1.RehearseQuestion{
			Works:        []fleetflowv1alpha1.RehearsedWork{{Name: "a", Manifests: 2}, {Name: "b", Manifests: 0}},
			RemovedWorks: []string{"c"}, Manifests: zipped(t, `[[{"kind":"A"},{"kind":"B"}],[]]`),
		}
	}
	change, err := readChange(good())
	require.NoError(t, err)
	require.Len(t, change.Works, 2)
	assert.Equal(t, `{"kind":"B"}`, string(change.Works[0].Manifests[1].Raw))
	assert.Equal(t, []string{"c"}, change.Removed)
	nothing, err := readChange(&fleetflowv1alpha1.RehearseQuestion{RemovedWorks: []string{"c"}})
	require.NoError(t, err)
	assert.Empty(t, nothing.Works)

	for name, spoil := range map[string]func(*fleetflowv1alpha1.RehearseQuestion){
		"not gzip": func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = []byte("hunter2") },
		"cut off":  func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = q.Manifests[:12] },
		"a bomb": func(q *fleetflowv1alpha1.RehearseQuestion) {
			q.Manifests = zipped(t, strings.Repeat(" ", maxManifests+1))
		},
		"not JSON":           func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = zipped(t, `hunter2`) },
		"something after it": func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = zipped(t, `[[{},{}],[]] hunter2`) },
		"another form":       func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = zipped(t, `{"hunter2":1}`) },
		"too few Works":      func(q *fleetflowv1alpha1.RehearseQuestion) { q.Works = q.Works[:1] },
		"too few manifests":  func(q *fleetflowv1alpha1.RehearseQuestion) { q.Works[0].Manifests = 3 },
		"a count below zero": func(q *fleetflowv1alpha1.RehearseQuestion) { q.Works[0].Manifests = -1 },
		"a Work twice":       func(q *fleetflowv1alpha1.RehearseQuestion) { q.Works[1].Name = "a" },
		"no name":            func(q *fleetflowv1alpha1.RehearseQuestion) { q.Works[0].Name = "" },
		"removed and not":    func(q *fleetflowv1alpha1.RehearseQuestion) { q.RemovedWorks = []string{"a"} },
		"removed twice":      func(q *fleetflowv1alpha1.RehearseQuestion) { q.RemovedWorks = []string{"c", "c"} },
	} {
		q := good()
		spoil(q)
		_, err := readChange(q)
		require.Error(t, err, name)
		assert.True(t, isInvalid(err), name)
		assert.NotContains(t, err.Error(), "hunter2", name)
	}
}

func FuzzReadChange(f *testing.F) {
	f.Add([]byte("x"), int32(1))
	f.Add([]byte(nil), int32(0))
	f.Fuzz(func(t *testing.T, manifests []byte, count int32) {
		_, err := readChange(&fleetflowv1alpha1.RehearseQuestion{
			Works: []fleetflowv1alpha1.RehearsedWork{{Name: "a", Manifests: count}}, Manifests: manifests,
		})
		if err != nil && !isInvalid(err) {
			t.Fatal(err)
		}
	})
}

func object(outcome fleetflowv1alpha1.RehearsalOutcome, name string) fleetflowv1alpha1.RehearsedObject {
	return fleetflowv1alpha1.RehearsedObject{Object: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Name: name}, Outcome: outcome}
}

func TestAnAnswerSaysEverythingThereIsRoomFor(t *testing.T) {
	found := []fleetflowv1alpha1.RehearsedObject{
		object(fleetflowv1alpha1.RehearsalSame, "a"), object(fleetflowv1alpha1.RehearsalRefused, "b"), object(fleetflowv1alpha1.RehearsalChanges, "c"),
	}
	small, err := packAnswer("7", found, work.Change{})
	require.NoError(t, err)
	assert.Equal(t, found, unzipped(t, small.Objects), "in the order in which they would be applied")
	assert.Zero(t, small.Omitted)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Same: 1, Refused: 1, Changes: 1}, small.Counts)

	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	var many []fleetflowv1alpha1.RehearsedObject
	for i := range 5000 {
		o := object(fleetflowv1alpha1.RehearsalSame, fmt.Sprintf("%d-%x", i, random.Uint64()))
		if i%500 == 499 {
			o.Outcome = fleetflowv1alpha1.RehearsalRefused
		}
		o.Message = fmt.Sprintf("%x%x%x", random.Uint64(), random.Uint64(), random.Uint64())
		many = append(many, o)
	}
	large, err := packAnswer("7", many, work.Change{})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(large.Objects), maxAnswer)
	told := unzipped(t, large.Objects)
	assert.EqualValues(t, len(many), len(told)+int(large.Omitted))
	assert.NotZero(t, large.Omitted)
	for i, o := range told {
		assert.Equal(t, i < 10, o.Outcome == fleetflowv1alpha1.RehearsalRefused, "what is refused comes first: %d", i)
	}
	assert.EqualValues(t, 10, large.Counts.Refused)
	assert.EqualValues(t, 4990, large.Counts.Same)
}

func TestADigestIsThatOfWhatWasFound(t *testing.T) {
	change := work.Change{}
	a := object(fleetflowv1alpha1.RehearsalRefused, "a")
	a.By = "ResourceQuota q"
	b := object(fleetflowv1alpha1.RehearsalChanges, "b")
	b.Fields = []fleetflowv1alpha1.RehearsedField{{Path: "/x", From: "1", To: "2"}}
	digest := digestOf([]fleetflowv1alpha1.RehearsedObject{a, b}, change)
	assert.Len(t, digest, 64)
	assert.Equal(t, digest, digestOf([]fleetflowv1alpha1.RehearsedObject{b, a}, change), "in any order")

	later := b
	later.Generation = 9
	later.Message = "used: 7"
	assert.Equal(t, digest, digestOf([]fleetflowv1alpha1.RehearsedObject{a, later}, change))
	other := b
	other.Fields = []fleetflowv1alpha1.RehearsedField{{Path: "/x", From: "1", To: "3"}}
	assert.NotEqual(t, digest, digestOf([]fleetflowv1alpha1.RehearsedObject{a, other}, change))
	long := work.Change{Works: []work.ChangedWork{{Name: "w", Manifests: []placementv1beta1.Manifest{{}}}}}
	assert.NotEqual(t, digest, digestOf([]fleetflowv1alpha1.RehearsedObject{a, b}, long), "values that are told in part count as a whole")
}
