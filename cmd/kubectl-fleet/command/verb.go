package command

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// verbCommand runs a verb for a command line.
type verbCommand struct {
	base.Steering
	verb    steer.Verb
	request *steer.Request
	// adjust returns the arguments with what flags say in their place.
	adjust func(cmd *cobra.Command, args []string) []string
	// find reads the target that arguments name.
	find func(ctx context.Context, c client.WithWatch, arg string) (hub.Found, error)
	// after goes on once the verb is done.
	after func(ctx context.Context, result steer.Result) error
}

// beyond adds to the commands of some verbs what there is on a command line only.
var beyond = map[string]func(v *verbCommand, cmd *cobra.Command){
	"approve": takeRequests, "run": takeWatch, "cordon": takeClusterName, "drain": takeClusterName, "uncordon": takeClusterName,
}

// newVerb makes the command of a verb.
func newVerb(f *cli.Factory, streams genericiooptions.IOStreams, verb steer.Verb) *cobra.Command {
	v := &verbCommand{Steering: base.Steering{Factory: f, Streams: streams}, verb: verb, request: verb.New()}
	v.adjust = func(_ *cobra.Command, args []string) []string { return args }
	v.find = func(ctx context.Context, c client.WithWatch, arg string) (hub.Found, error) {
		return base.Find(ctx, f, c, arg, verb.Kinds...)
	}
	cmd := &cobra.Command{
		Use: verb.Name + " " + verb.Takes, Aliases: verb.Aliases, GroupID: verb.Group, Short: verb.Short, Long: verb.Long, Example: verb.Example,
		Args:              func(cmd *cobra.Command, args []string) error { return exitOf(verb.CheckArguments(v.adjust(cmd, args))) },
		ValidArgsFunction: v.completeArgument,
		RunE:              func(cmd *cobra.Command, args []string) error { return v.run(cmd.Context(), v.adjust(cmd, args)) },
	}
	v.AddPrintingFlags(cmd)
	if !verb.Asks {
		cli.Unasked(cmd)
	}
	for _, field := range v.request.Fields {
		if !field.Argument {
			v.addFlag(cmd, field)
		}
	}
	if add := beyond[verb.Name]; add != nil {
		add(v, cmd)
	}
	return cmd
}

// addFlag adds the flag of an option.
func (v *verbCommand) addFlag(cmd *cobra.Command, field steer.Field) {
	flags := cmd.Flags()
	switch into := field.Into.(type) {
	case *string:
		flags.StringVarP(into, field.Name, field.Short, *into, field.Usage)
	case *[]string:
		flags.StringSliceVarP(into, field.Name, field.Short, *into, field.Usage)
	case *bool:
		flags.BoolVarP(into, field.Name, field.Short, *into, field.Usage)
	case *time.Duration:
		flags.DurationVarP(into, field.Name, field.Short, *into, field.Usage)
	case *steer.Reason:
		flags.VarP(into, field.Name, field.Short, field.Usage)
	}
	if field.Complete != nil {
		_ = cmd.RegisterFlagCompletionFunc(field.Name, base.Completed(v.Factory, v.offerValues(field))) // fails only for a flag that is not there
	}
}

// argumentFields returns the fields that stand on the command line behind the target.
func (v *verbCommand) argumentFields() []steer.Field {
	return slices.DeleteFunc(slices.Clone(v.request.Fields), func(field steer.Field) bool { return !field.Argument })
}

// behindTarget returns the arguments without the target.
func (v *verbCommand) behindTarget(args []string) []string {
	if len(v.verb.Kinds) == 0 || len(args) == 0 {
		return args
	}
	return args[1:]
}

