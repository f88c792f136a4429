// Package rollout decides which clusters change next. It is pure: facts in, a plan out; no clock, no
// client, no Temporal.
//
// Decide plans a rolling update, DecideStage a stage of an update run. Activities call them, because
// they have the facts: the plan proposes a batch, the workflow records it as the input of its next
// activity, and that acts on what was recorded. AssignStages puts clusters into stages when a run
// begins.
package rollout
