package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/realnode"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
)

// insideFlag marks the process that is inside of a node's namespaces.
const insideFlag = "inside"

func (o *upOptions) wantsRealNodes() bool { return o.realNodes != 0 || o.realHub }

// rememberNodes has a fleet that has real nodes keep them when nothing is said about them.
func (o *upOptions) rememberNodes() {
	if fleet, err := state.Load(o.dir); err == nil && !o.wantsRealNodes() { // the callers that need the state report what is wrong with it
		o.realNodes = fleet.RealNodes
		o.realHub = fleet.RealHub
	}
}

// machineFor returns the programs of the machine that real nodes need, if any are wanted.
func machineFor(options upOptions) (map[string]string, error) {
	if !options.wantsRealNodes() {
		return nil, nil
	}
	found, err := realnode.Find()
	if err != nil {
		return nil, err
	}
	found.Programs[realnode.PluginsFolder] = found.Plugins
	return found.Programs, nil
}

// decideNodes gives a new fleet its real nodes. One that has data keeps what it has: its API servers' certificates and its Nodes are
// made for that.
func decideNodes(fleet *state.Fleet, isNew bool, options upOptions) error {
	wanted := options.realNodes
	if wanted == allMembers {
		wanted = fleet.Members
	}
	if wanted < 0 || wanted > fleet.Members {
		return fmt.Errorf("--real-nodes=%d of a fleet of %d members", wanted, fleet.Members)
	}
	if !isNew && (wanted != fleet.RealNodes || options.realHub != fleet.RealHub) {
		return fmt.Errorf("the fleet's data is of %d members with real nodes, not %d, or of another hub", fleet.RealNodes, wanted)
	}
	if !isNew || !options.wantsRealNodes() {
		return nil
	}
	fleet.RealNodes = wanted
	fleet.RealHub = options.realHub
	taken, err := addressesTaken()
	if err != nil {
		return err
	}
	fleet.Network, err = state.AssignNetwork(fleet.Dir, taken)
	return err
}

// addressesTaken returns the networks that the machine is in.
func addressesTaken() ([]netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("asking for the machine's addresses: %w", err)
	}
	var taken []netip.Prefix
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().Is4() {
			taken = append(taken, prefix.Masked())
		}
	}
	return taken, nil
}

// writeNodeImages builds the program that Pods of tests run, and writes the images that every real node has from its start.
func writeNodeImages(ctx context.Context, options upOptions, root string, display *progress.Display) error {
	if !options.wantsRealNodes() {
		return nil
	}
	bin := filepath.Join(options.dir, "bin")
	if _, err := toolchain.BuildPackages(ctx, root, bin, display, toolchain.WorkloadPackage); err != nil {
		return err
	}
	folder := filepath.Join(options.dir, "images")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making a folder for images: %w", err)
	}
	files := map[string]string{"workload": filepath.Join(bin, "workload")}
	pause := realnode.Image{Names: []string{realnode.PauseImage}, Files: files, Entrypoint: []string{"/workload", "pause"}}
	if err := pause.Write(filepath.Join(folder, "pause.tar")); err != nil {
		return err
	}
	workload := realnode.Image{
		Names: []string{realnode.Workload + ":1", realnode.Workload + ":2"}, Files: files, Entrypoint: []string{"/workload"},
	}
	return workload.Write(filepath.Join(folder, "workload.tar"))
}

// cleanNodes removes what killed nodes have left on the machine.
func cleanNodes(dir string) error {
	fleet, err := state.Load(dir)
	if errors.Is(err, state.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return controlplane.CleanNodes(fleet)
}

// imagesCommand returns the verb that gives the real nodes the images that the charts name.
func imagesCommand(dir *fleetDir) *cobra.Command {
	options := imageOptions{}
	cmd := &cobra.Command{
		Use: "images", Short: "Give the real nodes images of this repository's programs, under the names that the charts have for them",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return loadImages(cmd.Context(), dir.path, options, progress.New(os.Stdout))
		},
	}
	cmd.Flags().StringVar(&options.source, "source", ".", "folder in the tree whose programs are built, such as that of an earlier commit")
	cmd.Flags().StringVar(&options.tag, "tag", "", "tag of the images, beside which those of other tags stay; the one that the charts name if empty")
	return cmd
}

