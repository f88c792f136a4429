package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testingclock "k8s.io/utils/clock/testing"
)

func TestConsentAsksUnlessItWasGiven(t *testing.T) {
	for sentence, line := range map[string]struct {
		consent Consent
		answer  string
		err     string
		asked   bool
	}{
		"yes":                      {Consent{}, "y\n", "", true},
		"yes without a line's end": {Consent{}, "yes", "", true},
		"no":                       {Consent{}, "n\n", ErrDeclined.Error(), true},
		"nothing typed":            {Consent{}, "\n", ErrDeclined.Error(), true},
		"no terminal":              {Consent{}, "", "nothing was changed: there is no terminal to ask on; give --yes to do it, or --dry-run to see what would be done", true},
		"given with --yes":         {Consent{Yes: true}, "", "", false},
		"a dry run":                {Consent{DryRun: "client"}, "", "", false},
		"a dry run on the server":  {Consent{DryRun: "server"}, "", "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			asked := &bytes.Buffer{}
			err := line.consent.Ask(genericiooptions.IOStreams{In: strings.NewReader(line.answer), Out: &bytes.Buffer{}, ErrOut: asked}, "Stop run/web?")
			if line.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, line.err)
			}
			assert.Equal(t, line.asked, strings.HasPrefix(asked.String(), "Stop run/web? [y/N] "))
		})
	}
}

func TestDryRunWithoutAValueSendsNothing(t *testing.T) {
	consent := &Consent{}
	cmd := &cobra.Command{}
	consent.AddFlags(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--dry-run"}))
	assert.True(t, consent.Dry())
	assert.False(t, consent.Sends())
	require.NoError(t, cmd.ParseFlags([]string{"--dry-run=server"}))
	assert.True(t, consent.Sends())
	require.NoError(t, cmd.ParseFlags([]string{"--dry-run=maybe"}))
	require.EqualError(t, consent.Validate(), `--dry-run "maybe" is not known: use none, client or server`)
	out := &bytes.Buffer{}
	(&Consent{DryRun: "server"}).Done(genericiooptions.IOStreams{Out: out}, "%s stopped", "run/web")
	assert.Equal(t, "run/web stopped (server dry run)\n", out.String())
}

func TestUnderItsOtherNameTheProgramCompletes(t *testing.T) {
	assert.Equal(t, []string{"get", "runs"}, Arguments([]string{"/usr/bin/kubectl-fleet", "get", "runs"}))
	assert.Equal(t, []string{"__complete", "get", ""}, Arguments([]string{"kubectl_complete-fleet", "get", ""}))
	assert.Equal(t, []string{"__complete", "get", ""}, Arguments([]string{"kubectl_complete-fleet.exe", "get", ""}))
}

func TestWhatTakesLongIsSaid(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	f := &Factory{Clock: clock}
	said := &bytes.Buffer{}
	streams := genericiooptions.IOStreams{ErrOut: said}
	require.NoError(t, f.Patiently(streams, "reading", func() error { return nil }))
	assert.Empty(t, said.String(), "that was quick")
	go func() {
		assert.Eventually(t, clock.HasWaiters, time.Second, time.Millisecond)
		clock.Step(quiet)
	}()
	told := make(chan struct{})
	streams.ErrOut = writer(func(text string) {
		assert.Equal(t, "reading …\n", text)
		close(told)
	})
	require.EqualError(t, f.Patiently(streams, "reading", func() error {
		<-told
		return errors.New("no hub")
	}), "no hub")
}

// writer is a function that takes what is written.
type writer func(text string)

func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: hub
clusters:
- {name: hub, cluster: {server: https://hub.example}}
- {name: member-1, cluster: {server: https://member-1.example}}
users:
- {name: alice, user: {token: secret}}
contexts:
- {name: hub, context: {cluster: hub, user: alice, namespace: shop}}
- {name: member-1, context: {cluster: member-1, user: alice}}
`

func TestTheFactoryReadsAnyContextOfTheKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	f := NewFactory()
	f.Flags.KubeConfig = &path
	hub, err := f.Configure("")
	require.NoError(t, err)
	assert.Equal(t, "https://hub.example", hub.Host)
	member, err := f.Configure("member-1")
	require.NoError(t, err)
	assert.Equal(t, "https://member-1.example", member.Host)
	_, err = f.Configure("member-2")
	require.ErrorContains(t, err, `reading context "member-2" of the kubeconfig`)
	namespace, named, err := f.Namespace()
	require.NoError(t, err)
	assert.Equal(t, "shop", namespace)
	assert.False(t, named, "the kubeconfig's is a default, not a wish")
}

// redraw is what a member may write into a message: it clears the screen, goes up a line and hides what follows.
const redraw = "\x1b[2J\x1b[1A\u009b8mapproved\u202e\x7f"

func TestNoTextOfOthersReachesATerminalAsCommands(t *testing.T) {
	for sentence, print := range map[string]func(*Output, *bytes.Buffer) error{
		"a line": func(_ *Output, out *bytes.Buffer) error {
			Printf(out, "the hub wrote: %s\n", redraw)
			return nil
		},
		"a table": func(o *Output, out *bytes.Buffer) error {
			return o.PrintTable(out, []Column{{Name: "Message"}}, [][]string{{redraw}})
		},
		"JSON": func(_ *Output, out *bytes.Buffer) error {
			return (&Output{Format: FormatJSON}).Encode(out, map[string]string{"message": redraw})
		},
		"YAML": func(_ *Output, out *bytes.Buffer) error {
			return (&Output{Format: FormatYAML}).Encode(out, map[string]string{"message": redraw})
		},
		"what is done": func(_ *Output, out *bytes.Buffer) error {
			(&Consent{}).Done(genericiooptions.IOStreams{Out: out}, "%s stopped", redraw)
			return nil
		},
	} {
		out := &bytes.Buffer{}
		require.NoError(t, print(&Output{}, out), sentence)
		for _, r := range out.String() {
			assert.False(t, unicode.IsControl(r) && r != '\n', "%s: %q", sentence, out)
		}
		assert.Contains(t, out.String(), "approved", sentence)
	}
	out := &bytes.Buffer{}
	require.NoError(t, (&Output{Format: FormatJSON}).Encode(out, map[string]string{"message": redraw}))
	var read map[string]string
	require.NoError(t, json.Unmarshal(out.Bytes(), &read))
	assert.Equal(t, redraw, read["message"], "programs read what was written")
}
