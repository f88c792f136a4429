// Package v1beta1 holds the kinds of the API group cluster.kubernetes-fleet.io
// that describe which clusters belong to the fleet and how they are doing.
// The package is pure: types, names and registration, no clients and no I/O.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +kubebuilder:validation:Optional
// +groupName=cluster.kubernetes-fleet.io
package v1beta1
