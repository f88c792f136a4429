// Package demo plays the how-to on staged rollouts on a running local fleet and checks every statement it makes: a
// placement that waits for runs, runs with a soak and an approval through each channel, a rollback, a hub agent killed in
// the middle of a run and a Temporal server that loses its data in the middle of another. story.go lists the acts in
// order. The live view and the judgement of what was written are pure; the rest acts on the fleet.
package demo
