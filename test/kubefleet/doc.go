// Package kubefleet has what a live KubeFleet left on its hub and its members, recorded object by object, and loads it into
// API servers: for tests of what fleetflow makes of it. It also has KubeFleet's Go types of kinds that users write, for tests of what
// its clients make of objects.
package kubefleet
