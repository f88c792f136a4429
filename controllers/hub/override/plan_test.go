package override

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
)

// versions reads snapshots from words such as "3a*": of index 3 and content a, in force.
// Behind the content may be ? for unclear labels, ! for one from before the override got its UID, and
// ~ for one that is being deleted.
func versions(t *testing.T, words string) []version {
	t.Helper()
	var all []version
	for word := range strings.FieldsSeq(words) {
		v := version{mark: retired}
		var content rune
		var rest string
		if n, err := fmt.Sscanf(word+" ", "%d%c%s", &v.index, &content, &rest); n < 2 {
			require.NoError(t, err)
		}
		v.hash = []byte(string(content))
		for _, r := range rest {
			switch r {
			case '*':
				v.mark = inForce
			case '?':
				v.mark = unclear
			case '!':
				v.kinship = rules.KinshipInherited
			case '~':
				v.leaving = true
			}
		}
		all = append(all, v)
	}
	return all
}

func (s step) String() string {
	return map[action]string{create: "create", adopt: "adopt", enforce: "enforce", retire: "retire", remove: "remove", prune: "prune"}[s.do] + fmt.Sprint(s.index)
}

func inWords(steps []step) string {
	var words []string
	for _, s := range steps {
		words = append(words, s.String())
	}
	return strings.Join(words, " ")
}

func TestPlan(t *testing.T) {
	valid := func(hash string) desired { return desired{exists: true, valid: true, hash: []byte(hash)} }
	invalid := desired{exists: true, hash: []byte("a")}
	gone := desired{}
	const eleven = "0a 1b 2a 3b 4a 5b 6a 7b 8a 9b 10a*"
	cases := map[string]struct {
		want  desired
		there string
		named []int
		plan  string
	}{
		"the first snapshot has index 0":                                     {valid("a"), "", nil, "create0"},
		"what is right is left alone":                                        {valid("b"), "0a 1b*", nil, ""},
		"another content is a new snapshot, and then the old one is retired": {valid("b"), "0a*", nil, "create1 retire0"},
		"a content of the past is a new snapshot":                            {valid("a"), "0a 1b*", nil, "create2 retire1"},
		"one that nobody can use has none in force":                          {invalid, "0a*", nil, "retire0"},
		"one that nobody could ever use has none":                            {invalid, "", nil, ""},
		"one that can be used again has the same again":                      {valid("a"), "0a", nil, "enforce0"},
		"one that was changed meanwhile has a new one":                       {valid("b"), "0a", nil, "create1"},
		"only the newest can be used again":                                  {valid("a"), "0a 1b", nil, "create2"},
		"of two in force the newer one counts":                               {valid("b"), "0a* 1b*", nil, "retire0"},
		"of two in force the newer one counts, also if it is outdated":       {valid("a"), "0a* 1b*", nil, "create2 retire1 retire0"},
		"unclear labels are put right":                                       {valid("b"), "0a? 1b?", nil, "enforce1 retire0"},
		"unclear labels of one not in use are put right":                     {invalid, "0a?", nil, "retire0"},
		"one that is gone takes all with it":                                 {gone, "0a 1b* 2c! 3d~", nil, "remove0 remove1 remove2"},
		"one that is gone takes what somebody names":                         {gone, "0a*", []int{0}, "remove0"},
		"ten are kept":                                             {valid("b"), "0a 1b 2a 3b 4a 5b 6a 7b 8a 9b*", nil, ""},
		"the eleventh goes":                                        {valid("a"), eleven, nil, "prune0"},
		"the new one counts":                                       {valid("c"), "0a 1b 2a 3b 4a 5b 6a 7b 8a 9b*", nil, "create10 retire9 prune0"},
		"all too many go":                                          {valid("c"), eleven, nil, "create11 retire10 prune1 prune0"},
		"what somebody names stays":                                {valid("c"), eleven, []int{0}, "create11 retire10 prune1"},
		"they go also if none is in force":                         {invalid, eleven, nil, "retire10 prune0"},
		"a name that somebody uses is not used again":              {valid("a"), "", []int{2, 4}, "create5"},
		"a name that somebody uses is not used again after others": {valid("b"), "0a*", []int{1}, "create2 retire0"},
		"a name that is taken is not used again":                   {valid("b"), "3a~", nil, "create4"},
		"one that is being deleted is not in force":                {valid("a"), "0a*~", nil, "create1"},
		"those from before are adopted":                            {valid("a"), "0a*! 1b!", nil, "adopt1 adopt0 create2 retire0"},
		"those from before that show it stay in force":             {valid("b"), "0a! 1b*!", nil, "adopt1 adopt0"},
		"those from before are adopted also if it cannot be used":  {invalid, "0a*! 1b!~", nil, "adopt0 retire0"},
		"gaps are not filled":                                      {valid("c"), "2a 5b*", nil, "create6 retire5"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			there := versions(t, tc.there)
			rand.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
			if strings.Contains(tc.plan, "remove") {
				slices.SortFunc(there, func(a, b version) int { return a.index - b.index })
			}
			assert.Equal(t, tc.plan, inWords(planSteps(tc.want, there, sets.New(tc.named...))))
		})
	}
}

