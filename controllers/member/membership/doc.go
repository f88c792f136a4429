// Package membership represents this cluster in the fleet: it joins and leaves as the
// InternalMemberCluster on the hub says, and reports the state of the cluster there, once per
// heartbeat.
//
// usage.go and report.go are pure: they sum up nodes and pods, and build the status. survey.go
// collects the facts, and controller.go decides when to report.
package membership
