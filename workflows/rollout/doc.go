// Package rollout decides which clusters change next. It is pure: facts in, a
// plan out; no clock, no client, no Temporal. The placement workflow uses Next
// for rolling updates, an update run AssignStages and Window for its stages.
package rollout
