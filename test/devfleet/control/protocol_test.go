package control

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSocketPathFitsAUnixAddress(t *testing.T) {
	assert.Equal(t, "/fleet/supervisor.sock", SocketPath("/fleet"))
	deep := "/" + strings.Repeat("deep/", 40)
	assert.LessOrEqual(t, len(SocketPath(deep)), maxSocketPath)
	assert.NotEqual(t, SocketPath(deep), SocketPath(deep+"er"), "two folders never share a socket")
}
