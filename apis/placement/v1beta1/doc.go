// Package v1beta1 holds the kinds of the API group placement.kubernetes-fleet.io: what
// is placed where, the snapshots and bindings in between, and staged update runs.
// The package is pure: types, names and registration, no clients and no I/O.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +kubebuilder:validation:Optional
// +groupName=placement.kubernetes-fleet.io
package v1beta1
