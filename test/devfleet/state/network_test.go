package state

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestANetworkIsTakenThatTheMachineIsNotIn(t *testing.T) {
	first, err := AssignNetwork("/fleet", nil)
	require.NoError(t, err)
	again, err := AssignNetwork("/fleet", []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24")})
	require.NoError(t, err)
	assert.Equal(t, first, again, "it depends on the folder")
	next, err := AssignNetwork("/fleet", []netip.Prefix{netip.PrefixFrom(networkOf(first).Addr(), 30)})
	require.NoError(t, err)
	assert.NotEqual(t, first, next)
	_, err = AssignNetwork("/fleet", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	assert.ErrorContains(t, err, "no real node can be connected")
}

func TestEveryRealNodeHasAddressesOfItsOwn(t *testing.T) {
	fleet := &Fleet{Members: 2, RealNodes: 1, RealHub: true, Network: 7, Ports: map[string]int{"hub/apiserver": 20001}}
	assert.True(t, fleet.IsReal(Hub))
	assert.True(t, fleet.IsReal("member-1"))
	assert.False(t, fleet.IsReal("member-2"))
	assert.Equal(t, "10.210.7.1", fleet.HostAddress(Hub))
	assert.Equal(t, "10.210.7.5", fleet.HostAddress("member-1"))
	assert.Equal(t, "10.210.7.6", fleet.NodeAddress("member-1"))
	assert.Equal(t, "https://10.210.7.5:20001", fleet.ServerForPods("member-1", Hub))
	assert.LessOrEqual(t, len((&Fleet{Members: MaxMembers, Network: networks}).Link(MemberName(MaxMembers))), 15, "longer names Linux refuses")
	assert.False(t, (&Fleet{Members: 2}).HasRealNodes())
}
