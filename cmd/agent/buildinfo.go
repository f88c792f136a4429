package agent

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fleetflow/fleetflow/cmd/version"
)

// NewBuildInfo returns the metric that says which version of an agent runs. It is not registered yet.
func NewBuildInfo() *prometheus.GaugeVec {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fleetflow_build_info", Help: "1, with the version of the agent and of the Go that it was made with.",
	}, []string{"version", "go_version"})
	info.WithLabelValues(version.Number(), runtime.Version()).Set(1)
	return info
}
