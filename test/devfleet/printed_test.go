package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/docs"
)

// What documents, help, advice and the Makefile say to type is understood: the verb is there, and has these flags.
func TestPrintedCommandsAreUnderstood(t *testing.T) {
	const repository = "../.."
	all, err := docs.AllPrinted(repository)
	require.NoError(t, err)
	verbs := map[string]bool{}
	for len(all) > 0 {
		calls, err := all[0].Calls()
		require.NoError(t, err)
		all = all[1:]
		for _, call := range calls {
			switch {
			case call.Program == "make" && slices.ContainsFunc([]string{"demo", "fleet-up", "fleet-down"}, func(target string) bool { return slices.Contains(call.Words, target) }):
				made, err := call.Made(t.Context(), repository)
				require.NoError(t, err)
				all = append(all, made)
			case call.Program == "devfleet" && len(call.Words) > 0:
				verb, err := understood(call.Words)
				assert.NoError(t, err, "%s: %s", call.Where, call.Text)
				verbs[verb] = true
			}
		}
	}
	for _, verb := range []string{"up", "down", "demo", "kill", "wipe-temporal"} {
		assert.True(t, verbs[verb], "%s is printed", verb)
	}
}

// understood says which verb of devfleet a line calls, and whether the verb has these flags.
func understood(words []string) (verb string, err error) {
	root := rootCommand()
	cmd, rest, err := root.Find(words)
	if err != nil || slices.Contains(rest, "--help") {
		return "", err
	}
	return cmd.Name(), cmd.ParseFlags(rest)
}

func TestCommandsThatAreNotUnderstoodAreFound(t *testing.T) {
	for line, want := range map[string]string{
		"up --with-prometheus": "", "--dir x down --purge": "", "--help": "", "upp": "unknown command", "up --with-prometeus": "unknown flag",
	} {
		_, err := understood(strings.Fields(line))
		if want == "" {
			assert.NoError(t, err, line)
			continue
		}
		assert.ErrorContains(t, err, want, line)
	}
}
