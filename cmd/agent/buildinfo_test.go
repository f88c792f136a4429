package agent

import (
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/cmd/version"
)

func TestAnAgentServesItsVersion(t *testing.T) {
	info := NewBuildInfo()
	assert.Equal(t, 1, testutil.CollectAndCount(info))
	assert.InDelta(t, 1, testutil.ToFloat64(info.WithLabelValues(version.Number(), runtime.Version())), 0)
}
