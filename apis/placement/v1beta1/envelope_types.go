package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterResourceEnvelope wraps cluster-scoped objects that are meant for member clusters
// and should have no effect on the hub, such as webhook configurations and ClusterRoles.
// Select the envelope in a placement: the members get what is in it, not the envelope.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="versions=v1beta1"
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data has the objects, each under a key of your choice such as "webhook.yaml". They are
	// written as they are, not as text, and have to be cluster-scoped.
	// +required
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule=`size(self) > 0`,message="data cannot be empty: put at least one object into it, under a key such as deployment.yaml"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, has(self[k].metadata) && has(self[k].metadata.name) && self[k].metadata.name != "")`,messageExpression=`"the object under " + self.filter(k, !has(self[k].metadata) || !has(self[k].metadata.name) || self[k].metadata.name == "")[0] + " has no name: set its metadata.name, generateName does not work here"`,message="an object in data has no name: set its metadata.name, generateName does not work here"
	Data map[string]ResourceContent `json:"data"`
}

// ResourceEnvelope wraps namespaced objects that are meant for member clusters and should
// have no effect on the hub, such as ResourceQuotas and RoleBindings. It is placed along
// with its namespace: the members get what is in it, not the envelope.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="versions=v1beta1"
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceEnvelope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Data has the objects, each under a key of your choice such as "quota.yaml". They are
	// written as they are, not as text, and have to be in the namespace of the envelope.
	// +required
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule=`size(self) > 0`,message="data cannot be empty: put at least one object into it, under a key such as deployment.yaml"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, has(self[k].metadata) && has(self[k].metadata.name) && self[k].metadata.name != "")`,messageExpression=`"the object under " + self.filter(k, !has(self[k].metadata) || !has(self[k].metadata.name) || self[k].metadata.name == "")[0] + " has no name: set its metadata.name, generateName does not work here"`,message="an object in data has no name: set its metadata.name, generateName does not work here"
	Data map[string]ResourceContent `json:"data"`
}
