// Package realnode runs a real node beside a control plane of the local fleet: kubelet, kube-proxy and containerd in namespaces of
// their own, connected to the machine by one link. What the programs are told is made by pure functions; Run and Inside act, on
// Linux only.
//
// A node is two processes. The outer one stays in the namespaces of the machine: it makes the cgroups and the link, answers the DNS
// of the node's Pods and lets them reach the API servers, which listen on 127.0.0.1. The inner one is process 1 of the node's
// namespaces: the kernel ends Pods, mounts, rules of iptables and the link with it, however it ends.
package realnode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Node is all that the processes of a node need to know.
type Node struct {
	// Name is the node's name.
	Name string `json:"name"`
	// Dir is the folder of its data.
	Dir string `json:"dir"`
	// Link is the name of the link's end on the machine, and Group that of the cgroup below which its Pods are.
	Link  string `json:"link"`
	Group string `json:"group"`
	// Host is the address of the machine's end of the link, Address that of the node.
	Host    string `json:"host"`
	Address string `json:"address"`
	// Forwards are the ports of 127.0.0.1 that the node reaches at Host.
	Forwards []int `json:"forwards"`
	// Kubeconfig, ProxyKubeconfig and DNSKubeconfig are how kubelet, kube-proxy and the DNS reach the API server; the first two
	// from inside.
	Kubeconfig      string `json:"kubeconfig"`
	ProxyKubeconfig string `json:"proxyKubeconfig"`
	DNSKubeconfig   string `json:"dnsKubeconfig"`
	// Zone is the node's label of its zone.
	Zone string `json:"zone"`
	// Programs are the paths of kubelet, kube-proxy and of those of the packages.
	Programs map[string]string `json:"programs"`
	// Plugins is the folder of the network's plug-ins.
	Plugins string `json:"plugins"`
	// Images are the archives of images that the node has from its start.
	Images []string `json:"images"`
}

const (
	// PauseImage is the image of what holds a Pod's namespaces.
	PauseImage = "devfleet.local/pause:1"
	// Workload is the image of the programs of tests, which has the tags 1 and 2.
	Workload = "devfleet.local/workload"
	// podNetwork is the same in all nodes: nothing outside of a node sees it.
	podNetwork = "10.244.0.0/24"
	// inside is where a node has its folder in its own view of the machine, in which paths are short.
	inside = "/run/node"
	// registries is the folder of what a node knows of registries, in its folder.
	registries = "registries"
	// volumes is the folder of the folders of volumes there.
	volumes = "volumes"
	// Domain is the DNS domain of every cluster.
	domain = "cluster.local"
)

// Load reads what Save has written.
func Load(path string) (*Node, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading what a node is: %w", err)
	}
	node := &Node{}
	if err := json.Unmarshal(content, node); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", path, err)
	}
	return node, nil
}

// Encode returns what Load reads.
func (n *Node) Encode() ([]byte, error) {
	content, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding a node: %w", err)
	}
	return content, nil
}

// command is a program of the node and how it is called.
type command struct {
	program string
	args    []string
}

// commands returns what runs in the node, containerd first: the others start when it answers.
func (n *Node) commands() []command {
	return []command{
		{"containerd", []string{"--config", inside + "/containerd.toml", "--log-level", "warn"}},
		{"kubelet", []string{
			"--config=" + inside + "/kubelet.json", "--kubeconfig=" + inside + "/kubelet.kubeconfig", "--root-dir=" + inside + "/kubelet",
			"--hostname-override=" + n.Name, "--node-ip=" + n.Address, "--node-labels=topology.kubernetes.io/zone=" + n.Zone,
		}},
		{"kube-proxy", []string{"--config=" + inside + "/kube-proxy.json"}},
	}
}

// configs returns the files that the programs read, by their name in the node's folder.
func (n *Node) configs() (map[string][]byte, error) {
	kubelet, err := encode(n.kubelet())
	if err != nil {
		return nil, err
	}
	proxy, err := encode(n.kubeProxy())
	if err != nil {
		return nil, err
	}
	network, err := encode(network())
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"kubelet.json": kubelet, "kube-proxy.json": proxy, "cni/10-devfleet.conflist": network,
		"containerd.toml": []byte(n.containerd()),
		// A nameserver that is not there would hold each pull of an image back for twelve seconds.
		"resolv.conf": []byte("nameserver " + n.Host + "\n"),
	}, nil
}

