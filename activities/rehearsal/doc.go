// Package rehearsal is what the hub knows of asking members what a change would do there: how a question is written, how an answer is
// read, and what the answers of all clusters say together. It is pure: it reads no object and has no clock. A member writes its answer
// itself, so nothing of one is believed beyond what it says of that member.
package rehearsal
