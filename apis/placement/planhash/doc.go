// Package planhash sums a plan up in one hash, so that an approval counts for the plan that its sender has seen, and a run for the plan
// that was reviewed. It is pure: everything that goes into a hash comes from its arguments.
package planhash
