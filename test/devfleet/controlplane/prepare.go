package controlplane

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// kwokStages tell KWOK how nodes and pods behave.
//
//go:embed kwok-stages.yaml
var kwokStages []byte

// Prepare writes every file that the components of the fleet read. What exists and does not depend on ports or
// members, the certificates, stays.
func Prepare(fleet *state.Fleet) error {
	for _, cluster := range fleet.Clusters() {
		if err := writePKI(fleet.Path(cluster, "pki"), cluster, addresses(fleet)...); err != nil {
			return err
		}
	}
	files, err := files(fleet)
	if err != nil {
		return err
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", path, err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing a file of the fleet: %w", err)
		}
	}
	return nil
}

// files returns the generated files by path.
func files(fleet *state.Fleet) (map[string][]byte, error) {
	files := map[string][]byte{}
	var failed error
	addKubeconfig := func(path, userName string, clusters ...string) {
		content, err := kubeconfig(fleet, userName, clusters...)
		if err != nil && failed == nil {
			failed = fmt.Errorf("making %s: %w", path, err)
		}
		files[path] = content
	}
	addKubeconfig(fleet.Kubeconfig(), adminUser, fleet.Clusters()...)
	addKubeconfig(fleet.HubAgentKubeconfig(), hubAgentUser, state.Hub)
	for _, cluster := range fleet.Clusters() {
		files[fleet.Path(cluster, "tokens.csv")] = []byte(tokenFile(fleet, cluster))
		addKubeconfig(controllerKubeconfig(fleet, cluster), controllerUser, cluster)
		if !fleet.IsReal(cluster) {
			continue
		}
		addKubeconfig(schedulerKubeconfig(fleet, cluster), schedulerUser, cluster)
		ofNode, err := nodeFiles(fleet, cluster)
		failed = errors.Join(failed, err)
		maps.Copy(files, ofNode)
	}
	for _, member := range fleet.MemberNames() {
		addKubeconfig(schedulerKubeconfig(fleet, member), schedulerUser, member)
		addKubeconfig(kwokKubeconfig(fleet, member), kwokUser, member)
		addKubeconfig(fleet.MemberAgentKubeconfig(member), memberAgentUser, member)
		files[fleet.HubTokenFile(member)] = []byte(token(fleet, state.Hub, member))
		files[kwokConfig(fleet, member)] = kwokStages
	}
	return files, failed
}

func controllerKubeconfig(fleet *state.Fleet, cluster string) string {
	return fleet.Path(cluster, "controller-manager.kubeconfig")
}

func schedulerKubeconfig(fleet *state.Fleet, member string) string {
	return fleet.Path(member, "scheduler.kubeconfig")
}

func kwokKubeconfig(fleet *state.Fleet, member string) string {
	return fleet.Path(member, "kwok.kubeconfig")
}

func kwokConfig(fleet *state.Fleet, member string) string {
	return fleet.Path(member, "kwok-stages.yaml")
}
