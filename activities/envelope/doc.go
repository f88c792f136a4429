// Package envelope takes the objects out of envelopes: objects that are stored on
// the hub inside of another one, so that they have no effect there, and that
// members get without their wrapping.
//
// An envelope is taken as a whole or not at all: were one of its objects left out,
// the members would remove it. The package is pure: it imports no client, no
// Temporal and no clock, and what it makes of an envelope depends on nothing else.
package envelope
