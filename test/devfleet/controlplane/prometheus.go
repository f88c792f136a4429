package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
)

const (
	// Prometheus is the name of the component that runs a Prometheus, in fleets that have one.
	Prometheus = "prometheus"
	// Traffic is the name of the component that plays the requests to the members' applications, for Prometheus to measure.
	Traffic = "traffic"
)

// traffic reads the Deployments of the members with the fleet's administrator's rights.
func traffic(fleet *state.Fleet) supervisor.Spec {
	address := fleet.Address(Traffic)
	return supervisor.Spec{
		Name: Traffic,
		Command: []string{fleet.Binary(Traffic), "-kubeconfig", fleet.Kubeconfig(), "-address", address,
			"-members", strings.Join(fleet.MemberNames(), ",")},
		Ports: ports(fleet, Traffic),
		Probe: httpProbe("http://" + address + "/metrics"),
		Pause: agentPause,
		Held:  true,
	}
}

func prometheus(fleet *state.Fleet) supervisor.Spec {
	return supervisor.Spec{
		Name: Prometheus,
		Command: []string{fleet.Tools["prometheus"],
			"--config.file=" + prometheusConfig(fleet),
			"--storage.tsdb.path=" + fleet.Path("prometheus", "data"), "--storage.tsdb.retention.time=1d",
			"--web.listen-address=" + fleet.Address(Prometheus),
			"--log.level=warn",
		},
		Ports: ports(fleet, Prometheus),
		Probe: httpProbe(fleet.PrometheusURL() + "/-/ready"),
		Held:  true,
	}
}

// PrometheusTargets returns the folder of further targets: files by name *.yaml, in the form of file_sd_configs.
func PrometheusTargets(fleet *state.Fleet) string { return fleet.Path("prometheus", "targets") }

func prometheusConfig(fleet *state.Fleet) string { return fleet.Path("prometheus", "config.yaml") }

// WritePrometheusConfig writes what the fleet's Prometheus reads, with the alert rules of the charts in the repository at root.
func WritePrometheusConfig(fleet *state.Fleet, root string) error {
	if err := os.MkdirAll(PrometheusTargets(fleet), 0o755); err != nil {
		return fmt.Errorf("making the folder of further targets: %w", err)
	}
	content, err := yaml.Marshal(prometheusReads(fleet, root))
	if err != nil {
		return fmt.Errorf("encoding the configuration of Prometheus: %w", err)
	}
	if err := os.WriteFile(prometheusConfig(fleet), content, 0o600); err != nil {
		return fmt.Errorf("writing the configuration of Prometheus: %w", err)
	}
	return nil
}

// prometheusReads returns the configuration of the fleet's Prometheus: the agents, Temporal, the traffic, and whatever files in the
// folder of targets name, which it notices without being restarted.
func prometheusReads(fleet *state.Fleet, root string) map[string]any {
	target := func(listener, cluster string) map[string]any {
		return map[string]any{"targets": []string{fleet.Address(listener)}, "labels": map[string]string{"cluster": cluster}}
	}
	members := []map[string]any{}
	for _, member := range fleet.MemberNames() {
		members = append(members, target(MemberAgent(member)+"/metrics", member))
	}
	job := func(name string, static ...map[string]any) map[string]any {
		return map[string]any{"job_name": name, "static_configs": static}
	}
	requests := job(Traffic, map[string]any{"targets": []string{fleet.Address(Traffic)}})
	requests["scrape_interval"], requests["scrape_timeout"] = "2s", "2s" // users wait for what it shows
	rules := []string{}
	for _, chart := range []string{"hub-agent", "member-agent"} {
		rules = append(rules, filepath.Join(root, "deploy", "charts", chart, "monitoring", "alerts.yaml"))
	}
	return map[string]any{
		"global":     map[string]any{"scrape_interval": "5s", "scrape_timeout": "5s"},
		"rule_files": rules,
		"scrape_configs": []map[string]any{
			job(HubAgent, target("hub-agent/metrics", state.Hub)),
			job("member-agent", members...),
			job(Temporal, target("temporal/metrics", state.Hub)),
			requests,
			{"job_name": "applications", "scrape_interval": "2s", "scrape_timeout": "2s",
				"file_sd_configs": []map[string]any{{"files": []string{filepath.Join(PrometheusTargets(fleet), "*.yaml")}}}},
		},
	}
}
