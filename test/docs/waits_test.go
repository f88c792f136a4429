package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// changing are commands after which the fleet has something to do. kubectl delete waits itself.
	changing = regexp.MustCompile(`^(?:kubectl(?: --context \S+| -n \S+)* (?:apply|create|patch|label|annotate|set|scale|taint|fleet (?:run|approve|reject|skip|retry|stop|resume|pause|partition|rollback|suspend|unsuspend|evict|reschedule|enable|disable|release))|temporal workflow (?:signal|update|cancel|terminate)) `)
	// looksAt are commands that show what agents have written.
	looksAt  = regexp.MustCompile(`^kubectl(?: --context member-\S+| -n \S+)* (?:get|fleet (?:status|why|why-not|history)) `)
	byAgents = regexp.MustCompile(`\.status\b|snapshots|\bcrb\b|\bworks?\b|--context member-|fleet (?:status|why|why-not|history) |\bareq\b|approvalrequest`)
	// owned are commands that change a member itself, which a look at the member sees at once.
	owned = regexp.MustCompile(`^kubectl --context member-`)
)

// tooEarly says that a step shows what agents write because of the step before it. The test that runs the commands looks again until
// it sees what is printed, but a reader who pastes both sees something else.
func tooEarly(before, step Step) bool {
	if before.Skipped != "" || step.Skipped != "" || dryRun(before) || dryRun(step) || len(step.Output) == 0 || onlyGaps(step.Output) {
		return false
	}
	if owned.MatchString(before.Command) && owned.MatchString(step.Command) {
		return false
	}
	return changing.MatchString(before.Command) && looksAt.MatchString(step.Command) && byAgents.MatchString(step.Command)
}

func dryRun(step Step) bool { return strings.Contains(step.Command, "--dry-run") }

func onlyGaps(output []string) bool {
	for _, line := range output {
		if strings.TrimSpace(line) != Gap {
			return false
		}
	}
	return true
}

func TestWhatAgentsWriteIsWaitedForBeforeItIsShown(t *testing.T) {
	looks := 0
	for _, pattern := range Run {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			steps, err := Parse(string(content))
			require.NoError(t, err)
			for i := range steps {
				if looksAt.MatchString(steps[i].Command) {
					looks++
				}
				if i > 0 && tooEarly(steps[i-1], steps[i]) {
					assert.Fail(t, "a reader who pastes this does not see what is printed: put a kubectl wait before it", "%s:%d: %s", path, steps[i].Line, steps[i].Command)
				}
			}
		}
	}
	assert.Greater(t, looks, 100, "looks found")
}

func TestLooksThatAreTooEarlyAreFound(t *testing.T) {
	apply := Step{Command: "kubectl apply -f a.yaml"}
	look := Step{Command: "kubectl get crp a -o jsonpath='{.status.clusters}'", Output: []string{"1"}}
	assert.True(t, tooEarly(apply, look))
	assert.True(t, tooEarly(apply, Step{Command: "kubectl --context member-1 get cm a", Output: []string{"a"}}))
	for name, steps := range map[string][2]Step{
		"a wait":                    {{Command: "kubectl wait --for=condition=Valid override/a"}, look},
		"what is written itself":    {apply, {Command: "kubectl get crp a -o jsonpath='{.spec.policy}'", Output: []string{"{}"}}},
		"output that is left out":   {apply, {Command: look.Command, Output: []string{"...", " ..."}}},
		"a dry run":                 {{Command: "kubectl apply --dry-run=server -f a.yaml"}, look},
		"a block that is not run":   {apply, {Command: look.Command, Output: look.Output, Skipped: "it needs Docker"}},
		"a change of the member":    {{Command: "kubectl --context member-1 label ns a b=c"}, {Command: "kubectl --context member-1 get ns a", Output: []string{"a"}}},
		"a look, and another":       {look, look},
		"a plan of what is applied": {apply, {Command: "kubectl fleet plan --placement a --strategy b", Output: []string{"stage"}}},
	} {
		assert.False(t, tooEarly(steps[0], steps[1]), name)
	}
}
