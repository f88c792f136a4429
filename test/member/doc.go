// Package member tests what the member agent makes of a world that fails it: a hub or a member that is away, a token
// that is rotated, kinds that vanish, finalizers, refusals, Works as large as they can be. It runs on one hub and one
// member with real API servers and needs nothing else; see test/onemember.
package member
