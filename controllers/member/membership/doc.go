// Package membership speaks for this cluster in the fleet: it joins and leaves as the hub says
// in the InternalMemberCluster, and reports there, once per heartbeat, how the cluster is.
//
// usage.go and report.go are pure: what nodes and pods add up to, and what the status says.
// survey.go collects the facts, controller.go decides when to report.
package membership
