// Package integration has the specs that run on a real local fleet: real API servers, a real Temporal server and this
// repository's own programs. They are behind the build tag "integration":
//
//	go test -tags integration -timeout 20m ./test/integration
//
// The package brings a fleet up in .fleet-test, or in the folder that FLEETFLOW_OWN_FLEET names, and takes it down at the end; with
// FLEETFLOW_FLEET it uses the fleet that runs in that folder and leaves it up. The list of specs is in fleet_test.go, one sentence each; a
// single one is run by -run 'TestFleet/<its sentence>'. Those that take parts of the fleet down come last, one at a time.
//
// Every spec has names of its own and waits on conditions by watching. When one fails it prints its objects, their
// events and the end of the hub agent's log.
package integration
