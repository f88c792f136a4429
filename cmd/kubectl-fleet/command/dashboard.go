package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/login"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/reading"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// anyPort is the address that is listened on without --address.
	anyPort = "127.0.0.1:0"
	// headerPatience is how long a browser may take for the head of a request.
	headerPatience = 10 * time.Second
	// keyLength is the length of the keys of forms.
	keyLength = 20
)

// dashboard is what `dashboard` was asked for.
type dashboard struct {
	factory  *cli.Factory
	streams  genericiooptions.IOStreams
	address  string
	temporal string
	opens    bool
}

// NewDashboard returns `kubectl fleet dashboard`.
func NewDashboard(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	d := &dashboard{factory: f, streams: streams}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Show the fleet in a browser, live, and steer it from there",
		Long: `Serve pages about the fleet on this machine, and print the link to open them: the fleet, what waits for people,
placements, runs, clusters and holds. They stay up to date by themselves, and work without script.

The pages read and write with your kubeconfig, as all commands do: the hub sees you, and what you may not do cannot be
pressed. Only this machine can reach them, and only the browser that opens the link, which works once.`,
		Example: `  # Print the link
  kubectl fleet dashboard

  # Open it, with links from runs to their workflows in Temporal
  kubectl fleet dashboard --open --temporal-ui http://localhost:8233/namespaces/fleetflow`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context(), "/") },
	}
	cmd.Flags().StringVar(&d.address, "address", anyPort, "Where to listen, on this machine only. Port 0 is one that is free.")
	cmd.Flags().StringVar(&d.temporal, "temporal-ui", "", "The pages of Temporal for the namespace of the hub, to link runs to their workflows.")
	cmd.Flags().BoolVar(&d.opens, "open", false, "Open the link in the browser of this machine.")
	return cmd
}

// validate refuses addresses that other machines can reach: all who reach the pages act as the user.
func (d *dashboard) validate() error {
	host, _, err := net.SplitHostPort(d.address)
	if err != nil {
		return cli.Usagef("--address %q is no address such as 127.0.0.1:8080: %w", d.address, err)
	}
	if host != "127.0.0.1" && host != "localhost" {
		return cli.Usagef("--address %q can be reached from other machines, and every user who reaches the pages acts as you: use 127.0.0.1:PORT", d.address)
	}
	if d.temporal != "" && !strings.HasPrefix(d.temporal, "http://") && !strings.HasPrefix(d.temporal, "https://") {
		return cli.Usagef("--temporal-ui %q is no URL such as http://localhost:8233/namespaces/fleetflow", d.temporal)
	}
	return nil
}

// run serves until the user ends it.
func (d *dashboard) run(ctx context.Context, path string) error {
	if err := d.validate(); err != nil {
		return err
	}
	c, err := d.factory.Client()
	if err != nil {
		return err
	}
	if err := (hub.Reader{Reader: c}).CheckHub(ctx); err != nil {
		return err
	}
	namespace, named, err := d.factory.Namespace()
	if err != nil {
		return err
	}
	if !named {
		namespace = ""
	}
	var fleet *feed.Feed
	err = d.factory.Patiently(d.streams, "reading the fleet", func() (err error) {
		fleet, err = feed.Start(ctx, c, d.factory.Clock, namespace)
		return err
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", d.address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w; --address names another", d.address, err)
	}
	local, err := session.New(listener.Addr().String())
	if err != nil {
		return fmt.Errorf("listening on %s: %w", listener.Addr(), err)
	}
	server := d.newServer(c, fleet, local)
	link := local.Link(path)
	cli.Printf(d.streams.Out, "%s\nThe link works once, on this machine. The dashboard ends with Ctrl-C.\n", link)
	if d.opens {
		d.openBrowser(ctx, link)
	}
	return serveUntilDone(ctx, listener, server.Handler())
}

// serveUntilDone answers until the context ends, which is no error.
func serveUntilDone(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerPatience, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // streams do not end by themselves
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving pages: %w", err)
	}
	return nil
}

// newServer returns what answers in a session.
func (d *dashboard) newServer(c client.WithWatch, fleet *feed.Feed, local *session.Local) *web.Server {
	person := &web.Person{Reviewer: &as.Reviewer{Client: c, Clock: d.factory.Clock}, Writes: c,
		Reading: &reading.Hub{Client: c, Clock: d.factory.Clock, Discover: d.factory.Discover}}
	return &web.Server{
		Feed: fleet, Access: &login.Local{Session: local, Person: person}, Clock: d.factory.Clock, Hub: d.hubName(), Temporal: d.temporal,
		Key: func() string { return utilrand.String(keyLength) },
		Log: func(format string, args ...any) {
			cli.Printf(d.streams.ErrOut, "%s  %s\n", d.factory.Clock.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
		},
	}
}

// hubName returns the context of the kubeconfig.
func (d *dashboard) hubName() string {
	if name := d.factory.Flags.Context; name != nil && *name != "" {
		return *name
	}
	raw, err := d.factory.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "hub"
	}
	return cmp.Or(raw.CurrentContext, "hub")
}

// openBrowser opens a link in the browser. Where there is none, the link was printed.
func (d *dashboard) openBrowser(ctx context.Context, link string) {
	program := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if program == nil {
		program = []string{"xdg-open"}
	}
	if err := exec.CommandContext(ctx, program[0], append(program[1:], link)...).Start(); err != nil {
		cli.Printf(d.streams.ErrOut, "The browser could not be opened: %v\n", err)
	}
}