func TestNamesOfSnapshots(t *testing.T) {
	for name, want := range map[string]struct {
		parent string
		index  int
		ok     bool
	}{
		"cro-0":                    {"cro", 0, true},
		"cro-1-12":                 {"cro-1", 12, true},
		"a.b-3":                    {"a.b", 3, true},
		"cro--1":                   {"cro-", 1, true},
		"cro-01":                   {},
		"cro-+1":                   {},
		"cro-":                     {},
		"cro":                      {},
		"-1":                       {},
		"1":                        {},
		"cro-x":                    {},
		"cro-99999999999999999999": {},
	} {
		parent, index, ok := parseName(name)
		assert.Equal(t, want.ok, ok, name)
		assert.Equal(t, want.parent, parent, name)
		assert.Equal(t, want.index, index, name)
	}
}

// world is an override, its snapshots and who names them, as a simulation has them.
type world struct {
	t     *testing.T
	want  desired
	uid   int
	there map[int]version
	// taken is of which override a snapshot was taken.
	taken map[int]int
	// named is what somebody names, with the content it had then.
	named map[int]string
}

// settle carries out what is planned and dies after a number of steps. It says whether
// it lived.
func (w *world) settle(left int, check func(w *world)) bool {
	var there []version
	for _, index := range slices.Sorted(maps.Keys(w.there)) {
		v := w.there[index]
		if w.taken[index] != w.uid {
			v.kinship = rules.KinshipInherited
		}
		there = append(there, v)
	}
	for _, s := range planSteps(w.want, there, sets.KeySet(w.named)) {
		if left == 0 {
			return false
		}
		left--
		switch s.do {
		case create:
			require.NotContains(w.t, w.there, s.index, "the name is taken")
			w.there[s.index] = version{index: s.index, hash: w.want.hash, mark: inForce}
			w.taken[s.index] = w.uid
		case adopt:
			w.taken[s.index] = w.uid
		case enforce, retire:
			v := w.there[s.index]
			v.mark = map[action]mark{enforce: inForce, retire: retired}[s.do]
			w.there[s.index] = v
		case prune:
			require.NotContains(w.t, w.named, s.index, "somebody names it")
			delete(w.there, s.index)
		case remove:
			require.False(w.t, w.want.exists && w.taken[s.index] == w.uid, "it is one of its own")
			delete(w.there, s.index)
		}
		check(w)
	}
	return true
}

// counts is the snapshot that whoever looks takes for the one in force, or nil.
func (w *world) counts() *version {
	for _, index := range slices.Backward(slices.Sorted(maps.Keys(w.there))) {
		if v := w.there[index]; v.mark == inForce {
			return &v
		}
	}
	return nil
}

// happens does something to the override, or to who names its snapshots.
func (w *world) happens(chance *rand.Rand) {
	switch chance.IntN(8) {
	case 0, 1, 2:
		w.want.hash = []byte(string(rune('a' + chance.IntN(3))))
	case 3:
		w.want.valid = !w.want.valid
	case 4:
		if v := w.counts(); v != nil {
			w.named[v.index] = string(v.hash)
		}
	case 5:
		for index := range w.named {
			delete(w.named, index)
			return
		}
	case 6:
		if !w.want.exists && len(w.there) == 0 {
			w.want.exists = true
			w.uid++
		} else if chance.IntN(8) == 0 { // seldom, so that there is a history
			w.want.exists = false
		}
	case 7:
		if v := w.counts(); v != nil && chance.IntN(4) == 0 { // somebody changes the labels by hand
			v.mark = unclear
			w.there[v.index] = *v
		}
	}
}

// TestDeathsAndChangesInAnyOrder simulates a process that dies again and again while the
// override changes.
func TestDeathsAndChangesInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a simulation that can be repeated
		w := &world{t: t, want: desired{exists: true, valid: true, hash: []byte("a")}, there: map[int]version{}, taken: map[int]int{}, named: map[int]string{}}
		for range 60 {
			had := w.counts()
			check := func(w *world) {
				if w.want.exists && w.want.valid && had != nil {
					require.NotNil(t, w.counts(), "seed %d: none is in force", seed)
				}
				for index, content := range w.named {
					if v, ok := w.there[index]; ok {
						require.Equal(t, content, string(v.hash), "seed %d: snapshot %d has changed", seed, index)
					}
				}
			}
			for !w.settle(chance.IntN(6), check) {
				if chance.IntN(3) == 0 {
					w.happens(chance)
					had = w.counts()
				}
			}
			requireSettled(t, w, seed)
			for range chance.IntN(4) {
				w.happens(chance)
			}
		}
	}
}

// requireSettled checks what has to be so once nothing is left to do.
func requireSettled(t *testing.T, w *world, seed uint64) {
	t.Helper()
	marked := 0
	unneeded := 0
	for index, v := range w.there {
		require.NotEqual(t, unclear, v.mark, "seed %d", seed)
		if v.mark == inForce {
			marked++
			require.True(t, bytes.Equal(w.want.hash, v.hash), "seed %d", seed)
		}
		if _, named := w.named[index]; !named {
			unneeded++
		}
	}
	if !w.want.exists {
		require.Empty(t, w.there, "seed %d", seed)
		return
	}
	require.LessOrEqual(t, unneeded, historyLimit, "seed %d", seed)
	require.Equal(t, w.want.valid, marked == 1, "seed %d: %d are in force", seed, marked)
	require.LessOrEqual(t, marked, 1, "seed %d", seed)
}
