// Package override changes what a placement places, cluster by cluster: it says which
// snapshots of overrides apply to a placement on a cluster, and what an object looks like
// there.
//
// Both come in two steps, so that a thousand clusters cost little more than one: a Matcher
// is made once per placement and asked once per cluster; a Set is compiled once from
// override snapshots, turned into a Patch once per cluster, and the Patch is applied to
// every object.
//
// The package is pure: it imports no client, no Temporal and no clock.
package override