// completeArgument completes an argument.
func (v *verbCommand) completeArgument(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	given := v.behindTarget(args)
	fields := v.argumentFields()
	switch {
	case slices.Contains(v.verb.Kinds, hub.KindMember):
		return base.CompleteNames(v.Factory, hub.KindMember)(cmd, args, word)
	case len(args) == 0 && v.verb.Completes != nil:
		return base.Completed(v.Factory, v.offerRuns)(cmd, args, word)
	case len(args) == 0 && len(v.verb.Kinds) > 0:
		return base.CompleteRefs(v.Factory, v.verb.Kinds...)(cmd, args, word)
	case len(fields) == 0:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	field := fields[min(len(given), len(fields)-1)]
	if _, many := field.Into.(*[]string); field.Complete == nil || len(given) >= len(fields) && !many {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return base.Completed(v.Factory, v.offerValues(field))(cmd, args, word)
}

// offerRuns offers the runs that the verb is for now.
func (v *verbCommand) offerRuns(ctx context.Context, f *cli.Factory, _ []string) ([]string, error) {
	reader, err := base.NewReader(f)
	if err != nil {
		return nil, err
	}
	all, err := reader.Runs(ctx)
	var names []string
	for _, run := range all {
		if v.verb.Completes(run) {
			names = append(names, string(hub.KindRun)+"/"+run.Name)
		}
	}
	return names, err
}

// offerValues reads what a field can be, without what the command line has already.
func (v *verbCommand) offerValues(field steer.Field) base.Offer {
	return func(ctx context.Context, f *cli.Factory, args []string) ([]string, error) {
		reader, err := base.NewReader(f)
		if err != nil {
			return nil, err
		}
		target := hub.Found{}
		if len(args) > 0 && len(v.verb.Kinds) > 0 {
			if target, err = base.Find(ctx, f, reader, args[0], v.verb.Kinds...); err != nil {
				return nil, err
			}
		}
		all, err := field.Complete(ctx, reader, target)
		given := v.behindTarget(args)
		return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(given, name) }), err
	}
}

// run runs the verb.
func (v *verbCommand) run(ctx context.Context, args []string) error {
	given := v.behindTarget(args)
	for _, field := range v.argumentFields() {
		switch into := field.Into.(type) {
		case *[]string:
			*into = given
		case *string:
			*into = given[0]
			given = given[1:]
		}
	}
	if v.request.Validate != nil {
		if err := v.request.Validate(v.Call(nil)); err != nil {
			return exitOf(err)
		}
	}
	c, err := v.Connect()
	if err != nil {
		return err
	}
	target := hub.Found{}
	if len(v.verb.Kinds) > 0 {
		if target, err = v.find(ctx, c, args[0]); err != nil {
			return err
		}
	}
	return v.confirmAndDo(ctx, v.Call(c), target)
}

// confirmAndDo asks for consent and does what the verb is for.
func (v *verbCommand) confirmAndDo(ctx context.Context, call *steer.Call, target hub.Found) error {
	deed, err := v.request.Prepare(ctx, call, target)
	if err != nil {
		return exitOf(err)
	}
	ask := v.Ask
	if deed.OnTerminal {
		ask = v.AskOnTerminal
	}
	if deed.Question != "" {
		if err := ask(v.Streams, deed.Question); err != nil {
			return err
		}
	}
	result, err := deed.Do(ctx)
	if refused, is := errors.AsType[*steer.NotEvictedError](err); is {
		call.Progress(refused.Error())
		return &cli.Exit{Code: cli.CodeFailed}
	}
	if err != nil {
		return exitOf(err)
	}
	call.Progress(result.Said)
	if v.after == nil {
		return nil
	}
	return v.after(ctx, result)
}

// exitOf gives an error of a verb its exit code.
func exitOf(err error) error {
	if _, is := errors.AsType[*steer.InvalidError](err); is {
		return cli.Usage(err)
	}
	if _, is := errors.AsType[*steer.NoOutcomeError](err); is {
		return &cli.Exit{Code: cli.CodeTimeout, Err: err}
	}
	return err
}

// takeWatch lets a user watch the run that was created.
func takeWatch(v *verbCommand, cmd *cobra.Command) {
	watch := false
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Watch the run to its end.")
	v.after = func(ctx context.Context, result steer.Result) error {
		if !watch || v.Dry() {
			return nil
		}
		status := &statusOptions{Viewing: base.Viewing{Factory: v.Factory, Streams: v.Streams}, watch: true}
		return status.run(ctx, qualifiedRun(result.Made))
	}
}

// qualifiedRun names a run of a scope, whether or not the user has named the namespace.
func qualifiedRun(ref hub.Ref) string {
	if ref.Namespace != "" {
		return "sur/" + ref.Name
	}
	return "csur/" + ref.Name
}
