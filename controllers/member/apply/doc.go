// Package apply brings manifests onto a member cluster and takes them away again.
//
// Reading a manifest (manifest.go), the order (order.go), whose an object is (ownership.go), what
// is to be written (merge.go, means.go), what is left to the cluster (retain.go) and what is said
// of a refusal (problem.go) are pure functions. Only the Engine (engine.go, compare.go,
// serverside.go, remove.go) talks to the cluster.
//
// The way of an object that exists: own it, if the strategy says so and, with IfNoDiff, it does
// not differ; leave it alone if it has drifted and IfNotDrifted says so, unless the manifest is
// another one than was applied last; write what differs; with FullComparison, compare once more.
//
// What controllers of the cluster decide on is left to them: what the manifest never set, and of
// what it sets no longer the replicas, a Service's addresses and ports, and a ServiceAccount's
// secrets. An object annotated with kubernetes-fleet.io/retain-replicas: "true" keeps the replicas
// it has though the manifest sets them; the manifest's are only for its creation. See
// deploy/docs/member-agent.md.
//
// To compare in part is to rehearse the very write: the API server answers what it would come to.
package apply
