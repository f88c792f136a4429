package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

func TestACommandLineThatIsWrongHasItsExitCode(t *testing.T) {
	for _, line := range []string{
		"run web",
		"why member-1",
		"federate",
		"windows test",
		"analysis lint",
		"hold fleet --reason x --for -5m",
		"exempt placement/web --reason x --from window --for 48h",
		"history web --only foo",
		"unjoin",
		"dashboard --address 0.0.0.0:8080",
		"join member-9",
	} {
		t.Run(line, func(t *testing.T) {
			c := newConsole(t, externalPlacement())
			exit := &cli.Exit{}
			require.ErrorAs(t, c.run(strings.Fields(line)...), &exit)
			assert.Equal(t, cli.CodeUsage, exit.Code, exit.Error())
		})
	}
}
