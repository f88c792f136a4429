package state

import (
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
)

const (
	// Ports are taken below the kernel's range for outgoing connections (from 32768 on Linux): there, the local end of
	// some client's connection could hold the port of a component that restarts.
	firstPort   = 20000
	lastPort    = 31999
	portsPerDir = 100
)

// Listeners returns the name of every listener a fleet of so many members has, in a stable order.
func Listeners(members int) []string {
	listeners := []string{"temporal", "temporal/ui", "temporal/http", "temporal/metrics", "hub-agent/metrics", "hub-agent/health",
		"hub-agent/pprof"}
	listeners = append(listeners, controlPlaneListeners(Hub)...)
	for i := range members {
		member := MemberName(i + 1)
		listeners = append(listeners, controlPlaneListeners(member)...)
		listeners = append(listeners, member+"/agent/metrics", member+"/agent/health")
	}
	return append(listeners, "dashboard", "prometheus", "traffic")
}

func controlPlaneListeners(cluster string) []string {
	return []string{cluster + "/etcd", cluster + "/etcd/peer", cluster + "/apiserver"}
}

// AssignPorts gives every listener a port: the one remembered when it is still free, else the next free one from a
// start that depends on the folder, so that several fleets on one machine rarely meet.
func AssignPorts(dir string, listeners []string, remembered map[string]int, isFree func(port int) bool) (map[string]int, error) {
	ports := make(map[string]int, len(listeners))
	taken := make(map[int]bool, len(listeners))
	for _, listener := range listeners {
		if port := remembered[listener]; port != 0 && !taken[port] && isFree(port) {
			ports[listener] = port
			taken[port] = true
		}
	}
	next := firstPortOf(dir)
	for _, listener := range listeners {
		if ports[listener] != 0 {
			continue
		}
		port, err := nextFree(next, taken, isFree)
		if err != nil {
			return nil, fmt.Errorf("choosing a port for %s: %w", listener, err)
		}
		ports[listener] = port
		taken[port] = true
		next = port + 1
	}
	return ports, nil
}

func firstPortOf(dir string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(dir))
	blocks := uint32((lastPort - firstPort + 1) / portsPerDir)
	return firstPort + int(hash.Sum32()%blocks)*portsPerDir
}

// nextFree tries every port of the range once, starting anywhere in it.
func nextFree(start int, taken map[int]bool, isFree func(int) bool) (int, error) {
	size := lastPort - firstPort + 1
	for i := range size {
		port := firstPort + (start-firstPort+i)%size
		if !taken[port] && isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

// PortIsFree reports whether a listener could start on the port of 127.0.0.1 now.
func PortIsFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