// imageOptions say of what there are images, and how these are called.
type imageOptions struct{ source, tag string }

func loadImages(ctx context.Context, dir string, options imageOptions, display *progress.Display) error {
	fleet, err := state.Load(dir)
	if err != nil {
		return err
	}
	root, err := toolchain.FindRoot(options.source)
	if err != nil {
		return err
	}
	if options.tag == "" {
		if options.tag, err = appVersion(filepath.Join(root, "deploy", "charts", "hub-agent", "Chart.yaml")); err != nil {
			return err
		}
	}
	bin := fleet.Path("bin", "images-"+options.tag)
	if _, err := toolchain.BuildPackages(ctx, root, bin, display, toolchain.ImagePackages...); err != nil {
		return err
	}
	step := display.Step("images of this repository's programs")
	if err := writeOurImages(fleet, options.tag, bin); err != nil {
		return step.End(err)
	}
	return step.End(importAll(ctx, fleet))
}

// writeOurImages writes an image of each program.
func writeOurImages(fleet *state.Fleet, tag, bin string) error {
	for _, pkg := range toolchain.ImagePackages {
		name := path.Base(pkg)
		image := realnode.Image{
			Names: []string{"ghcr.io/fleetflow/" + name + ":" + tag}, Files: map[string]string{"program": filepath.Join(bin, name)},
			Entrypoint: []string{"/program"},
		}
		if name == "bundled-temporal" {
			image.Files["temporal"] = fleet.Tools["temporal"]
		}
		if err := image.Write(archiveOf(fleet, name)); err != nil {
			return err
		}
	}
	return nil
}

func archiveOf(fleet *state.Fleet, image string) string { return fleet.Path("images", image+".tar") }

// appVersion returns the version of the programs that a chart runs.
func appVersion(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the version of a chart: %w", err)
	}
	var chart struct {
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal(content, &chart); err != nil {
		return "", fmt.Errorf("decoding %s: %w", file, err)
	}
	return chart.AppVersion, nil
}

// imagesOf returns the images that charts run on a cluster.
func imagesOf(cluster string) []string {
	if cluster == state.Hub {
		return []string{"hub-agent", "bundled-temporal", "kubectl-fleet", "fleet-dashboard"}
	}
	return []string{"member-agent", "kubectl-fleet"}
}

// importAll gives each running real node images.
func importAll(ctx context.Context, fleet *state.Fleet) error {
	client, err := control.Dial(fleet.Dir)
	if err != nil {
		return err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return fmt.Errorf("asking the supervisor: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, cluster := range fleet.Clusters() {
		node, is := status.Component(controlplane.Node(cluster))
		if !is {
			continue
		}
		var archives []string
		for _, image := range imagesOf(cluster) {
			archives = append(archives, archiveOf(fleet, image))
		}
		group.Go(func() error {
			if node.PID == 0 {
				return fmt.Errorf("%s is %s", node.Name, node.State)
			}
			if err := realnode.ImportInto(ctx, fleet.Tools["ctr"], node.PID, archives...); err != nil {
				return fmt.Errorf("images for %s: %w", cluster, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// nodeCommand returns what the supervisor runs for a real node; people do not call it.
func nodeCommand() *cobra.Command {
	inside := false
	cmd := &cobra.Command{
		Use: controlplane.NodeCommand + " file", Hidden: true, Args: cobra.ExactArgs(1), Short: "Run a real node that a file describes",
		RunE: func(cmd *cobra.Command, args []string) error {
			node, err := realnode.Load(args[0])
			if err != nil {
				return err
			}
			if inside {
				return realnode.Inside(node)
			}
			return realnode.Run(cmd.Context(), node, []string{"/proc/self/exe", controlplane.NodeCommand, "--" + insideFlag, args[0]})
		},
	}
	cmd.Flags().BoolVar(&inside, insideFlag, false, "be process 1 of the node's namespaces")
	return cmd
}
