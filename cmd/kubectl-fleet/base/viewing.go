package base

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Viewing is what commands that show something share.
type Viewing struct {
	cli.Output
	Factory *cli.Factory
	Streams genericiooptions.IOStreams
}

// FindOne returns a client of the hub and the one object of some kinds that an argument names.
func (v *Viewing) FindOne(ctx context.Context, arg string, kinds ...hub.Kind) (client.WithWatch, hub.Found, error) {
	c, err := v.Factory.Client()
	if err != nil {
		return nil, hub.Found{}, err
	}
	found, err := Find(ctx, v.Factory, c, arg, kinds...)
	return c, found, err
}

// SayStandstill tells people, beside what they asked for, that no hub agent keeps it up to date.
func (v *Viewing) SayStandstill(ctx context.Context, c client.Reader) {
	if said, _ := diagnosis.ReadDoubt(ctx, c, v.Factory.Clock.Now()); said != "" { // kubectl fleet check says what may not be read
		cli.Printf(v.Streams.ErrOut, "Warning: %s\n", said)
	}
}

// lookEvery is how often it is found out, while something is followed, whether what is shown is kept up to date.
const lookEvery = 15 * time.Second

// Follow begins to follow sources until the context ends, and says with what it is busy until all is read. While no hub agent works, or
// while the hub has lost its etcd, nothing changes, and no watch shows it: so that is asked for beside.
func (v *Viewing) Follow(ctx context.Context, c client.WithWatch, sources []hub.Source, doing string) (feed *hub.Feed, err error) {
	err = v.Factory.Patiently(v.Streams, doing, func() (err error) {
		if feed, err = hub.Follow(ctx, c, sources); err != nil {
			return err
		}
		v.look(ctx, c, feed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	go func() {
		ticker := v.Factory.Clock.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
				v.look(ctx, c, feed)
			}
		}
	}()
	return feed, nil
}

// look finds out whether what a feed has is kept up to date.
func (v *Viewing) look(ctx context.Context, c client.Reader, feed *hub.Feed) {
	said, _ := diagnosis.ReadDoubt(ctx, c, v.Factory.Clock.Now()) // who may not ask is not told
	feed.Doubt(said)
}

// NewReader reads the hub, or what is in the namespace that the user has named.
func NewReader(f *cli.Factory) (hub.Reader, error) {
	c, err := f.Reader()
	if err != nil {
		return hub.Reader{}, err
	}
	namespace, named, err := f.Namespace()
	if !named {
		namespace = ""
	}
	return hub.Reader{Reader: c, Namespace: namespace}, err
}

// Find reads the one object of some kinds that an argument names.
func Find(ctx context.Context, f *cli.Factory, c client.Reader, arg string, kinds ...hub.Kind) (hub.Found, error) {
	namespace, named, err := f.Namespace()
	if err != nil {
		return hub.Found{}, err
	}
	return hub.Reader{Reader: c}.Find(ctx, arg, hub.Scope{Namespace: namespace, Named: named}, kinds...)
}

// ExactlyOne wants one argument, and says what it is for.
func ExactlyOne(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s needs the name of %s, as in: %s", cmd.CommandPath(), what, example)
		case len(args) > 1:
			return fmt.Errorf("%s takes one name, not %d, as in: %s", cmd.CommandPath(), len(args), example)
		default:
			return nil
		}
	}
}
