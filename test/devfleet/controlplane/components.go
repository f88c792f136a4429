package controlplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/cmd/bundled-temporal/server"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// Temporal is the name of the component that runs the Temporal server.
	Temporal = "temporal"
	// HubAgent is the name of the component that runs the hub agent.
	HubAgent = "hub-agent"
	// Dashboard is the name of the component that runs kubectl fleet dashboard.
	Dashboard = "dashboard"
	// agentPause is how long an agent that ended stays down: enough to see it, short enough not to wait for it.
	agentPause = time.Second
)

// MemberAgent returns the name of the component that runs a member's agent.
func MemberAgent(member string) string { return member + "/agent" }

// AgentNames returns the components that run this repository's own programs.
func AgentNames(fleet *state.Fleet) []string {
	names := []string{HubAgent}
	for _, member := range fleet.MemberNames() {
		names = append(names, MemberAgent(member))
	}
	return names
}

// Components returns everything the fleet runs, each after what it needs. The agents and the dashboard are held: they start
// when the clusters are set up. So are Prometheus and its traffic, which start in fleets that have them.
func Components(fleet *state.Fleet) []supervisor.Spec {
	var specs []supervisor.Spec
	for _, cluster := range fleet.Clusters() {
		specs = append(specs, etcd(fleet, cluster), apiServer(fleet, cluster), controllerManager(fleet, cluster))
		switch {
		case fleet.IsReal(cluster):
			specs = append(specs, scheduler(fleet, cluster), realNode(fleet, cluster))
		case cluster != state.Hub:
			specs = append(specs, scheduler(fleet, cluster), kwok(fleet, cluster))
		}
	}
	specs = append(specs, temporal(fleet), hubAgent(fleet))
	for _, member := range fleet.MemberNames() {
		specs = append(specs, memberAgent(fleet, member))
	}
	specs = append(specs, dashboard(fleet), traffic(fleet), prometheus(fleet))
	for i := range specs {
		specs[i].LogFile = fleet.LogFile(specs[i].Name)
	}
	return specs
}

