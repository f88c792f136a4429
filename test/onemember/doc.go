// Package onemember runs one hub and one member, both with real API servers, and the member agent as a process of its
// own. There is no hub agent: the tests write the Works themselves, so that what they measure and disturb is the member
// agent and nothing else. The tests of the member agent (test/member) and its figures (test/bench/member) are built on
// it.
package onemember
