package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckReason(t *testing.T) {
	long := strings.Repeat("x", MaxReason)
	for text, want := range map[string]struct{ reason, problem string }{
		" it burns\n": {reason: "it burns"},
		long:          {reason: long},
		long + "x":    {problem: "the reason has 1025 bytes: up to 1024 are kept on record"},
		"":            {problem: "say why: the reason is kept on record"},
		" \t\n":       {problem: "say why: the reason is kept on record"},
	} {
		reason, err := CheckReason(text)
		assert.Equal(t, want.reason, reason)
		if want.problem == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, want.problem)
		}
	}
}
