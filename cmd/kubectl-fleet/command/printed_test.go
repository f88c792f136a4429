package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/docs"
)

// prose are words after the name of the plugin that are no verbs of it.
var prose = map[string]bool{"and": true, "anew": true, "are": true, "brings": true, "keeps": true, "on": true}

// What documents, helps, advice and conditions say to type is understood: the verb is there, and has these flags.
func TestPrintedCommandsAreUnderstood(t *testing.T) {
	all, err := docs.AllPrinted("../../..")
	require.NoError(t, err)
	found := 0
	for _, printed := range all {
		calls, err := printed.Calls()
		require.NoError(t, err)
		for _, call := range calls {
			if call.Program != "kubectl-fleet" || len(call.Words) == 0 || call.Told && prose[call.Words[0]] {
				continue
			}
			found++
			assert.NoError(t, understood(call.Words), "%s: %s", call.Where, call.Text)
		}
	}
	assert.Greater(t, found, 500)
}

// understood says whether the plugin has a verb, and the verb these flags.
func understood(words []string) error {
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	if cmd == root && !strings.HasPrefix(words[0], "-") {
		return root.Args(root, words)
	}
	if strings.Contains(strings.Join(rest, " "), "--help") {
		return nil
	}
	return cmd.ParseFlags(rest)
}

func TestCommandsThatAreNotUnderstoodAreFound(t *testing.T) {
	for line, want := range map[string]string{
		"status web --watch":      "",
		"analysis show web":       "",
		"--help":                  "",
		"statsu web":              "unknown command",
		"status web --wacth":      "unknown flag",
		"migrate check --to":      "flag needs an argument",
		"status web --timeout 1x": "invalid argument",
	} {
		err := understood(strings.Fields(line))
		if want == "" {
			assert.NoError(t, err, line)
			continue
		}
		assert.ErrorContains(t, err, want, line)
	}
}
