// Package access opens every door of a running local fleet at once: Kubernetes clients of the hub and the members that
// know the fleet's kinds and can watch, a Temporal client, and the supervisor. Await and its kin wait on watches until
// objects are as wanted. The demo and the integration tests are built on it.
package access

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	temporalclient "go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Access has a client for each part of a fleet, all with an administrator's rights.
type Access struct {
	// Fleet is where everything is: ports, files, names of members.
	Fleet *state.Fleet
	// Control asks the supervisor, to disturb components.
	Control *control.Client
	// Hub reads, writes and watches the hub.
	Hub client.WithWatch
	// Members does the same for each member, by name.
	Members map[string]client.WithWatch
	// Temporal starts, signals and looks at workflows. It connects when it is first used and again after the server
	// was away.
	Temporal temporalclient.Client
}

// Open gives access to the running fleet of a folder; control.ErrNotRunning when none runs there. What is sent to
// Temporal carries the identity "<program>@<host>"; see TemporalAs for another.
func Open(dir string) (*Access, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving the fleet's folder: %w", err)
	}
	supervisor, err := control.Dial(dir)
	if err != nil {
		return nil, err
	}
	fleet, err := state.Load(dir)
	if err != nil {
		return nil, err
	}
	a := &Access{Fleet: fleet, Control: supervisor, Members: map[string]client.WithWatch{}}
	if a.Hub, err = controlplane.Client(fleet, state.Hub); err != nil {
		return nil, err
	}
	for _, member := range fleet.MemberNames() {
		if a.Members[member], err = controlplane.Client(fleet, member); err != nil {
			return nil, err
		}
	}
	if a.Temporal, err = a.TemporalAs(Identity(filepath.Base(os.Args[0]))); err != nil {
		return nil, err
	}
	return a, nil
}

// Close ends the connection to Temporal; the other clients hold nothing open.
func (a *Access) Close() { a.Temporal.Close() }

// TemporalAs returns another Temporal client, which signs what it sends with the identity. The caller closes it.
func (a *Access) TemporalAs(identity string) (temporalclient.Client, error) {
	c, err := temporalclient.NewLazyClient(temporalclient.Options{
		HostPort: a.Fleet.Address("temporal"), Namespace: wf.DefaultNamespace, Identity: identity,
		Logger: temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of Temporal: %w", err)
	}
	return c, nil
}

// Identity is "<name>@<host>", the form in which Temporal's own programs sign.
func Identity(name string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return name + "@" + host
}
