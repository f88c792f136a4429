// Package takeover has the tests of what becomes of a hub that KubeFleet has run: what it recorded on real API servers is
// loaded, our agents are started, and every write is watched. See package kubefleet for the recording.
package takeover
