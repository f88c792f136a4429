// Package apply brings manifests onto a member cluster and takes them away again.
//
// Reading a manifest (manifest.go), the order (order.go), whose an object is
// (ownership.go) and what is to be written (merge.go) are pure functions. Only the Engine
// (engine.go, serverside.go, remove.go) talks to the cluster.
package apply
