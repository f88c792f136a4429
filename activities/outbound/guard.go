package outbound

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// Guard says which addresses are not called. It is asked after names are resolved, about the very address that is dialled:
// there is no second look-up that could give another one.
type Guard struct {
	// Hub are the addresses of the hub's API server. What else answers there is refused, too, but on this machine.
	Hub []netip.AddrPort
	// HubPorts are addresses at whose port the hub's API server answers. What else is on these machines may be a source.
	HubPorts []netip.AddrPort
	// AllowLoopback lets sources be on the machine of the hub agent, as on a fleet for development.
	AllowLoopback bool
	// Allowed, if there are any, are the only ranges in which sources may be; Denied are ranges in which none is.
	Allowed, Denied []netip.Prefix
}

// metadata are addresses at which clouds tell credentials, or serve their own machinery, to those who ask, and that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), // Alibaba Cloud
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle Cloud
	netip.MustParseAddr("fd00:ec2::254"),   // AWS: of a machine
	netip.MustParseAddr("fd00:ec2::23"),    // AWS: of a pod
	netip.MustParseAddr("fd20:ce::254"),    // Google Cloud
	netip.MustParseAddr("fd00:42::42"),     // Scaleway
}

// Refuse returns why an address is not called; empty if it may be. An address that leads to an IPv4 address is judged by that.
func (g Guard) Refuse(target netip.AddrPort) string {
	addr := plainAddress(target.Addr())
	behind := behindIPv6(addr)
	if behind == nil {
		return g.refuseAddress(addr, target.Port())
	}
	if anyContains(g.Denied, addr) {
		return deniedByOperator
	}
	for _, ipv4 := range behind {
		if why := g.refuseAddress(ipv4, target.Port()); why != "" {
			return why
		}
	}
	return ""
}

const deniedByOperator = "it is in a range that the hub agent's operator denies"

// refuseAddress judges a plain address.
func (g Guard) refuseAddress(addr netip.Addr, port uint16) string {
	switch {
	case addr.IsLoopback() && !g.AllowLoopback:
		return "it is an address of the hub agent's own machine"
	case addr.IsLinkLocalUnicast():
		return "it is a link-local address"
	case addr.IsMulticast():
		return "it is a multicast address"
	case addr.IsUnspecified(), noNetwork.Contains(addr), broadcast.Contains(addr):
		return "it is no address of a server"
	case slices.Contains(metadata, addr):
		return "it is the address of a cloud's metadata"
	}
	switch {
	case g.isHub(addr, port):
		return "it is the address of the hub's API server"
	case anyContains(g.Denied, addr):
		return deniedByOperator
	case len(g.Allowed) > 0 && !anyContains(g.Allowed, addr):
		return "it is in none of the ranges that the hub agent's operator allows"
	}
	return ""
}

// isHub reports whether the hub's API server answers at a plain address.
func (g Guard) isHub(addr netip.Addr, port uint16) bool {
	for _, hub := range g.Hub {
		if plainAddress(hub.Addr()) == addr && (!addr.IsLoopback() || hub.Port() == port) {
			return true
		}
	}
	return slices.ContainsFunc(g.HubPorts, func(hub netip.AddrPort) bool { return plainAddress(hub.Addr()) == addr && hub.Port() == port })
}

// plainAddress returns an address as ranges are about it: IPv4 as such, and without the zone, which says by which interface it is
// reached. No range contains an address with a zone.
func plainAddress(addr netip.Addr) netip.Addr { return addr.WithZone("").Unmap() }

func anyContains(ranges []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(addr) })
}

// The prefixes of NAT64: the well-known one, and the one for networks of one's own, in which networks choose a longer one.
var (
	nat64Known = netip.MustParsePrefix("64:ff9b::/96")
	nat64Own   = netip.MustParsePrefix("64:ff9b:1::/48")
	// noNetwork is where no server is: what is read in an address of which the IPv4 address stands elsewhere.
	noNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast = netip.MustParsePrefix("255.255.255.255/32")
	// teredo are addresses of a tunnel, with those of its server and of its client, the latter inverted (RFC 4380).
	teredo = netip.MustParsePrefix("2001::/32")
)

