// Package workmodel turns a binding and the snapshot it names into the Works its
// member has to apply, and turns what the member reports on those Works back
// into the state and status of the binding. The package is pure: no client, no
// clock, no Temporal. The Advance activities and the binding controller share
// it, so that "available" means one thing everywhere.
package workmodel
