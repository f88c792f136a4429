// Package security attacks a fleet. Each spec is one attack: the attacker has credentials of his own (the token of a service
// account, the token of a member, a client of Temporal), and the API servers, Temporal and the agents are real ones, with the
// guard rails that the chart installs by default. A spec shows the refusal with its sentence, and that the effect did not
// come. The specs are behind the build tag "integration":
//
//	go test -tags integration ./test/security
//
// A spec is an entry of a map of type attacks, by the sentence that says what the attacker does. The threat table of
// deploy/docs/security.md has a row for every sentence; a test of test/docs compares the two. To add an attack that a
// server refuses, add a line with refused or forbidden to the file of its attacker:
//
//	"an editor of a placed namespace creates a placement": refused(editor, creates(`{...}`), "cannot create resource"),
//
// The package brings its fleet up in a temporary folder, on free ports, and ends it. Nothing sleeps: that something did not
// come is shown by something later that has come.
package security
