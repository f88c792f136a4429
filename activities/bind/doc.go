// Package bind writes one cluster's binding behind a fence: a JSON patch whose test operations pin what the decision was based on, so
// that a write that comes too late changes nothing and fails.
//
// It takes what members report of the status of objects along when a placement leaves a cluster for another. Its safety catch keeps a
// hub agent from letting many bindings go by mistake: after a start it counts those whose removal nothing explains, over all
// placements, and holds them if there are more than a handful.
package bind
