// Package bind writes one cluster's binding behind a fence: a JSON patch whose test operations pin what the decision was based on, so
// that a write that comes too late changes nothing and fails.
//
// Writer has the one guard of rolling updates, stages and deletion stages: it asks right before a write whether the change is still
// wanted, open, and not held by a lifecycle hook. A write that the API server refuses for what it is fails with a RefusedError.
//
// The package takes what members report of the status of objects along when a placement leaves a cluster for another. Its safety
// catch keeps a hub agent from letting many bindings go by mistake: after a start it counts those whose removal nothing explains,
// over all placements, and holds them if there are more than a handful.
package bind
