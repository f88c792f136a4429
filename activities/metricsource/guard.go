package metricsource

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
)

// Guard says which addresses sources may not have. It is asked after names are resolved, about the very address that is dialled:
// there is no second look-up that could give another one.
type Guard struct {
	// Hub are the addresses of the hub's API server.
	Hub []netip.AddrPort
	// AllowLoopback lets sources be on the machine of the hub agent, as on a fleet for development.
	AllowLoopback bool
	// Allowed, if there are any, are the only ranges in which sources may be; Denied are ranges in which none is.
	Allowed, Denied []netip.Prefix
}

// metadata are addresses at which clouds tell credentials to those who ask, and that are not link-local.
var metadata = []netip.Addr{netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("fd00:ec2::254")}

// Refuse says why an address is not called; empty if it may be.
func (g Guard) Refuse(target netip.AddrPort) string {
	addr := target.Addr().Unmap()
	switch {
	case addr.IsLoopback() && !g.AllowLoopback:
		return "it is an address of the hub agent's own machine"
	case addr.IsLinkLocalUnicast():
		return "it is a link-local address"
	case addr.IsMulticast():
		return "it is a multicast address"
	case addr.IsUnspecified():
		return "it is no address of a server"
	case slices.Contains(metadata, addr):
		return "it is the address of a cloud's metadata"
	}
	for _, hub := range g.Hub {
		if hub.Addr().Unmap() == addr && (!addr.IsLoopback() || hub.Port() == target.Port()) {
			return "it is the address of the hub's API server"
		}
	}
	within := func(ranges netip.Prefix) bool { return ranges.Contains(addr) }
	switch {
	case slices.ContainsFunc(g.Denied, within):
		return "it is in a range that the hub agent's operator denies"
	case len(g.Allowed) > 0 && !slices.ContainsFunc(g.Allowed, within):
		return "it is in none of the ranges that the hub agent's operator allows"
	}
	return ""
}

// ParseRanges reads ranges of addresses like 10.0.0.0/8.
func ParseRanges(texts []string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, text := range texts {
		parsed, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no range of addresses: write it like 10.0.0.0/8 or fd00::/8", text)
		}
		ranges = append(ranges, parsed.Masked())
	}
	return ranges, nil
}

// refusedAddress is the error of a dial that was refused.
type refusedAddress struct{ address, why string }

func (e *refusedAddress) Error() string {
	return fmt.Sprintf("the address %s is refused: %s", e.address, e.why)
}

// control refuses a dial before anything is sent.
func (g Guard) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return &refusedAddress{address, "it is none"}
	}
	if why := g.Refuse(target); why != "" {
		return &refusedAddress{address, why}
	}
	return nil
}

// AddressesOfURL are the addresses of the server of a url, as far as they can be found out; none if it cannot be read.
func AddressesOfURL(text string) []netip.AddrPort {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return AddressesOf(text) // a configuration may have a host alone
	}
	port := parsed.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[parsed.Scheme]
	}
	return AddressesOf(net.JoinHostPort(parsed.Hostname(), port))
}

// AddressesOf are the addresses of a server by its host and port, as far as they can be found out.
func AddressesOf(hostport string) []netip.AddrPort {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = hostport, "443"
	}
	ips, err := net.LookupHost(host)
	if err != nil {
		return nil
	}
	var all []netip.AddrPort
	for _, ip := range ips {
		if found, err := netip.ParseAddrPort(net.JoinHostPort(ip, port)); err == nil {
			all = append(all, found)
		}
	}
	return all
}
