package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/test/devfleet/realnode"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
)

// The users of a real node, and the group of all nodes: Kubernetes grants them what they need.
const (
	proxyUser  = "system:kube-proxy"
	nodesGroup = "system:nodes"
)

// NodeCommand is the hidden verb of this program that runs a real node.
const NodeCommand = "run-node"

// Node returns the name of the component that runs the real node of a cluster.
func Node(cluster string) string { return cluster + "/node" }

// NodeName returns the name of the Node of a cluster with a real one.
func NodeName(cluster string) string { return cluster + "-node-1" }

func nodeUser(cluster string) string { return "system:node:" + NodeName(cluster) }

// NodeFile returns the file that says what the real node of a cluster is.
func NodeFile(fleet *state.Fleet, cluster string) string { return fleet.Path(cluster, "node.json") }

// realNode is the component that runs a real node. This program's own file may be gone by then, as go run removes it.
func realNode(fleet *state.Fleet, cluster string) supervisor.Spec {
	return supervisor.Spec{
		Name:    Node(cluster),
		Needs:   []string{cluster + "/apiserver"},
		Command: []string{"/proc/self/exe", NodeCommand, "--dir", fleet.Dir, NodeFile(fleet, cluster)},
		Probe:   func(ctx context.Context) error { return nodeIsReady(ctx, fleet, cluster) },
	}
}

func nodeIsReady(ctx context.Context, fleet *state.Fleet, cluster string) error {
	c, err := Client(fleet, cluster)
	if err != nil {
		return err
	}
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: NodeName(cluster)}, node); err != nil {
		return fmt.Errorf("looking for the node of %s: %w", cluster, err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return errors.New("the node is not ready")
}

// nodeOf returns what the processes of a real node are to know.
func nodeOf(fleet *state.Fleet, cluster string) *realnode.Node {
	programs := map[string]string{}
	for _, name := range realnode.Programs() {
		programs[name] = fleet.Tools[name]
	}
	return &realnode.Node{
		Name: NodeName(cluster), Dir: fleet.Path(cluster, "node"), Link: fleet.Link(cluster), Group: fleet.Group(cluster),
		Host: fleet.HostAddress(cluster), Address: fleet.NodeAddress(cluster), Zone: "zone-1",
		Forwards:   forwards(fleet, cluster),
		Kubeconfig: fleet.Path(cluster, "kubelet.kubeconfig"), ProxyKubeconfig: fleet.Path(cluster, "kube-proxy.kubeconfig"),
		DNSKubeconfig: controllerKubeconfig(fleet, cluster),
		Programs:      programs, Plugins: fleet.Tools[realnode.PluginsFolder],
		Images: []string{fleet.Path("images", "pause.tar"), fleet.Path("images", "workload.tar")},
	}
}

// forwards returns the ports that Pods of a cluster may reach: those of its own API server, the hub's and Temporal.
func forwards(fleet *state.Fleet, cluster string) []int {
	found := []int{fleet.Ports[cluster+"/apiserver"], fleet.Ports["temporal"]}
	if cluster != state.Hub {
		found = append(found, fleet.Ports[state.Hub+"/apiserver"])
	}
	return found
}

// nodeFiles returns the files of a real node by path.
func nodeFiles(fleet *state.Fleet, cluster string) (map[string][]byte, error) {
	node := nodeOf(fleet, cluster)
	files := map[string][]byte{}
	var err error
	if files[NodeFile(fleet, cluster)], err = node.Encode(); err != nil {
		return nil, err
	}
	for path, user := range map[string]string{node.Kubeconfig: nodeUser(cluster), node.ProxyKubeconfig: proxyUser} {
		if files[path], err = kubeconfigInside(fleet, cluster, user); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// kubeconfigInside returns a kubeconfig that needs no other file, for a program on a cluster's real node.
func kubeconfigInside(fleet *state.Fleet, cluster, userName string) ([]byte, error) {
	authority, err := os.ReadFile(fleet.CertificateAuthority(cluster))
	if err != nil {
		return nil, fmt.Errorf("reading the authority of %s: %w", cluster, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: fleet.ServerForPods(cluster, cluster), CertificateAuthorityData: authority}
	config.AuthInfos[cluster] = &clientcmdapi.AuthInfo{Token: token(fleet, cluster, userName)}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster}
	config.CurrentContext = cluster
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return content, nil
}

// addresses returns all addresses at which nodes and Pods reach API servers of the fleet.
func addresses(fleet *state.Fleet) []net.IP {
	if !fleet.HasRealNodes() {
		return nil
	}
	var all []net.IP
	for _, cluster := range fleet.Clusters() {
		all = append(all, net.ParseIP(fleet.HostAddress(cluster)))
	}
	return all
}

// CleanNodes removes what is left on the machine of the real nodes of a fleet whose processes are gone.
func CleanNodes(fleet *state.Fleet) error {
	var failed error
	for _, cluster := range fleet.Clusters() {
		if fleet.IsReal(cluster) {
			failed = errors.Join(failed, realnode.Clean(fleet.Link(cluster), fleet.Group(cluster)))
		}
	}
	return failed
}
