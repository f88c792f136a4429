package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/internal/patience"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
	"github.com/fleetflow/fleetflow/cmd/version"
)

// check is what `check` was asked for.
type check struct {
	base.Viewing
	// plugin is the version of this program, kubectl that of the user's kubectl; empty if there is none.
	plugin  string
	kubectl func(ctx context.Context) string
	strict  bool
}

// NewCheck returns `kubectl fleet check`.
func NewCheck(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return newCheck(f, streams, version.Number(), installedKubectl)
}

func newCheck(f *cli.Factory, streams genericiooptions.IOStreams, plugin string, kubectl func(context.Context) string) *cobra.Command {
	o := &check{Viewing: base.Viewing{Factory: f, Streams: streams}, plugin: plugin, kubectl: kubectl}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether the fleet is installed as it should be, and what to do about what is not",
		Long: `Look at the hub, the hub agent, Temporal and the members, compare their versions, and say what is wrong and what to do about it.
Nothing is changed. ✓ is what is well now, ! what should be different, ✗ what is wrong, and ? what could not be found out. Temporal is
not asked itself: the hub agent notes every ten seconds whether it reaches Temporal.

Exits with 0 if nothing is wrong, and with 1 if something is; with --strict, ! and ? count, too.`,
		Example: `  kubectl fleet check

  # In a pipeline: what is wrong, as JSON
  kubectl fleet check --strict -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.AddFlags(cmd)
	cmd.Flags().BoolVar(&o.strict, "strict", false, "Exit with 1 also for warnings, and for what could not be found out.")
	return cmd
}

func (o *check) run(ctx context.Context) error {
	if err := o.Validate(); err != nil {
		return err
	}
	facts, err := o.readFacts(ctx)
	if _, silent := errors.AsType[*url.Error](err); silent {
		facts = &diagnosis.Facts{Silent: err}
	} else if err != nil {
		return err
	}
	facts.Plugin = o.plugin
	facts.Kubectl = o.kubectl(ctx)
	report := diagnosis.Check(facts, o.Factory.Clock.Now())
	if !o.Structured() {
		o.printReport(report)
	} else if err := o.Encode(o.Streams.Out, report); err != nil {
		return err
	}
	if report.Has(diagnosis.Error) || o.strict && (report.Has(diagnosis.Warning) || report.Has(diagnosis.Unknown)) {
		return &cli.Exit{Code: cli.CodeFailed}
	}
	return nil
}

// readFacts reads what the hub tells. The error is one of the connection if the hub does not answer at all.
func (o *check) readFacts(ctx context.Context) (facts *diagnosis.Facts, err error) {
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	kubernetes, err := o.Factory.ServerVersion()
	if err != nil {
		return nil, err
	}
	err = o.Factory.Patiently(o.Streams, "looking at the fleet", func() (err error) {
		if facts, err = diagnosis.Read(ctx, c, o.Factory.Discover); err != nil {
			return err
		}
		facts.Lacking, err = o.Factory.Lacking(ctx)
		if _, silent := errors.AsType[*patience.Unanswered](err); silent {
			facts.NoteUnanswered("the definitions of the hub", err)
		} else if err != nil {
			facts.Unread = append(facts.Unread, fmt.Sprintf("whether the definitions of the hub lack fields is not known: %v", err))
		}
		return nil
	})
	if facts != nil {
		facts.Kubernetes = kubernetes
	}
	return facts, err
}

// marks show the weights of findings.
var marks = map[diagnosis.Weight]string{diagnosis.OK: "✓", diagnosis.Warning: "!", diagnosis.Error: "✗", diagnosis.Unknown: "?"}

// printReport prints a report for people.
func (o *check) printReport(report *diagnosis.Report) {
	for _, f := range report.Findings {
		cli.Printf(o.Streams.Out, "%s %-10s %s\n", marks[f.Weight], f.Part, f.Message)
		if f.Remedy != "" {
			cli.Printf(o.Streams.Out, "%-12s → %s\n", "", f.Remedy)
		}
	}
}

// installedKubectl returns the version of the kubectl on the PATH; empty if it cannot be found out.
func installedKubectl(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "kubectl", "version", "--client", "--output", "json").Output()
	if err != nil {
		return "" // the plugin runs without kubectl, too
	}
	var answer struct {
		ClientVersion struct {
			GitVersion string `json:"gitVersion"`
		} `json:"clientVersion"`
	}
	if json.Unmarshal(out, &answer) != nil {
		return ""
	}
	return answer.ClientVersion.GitVersion
}
