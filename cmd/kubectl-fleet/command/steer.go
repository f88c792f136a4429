package command

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// steering is what commands that change something share.
type steering struct {
	cli.Consent
	factory *cli.Factory
	streams genericiooptions.IOStreams
	// shown are the objects that a dry run would write.
	shown steer.Record
}

// addFlags adds the flags of a command that does nothing but write objects to the hub, and has it print them if asked for.
func (s *steering) addFlags(cmd *cobra.Command) {
	s.AddFlags(cmd)
	s.AddOutputFlag(cmd)
	run := cmd.RunE
	// What would be written before a command fails is printed, too: drain fails if something stays.
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return cmp.Or(run(cmd, args), s.show()) }
}

// show prints the objects that a dry run would write: one by itself, several as a list.
func (s *steering) show() error {
	objects := s.shown.Objects
	switch {
	case !s.Shows() || len(objects) == 0:
		return nil
	case len(objects) == 1:
		return s.Output.Encode(s.streams.Out, objects[0].Object)
	}
	return s.Output.Encode(s.streams.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}

// call returns how the user uses a verb.
func (s *steering) call(c client.WithWatch) *steer.Call {
	call := &steer.Call{
		Client: c, Clock: s.factory.Clock, DryRun: steer.DryRun(s.DryRun),
		Warn:     func(sentence string) { cli.Printf(s.streams.ErrOut, "Warning: %s\n", sentence) },
		Progress: func(sentence string) { s.Done(s.streams, "%s", sentence) },
		Wait:     func(doing string, work func() error) error { return s.factory.Patiently(s.streams, doing, work) },
	}
	if s.Shows() {
		call.Record = &s.shown
	}
	return call
}

// writer returns the client for writes.
func (s *steering) writer(c client.WithWatch) client.Client { return s.call(c).Writer() }

// connect checks what the user wants and returns a client of the hub.
func (s *steering) connect() (client.WithWatch, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.factory.Client()
}

// findOne checks what the user wants and returns a client of the hub, and the one object of some kinds that an argument names.
func (s *steering) findOne(ctx context.Context, arg string, kinds ...hub.Kind) (client.WithWatch, hub.Found, error) {
	c, err := s.connect()
	if err != nil {
		return nil, hub.Found{}, err
	}
	found, err := find(ctx, s.factory, c, arg, kinds...)
	return c, found, err
}
