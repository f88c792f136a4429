package rules

import (
	"encoding/json"
	"time"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// RefusedWrites are the clusters of a placement whose bindings the API server refuses to write, as RefusedWritesAnnotation tells: the
// first by name, and how many more there are.
type RefusedWrites struct {
	Clusters []RefusedWrite `json:"clusters"`
	More     int            `json:"more,omitempty"`
}

// MaxToldRefusedWrites bounds the clusters that a placement names.
const MaxToldRefusedWrites = 20

// RefusedWrite is one of them: why it is refused, as the API server says, since when, and until when it is not tried again. The basis
// tells apart what was to be written where.
type RefusedWrite struct {
	Cluster string    `json:"cluster"`
	Why     string    `json:"why"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"`
	Basis   string    `json:"basis,omitempty"`
}

// RefusedWritesOf returns which refused writes a placement reports. What cannot be read reports none.
func RefusedWritesOf(placement placementv1beta1.PlacementObject) RefusedWrites {
	var told RefusedWrites
	if json.Unmarshal([]byte(placement.GetAnnotations()[placementv1beta1.RefusedWritesAnnotation]), &told) != nil {
		return RefusedWrites{}
	}
	told.Clusters = told.Clusters[:min(len(told.Clusters), MaxToldRefusedWrites)]
	return told
}

// Encode returns what the annotation has; empty if no write is refused.
func (r RefusedWrites) Encode() string {
	if len(r.Clusters) == 0 {
		return ""
	}
	text, err := json.Marshal(r)
	if err != nil { // texts and instants can always be encoded
		return ""
	}
	return string(text)
}
