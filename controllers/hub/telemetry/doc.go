// Package telemetry makes metrics of the hub's objects. What is known from the objects as they are is collected when Prometheus
// asks (Collector); how long something took is observed when the objects change (Watcher). Both read the cache and write nothing,
// so no controller has to count for itself. Names and labels are KubeFleet's where it has the metric; others begin with
// fleetflow_.
package telemetry
