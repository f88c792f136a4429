// Package outages takes the processes of a fleet down, each in turn, and compares what every observer then says with a table:
// kubectl fleet check, get and status, the conditions of a placement, a run and a MemberCluster, the metrics, and the alert rules
// of the chart. No observer says "well" of what has not been looked at within its threshold. The specs are behind the build tag
// "integration":
//
//	go test -tags integration ./test/outages
//
// The package brings its fleet up in a folder of the repository, with short thresholds, and ends it; FLEETFLOW_FLEET names the
// folder of a new one to use instead, which devfleet up has been given --members 2 --with-prometheus
// --hub-agent-arg=--cluster-unhealthy-threshold=1s. To add a process or an observer, add its rows to the table.
package outages
