// Package hubtoken renews the token that the agent of a member shows the hub: half-way through its life it asks the hub for the
// next one, with the right of the member's own account, and keeps it where the first one was put. A token that does not
// end, or that is not one of a service account, is left alone.
package hubtoken
