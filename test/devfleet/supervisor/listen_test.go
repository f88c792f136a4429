package supervisor

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heldPort is a port somebody else listens on.
type heldPort struct {
	port  int
	close func()
}

func listen(t *testing.T) heldPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return heldPort{
		port:  listener.Addr().(*net.TCPAddr).Port,
		close: func() { assert.NoError(t, listener.Close()) },
	}
}
