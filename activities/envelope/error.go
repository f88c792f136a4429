package envelope

import (
	"fmt"
	"strings"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxProblems is how many problems of one envelope its error spells out.
const maxProblems = 5

// Problem is what is wrong with one entry of an envelope.
type Problem struct {
	// Key of the entry; empty if the envelope as a whole is concerned.
	Key string
	// Rule that is broken, and what to do about it.
	Rule string
}

// Error says why an envelope cannot be unpacked. Only its author can correct that.
type Error struct {
	// Envelope that is concerned.
	Envelope placementv1beta1.EnvelopeIdentifier
	// Problems in the order of their keys; at least one.
	Problems []Problem
}

// Error names the envelope, and each key with the rule that is broken.
func (e *Error) Error() string {
	told := make([]string, 0, maxProblems+1)
	for i, problem := range e.Problems {
		if i == maxProblems {
			told = append(told, fmt.Sprintf("and %d more", len(e.Problems)-i))
			break
		}
		if problem.Key == "" {
			told = append(told, problem.Rule)
			continue
		}
		told = append(told, fmt.Sprintf("key %q: %s", problem.Key, problem.Rule))
	}
	return Describe(e.Envelope) + ": " + strings.Join(told, "; ")
}

// Describe returns an envelope as users write it, such as "ResourceEnvelope app/example".
func Describe(id placementv1beta1.EnvelopeIdentifier) string {
	return string(id.Type) + " " + qualifiedName(id.Namespace, id.Name)
}

func qualifiedName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
