// Package clusterwait lets an activity wait until clusters are done. The activity
// subscribes to a placement or a run with the Notifier, which the informers feed;
// it reads bindings and Works through a BindingCache, which is never older than
// what the activity itself has written; and a Wait returns as soon as there is
// something to act on.
package clusterwait