func etcd(fleet *state.Fleet, cluster string) supervisor.Spec {
	client := "http://" + fleet.Address(cluster+"/etcd")
	peer := "http://" + fleet.Address(cluster+"/etcd/peer")
	return supervisor.Spec{
		Name: cluster + "/etcd",
		Command: []string{fleet.Tools["etcd"],
			"--name=" + cluster,
			"--data-dir=" + fleet.Path(cluster, "etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=" + cluster + "=" + peer,
			// Losing a local fleet's last second to a power cut is fine; waiting for the disk at every write is not.
			"--unsafe-no-fsync",
			"--auto-compaction-mode=periodic", "--auto-compaction-retention=5m",
			"--log-level=warn",
		},
		Ports: ports(fleet, cluster+"/etcd", cluster+"/etcd/peer"),
		Probe: httpProbe(client + "/readyz"),
	}
}

// unneededAPIs are not served: each costs the API server a watch and memory, and nothing in the fleet uses them.
var unneededAPIs = []string{
	"internal.apiserver.k8s.io/v1alpha1", "storagemigration.k8s.io/v1beta1", "certificates.k8s.io/v1beta1",
}

func apiServer(fleet *state.Fleet, cluster string) supervisor.Spec {
	pki := func(file string) string { return fleet.Path(cluster, "pki", file) }
	port := fleet.Ports[cluster+"/apiserver"]
	disabled := make([]string, len(unneededAPIs))
	for i, api := range unneededAPIs {
		disabled[i] = api + "=false"
	}
	return supervisor.Spec{
		Name:  cluster + "/apiserver",
		Needs: []string{cluster + "/etcd"},
		Command: slices.Concat([]string{fleet.Tools["kube-apiserver"],
			"--etcd-servers=http://" + fleet.Address(cluster+"/etcd"),
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
			"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--token-auth-file=" + fleet.Path(cluster, "tokens.csv"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + pki("service-account.key"),
			"--service-account-signing-key-file=" + pki("service-account.key"),
			"--service-cluster-ip-range=10.96.0.0/16",
			"--runtime-config=" + strings.Join(disabled, ","),
			"--enable-priority-and-fairness=false", "--max-requests-inflight=800", "--max-mutating-requests-inflight=400",
			"--event-ttl=15m", fmt.Sprintf("--profiling=%t", fleet.Members == 0), // a hub without members is there to be measured
			// Watches end with the server instead of holding its shutdown back.
			"--shutdown-watch-termination-grace-period=0s", "--shutdown-send-retry-after=false",
		}, podsArguments(fleet, cluster)),
		// A fifth of its CPU time went into the collection of garbage; CPU is what a machine with a fleet has least of.
		Env:   []string{"GOGC=200"},
		Ports: []int{port},
		Probe: apiServerProbe(fleet, cluster),
	}
}

// podsArguments returns what an API server is told because its Pods are simulated, or because they are real. No controller here lifts
// the taint of a new node.
func podsArguments(fleet *state.Fleet, cluster string) []string {
	if !fleet.IsReal(cluster) {
		return []string{
			// A loopback address may not be an endpoint, and nothing here reaches the API server by its Service.
			"--endpoint-reconciler-type=none", "--advertise-address=127.0.0.1",
			// Pods here have no kubelet to mount a token.
			"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		}
	}
	return []string{
		"--advertise-address=" + fleet.HostAddress(cluster),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=TaintNodesByCondition",
		// The name of a node is not in any DNS.
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// controllers are those that make placed objects behave as on a real cluster. Those of nodes, certificates and clouds
// are left out: KWOK plays the nodes, and the rest does not exist here. Of those of volumes, the ones that attach and
// grow them are left out: no volume here is attached. Without the others a claim is never bound, and never goes. The one that
// removes the pods of removed nodes is left out because it is compiled with all of the kubelet. What is added here is added to
// test/controlplane/kube-controller-manager, too.
var controllers = []string{
	"clusterrole-aggregation-controller", "cronjob-controller", "daemonset-controller", "deployment-controller",
	"disruption-controller", "endpoints-controller", "endpointslice-controller", "ephemeral-volume-controller",
	"garbage-collector-controller", "job-controller", "namespace-controller", "persistentvolume-binder-controller",
	"persistentvolume-protection-controller", "persistentvolumeclaim-protection-controller",
	"replicaset-controller", "resourcequota-controller", "root-ca-certificate-publisher-controller", "serviceaccount-controller",
	"serviceaccount-token-controller", "statefulset-controller", "ttl-after-finished-controller",
}

func controllerManager(fleet *state.Fleet, cluster string) supervisor.Spec {
	return supervisor.Spec{
		Name:  cluster + "/controller-manager",
		Needs: []string{cluster + "/apiserver"},
		Command: []string{fleet.Tools["kube-controller-manager"],
			"--kubeconfig=" + controllerKubeconfig(fleet, cluster),
			"--controllers=" + strings.Join(controllers, ","),
			"--service-account-private-key-file=" + fleet.Path(cluster, "pki", "service-account.key"),
			"--root-ca-file=" + fleet.CertificateAuthority(cluster),
			"--leader-elect=false", "--secure-port=0", "--profiling=false",
			"--kube-api-qps=100", "--kube-api-burst=200",
			"--concurrent-gc-syncs=5",
		},
	}
}

func scheduler(fleet *state.Fleet, member string) supervisor.Spec {
	return supervisor.Spec{
		Name:  member + "/scheduler",
		Needs: []string{member + "/apiserver"},
		Command: []string{fleet.Tools["kube-scheduler"],
			"--kubeconfig=" + schedulerKubeconfig(fleet, member),
			"--leader-elect=false", "--secure-port=0", "--profiling=false",
		},
	}
}

func kwok(fleet *state.Fleet, member string) supervisor.Spec {
	return supervisor.Spec{
		Name:  member + "/kwok",
		Needs: []string{member + "/apiserver"},
		Command: []string{fleet.Tools["kwok"],
			"--kubeconfig=" + kwokKubeconfig(fleet, member),
			"--config=" + kwokConfig(fleet, member),
			"--manage-all-nodes=true",
			// No heartbeats: nothing evicts, so a ready node stays ready without writing to the API server.
			"--node-lease-duration-seconds=0", "--node-port=0", "--server-address=",
			"--cidr=10.0.0.1/16", "--node-ip=127.0.0.1",
		},
	}
}

func temporal(fleet *state.Fleet) supervisor.Spec {
	listener := func(name string) string { return fmt.Sprint(fleet.Ports[name]) }
	return supervisor.Spec{
		Name: Temporal,
		Command: slices.Concat([]string{fleet.Tools["temporal"]}, server.Options{
			Host: "127.0.0.1", Port: listener("temporal"), HTTPPort: listener("temporal/http"),
			Namespace: wf.DefaultNamespace, Database: fleet.TemporalDatabase(),
		}.Arguments(), []string{
			"--ui-port", listener("temporal/ui"), "--ui-disable-news-fetch", "--metrics-port", listener("temporal/metrics"),
			"--dynamic-config-value", "system.numConsecutiveWorkflowTaskProblemsToTriggerSearchAttribute=2", // a stuck workflow is noted sooner
		}),
		Ports: ports(fleet, "temporal", "temporal/ui", "temporal/http", "temporal/metrics"),
		Probe: temporalProbe(fleet.Address("temporal")),
		Data:  []string{fleet.TemporalDatabase()},
	}
}

func hubAgent(fleet *state.Fleet) supervisor.Spec {
	// Short leases: a killed hub agent's successor takes over while people watch. They outlast the seconds for which an API server on a
	// busy machine does not answer. A hub without members is there to be
	// measured, with leases that a busy machine does not break, and with profiles of itself.
	leases := []string{
		"--leader-elect", "--leader-election-lease-duration", "6s",
		"--leader-election-renew-deadline", "5s", "--leader-election-retry-period", "500ms",
	}
	if fleet.Members == 0 {
		leases = []string{"--leader-elect", "--leader-election-lease-duration", "60s", "--leader-election-renew-deadline", "50s",
			"--enable-pprof", "--pprof-port", fmt.Sprint(fleet.Ports["hub-agent/pprof"])}
	}
	return supervisor.Spec{
		Name: HubAgent,
		// Not Temporal: the hub agent starts without it, and a fleet shows that it does.
		Needs: []string{state.Hub + "/apiserver"},
		Command: append([]string{fleet.Binary(HubAgent),
			"--kubeconfig", fleet.HubAgentKubeconfig(),
			"--temporal-address", fleet.Address("temporal"), "--temporal-namespace", wf.DefaultNamespace,
			// The fleet's Temporal knows no users, so none of its approvals could be verified.
			"--temporal-approvals", "any",
			"--enable-cluster-inventory-apis", "--enable-placement-decisions", "--label-member-locations",
			// The chart's guard rails, which the fleet has, say who may write those.
			"--configmap-envelopes", "any",
			// Those of the accounts of members, as the chart has it.
			"--skipped-propagating-namespaces", "connect-to-fleet",
			// A user who has ended an agent does not want to wait a quarter of an hour for it.
			"--force-delete-wait-time", "30s",
			// What analyses measure is on this machine.
			"--metric-sources-on-loopback", "--analysis-works",
			"--analysis-hub-kinds", ChecksNamespace + "/ConfigMap", "--analysis-job-namespaces", ChecksNamespace,
			// On an address of this machine only.
			"--metrics-bind-address", fleet.Address("hub-agent/metrics"), "--metrics-secure=false",
			"--health-probe-bind-address", fleet.Address("hub-agent/health"),
		}, slices.Concat(leases, fleet.HubAgentArgs)...),
		Ports: ports(fleet, "hub-agent/metrics", "hub-agent/health", "hub-agent/pprof"),
		Probe: httpProbe("http://" + fleet.Address("hub-agent/health") + "/readyz?exclude=temporal&exclude=temporal-workers"),
		Pause: agentPause,
		Held:  true,
	}
}

func memberAgent(fleet *state.Fleet, member string) supervisor.Spec {
	name := MemberAgent(member)
	return supervisor.Spec{
		Name:  name,
		Needs: []string{state.Hub + "/apiserver", member + "/apiserver"},
		Command: []string{fleet.Binary("member-agent"),
			"--kubeconfig", fleet.MemberAgentKubeconfig(member),
			"--metrics-bind-address", fleet.Address(name + "/metrics"), "--metrics-secure=false",
			"--health-probe-bind-address", fleet.Address(name + "/health"),
			"--leader-elect=false", "--pull-images",
		},
		Env: []string{
			"MEMBER_CLUSTER_NAME=" + member,
			"HUB_SERVER_URL=" + fleet.APIServerURL(state.Hub),
			"CONFIG_PATH=" + fleet.HubTokenFile(member),
			"HUB_CERTIFICATE_AUTHORITY=" + fleet.CertificateAuthority(state.Hub),
		},
		Ports: ports(fleet, name+"/metrics", name+"/health"),
		Probe: httpProbe("http://" + fleet.Address(name+"/health") + "/readyz?exclude=hub-api"),
		Pause: agentPause,
		Held:  true,
	}
}

// dashboard acts as the fleet's administrator, for the one browser that opens the link that it prints.
func dashboard(fleet *state.Fleet) supervisor.Spec {
	address := fleet.Address(Dashboard)
	return supervisor.Spec{
		Name:  Dashboard,
		Needs: []string{state.Hub + "/apiserver"},
		Command: []string{fleet.Binary("kubectl-fleet"), "dashboard", "--kubeconfig", fleet.Kubeconfig(), "--context", state.Hub,
			"--address", address, "--temporal-ui", strings.TrimSuffix(fleet.TemporalUI(), "/workflows")},
		Ports: ports(fleet, Dashboard),
		Probe: httpProbe("http://" + address + "/static/icon.svg"), // needs no session
		Pause: agentPause,
		Held:  true,
	}
}

func ports(fleet *state.Fleet, listeners ...string) []int {
	found := make([]int, len(listeners))
	for i, listener := range listeners {
		found[i] = fleet.Ports[listener]
	}
	return found
}
