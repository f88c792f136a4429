package command

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// invocation is a call of the plugin in an example, up to what a shell makes of the rest.
var invocation = regexp.MustCompile(`kubectl fleet ([^|>&]+)`)

// quoted is an argument in quotes.
var quoted = regexp.MustCompile(`"[^"]*"|'[^']*'`)

func newRoot() *cobra.Command {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	return NewRoot(cli.NewFactory(), streams)
}

func TestEveryVerbHasHelpWorthReadingAndExamplesThatParse(t *testing.T) {
	for _, verb := range newRoot().Commands() {
		if verb.GroupID == "" || verb.HasSubCommands() {
			continue // cobra's own, and families of commands, whose help lists these
		}
		t.Run(verb.Name(), func(t *testing.T) {
			assert.NotEmpty(t, verb.Short)
			assert.Greater(t, len(verb.Long), len(verb.Short), "the long help says no more than the short one")
			require.NotEmpty(t, verb.Example)
			own := 0
			for line := range strings.Lines(verb.Example) {
				if strings.HasPrefix(strings.TrimSpace(line), "#") {
					continue
				}
				for _, call := range invocation.FindAllStringSubmatch(line, -1) {
					root := newRoot()
					found, rest, err := root.Find(strings.Fields(quoted.ReplaceAllString(call[1], "quoted")))
					require.NoError(t, err, "%s", call[0])
					require.NotSame(t, root, found, "%s: there is no such command", call[0])
					assert.NoError(t, found.ParseFlags(rest), "%s", call[0])
					if found.Name() == verb.Name() {
						own++
					}
				}
			}
			assert.Positive(t, own, "no example is of the command itself")
		})
	}
}

func TestTheRootExplainsItself(t *testing.T) {
	c := newConsole(t)
	require.NoError(t, c.run())
	assert.Contains(t, c.Out.String(), "See what is going on:")
	assert.Contains(t, c.Out.String(), "kubectl_complete-fleet")
	assert.NotContains(t, c.Out.String(), "--certificate-authority", "the flags of all commands are listed by options")
	require.NoError(t, c.run("options"))
	assert.Contains(t, c.Err.String()+c.Out.String(), "--kubeconfig")
	require.NoError(t, c.run("version", "--client"))
	assert.Regexp(t, `^kubectl-fleet \S+ \(go\S+, \w+/\w+\)\n$`, c.Out.String())
	require.EqualError(t, c.run("nonsense"), `unknown command "nonsense" for "kubectl fleet"; kubectl fleet --help lists them all`)
	require.EqualError(t, c.run("statsu"), `unknown command "statsu" for "kubectl fleet"; do you mean status?`)
	require.EqualError(t, c.run("status", "web", "--wacth"), "unknown flag: --wacth; do you mean --watch?")
	require.EqualError(t, c.run("status", "web", "--nonsense"), "unknown flag: --nonsense; kubectl fleet status --help lists them all")
}

func TestNamesAreCompleted(t *testing.T) {
	c := newConsole(t, append(smallFleet(), soakingRun())...)
	for line, want := range map[string]string{
		"status ":                   "run/web-5\nplacement/web\nplacement/config\n",
		"why --placement w":         "web\nconfig\n",
		"get members ":              "member-1\nmember-2\nmember-3\n",
		"history --only ":           "policy\nsnapshot\nrun\nrehearsal\napproval\neviction\n",
		"get -o ":                   "table\nwide\njson\nyaml\njsonpath=TEMPLATE\nname\ncustom-columns=SPEC\n",
		"why member-1 --placement ": "web\nconfig\n",
	} {
		t.Run(line, func(t *testing.T) {
			require.NoError(t, c.run(append([]string{"__complete"}, strings.Split(line, " ")...)...))
			assert.True(t, strings.HasPrefix(c.Out.String(), want), c.Out.String())
		})
	}
}

func TestTheContextOfAClusterThatIsNoHubIsFoundOut(t *testing.T) {
	for _, line := range []string{
		"get", "get runs", "get members -o json", "status web", "why --placement web", "plan run/web-5", "history web", "diff web", "approve web-5",
		"evict web member-1 --yes", "drain member-1 --yes", "run web --strategy careful", "rollback web-5", "unjoin member-1 --yes", "unjoin --all --yes",
	} {
		t.Run(line, func(t *testing.T) {
			c := newConsole(t)
			c.Hub = noHub(c.Hub)
			require.ErrorIs(t, c.run(strings.Split(line, " ")...), hub.ErrNoHub)
			assert.Empty(t, c.Out.String())
		})
	}
	require.EqualError(t, newConsole(t).run("unjoin", "--all", "--yes"), "the fleet has no members")
}

func TestNoFlagOfACommandHidesOneThatAllCommandsHave(t *testing.T) {
	root := newRoot()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			assert.Nil(t, root.PersistentFlags().Lookup(flag.Name), "%s --%s means something else than --%[2]s of kubectl", cmd.CommandPath(), flag.Name)
		})
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	for _, child := range root.Commands() {
		visit(child)
	}
}

func TestTheHelpNamesTheCommandsThatAsk(t *testing.T) {
	c := newConsole(t)
	require.NoError(t, c.run("--help"))
	assert.Contains(t, strings.Join(strings.Fields(c.Out.String()), " "), "These ask first, and --yes answers: agents readdress, agents renew-token, agents upgrade, approve, disable, drain, evict, exempt, hold, migrate accept, orphaning disable, release, replace, reschedule, rollback, skip, uninstall, unjoin. To complete")
	require.NoError(t, c.run("stop", "--help"))
	assert.NotContains(t, c.Out.String(), "--yes")
	c = newConsole(t, soakingRun())
	require.NoError(t, c.run("stop", "web-5", "--yes"), "a script may say it to every command")
}

func TestALineThatCannotBeUnderstoodExitsWith2(t *testing.T) {
	for _, line := range []string{
		"statsu", "get pods", "get -o xml", "get --nonsense", "get -l =", "status", "status web --until noon", "plan", "plan a b", "plan web --index x", "stop", "stop web-5 --dry-run=maybe",
		"get members --color=green", "get -o jsonpath={", "get members -o custom-columns=NAME", "get approvals --watch", "diff", "windows nonsense",
	} {
		t.Run(line, func(t *testing.T) {
			c := newConsole(t, append(smallFleet(), soakingRun())...)
			err := c.run(strings.Split(line, " ")...)
			exit, is := errors.AsType[*cli.Exit](err)
			require.True(t, is, "%v", err)
			assert.Equal(t, cli.CodeUsage, exit.Code)
			assert.NotEmpty(t, err.Error())
		})
	}
}
