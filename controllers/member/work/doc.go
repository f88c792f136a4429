// Package work applies the Works of this member and reports on them.
//
// The way of a Work: controller.go decides what is due (apply, clean up, nothing); pass.go
// walks once over its manifests, inventory.go keeps the AppliedWork, which lists what was
// applied before it is created, status.go and findings.go sum up, and trim.go makes the sum fit (all
// pure). If differences are to be reported only, diff.go goes another way, which writes nothing.
// watch.go sees every change of what was applied, so that nothing is ever polled; memory.go
// keeps what the last pass found, so that an event costs one read and not one per manifest.
// removal.go takes things away: what left a Work, what a deleted Work has brought, and all when
// the cluster leaves the fleet. What a Work has brought that vanished without having been
// deleted stays in place.
package work
