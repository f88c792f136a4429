// Package server says how Temporal's development server is run: beside a hub agent, and on a local fleet.
package server

// Options say what a server listens on and where its database is.
type Options struct {
	// Host, Port and HTTPPort are where the frontend listens.
	Host, Port, HTTPPort string
	// Namespace is made at the start.
	Namespace string
	// Database is the file of SQLite.
	Database string
}

// Arguments returns those of the Temporal CLI that start the server.
func (o Options) Arguments() []string {
	return []string{
		"server", "start-dev", "--ip=" + o.Host, "--port=" + o.Port, "--http-port=" + o.HTTPPort, "--namespace=" + o.Namespace,
		"--db-filename=" + o.Database, "--sqlite-pragma=journal_mode=WAL", "--sqlite-pragma=synchronous=NORMAL",
		// The development server has one shard, and a shard dispatches 20 tasks a second unless told otherwise.
		"--dynamic-config-value=history.transferProcessorMaxPollRPS=2000",
		"--dynamic-config-value=history.timerProcessorMaxPollRPS=2000",
		"--dynamic-config-value=matching.numTaskqueueReadPartitions=1",
		"--dynamic-config-value=matching.numTaskqueueWritePartitions=1",
		"--log-level=warn",
	}
}
