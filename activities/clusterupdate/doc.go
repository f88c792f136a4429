// Package clusterupdate is what the rolling update of a placement and the
// stages of an update run have in common: writing one cluster's binding behind
// a fence and its Works after it, and waiting, on the informer cache, until
// clusters are done.
package clusterupdate
