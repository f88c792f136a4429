package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// completions are the words that the shell is offered.
func (c *console) completions(line string) []string {
	c.T.Helper()
	require.NoError(c.T, c.run(append([]string{"__complete"}, strings.Split(line, " ")...)...))
	words, _, _ := strings.Cut(c.Out.String(), ":")
	return strings.Fields(words)
}

func TestFlagsAndSecondArgumentsAreCompleted(t *testing.T) {
	c := newConsole(t, append(release(), &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident"}})...)
	for line, want := range map[string][]string{
		"run web --strategy ":       {"careful"},
		"plan web --strategy ":      {"careful"},
		"evict ":                    {"placement/web"},
		"evict placement/web ":      {"member-1", "member-2", "member-3"},
		"suspend web member-1 ":     {"member-2", "member-3"},
		"release ":                  {"incident"},
		"evict placement/nonesuch ": nil,
		"release incident ":         nil,
		"approve --stage ":          nil,
		"run placement/web web ":    nil,
	} {
		t.Run(line, func(t *testing.T) {
			assert.ElementsMatch(t, want, c.completions(line))
		})
	}
}

func TestOnlyRunsThatWaitAreOfferedForApproval(t *testing.T) {
	soaking := newConsole(t, soakingRun())
	assert.Equal(t, []string{"run/web-5"}, soaking.completions("stop "))
	assert.Equal(t, []string{"member-1", "member-2", "member-3"}, soaking.completions("skip web-5 "))
	for _, verb := range []string{"approve ", "reject "} {
		assert.Empty(t, soaking.completions(verb), "it soaks")
	}
	run, request := waitingAtCanary()
	waiting := newConsole(t, run, request)
	for _, verb := range []string{"approve ", "reject "} {
		assert.Equal(t, []string{"run/web-5"}, waiting.completions(verb))
		assert.Equal(t, []string{"canary"}, waiting.completions(verb+"web-5 --stage "))
	}
}
