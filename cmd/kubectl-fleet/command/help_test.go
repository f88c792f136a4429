package command

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

func TestTheHelpOfEveryVerbFitsATerminal(t *testing.T) {
	root := newRoot()
	var paths [][]string
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		paths = append(paths, strings.Fields(cmd.CommandPath())[2:])
		for _, below := range cmd.Commands() {
			if !below.Hidden && below.Name() != "completion" && below.Name() != "help" {
				visit(below)
			}
		}
	}
	visit(root)
	require.Greater(t, len(paths), 40)
	for _, path := range paths {
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			c := newConsole(t)
			require.NoError(t, c.run(append(path, "--help")...))
			section := ""
			for line := range strings.Lines(c.Out.String()) {
				line = strings.TrimSuffix(line, "\n")
				if line != "" && line[0] != ' ' {
					section = line
				}
				if section == "Examples:" && !strings.HasPrefix(strings.TrimSpace(line), "#") {
					continue // a command is copied whole
				}
				assert.LessOrEqual(t, utf8.RuneCountInString(line), plainWidth, line)
			}
		})
	}
	c := newConsole(t)
	require.NoError(t, c.run("options"))
	for line := range strings.Lines(c.Out.String() + c.Err.String()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), plainWidth+1, line)
	}
}

func TestTheHelpSaysAllThatItSaysInWideLines(t *testing.T) {
	c := newConsole(t)
	require.NoError(t, c.run("evict", "--help"))
	words := strings.Join(strings.Fields(c.Out.String()), " ")
	assert.Contains(t, words, "with 124 if there is no outcome in time: it stays pending then, and may still be executed. With --replace")
	assert.Contains(t, words, "Change nothing. client: only say what would be done; server: also let the hub check it.")
	assert.Contains(t, c.Out.String(), "\n  # Move what is there to another cluster")
}

func TestANarrowTerminalShowsWhatRunsWaitFor(t *testing.T) {
	o := &getOptions{wanted: fleetview.Wanted{Kinds: []hub.Kind{hub.KindRun}}}
	row := fleetview.Run{
		Ref: hub.Ref{Name: "checkout-service-17"}, Placement: "checkout-service", Snapshot: "12", State: "Waiting", Stage: "production (3 of 4)",
		Progress: "12/40, 1 failed", WaitingFor: "approval of stage production", Age: "17m",
	}
	full := []base.Table{o.runTable([]fleetview.Run{row})}
	wide, err := o.tableLines(base.Narrow(full, 200, false), 200, "")
	require.NoError(t, err)
	assert.Contains(t, wide[0], "AGE")
	narrow, err := o.tableLines(base.Narrow(full, 80, false), 80, "")
	require.NoError(t, err)
	assert.Contains(t, narrow[0], "WAITING FOR")
	assert.Contains(t, narrow[1], "approval of stage production")
	for _, line := range narrow {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 80)
	}
	assert.Len(t, full[0].Columns, 10, "what was read is as it was")
}