func encode(config map[string]any) ([]byte, error) {
	content, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration of a node: %w", err)
	}
	return content, nil
}

func (n *Node) kubelet() map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"failCgroupV1":             false, "cgroupDriver": "cgroupfs", "cgroupRoot": "/" + n.Group, "enforceNodeAllocatable": []string{"pods"},
		"failSwapOn": false, "podLogsDir": inside + "/logs",
		"clusterDNS": []string{n.Host}, "clusterDomain": domain, "resolvConf": "/etc/resolv.conf",
		// The images cannot be had again, and the disk is not the node's alone.
		"imageGCHighThresholdPercent": 100,
		"evictionHard":                map[string]string{"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
		// Only this machine and the node's own Pods reach it.
		"authentication":     map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":      map[string]any{"mode": "AlwaysAllow"},
		"serverTLSBootstrap": false, "maxPods": 110, "syncFrequency": "10s", "nodeStatusUpdateFrequency": "5s",
		"registryPullQPS": 0, "serializeImagePulls": false, "containerLogMaxSize": "10Mi",
		// What tests make crash, or mount too late, is not to wait for minutes.
		"volumePluginDir": inside + "/volume-plugins",
	}
}

func (n *Node) kubeProxy() map[string]any {
	return map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": "iptables", "hostnameOverride": n.Name, "clusterCIDR": podNetwork,
		"clientConnection":   map[string]any{"kubeconfig": inside + "/kube-proxy.kubeconfig"},
		"healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
		"iptables": map[string]any{"minSyncPeriod": "200ms"},
		// A namespace of the network may not set these.
		"conntrack": map[string]any{"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
	}
}

// network returns the configuration of the network's plug-ins.
func network() map[string]any {
	return map[string]any{
		"cniVersion": "1.0.0", "name": "devfleet",
		"plugins": []any{
			map[string]any{
				"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
				"ipam": map[string]any{
					"type": "host-local", "dataDir": "/run/cni",
					"ranges": []any{[]any{map[string]any{"subnet": podNetwork}}},
					"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
				},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}
}

// containerd returns the configuration of containerd. A root without the right to lower the score of a process for the killer of
// processes fails to start any Pod without restrict_oom_score_adj.
func (n *Node) containerd() string {
	return strings.NewReplacer("INSIDE", inside, "PAUSE", PauseImage, "REGISTRIES", registries).Replace(`version = 2
root = "INSIDE/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "PAUSE"
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/run/plugins"
    conf_dir = "INSIDE/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "INSIDE/REGISTRIES"
`)
}

// MakeVolume makes a folder of the node for a volume, to which the user of its Pods may write, and returns how the node calls it.
func (n *Node) MakeVolume(name string) (path string, err error) {
	outside := filepath.Join(n.Dir, volumes, name)
	if err := os.MkdirAll(outside, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of a volume: %w", err)
	}
	user, err := strconv.Atoi(nonroot)
	if err == nil {
		err = os.Chown(outside, user, user)
	}
	if err != nil {
		return "", fmt.Errorf("giving the folder of a volume to the user of Pods: %w", err)
	}
	return filepath.Join(inside, volumes, name), nil
}

// PullPlainly has the node speak to a registry without TLS. A node that runs takes it up with its next pull.
func (n *Node) PullPlainly(registry string) error {
	file := filepath.Join(n.Dir, registries, registry, "hosts.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("making a folder for what the node knows of a registry: %w", err)
	}
	content := fmt.Sprintf("server = %q\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", "http://"+registry)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return fmt.Errorf("writing what the node knows of a registry: %w", err)
	}
	return nil
}

// write writes the files of a node's programs into its folder.
func (n *Node) write() error {
	files, err := n.configs()
	if err != nil {
		return err
	}
	for name, source := range map[string]string{"kubelet.kubeconfig": n.Kubeconfig, "kube-proxy.kubeconfig": n.ProxyKubeconfig} {
		if files[name], err = os.ReadFile(source); err != nil {
			return fmt.Errorf("reading how the node reaches its API server: %w", err)
		}
	}
	for name, content := range files {
		path := filepath.Join(n.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a folder of the node: %w", err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing a file of the node: %w", err)
		}
	}
	return nil
}
