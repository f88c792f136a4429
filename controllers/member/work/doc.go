// Package work applies the Works of this member and reports on them.
//
// controller.go decides what is due for a Work: apply, clean up or nothing. pass.go goes once over
// its manifests. inventory.go keeps the AppliedWork, which lists every object before it is created.
// status.go and findings.go build the status, and trim.go makes it fit (all three are pure). If
// only differences are to be reported, diff.go replaces the applying part of the pass and writes
// nothing to the member.
//
// watch.go sees every change of the applied objects, so the agent never polls them. memory.go keeps
// the results of the last pass, so an event costs one read and not one per manifest.
//
// removal.go removes objects: those that left a Work, those of a deleted Work, and all of them when
// the cluster leaves the fleet. If a Work vanished without having been deleted, its objects stay.
package work
