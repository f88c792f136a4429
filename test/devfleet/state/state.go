// Package state is what the local fleet remembers on disk: how many members it has, the port of every listener, the
// tokens of every identity and the paths of the programs, with the layout of the fleet's folder. Load and Save touch
// the file system, and so does the check whether a port is free; the rest is pure.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// MaxMembers bounds the fleet: each member is a control plane of some 400 MB.
	MaxMembers = 10
	// Hub is the name of the hub cluster, its context and its component prefix.
	Hub = "hub"

	fileName = "fleet.json"
)

// Fleet is the remembered shape of a local fleet.
type Fleet struct {
	// Dir is the absolute folder of the fleet; it is known by where the file lies.
	Dir string `json:"-"`
	// Members is the number of member clusters, member-1 to member-<Members>.
	Members int `json:"members"`
	// HubAgentArgs are further flags of the hub agent.
	HubAgentArgs []string `json:"hubAgentArgs,omitempty"`
	// Prometheus says that the fleet has a Prometheus, and traffic for it to measure.
	Prometheus bool `json:"prometheus,omitempty"`
	// RealNodes is how many members, the first ones, have a real node instead of simulated ones; RealHub says that the hub has one, too.
	RealNodes int  `json:"realNodes,omitempty"`
	RealHub   bool `json:"realHub,omitempty"`
	// Network is the third number of the addresses of a fleet with real nodes: 10.210.<Network>.0/24.
	Network int `json:"network,omitempty"`
	// Ports maps a listener, such as "hub/apiserver", to its port on 127.0.0.1.
	Ports map[string]int `json:"ports"`
	// Tokens maps "<cluster>/<user>" to the static bearer token of that user on that cluster.
	Tokens map[string]string `json:"tokens"`
	// Tools maps a program's name to its path.
	Tools map[string]string `json:"tools"`
}

// ErrNone is returned by Load for a folder that holds no fleet.
var ErrNone = errors.New("no fleet here")

// Load reads the fleet of a folder.
func Load(dir string) (*Fleet, error) {
	content, err := os.ReadFile(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has no %s", ErrNone, dir, fileName)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the fleet's state: %w", err)
	}
	fleet := &Fleet{Dir: dir}
	if err := json.Unmarshal(content, fleet); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", filepath.Join(dir, fileName), err)
	}
	return fleet, nil
}

// Save writes the state; it holds tokens, so only its owner may read it.
func (f *Fleet) Save() error {
	content, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the fleet's state: %w", err)
	}
	path := filepath.Join(f.Dir, fileName)
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the fleet's state: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("storing the fleet's state: %w", err)
	}
	return nil
}

// MemberName returns the name of the i-th member, counted from 1.
func MemberName(i int) string { return fmt.Sprintf("member-%d", i) }

// MemberNames returns the names of all members in order.
func (f *Fleet) MemberNames() []string {
	names := make([]string, f.Members)
	for i := range names {
		names[i] = MemberName(i + 1)
	}
	return names
}

// Clusters returns the hub and all members.
func (f *Fleet) Clusters() []string { return append([]string{Hub}, f.MemberNames()...) }

// Address returns host:port of a listener.
func (f *Fleet) Address(listener string) string {
	return fmt.Sprintf("127.0.0.1:%d", f.Ports[listener])
}

// APIServerURL returns the URL of a cluster's API server.
func (f *Fleet) APIServerURL(cluster string) string {
	return "https://" + f.Address(cluster+"/apiserver")
}

// Path joins path elements below the fleet's folder.
func (f *Fleet) Path(elements ...string) string {
	return filepath.Join(append([]string{f.Dir}, elements...)...)
}

// Kubeconfig returns the file with one admin context per cluster.
func (f *Fleet) Kubeconfig() string { return f.Path("kubeconfig") }

// Environment points kubectl and the temporal command line at the fleet: variables for a shell or a process. Of a fleet with a
// Prometheus, they say where that is, too.
func (f *Fleet) Environment() []string {
	variables := []string{
		"KUBECONFIG=" + f.Kubeconfig(), "TEMPORAL_ADDRESS=" + f.Address("temporal"), "TEMPORAL_NAMESPACE=" + wf.DefaultNamespace,
	}
	if f.Prometheus {
		variables = append(variables, "PROMETHEUS_URL="+f.PrometheusURL())
	}
	return variables
}

// PrometheusURL returns where the fleet's Prometheus answers, if it has one.
func (f *Fleet) PrometheusURL() string { return "http://" + f.Address("prometheus") }

// TemporalUI returns the page with the fleet's workflows.
func (f *Fleet) TemporalUI() string {
	return fmt.Sprintf("http://%s/namespaces/%s/workflows", f.Address("temporal/ui"), wf.DefaultNamespace)
}

// DashboardLink opens the dashboard, once, in a browser that then finds the pages of its objects at Dashboard. It is empty if
// the dashboard has not printed one.
func (f *Fleet) DashboardLink() string {
	log, err := os.ReadFile(f.LogFile("dashboard"))
	if err != nil {
		return ""
	}
	link := ""
	for line := range strings.Lines(string(log)) {
		if strings.HasPrefix(line, f.Dashboard("/open?")) {
			link = strings.TrimSpace(line) // each start prints another
		}
	}
	return link
}

// Dashboard returns the address of a page of the dashboard, such as /runs/web-1.
func (f *Fleet) Dashboard(path string) string { return "http://" + f.Address("dashboard") + path }

// HubAgentKubeconfig returns the file the hub agent reaches the hub with.
func (f *Fleet) HubAgentKubeconfig() string { return f.Path("hub-agent.kubeconfig") }

// MemberAgentKubeconfig returns the file a member's agent reaches its own member with.
func (f *Fleet) MemberAgentKubeconfig(member string) string {
	return f.Path(member + "-agent.kubeconfig")
}

// HubTokenFile holds the bearer token with which a member's agent reaches the hub.
func (f *Fleet) HubTokenFile(member string) string { return f.Path(member, "hub-token") }

// CertificateAuthority returns the PEM file that clients of a cluster verify its API server with.
func (f *Fleet) CertificateAuthority(cluster string) string { return f.Path(cluster, "pki", "ca.crt") }

// TemporalDatabase returns the file that holds all of Temporal's data.
func (f *Fleet) TemporalDatabase() string { return f.Path("temporal.db") }

// LogDir holds one log per component.
func (f *Fleet) LogDir() string { return f.Path("logs") }

// LogFile returns the log of a component; the slash of its name becomes a dot.
func (f *Fleet) LogFile(component string) string {
	return filepath.Join(f.LogDir(), strings.ReplaceAll(component, "/", ".")+".log")
}

// Binary returns the path of one of this repository's agents.
func (f *Fleet) Binary(agent string) string { return f.Path("bin", agent) }
