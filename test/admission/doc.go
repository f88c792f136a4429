// Package admission asks a real API server what it lets in: the definitions of both charts and the hub chart's admission
// policies are installed on a bare hub, an etcd and a kube-apiserver that nothing acts on. The tests are behind the
// build tag "integration":
//
//	go test -tags integration ./test/admission
//
// Every manifest below deploy/samples has to be stored as it is written, through every version of its kind, and every
// manifest of the tables has to be refused with the sentence that says what to do. The commands of the guide to migration
// are run on a second hub, with what KubeFleet has left on one. The package starts its server in a
// temporary folder, on free ports, and ends it; it runs beside a local fleet.
package admission