// isISATAP reports whether an address, with any prefix, ends with an IPv4 address as those of an ISATAP tunnel do (RFC 5214).
func isISATAP(octets [16]byte) bool {
	return octets[8]&^3 == 0 && octets[9] == 0 && octets[10] == 0x5e && octets[11] == 0xfe
}

// nat64Forms are where in an address of NAT64 the IPv4 address may stand, by the length of the network's prefix: 96, 64, 56, 48
// (RFC 6052, 2.2).
var nat64Forms = [][4]int{{12, 13, 14, 15}, {9, 10, 11, 12}, {7, 9, 10, 11}, {6, 7, 9, 10}}

// tunnels are the other prefixes whose addresses lead to an IPv4 address, and where in them that stands.
var tunnels = []struct {
	prefix netip.Prefix
	form   [4]int
}{
	{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}},           // 6to4 (RFC 3056)
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [4]int{12, 13, 14, 15}}, // IPv4-translated (RFC 2765)
	{netip.MustParsePrefix("::/96"), [4]int{12, 13, 14, 15}},           // IPv4-compatible (RFC 4291)
}

// behindIPv6 returns the IPv4 addresses that an IPv6 address may lead to; nil for one that embeds none. Which one it is in NAT64, the
// prefix of the network says, which is not known here: so none of them may be one that is refused.
func behindIPv6(addr netip.Addr) (behind []netip.Addr) {
	if addr.IsLoopback() || addr.IsUnspecified() || addr.Is4() {
		return nil
	}
	octets := addr.As16()
	if teredo.Contains(addr) {
		return []netip.Addr{
			netip.AddrFrom4([4]byte(octets[4:8])),                                        // the server
			netip.AddrFrom4([4]byte{^octets[12], ^octets[13], ^octets[14], ^octets[15]}), // the client
		}
	}
	for _, tunnel := range tunnels {
		if at := tunnel.form; tunnel.prefix.Contains(addr) {
			return []netip.Addr{netip.AddrFrom4([4]byte{octets[at[0]], octets[at[1]], octets[at[2]], octets[at[3]]})}
		}
	}
	if isISATAP(octets) {
		return []netip.Addr{netip.AddrFrom4([4]byte(octets[12:]))}
	}
	forms := nat64Forms
	switch {
	case nat64Known.Contains(addr):
		forms = forms[:1]
	case !nat64Own.Contains(addr):
		return nil
	}
	for _, at := range forms {
		ipv4 := netip.AddrFrom4([4]byte{octets[at[0]], octets[at[1]], octets[at[2]], octets[at[3]]})
		if !noNetwork.Contains(ipv4) {
			behind = append(behind, ipv4)
		}
	}
	if behind == nil {
		return []netip.Addr{netip.IPv4Unspecified()}
	}
	return behind
}

// ipv4Bits is how long the prefix of IPv4 addresses is that are written as IPv6, as in ::ffff:10.0.0.0.
const ipv4Bits = 96

// ParseRanges reads ranges of addresses like 10.0.0.0/8. IPv4 ranges that are written as IPv6 are read as what they are.
func ParseRanges(texts []string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, text := range texts {
		parsed, err := netip.ParsePrefix(text)
		if err == nil && parsed.Addr().Is4In6() {
			parsed, err = parsed.Addr().Unmap().Prefix(parsed.Bits() - ipv4Bits)
		}
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

// AddressesOfURL returns the addresses of the server of a url, as far as they can be found out; none if it cannot be read.
func AddressesOfURL(ctx context.Context, text string) []netip.AddrPort {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" {
		return AddressesOf(ctx, text) // a configuration may have a host alone
	}
	return AddressesOf(ctx, HostPort(parsed))
}

// HostPort returns the host and the port of a url.
func HostPort(of *url.URL) string { return net.JoinHostPort(of.Hostname(), portOf(of)) }

// portOf returns the port of a url, also if it does not say one.
func portOf(of *url.URL) string {
	return cmp.Or(of.Port(), map[string]string{"http": "80", "https": "443"}[strings.ToLower(of.Scheme)])
}

// AddressesOf returns the addresses of a server by its host and port, as far as they can be found out.
func AddressesOf(ctx context.Context, hostport string) []netip.AddrPort {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
		port = "443"
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
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
