// Package clusterwait waits, on the informer cache, until clusters are done: a
// Notifier tells which clusters of which placement or run have changed, a View
// reads their state without falling behind our own writes, and a Wait returns as
// soon as there is something to act on.
package clusterwait
