// Package question answers what the hub asks the member: MemberQuestions in the member's namespace on the hub, which are pulled as Works
// are, and never applied.
//
// Watcher (watcher.go) watches them, on a hub that has the kind. Answerer (answerer.go) answers each once, before its deadline, and writes
// nothing but its status. Which types of questions have an answer is in the registry (registry.go): a type is one file and one line there.
// Gate (gate.go) is between the answers and the API server of the member: it bounds the requests a second, and lets no write pass that is
// not a dry run. Images are pulled past it, by package imagepull.
package question
