// Package rollingupdate rolls a snapshot out to the clusters of a placement. One call
// of AdvancePlacement carries out the batch of changes that the workflow has recorded,
// as far as they are still allowed, waits until there is something to decide, and
// proposes the next batch, which workflows/rollout decides from the facts gathered
// here. A claim on the placement tells every later attempt which writes of this one
// may still come.
package rollingupdate
