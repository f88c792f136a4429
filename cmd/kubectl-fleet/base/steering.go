// Package base has what commands are made of: those that change something embed Steering, those that show something Viewing. It reads
// which object an argument names, and completes arguments.
package base

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

// Steering is what commands that change something share.
type Steering struct {
	cli.Consent
	Factory *cli.Factory
	Streams genericiooptions.IOStreams
	// shown are the objects that a dry run would write.
	shown steer.Record
}

// AddPrintingFlags adds the flags of a command that does nothing but write objects to the hub, and has it print them if asked for.
func (s *Steering) AddPrintingFlags(cmd *cobra.Command) {
	s.AddFlags(cmd)
	s.AddOutputFlag(cmd)
	run := cmd.RunE
	// What would be written before a command fails is printed, too: drain fails if something stays.
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return cmp.Or(run(cmd, args), s.show()) }
}

// show prints the objects that a dry run would write: one by itself, several as a list.
func (s *Steering) show() error {
	objects := s.shown.Objects
	switch {
	case !s.Shows() || len(objects) == 0:
		return nil
	case len(objects) == 1:
		return s.Output.Encode(s.Streams.Out, objects[0].Object)
	}
	return s.Output.Encode(s.Streams.Out, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
}

// Call returns how the user uses a verb.
func (s *Steering) Call(c client.WithWatch) *steer.Call {
	call := &steer.Call{
		Client: c, Clock: s.Factory.Clock, DryRun: steer.DryRun(s.DryRun),
		Warn:     func(sentence string) { cli.Printf(s.Streams.ErrOut, "Warning: %s\n", sentence) },
		Progress: func(sentence string) { s.Done(s.Streams, "%s", sentence) },
		Wait:     func(doing string, work func() error) error { return s.Factory.Patiently(s.Streams, doing, work) },
	}
	if s.Shows() {
		call.Record = &s.shown
	}
	return call
}

// Writer returns the client for writes.
func (s *Steering) Writer(c client.WithWatch) client.Client { return s.Call(c).Writer() }

// Connect checks what the user wants and returns a client of the hub.
func (s *Steering) Connect() (client.WithWatch, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.Factory.Client()
}

// FindOne checks what the user wants and returns a client of the hub, and the one object of some kinds that an argument names.
func (s *Steering) FindOne(ctx context.Context, arg string, kinds ...hub.Kind) (client.WithWatch, hub.Found, error) {
	c, err := s.Connect()
	if err != nil {
		return nil, hub.Found{}, err
	}
	found, err := Find(ctx, s.Factory, c, arg, kinds...)
	return c, found, err
}
