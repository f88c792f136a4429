package rules

import (
	"errors"
	"fmt"
	"strings"
)

// MaxReason is how long the text of ReasonAnnotation may be, in bytes.
const MaxReason = 1024

// CheckReason returns a reason as it is kept in ReasonAnnotation, or says why it is not.
func CheckReason(text string) (string, error) {
	reason := strings.TrimSpace(text)
	switch {
	case reason == "":
		return "", errors.New("say why: the reason is kept on record")
	case len(reason) > MaxReason:
		return "", fmt.Errorf("the reason has %d bytes: up to %d are kept on record", len(reason), MaxReason)
	}
	return reason, nil
}
