// Package selection makes the latest resource snapshot of a placement hold what the
// placement selects. A Selector lists the snapshots there are, reads the selected
// objects, writes another snapshot if their content differs and the pace allows it,
// deletes snapshots beyond the history limit, and records the outcome, with the
// overrides that concern it, in an annotation of the placement. Every step may be
// repeated and may overlap with another attempt: the name of a snapshot decides
// which attempt was first.
package selection
