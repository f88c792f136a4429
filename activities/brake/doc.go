// Package brake decides whether a change may begin on a cluster: whether something closes the cluster for updates, first placements,
// removals or evictions. It is pure: what is stored and the time come in, an answer goes out. Rolling updates, update runs and
// evictions all ask here, so that what a hold covers is decided in one place.
//
// A Calendar says when a RolloutWindow is open. Its entries recur on a floating clock, which shows the time on the wall and knows no
// time zone; only the start and the end of an occurrence are mapped to instants, so that one rule decides what a clock change does.
// The data base of time zones is in the program.
package brake
