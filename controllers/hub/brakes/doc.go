// Package brakes writes the status of what keeps clusters from being started. A RolloutHold says what waits for it to end, and what is
// still under way; a RolloutWindow whether it is open, and when that changes; a RolloutExemption who has made it and whether it counts.
// Events tell what an exemption lets go.
//
// The package stops and exempts nothing itself: the activities that start clusters read these objects. Without Temporal the status stays
// right.
package brakes
