package scheduler

import (
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// State is what a policy snapshot remembers of the last decision, beside what its status says of it. Each field is an annotation of its
// own: so a hub agent of another version, which takes over during an upgrade or once that is taken back, knows what was remembered.
type State struct {
	// Bars are the clusters that the placement has left because what is placed there was not available, by name.
	Bars map[string]Bar
	// FitSince is since when affinity groups before the one that clusters are picked from have had enough of them, by name.
	FitSince map[string]time.Time
	// Demand is the hash of what the clusters were picked for: replicas that were divided, and kinds that they have to serve.
	Demand string
	// Requests is what RequestsToWatch returned.
	Requests string
	// LeaveAt is when the placement is to leave a cluster for another if nothing changes; zero if it is to stay.
	LeaveAt time.Time
	// Overdue identifies the clusters that were to be left because of the health of what is placed there, and which had recovered.
	Overdue string
	// Kinds are those that the clusters had to serve; none if they do not have to, or if there are too many to remember.
	Kinds []schema.GroupVersionKind
	// NotFound are the clusters that another scheduler has picked and that nothing can be placed on.
	NotFound []string
}

// StateOf reads what a policy snapshot remembers, which may be nil. What cannot be read is not remembered.
func StateOf(policy placementv1beta1.PolicySnapshotObject) State {
	if policy == nil {
		return State{}
	}
	notes := policy.GetAnnotations()
	state := State{
		Demand: notes[placementv1beta1.ReplicaDemandAnnotation], Requests: notes[placementv1beta1.ReplicaRequestsAnnotation],
		Overdue: notes[placementv1beta1.OverdueAnnotation], Kinds: decodeKinds(notes[placementv1beta1.KindsToServeAnnotation]),
	}
	if json.Unmarshal([]byte(notes[placementv1beta1.BarredAnnotation]), &state.Bars) != nil {
		state.Bars = nil
	}
	if json.Unmarshal([]byte(notes[placementv1beta1.AffinityGroupsFitSinceAnnotation]), &state.FitSince) != nil {
		state.FitSince = nil
	}
	if at, err := time.Parse(time.RFC3339, notes[placementv1beta1.LeaveAtAnnotation]); err == nil {
		state.LeaveAt = at
	}
	if names := notes[placementv1beta1.ClustersNotFoundAnnotation]; names != "" {
		state.NotFound = strings.Split(names, ",")
	}
	return state
}

// Notes returns the annotations of a policy snapshot that remembers the state; what is empty is to be taken off.
func (s *State) Notes() map[string]string {
	leaveAt := ""
	if !s.LeaveAt.IsZero() {
		leaveAt = s.LeaveAt.UTC().Format(time.RFC3339)
	}
	return map[string]string{
		placementv1beta1.BarredAnnotation:                 encodeByName(s.Bars),
		placementv1beta1.AffinityGroupsFitSinceAnnotation: encodeByName(s.FitSince),
		placementv1beta1.ReplicaDemandAnnotation:          s.Demand,
		placementv1beta1.ReplicaRequestsAnnotation:        s.Requests,
		placementv1beta1.LeaveAtAnnotation:                leaveAt,
		placementv1beta1.OverdueAnnotation:                s.Overdue,
		placementv1beta1.ClustersNotFoundAnnotation:       strings.Join(s.NotFound, ","),
		placementv1beta1.KindsToServeAnnotation:           encodeKinds(s.Kinds),
	}
}

// encodeByName encodes what is remembered by name; empty if that is nothing.
func encodeByName[T Bar | time.Time](remembered map[string]T) string {
	if len(remembered) == 0 {
		return ""
	}
	data, _ := json.Marshal(remembered) // strings and times of our days always encode
	return string(data)
}

// maxNotedKinds is how many bytes of kinds are noted: a policy snapshot has room for other notes, too.
const maxNotedKinds = 16 << 10

// encodeKinds encodes kinds as <kind>.<version>.<group>; empty if there are none, or too many.
func encodeKinds(kinds []schema.GroupVersionKind) string {
	texts := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		texts = append(texts, kind.Kind+"."+kind.Version+"."+kind.Group)
	}
	if text := strings.Join(texts, ","); len(text) <= maxNotedKinds {
		return text
	}
	return ""
}

func decodeKinds(text string) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for part := range strings.SplitSeq(text, ",") {
		kind, _ := schema.ParseKindArg(part)
		if kind == nil {
			return nil
		}
		kinds = append(kinds, *kind)
	}
	return kinds
}
