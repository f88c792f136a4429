// Package calendar says when a RolloutWindow is open. Entries recur on a floating clock, which shows the time on the wall
// and knows no time zone; only the start and the end of an occurrence are mapped to instants, so that one rule decides
// what a clock change does. The package is pure: the time comes in, and the data base of time zones is in the program.
package calendar
