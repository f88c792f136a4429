// Package snapshot turns what a placement selects into ClusterResourceSnapshots:
// which kinds and objects are never placed, what is removed from an object before
// it is stored, in which order, how content is told apart by hash, and how it is
// split over several snapshot objects.
//
// The package is pure: it imports no client, no Temporal and no clock.
package snapshot
