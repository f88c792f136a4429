package v1beta1

import (
	"fmt"
	"slices"
)

// String returns how messages name a taint, as kubectl takes it: key=value:Effect.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// NoteKey returns the key of a taint in TaintsSinceAnnotation, which is stored: it stays what it is.
func (t Taint) NoteKey() string {
	return fmt.Sprintf("{Key:%s Value:%s Effect:%s}", t.Key, t.Value, t.Effect)
}

// Equal reports whether two taints are the same, with the same time.
func (t Taint) Equal(other Taint) bool {
	return t.NoteKey() == other.NoteKey() && t.TimeAdded.Equal(other.TimeAdded)
}

// EqualTaints reports whether two lists have the same taints in the same order.
func EqualTaints(a, b []Taint) bool { return slices.EqualFunc(a, b, Taint.Equal) }
