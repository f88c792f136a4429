// Package pods has the specs of what only real Pods show: charts, images and agents on real nodes, and workloads that break. They run
// where test/devfleet/realnode finds what a node needs; elsewhere one sentence says what is missing. TestPods is what make test has time
// for, on one fleet; TestPodsLong is the rest, run by make test-pods-long.
package pods
