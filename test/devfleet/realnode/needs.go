package realnode

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// packageOf says which package of Debian has a program of a node.
var packageOf = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "containerd-shim-runc-v2": "containerd", "runc": "runc", "iptables": "iptables",
	"conntrack": "conntrack", "ip": "iproute2",
}

// pluginsPackage has the network's plug-ins, in the first of these folders; those that are not Debian's lie in the second.
const pluginsPackage = "containernetworking-plugins"

var pluginFolders = []string{"/usr/lib/cni", "/opt/cni/bin"}

// plugins are those that a node's network is made with.
var plugins = []string{"bridge", "host-local", "loopback", "portmap"}

// Programs returns the names of all programs of a node, those that devfleet builds among them.
func Programs() []string {
	names := append(slices.Collect(maps.Keys(packageOf)), "kubelet", "kube-proxy")
	slices.Sort(names)
	return names
}

// PluginsFolder is the name under which a fleet remembers the folder of the network's plug-ins beside its programs.
const PluginsFolder = "network plug-ins"

// search is where programs of an administrator are that a user's PATH may lack.
const search = "/usr/local/sbin:/usr/sbin:/sbin"

// Found is what a node needs of the machine.
type Found struct {
	// Programs are the paths of programs.
	Programs map[string]string
	// Plugins is the folder of the network's plug-ins.
	Plugins string
}

// Find looks for what a node needs of the machine. What is missing is one sentence that says how to get it.
func Find() (*Found, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("real nodes need Linux, and this is %s", runtime.GOOS)
	}
	found, missing := find(lookPath, hasPlugins)
	if len(missing) > 0 {
		return nil, fmt.Errorf("real nodes need packages that are not installed: apt-get install --no-install-recommends %s",
			strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("real nodes need root, for namespaces, mounts and cgroups: call it with sudo -E")
	}
	if err := cgroupsWritable(); err != nil {
		return nil, fmt.Errorf("real nodes need cgroups of their own: %w", err)
	}
	return found, nil
}

// find returns what there is, and the packages that have what is missing.
func find(look func(program string) (string, bool), hasPlugins func(folder string) bool) (found *Found, missing []string) {
	found = &Found{Programs: map[string]string{}}
	for program, name := range packageOf {
		path, is := look(program)
		if !is && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		found.Programs[program] = path
	}
	if i := slices.IndexFunc(pluginFolders, hasPlugins); i >= 0 {
		found.Plugins = pluginFolders[i]
	} else {
		missing = append(missing, pluginsPackage)
	}
	slices.Sort(missing)
	return found, missing
}

func lookPath(program string) (string, bool) {
	if path, err := exec.LookPath(program); err == nil {
		return path, true
	}
	for folder := range strings.SplitSeq(search, ":") {
		if path, err := exec.LookPath(filepath.Join(folder, program)); err == nil {
			return path, true
		}
	}
	return "", false
}

func hasPlugins(folder string) bool {
	return !slices.ContainsFunc(plugins, func(plugin string) bool {
		_, err := os.Stat(filepath.Join(folder, plugin))
		return err != nil
	})
}
