// Package placement has the short activities of the placement workflow: load what the
// workflow must know, select resources, and schedule, which makes the bindings and the
// policy snapshot follow the policy. What to write is decided by the pure packages
// snapshot and scheduler; the activities read, store, and make both safe when attempts
// overlap or die. The activities that roll out are in package rollingupdate.
package placement
