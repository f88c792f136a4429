// Package attempt is what each attempt of an activity owes the process that it runs in and the Temporal server. It sends heartbeats:
// an attempt reports its progress when it has some, and the worker repeats the last report in between. It waits for its turn, so that
// a process has no more than so much of one kind of work under way, over all activities that it runs at the same time.
package attempt
