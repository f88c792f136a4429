// Package stagedupdate is the story of an update run: freeze the plan, then
// stage after stage with the gates before and after it, then the deletion
// stage. The run workflow owns order and gates, one child workflow per stage
// owns the window of clusters that change at the same time. All state worth
// keeping is in the run object, written by activities; an execution that is
// lost is started again and continues from there.
package stagedupdate
