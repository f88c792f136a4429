// Package updaterun owns the state of a staged update run: it reads the status of a run into values, and it writes what
// has happened into the status. It is pure: it works on the object it is given, and the caller stores that.
package updaterun
