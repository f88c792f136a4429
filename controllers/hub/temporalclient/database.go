package temporalclient

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"
)

// databaseSize is the metric of the size of the database of a Temporal beside this agent. It has no value while that is not known.
type databaseSize struct {
	folder string
	about  *prometheus.Desc
}

// NewDatabaseSize returns the metric for the folder that the database is in.
func NewDatabaseSize(folder string) prometheus.Collector {
	return &databaseSize{folder: folder, about: prometheus.NewDesc("fleetflow_temporal_database_bytes",
		"Size of the database of the Temporal beside this agent; without a value where that is not known.", nil, nil)}
}

// Describe describes the metric.
func (d *databaseSize) Describe(out chan<- *prometheus.Desc) { out <- d.about }

// Collect adds up the sizes of the files.
func (d *databaseSize) Collect(out chan<- prometheus.Metric) {
	entries, err := os.ReadDir(d.folder)
	if err != nil {
		return
	}
	var bytes int64
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
		}
	}
	out <- prometheus.MustNewConstMetric(d.about, prometheus.GaugeValue, float64(bytes))
}
