// Package worksync is the one writer of Work objects. The Advance activities call
// it right after they have written a binding, the binding controller calls it
// to repair and to clean up. Every write is fenced: a Work is replaced only for
// the binding uid it was written for and by an equal or higher binding
// generation, so that attempts that overlap never undo one another.
package worksync
