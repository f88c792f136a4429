package command

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// untouched is a hub that nobody may ask for anything.
func untouched(of client.WithWatch) client.WithWatch {
	asked := errors.New("the hub was asked")
	return interceptor.NewClient(of, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return asked
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return asked
		},
	})
}

// leaves are the verbs below a command that do something themselves.
func leaves(of *cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	for _, cmd := range of.Commands() {
		switch {
		case cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion":
		case cmd.HasAvailableSubCommands():
			found = append(found, leaves(cmd)...)
		default:
			found = append(found, cmd)
		}
	}
	return found
}

// optional is a part of a usage line that can be left out.
var optional = regexp.MustCompile(`\[[^\]]*\]`)

// wrongLines are command lines of a verb that cannot be understood.
func wrongLines(verb *cobra.Command) [][]string {
	path := strings.Fields(verb.CommandPath())[2:] // behind kubectl fleet
	line := func(more ...string) []string { return append(append([]string{}, path...), more...) }
	lines := [][]string{line("--nonsense")}
	verb.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		switch flag.Value.Type() {
		case "bool", "duration", "int", "int32":
			lines = append(lines, line("--"+flag.Name+"=nonsense"))
		}
	})
	takes := strings.TrimSpace(strings.TrimPrefix(verb.Use, verb.Name()))
	if !strings.Contains(takes, "...") {
		lines = append(lines, line("a", "b", "c", "d", "e"))
	}
	if strings.TrimSpace(optional.ReplaceAllString(takes, "")) != "" {
		lines = append(lines, line())
	}
	if verb.Flags().Lookup("output") != nil {
		lines = append(lines, line("a", "b", "--output=nonsense"))
	}
	return lines
}

func TestEveryVerbRefusesAWrongLineWithItsExitCodeAndDoesNotAskTheHub(t *testing.T) {
	for _, verb := range leaves(newRoot()) {
		for _, line := range wrongLines(verb) {
			t.Run(strings.Join(line, " "), func(t *testing.T) {
				c := newConsole(t)
				c.Hub = untouched(c.Hub)
				err := c.run(line...)
				exit, is := errors.AsType[*cli.Exit](err)
				require.True(t, is, "%v", err)
				assert.Equal(t, cli.CodeUsage, exit.Code, err)
				assert.Empty(t, c.Out.String())
			})
		}
	}
}

func TestValuesThatCannotBeAreWrongLines(t *testing.T) {
	for line, want := range map[string]string{
		"hold":                        `say why the line stops: the message is shown wherever something waits, as in: kubectl fleet hold "payments down"`,
		"hold payments down":          `the message of a hold is one argument, in quotes, as in: kubectl fleet hold "payments down"`,
		"hold fleet --clusters a=b=c": `--clusters "a=b=c" is no label selector, such as region=west`,
		"evict web member-1 --replace --reason disk": "--replace marks a binding, on which no reason is kept: leave out --reason",
	} {
		t.Run(line, func(t *testing.T) {
			c := newConsole(t)
			c.Hub = untouched(c.Hub)
			err := c.run(strings.Split(line, " ")...)
			exit, is := errors.AsType[*cli.Exit](err)
			require.True(t, is, "%v", err)
			assert.Equal(t, cli.CodeUsage, exit.Code)
			assert.ErrorContains(t, err, want)
		})
	}
}
