package outbound

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnOperatorNarrowsWhatMayBeCalled(t *testing.T) {
	ranges := func(texts ...string) []netip.Prefix {
		parsed, err := ParseRanges(texts)
		require.NoError(t, err)
		return parsed
	}
	for sentence, test := range map[string]struct {
		guard   Guard
		address string
		refused string
	}{
		"within what is allowed":      {Guard{Allowed: ranges("10.0.0.0/8", "fd00::/8")}, "10.1.2.3:9090", ""},
		"within, mapped":              {Guard{Allowed: ranges("10.0.0.0/8")}, "[::ffff:10.1.2.3]:9090", ""},
		"outside of it":               {Guard{Allowed: ranges("10.0.0.0/8")}, "192.168.1.1:9090", "in none of the ranges"},
		"within what is denied":       {Guard{Denied: ranges("192.168.0.0/16")}, "192.168.1.1:9090", "the hub agent's operator denies"},
		"denied within allowed":       {Guard{Allowed: ranges("10.0.0.0/8"), Denied: ranges("10.9.0.0/16")}, "10.9.1.1:9090", "operator denies"},
		"allowing opens nothing else": {Guard{Allowed: ranges("127.0.0.0/8", "169.254.0.0/16")}, "169.254.169.254:80", "link-local"},
		"denied by a zone":            {Guard{Denied: ranges("fd00::/8")}, "[fd00::1%eth0]:9090", "operator denies"},
		"allowed with a zone":         {Guard{Allowed: ranges("fd00::/8")}, "[fd00::1%eth0]:9090", ""},
		"denied as NAT64":             {Guard{Denied: ranges("192.168.0.0/16")}, "[64:ff9b::192.168.1.1]:9090", "operator denies"},
		"NAT64 is denied":             {Guard{Denied: ranges("64:ff9b::/96")}, "[64:ff9b::10.1.1.1]:9090", "operator denies"},
		"allowed as NAT64":            {Guard{Allowed: ranges("10.0.0.0/8")}, "[64:ff9b::10.1.1.1]:9090", ""},
		"NAT64 to what is not":        {Guard{Allowed: ranges("10.0.0.0/8", "::/0")}, "[64:ff9b::192.168.1.1]:9090", "in none of the ranges"},
		"allowed, written as mapped":  {Guard{Allowed: ranges("::ffff:10.0.0.0/104")}, "10.1.2.3:9090", ""},
		"denied, written as mapped":   {Guard{Denied: ranges("::ffff:10.0.0.0/104")}, "10.1.2.3:9090", "operator denies"},
		"nor this machine":            {Guard{Allowed: ranges("127.0.0.0/8")}, "127.0.0.1:80", "own machine"},
	} {
		why := test.guard.Refuse(netip.MustParseAddrPort(test.address))
		assert.Equal(t, test.refused != "", why != "", sentence)
		assert.Contains(t, why, test.refused, sentence)
	}
	for _, text := range []string{"10.0.0.1", "::ffff:10.0.0.0/8", "fd00::1%eth0/64"} {
		_, err := ParseRanges([]string{text})
		assert.ErrorContains(t, err, "is no range of addresses", text)
	}
}
