// Package v1alpha1 holds the kinds of the API group fleetflow.io: those that KubeFleet
// does not have. The name of the group is the constant GroupName.
// The package is pure: types, names and registration, no clients and no I/O.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +kubebuilder:validation:Optional
// +groupName=fleetflow.io
package v1alpha1
