package state

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
)

const (
	// networks is how many networks there are for fleets with real nodes.
	networks = 254
	// perLink is how many addresses each link takes: its own, its two ends and the one for all.
	perLink = 4
	// linkEnds are the numbers of the machine's end of a link and of the node's.
	hostEnd, nodeEnd = 1, 2
)

// AssignNetwork returns the network of a fleet's real nodes: one that depends on the folder, so that several fleets on one machine
// rarely meet, else the next in which the machine has no address.
func AssignNetwork(dir string, taken []netip.Prefix) (int, error) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(dir))
	first := int(hash.Sum32() % networks)
	for i := range networks {
		network := 1 + (first+i)%networks
		if !slices.ContainsFunc(taken, networkOf(network).Overlaps) {
			return network, nil
		}
	}
	return 0, fmt.Errorf("the machine has an address in each network from 10.210.1.0/24 to 10.210.%d.0/24: no real node can be connected",
		networks)
}

func networkOf(number int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 210, byte(number), 0}), 24)
}

// HasRealNodes reports whether a cluster of the fleet has a real node.
func (f *Fleet) HasRealNodes() bool { return f.RealHub || f.RealNodes > 0 }

// IsReal reports whether a cluster has a real node instead of simulated ones.
func (f *Fleet) IsReal(cluster string) bool {
	if cluster == Hub {
		return f.RealHub
	}
	return slices.Contains(f.MemberNames()[:min(f.RealNodes, f.Members)], cluster)
}

// HostAddress returns where the real node of a cluster, with its Pods, reaches the machine; NodeAddress is where the machine reaches
// the node.
func (f *Fleet) HostAddress(cluster string) string { return f.endOfLink(cluster, hostEnd) }

// NodeAddress returns where the machine reaches the real node of a cluster.
func (f *Fleet) NodeAddress(cluster string) string { return f.endOfLink(cluster, nodeEnd) }

func (f *Fleet) endOfLink(cluster string, end int) string {
	return fmt.Sprintf("10.210.%d.%d", f.Network, perLink*slices.Index(f.Clusters(), cluster)+end)
}

// Link returns the name of the machine's end of the link to a cluster's real node.
func (f *Fleet) Link(cluster string) string {
	return fmt.Sprintf("fleet%d-%d", f.Network, slices.Index(f.Clusters(), cluster))
}

// Group returns the name of the cgroup of a cluster's real node.
func (f *Fleet) Group(cluster string) string {
	return fmt.Sprintf("devfleet-%d-%s", f.Network, cluster)
}

// ServerForPods returns the URL at which Pods on the real node of a cluster reach an API server of the fleet.
func (f *Fleet) ServerForPods(cluster, server string) string {
	return fmt.Sprintf("https://%s:%d", f.HostAddress(cluster), f.Ports[server+"/apiserver"])
}
