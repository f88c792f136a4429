// Package hubread reads what more than one activity needs of the hub, most of it past every cache: objects as they are now, the kinds
// that the hub serves, the overrides that are in force, and what keeps clusters from being started. Pure packages decide on what it
// returns.
package hubread
