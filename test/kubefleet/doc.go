// Package kubefleet has what a live KubeFleet left on its hub and its members, recorded object by object, and loads it into
// API servers: for tests of what fleetflow makes of it.
package kubefleet
