package snapshot

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Verdict is the outcome of a selection, kept on the placement as an annotation:
// what the status shows, and what a restarted hub compares to know that nothing
// has changed meanwhile.
type Verdict struct {
	// Generation of the placement whose selectors were resolved.
	Generation int64 `json:"generation"`
	// Snapshot is the master snapshot that holds the selection, Index its index.
	Snapshot string `json:"snapshot,omitempty"`
	Index    int    `json:"index"`
	// Inputs is the fingerprint of the candidate objects; empty if the selectors say nothing
	// that could be looked for.
	Inputs string `json:"inputs,omitempty"`
	// Selectors is the hash of the selectors by which the snapshot was selected.
	Selectors string `json:"selectors,omitempty"`
	// Lost is what the snapshot keeps though it is no longer selected; nil if nothing is held so.
	Lost *Loss `json:"lost,omitempty"`
	// Due is when something else that is selected by now becomes a snapshot; zero if the
	// snapshot is what is selected.
	Due time.Time `json:"due,omitzero"`
	// Excess says, in words, that it is due later than usual because it takes so many bytes
	// to write; empty if it does not.
	Excess string `json:"excess,omitempty"`
	// Note says what is selected and cannot be placed yet, or that nothing is.
	Note string `json:"note,omitempty"`
	// TooLarge says, in words, which objects no snapshot can hold, and what is placed of them; empty if there are none.
	TooLarge string `json:"tooLarge,omitempty"`
	// Held are the kinds whose objects the snapshot has from the one before, because their
	// propagation is disabled, by name, and those that the placement would select.
	Held []string `json:"held,omitempty"`
	// Dependencies are what the selected objects name and no selector selects, in order, if the placement propagates them;
	// whether or not they are there.
	Dependencies []Dependency `json:"dependencies,omitempty"`
	// MissingDependencies says, in words, which of them are not placed, and why; empty if all are.
	MissingDependencies string `json:"missingDependencies,omitempty"`
	// Objects tells apart which objects the snapshot has, whatever is in them, Rivals what was known of the other placements with a
	// priority; both are empty without a priority.
	Objects string `json:"objects,omitempty"`
	Rivals  string `json:"rivals,omitempty"`
	// LeftOut is what other placements with a priority have; zero if they have nothing that is selected.
	LeftOut LeftOut `json:"leftOut,omitzero"`
	// Overrides are the override snapshots that concern the selection: the names of
	// ClusterResourceOverrideSnapshots, namespace/name of ResourceOverrideSnapshots.
	Overrides []string `json:"overrides,omitempty"`
	// OverridesMade is the fingerprint of the overrides made for the placement, whatever
	// they select, that Overrides were picked from.
	OverridesMade string `json:"overridesMade,omitempty"`
	// OverridesLacking are the overrides that the placement requires and that are not in force, as messages name them.
	OverridesLacking []string `json:"overridesLacking,omitempty"`
	// OverridesIdle says which selectors of overrides made for the placement select nothing
	// of it: the first few, in words.
	OverridesIdle []string `json:"overridesIdle,omitempty"`
	// Demand is the hash of what the workloads in the snapshot ask for whose replicas the placement divides; empty if it divides
	// none.
	Demand string `json:"demand,omitempty"`
	// Error says why the selectors cannot be resolved, for the user to correct.
	Error string `json:"error,omitempty"`
	// Reason tells errors apart, as that of an InvalidError does.
	Reason string `json:"reason,omitempty"`
	// ReadAgain is when at the earliest to read again what is selected, after it was found to
	// be too much; zero if at any time.
	ReadAgain time.Time `json:"readAgain,omitzero"`
}

// IsTooMuchFor reports whether what a generation of the placement selects was found to be too much, and is not to be read again
// yet.
func (v Verdict) IsTooMuchFor(generation int64, now time.Time) bool {
	return v.Reason == ReasonTooMuch && v.Generation == generation && v.ReadAgain.After(now)
}

// noted is how many objects a note names.
const noted = 3

// NoteOf says in a verdict what selectors name and what cannot be placed now, and
// whether anything is selected at all.
func NoteOf(missing []string, empty bool) string {
	if len(missing) == 0 && empty {
		return "nothing on the hub matches the resource selectors"
	}
	return DescribeMissing(missing)
}

// DescribeMissing joins what is said of missing objects, of the first few in full.
func DescribeMissing(missing []string) string {
	if len(missing) > noted {
		return fmt.Sprintf("%s; and %d more are missing", strings.Join(missing[:noted], "; "), len(missing)-noted)
	}
	return strings.Join(missing, "; ")
}

// Encode returns the verdict as the annotation holds it.
func (v Verdict) Encode() string {
	// Strings, integers and times always encode.
	data, _ := json.Marshal(v)
	return string(data)
}

// LatestOf returns the master snapshot that holds what is selected of a placement; empty if that is not known.
func LatestOf(placement metav1.Object) string {
	// What cannot be read counts as not known.
	verdict, _ := DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	return verdict.Snapshot
}

// DecodeVerdict reads the annotation. Without one the verdict is zero: its
// generation is 0, which no placement has.
func DecodeVerdict(annotation string) (Verdict, error) {
	var verdict Verdict
	if annotation == "" {
		return verdict, nil
	}
	if err := json.Unmarshal([]byte(annotation), &verdict); err != nil {
		return Verdict{}, fmt.Errorf("decoding the selection verdict: %w", err)
	}
	return verdict, nil
}
