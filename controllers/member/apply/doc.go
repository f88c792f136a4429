// Package apply applies manifests to a member cluster and removes the applied objects.
//
// Pure functions read a manifest (manifest.go), order kinds (order.go), decide who owns an object
// (ownership.go), compute the patch (merge.go, means.go), keep fields that the cluster sets
// (retain.go) and describe refusals (problem.go). Only the Engine (engine.go, compare.go,
// serverside.go, remove.go, disown.go) talks to the cluster.
//
// An existing object is handled in this order. Take ownership of it, if the strategy allows that
// and, with IfNoDiff, it does not differ. With IfNotDrifted, leave it alone if it has drifted,
// unless the manifest has changed since it was last applied. Write what differs. With
// FullComparison, compare again.
//
// Some fields are left to controllers of the cluster: fields that the manifest never set and, once
// the manifest no longer sets them, the replicas, a Service's addresses and ports, and a
// ServiceAccount's secrets. An object annotated with fleetflow.io/retain-replicas: "true"
// keeps its replicas although the manifest sets them; the manifest's replicas only count when the
// object is created. See deploy/docs/member-agent.md.
//
// A partial comparison is a dry run of the write itself: the API server answers with the resulting
// object.
package apply
