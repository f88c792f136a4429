package controlplane

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/fleetflow/fleetflow/cmd/devfleet/state"
	"github.com/fleetflow/fleetflow/cmd/devfleet/supervisor"
)

// BareHub is a hub on which nothing acts: what is written to it is admitted or refused, and then stays as it is.
const BareHub = state.Hub + "/apiserver"

// BareHubComponents returns the components of a bare hub, its API server and etcd.
func BareHubComponents(fleet *state.Fleet) []supervisor.Spec {
	wanted := []string{state.Hub + "/etcd", BareHub}
	return slices.DeleteFunc(Components(fleet), func(spec supervisor.Spec) bool {
		return !slices.Contains(wanted, spec.Name)
	})
}

// SetUpBareHub sets a hub up and adds the definitions of the member agent, so that one server has all of them.
func SetUpBareHub(ctx context.Context, fleet *state.Fleet, root string) error {
	if err := SetUpHub(ctx, fleet, root); err != nil {
		return err
	}
	client, err := Client(fleet, state.Hub)
	if err != nil {
		return err
	}
	return applyDefinitions(ctx, client, filepath.Join(root, "deploy", "charts", "member-agent", "crds"))
}
