package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// contested is the object that placements want in these tests.
var contested = snapshot.Identity{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "team", Name: "x"}

func contestedItem() snapshot.Item {
	return snapshot.Item{Identity: contested, Manifest: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"team","name":"x","labels":{"a":"b"}}}`)}
}

// rival is a placement that selects the object; a name without a namespace is that of one that selects the namespace.
func rival(t *testing.T, name string, priority int32, changes ...func(*snapshot.Rival)) snapshot.Rival {
	t.Helper()
	selects := term("", "v1", "ConfigMap", "x")
	namespace, _, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace = ""
		selects = term("", "v1", "Namespace", "team")
	}
	r := snapshot.Rival{Name: name, Rank: rules.Rank{Priority: priority, Namespaced: namespaced}}
	selecting(t, namespace, selects)(&r)
	for _, change := range changes {
		change(&r)
	}
	return r
}

func selecting(t *testing.T, namespace string, terms ...placementv1beta1.ResourceSelectorTerm) func(*snapshot.Rival) {
	t.Helper()
	selection, err := snapshot.Compile(placementv1beta1.Scope{Namespace: namespace}, terms, catalog())
	require.NoError(t, err)
	return func(r *snapshot.Rival) { r.Selection = selection }
}

func has(r *snapshot.Rival)      { r.Has = map[snapshot.Identity]bool{contested: true} }
func preempts(r *snapshot.Rival) { r.Preempts = true }
func written(r *snapshot.Rival)  { r.Written = true }
func refused(r *snapshot.Rival)  { r.Selection = nil }

// R14 of the facts about Karmada, and what follows from the decisions about spec.priority and spec.preemption.
func TestWhichPlacementHasAnObject(t *testing.T) {
	byLabel := selecting(t, "team", byLabels(term("", "v1", "ConfigMap", ""), map[string]string{"a": "b"}))
	byKind := selecting(t, "team", term("", "v1", "ConfigMap", ""))
	cases := map[string]struct {
		me     snapshot.Rival
		rivals []snapshot.Rival
		// leftTo is who has it instead; empty if the placement has it.
		leftTo string
	}{
		"R14 Never: the holder of priority 0 keeps it":                {rival(t, "team/a", 0, has), []snapshot.Rival{rival(t, "team/b", 5)}, ""},
		"R14 Never: one of priority 5 leaves it to the holder":        {rival(t, "team/b", 5), []snapshot.Rival{rival(t, "team/a", 0, has)}, "team/a (priority 0)"},
		"R14 Always: one of priority 5 takes it":                      {rival(t, "team/b", 5, preempts), []snapshot.Rival{rival(t, "team/a", 0, has)}, ""},
		"R14 Always: the holder keeps it until it is taken":           {rival(t, "team/a", 0, has), []snapshot.Rival{rival(t, "team/b", 5, preempts)}, ""},
		"R14 Always: and until the other's clusters have it":          {rival(t, "team/a", 0, has), []snapshot.Rival{rival(t, "team/b", 5, preempts, has)}, ""},
		"R14 Always: then it names who has it":                        {rival(t, "team/a", 0, has), []snapshot.Rival{rival(t, "team/b", 5, preempts, has, written)}, "team/b (priority 5)"},
		"R14 Always: the one that took it keeps it":                   {rival(t, "team/b", 5, preempts, has), []snapshot.Rival{rival(t, "team/a", 0, has)}, ""},
		"an equal priority takes nothing":                             {rival(t, "team/b", 5, preempts), []snapshot.Rival{rival(t, "team/a", 5, has)}, "team/a (priority 5)"},
		"a lower one that preempts takes nothing":                     {rival(t, "team/b", 4, preempts), []snapshot.Rival{rival(t, "team/a", 5, has)}, "team/a (priority 5)"},
		"of two holders of which one is higher, none is taken from":   {rival(t, "team/b", 4, preempts), []snapshot.Rival{rival(t, "team/a", 3, has), rival(t, "team/c", 5, has)}, "team/c (priority 5)"},
		"first: the higher priority":                                  {rival(t, "team/b", 1), []snapshot.Rival{rival(t, "team/a", 0)}, ""},
		"first: not the lower one":                                    {rival(t, "team/a", 0), []snapshot.Rival{rival(t, "team/b", 1)}, "team/b (priority 1)"},
		"first: by name before by label":                              {rival(t, "team/a", 0, byLabel), []snapshot.Rival{rival(t, "team/b", 0)}, "team/b (priority 0)"},
		"first: by label before by kind":                              {rival(t, "team/b", 0, byLabel), []snapshot.Rival{rival(t, "team/a", 0, byKind)}, ""},
		"first: priority before the match":                            {rival(t, "team/a", 1, byKind), []snapshot.Rival{rival(t, "team/b", 0)}, ""},
		"first: a namespaced one before one of the cluster scope":     {rival(t, "a", 0), []snapshot.Rival{rival(t, "team/b", 0, byKind)}, "team/b (priority 0)"},
		"a team takes nothing from the cluster's, whatever it says":   {rival(t, "team/a", 1_000_000, preempts), []snapshot.Rival{rival(t, "a", 0, has)}, "a (priority 0)"},
		"nor if that has a priority, too":                             {rival(t, "team/a", 1_000_000, preempts), []snapshot.Rival{rival(t, "a", 1000, has)}, "a (priority 1000)"},
		"but what is below 0":                                         {rival(t, "team/a", 1, preempts), []snapshot.Rival{rival(t, "a", -1, has)}, ""},
		"the cluster's takes from a team, whatever that says":         {rival(t, "a", 1, preempts), []snapshot.Rival{rival(t, "team/a", 1_000_000, preempts, has)}, ""},
		"that of 0 does not":                                          {rival(t, "a", 0, preempts), []snapshot.Rival{rival(t, "team/a", 1, has)}, "team/a (priority 1)"},
		"first: the cluster's above 0, whatever a team says":          {rival(t, "team/a", 1_000_000, preempts), []snapshot.Rival{rival(t, "a", 1)}, "a (priority 1)"},
		"first: a team's by name against the cluster's by kind":       {rival(t, "team/a", 1_000_000), []snapshot.Rival{rival(t, "a", 1, byKind)}, "a (priority 1)"},
		"first: a team's of 0 before the cluster's of 0":              {rival(t, "team/a", 0, byKind), []snapshot.Rival{rival(t, "a", 0)}, ""},
		"first: among teams' the higher priority, beside a cluster's": {rival(t, "team/a", 1, byKind), []snapshot.Rival{rival(t, "team/b", 0), rival(t, "a", -1)}, ""},
		"first: the lower name":                                       {rival(t, "team/b", 0), []snapshot.Rival{rival(t, "team/a", 0)}, "team/a (priority 0)"},
		"first: not one whose selectors are refused":                  {rival(t, "team/a", 0), []snapshot.Rival{rival(t, "team/b", 9, refused)}, ""},
		"first: not one that selects another object":                  {rival(t, "team/a", 0), []snapshot.Rival{rival(t, "team/b", 9, selecting(t, "team", term("", "v1", "ConfigMap", "y")))}, ""},
		"refused selectors keep what is held":                         {rival(t, "team/b", 5), []snapshot.Rival{rival(t, "team/a", 0, has, refused)}, "team/a (priority 0)"},
		"one that cannot take it is not waited for":                   {rival(t, "team/b", 5, preempts), []snapshot.Rival{rival(t, "team/a", 0, has), rival(t, "team/c", 9)}, ""},
		"one that takes it, too, and is higher is":                    {rival(t, "team/b", 5, preempts), []snapshot.Rival{rival(t, "team/a", 0, has), rival(t, "team/c", 9, preempts)}, "team/c (priority 9)"},
		"selected at the same time: the first in order keeps it":      {rival(t, "team/a", 0, has), []snapshot.Rival{rival(t, "team/b", 0, has)}, ""},
		"selected at the same time: the other lets it go":             {rival(t, "team/b", 0, has), []snapshot.Rival{rival(t, "team/a", 0, has)}, "team/a (priority 0)"},
		"no rivals": {rival(t, "team/a", 0), nil, ""},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			kept, left, err := snapshot.Share(tc.me, []snapshot.Item{contestedItem()}, nil, tc.rivals)
			require.NoError(t, err)
			if tc.leftTo == "" {
				assert.Len(t, kept, 1)
				assert.Zero(t, left)
				return
			}
			assert.Empty(t, kept)
			assert.Equal(t, snapshot.LeftOut{Total: 1, Named: []string{"ConfigMap team/x by " + tc.leftTo}}, left)
		})
	}
}

func TestARivalThatSelectsNamespacesByLabel(t *testing.T) {
	selects := selecting(t, "", byLabels(term("", "v1", "Namespace", ""), map[string]string{"placed": "yes"}))
	other := rival(t, "b", 9, selects)
	assert.True(t, other.Selection.SelectsNamespacesByLabel())
	kept, _, err := snapshot.Share(rival(t, "team/a", 0), []snapshot.Item{contestedItem()}, map[string]labels.Set{"team": {"placed": "yes"}}, []snapshot.Rival{other})
	require.NoError(t, err)
	assert.Empty(t, kept)
	kept, _, err = snapshot.Share(rival(t, "team/a", 0), []snapshot.Item{contestedItem()}, map[string]labels.Set{"team": {}}, []snapshot.Rival{other})
	require.NoError(t, err)
	assert.Len(t, kept, 1)
}

// Whatever the priorities are and whichever placement decides first, the placements agree: each object is held by one in the end, and as long as it
// is passed on, it is in a snapshot of some placement.
func TestPlacementsAgreeOnWhoHasAnObject(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "team/a", "team/b", "team/c"}
	ready := map[string]snapshot.Rival{}
	for _, name := range names {
		ready[name] = rival(t, name, 0)
	}
	for round := range 10_000 {
		var all []snapshot.Rival
		anyHad := false
		for _, name := range names[:2+random.IntN(len(names)-1)] {
			r := ready[name]
			r.Priority = random.Int32N(5) - 2
			r.Preempts = random.IntN(2) == 0
			if random.IntN(3) == 0 {
				has(&r)
				anyHad = true
			}
			all = append(all, r)
		}
		for step := 0; step < 7*len(all); step++ {
			i := step % len(all)
			if step < 3*len(all) {
				i = random.IntN(len(all))
			}
			kept, _, err := snapshot.Share(all[i], []snapshot.Item{contestedItem()}, nil, slices.Concat(all[:i], all[i+1:]))
			require.NoError(t, err)
			all[i].Has = map[snapshot.Identity]bool{contested: len(kept) > 0}
			all[i].Written = true
			if len(kept) > 0 {
				anyHad = true
			}
			holders := holdersOf(all)
			require.False(t, anyHad && len(holders) == 0, "round %d: no placement holds it any more: %s", round, describe(all))
		}
		require.Len(t, holdersOf(all), 1, "round %d: %s", round, describe(all))
	}
}

func holdersOf(all []snapshot.Rival) (names []string) {
	for i := range all {
		if all[i].Has[contested] {
			names = append(names, all[i].Name)
		}
	}
	return names
}

func describe(all []snapshot.Rival) (text string) {
	for i := range all {
		text += fmt.Sprintf("%s %d %t %t; ", all[i].Name, all[i].Priority, all[i].Preempts, all[i].Has[contested])
	}
	return text
}

func byLabels(term placementv1beta1.ResourceSelectorTerm, match map[string]string) placementv1beta1.ResourceSelectorTerm {
	term.LabelSelector = &metav1.LabelSelector{MatchLabels: match}
	return term
}

func placementOf(namespace, name string, priority *int32, terms ...placementv1beta1.ResourceSelectorTerm) placementv1beta1.PlacementObject {
	p := placementv1beta1.Scope{Namespace: namespace}.NewPlacement(name)
	p.SetUID(types.UID(namespace + name))
	p.GetPlacementSpec().Priority = priority
	p.GetPlacementSpec().ResourceSelectors = terms
	return p
}

func TestWhichPlacementsMayShareAnObject(t *testing.T) {
	one := new(int32(1))
	whole := term("", "v1", "Namespace", "team")
	alone := term("", "v1", "Namespace", "team")
	alone.SelectionScope = placementv1beta1.NamespaceOnly
	x := term("", "v1", "ConfigMap", "x")
	cases := map[string]struct {
		a, b placementv1beta1.PlacementObject
		want bool
	}{
		"the same name":                     {placementOf("team", "a", one, x), placementOf("team", "b", one, x), true},
		"all of the kind":                   {placementOf("team", "a", one, x), placementOf("team", "b", one, term("", "v1", "ConfigMap", "")), true},
		"other names":                       {placementOf("team", "a", one, x), placementOf("team", "b", one, term("", "v1", "ConfigMap", "y")), false},
		"other kinds":                       {placementOf("team", "a", one, x), placementOf("team", "b", one, term("", "v1", "Secret", "x")), false},
		"other namespaces":                  {placementOf("team", "a", one, x), placementOf("other", "b", one, x), false},
		"the namespace comes along":         {placementOf("team", "a", one, x), placementOf("", "b", one, whole), true},
		"another namespace does":            {placementOf("other", "a", one, x), placementOf("", "b", one, whole), false},
		"the namespace alone":               {placementOf("team", "a", one, x), placementOf("", "b", one, alone), false},
		"two of the cluster scope":          {placementOf("", "a", one, whole), placementOf("", "b", one, whole), true},
		"one has no priority":               {placementOf("team", "a", nil, x), placementOf("team", "b", one, x), false},
		"a placement is no rival of itself": {placementOf("team", "a", one, x), placementOf("team", "a", one, x), false},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, snapshot.MayShare(tc.a, tc.b))
			assert.Equal(t, tc.want, snapshot.MayShare(tc.b, tc.a))
		})
	}
}

func TestWhatARivalHasToBeKnownFor(t *testing.T) {
	me := placementOf("team", "a", new(int32(0)))
	other := placementOf("team", "b", new(int32(5)))
	of := func() string { return snapshot.FingerprintRivals(me, []placementv1beta1.PlacementObject{other}) }
	assert.Empty(t, snapshot.FingerprintRivals(me, nil))
	before := of()
	changes := map[string]func(){
		"other objects": func() {
			other.SetAnnotations(map[string]string{placementv1beta1.SelectionVerdictAnnotation: snapshot.Verdict{Snapshot: "b-0-snapshot", Objects: "o"}.Encode()})
		},
		"preemption": func() { other.GetPlacementSpec().Preemption = placementv1beta1.PreemptionAlways },
		"its clusters have what it takes": func() {
			status := other.GetPlacementStatus()
			status.ObservedResourceIndex = "0"
			status.Conditions = []metav1.Condition{{Type: "ResourcePlacementWorkSynchronized", Status: metav1.ConditionTrue}}
		},
	}
	for _, name := range []string{"other objects", "preemption", "its clusters have what it takes"} {
		changes[name]()
		assert.NotEqual(t, before, of(), name)
		before = of()
	}
	assert.Equal(t, before, of())
}
