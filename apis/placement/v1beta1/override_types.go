package v1beta1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterResourceOverride changes cluster-scoped resources on their way to some of the
// clusters, so that one object on the hub can look different on each of them. If it selects
// a Namespace, it changes everything in that namespace as well; where a ResourceOverride
// changes the same object, the ResourceOverride has the last word. An object can be selected
// by one ClusterResourceOverride only, and at most 100 of them can be in use. Its name has at
// most 63 characters: its snapshots have it in a label.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=cro,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placement.name`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Valid")].reason`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63: choose a shorter name"
type ClusterResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which resources to change, for which clusters and how.
	// +required
	Spec ClusterResourceOverrideSpec `json:"spec"`

	// Status says whether the override is in use. It is an addition of fleetflow to the API.
	// +optional
	Status OverrideStatus `json:"status,omitempty"`
}

// ClusterResourceOverrideSpec says which cluster-scoped resources to change, for which
// clusters and how.
//
// +kubebuilder:validation:XValidation:rule=`has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)`,message="The placement field is immutable: keep it as it was created, with or without a placement, or create another override"
type ClusterResourceOverrideSpec struct {
	// Placement is the ClusterResourcePlacement whose resources are changed; a change of the
	// override then rolls out at once, as the placement's strategy says. Without one, the
	// override concerns every placement and waits for their next rollout. It cannot be
	// added, changed or removed later.
	// +kubebuilder:validation:XValidation:rule=`!has(self.scope) || self.scope != "Namespaced"`,message="clusterResourceOverride placement reference cannot be Namespaced scope: remove scope to refer to a ClusterResourcePlacement, or use a ResourceOverride"
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`

	// ClusterResourceSelectors name the resources to change, each by group, version, kind
	// and name; a selected Namespace stands for everything in it, too. Labels cannot select
	// here, and no resource can be named twice.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule=`self.all(s, has(s.name) && s.name != "")`,message="resource name is required for resource selection: give every selector a name, and every object a selector of its own"
	// +kubebuilder:validation:XValidation:rule=`self.all(s, !has(s.labelSelector))`,message="label selector is not supported for resource selection: remove labelSelector and select each object by its name"
	// +kubebuilder:validation:XValidation:rule=`self.all(s, self.exists_one(t, t.group == s.group && t.kind == s.kind && (has(t.name) ? t.name : "") == (has(s.name) ? s.name : "")))`,message="resource selector already exists, and must be unique: two selectors name the same group, kind and name, remove one of them"
	ClusterResourceSelectors []ResourceSelectorTerm `json:"clusterResourceSelectors"`

	// Policy says what to change for which clusters.
	// +required
	Policy OverridePolicy `json:"policy"`
}

// ResourceOverride changes resources of its own namespace on their way to some of the
// clusters, so that one object on the hub can look different on each of them. It has the
// last word over a ClusterResourceOverride that selects the namespace. An object can be
// selected by one ResourceOverride only, and at most 100 of them can be in use. Its name has
// at most 63 characters: its snapshots have it in a label.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1,v1beta1,v1alpha1"
// +kubebuilder:resource:scope=Namespaced,shortName=ro,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placement.name`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Valid")].reason`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63: choose a shorter name"
type ResourceOverride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which resources to change, for which clusters and how.
	// +required
	Spec ResourceOverrideSpec `json:"spec"`

	// Status says whether the override is in use. It is an addition of fleetflow to the API.
	// +optional
	Status OverrideStatus `json:"status,omitempty"`
}

// ResourceOverrideSpec says which resources of the override's namespace to change, for which
// clusters and how.
//
// +kubebuilder:validation:XValidation:rule=`has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)`,message="The placement field is immutable: keep it as it was created, with or without a placement, or create another override"
type ResourceOverrideSpec struct {
	// Placement is the placement whose resources are changed; a change of the override then
	// rolls out at once, as the placement's strategy says. Without one, the override
	// concerns every placement and waits for their next rollout. It cannot be added, changed
	// or removed later.
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`

	// ResourceSelectors name the resources to change, in the namespace of the override. No
	// resource can be named twice.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule=`self.all(s, self.exists_one(t, t.group == s.group && t.kind == s.kind && t.name == s.name))`,message="resource selector already exists, and must be unique: two selectors name the same group, kind and name, remove one of them"
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Policy says what to change for which clusters.
	// +required
	Policy OverridePolicy `json:"policy"`
}

// PlacementScope says which kind of placement a reference is to.
type PlacementScope string

const (
	// ClusterScoped refers to a ClusterResourcePlacement.
	ClusterScoped PlacementScope = "Cluster"
	// NamespaceScoped refers to a ResourcePlacement in the namespace of what refers to it.
	NamespaceScoped PlacementScope = "Namespaced"
)

// PlacementRef names a placement.
type PlacementRef struct {
	// Name of the placement.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Name string `json:"name"`

	// Scope is Cluster for a ClusterResourcePlacement, Namespaced for a ResourcePlacement in
	// the namespace of the override.
	// +kubebuilder:default=Cluster
	// +kubebuilder:validation:Enum=Cluster;Namespaced
	// +optional
	Scope PlacementScope `json:"scope,omitempty"`
}

// ResourceSelector names one object in the namespace of what selects it.
type ResourceSelector struct {
	// Group of the resource; empty for the core group.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// Version of the resource.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`

	// Kind of the resource.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// Name of the resource.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self != ""`,message="resource name is required for resource selection: give every selector a name, and every object a selector of its own"
	Name string `json:"name"`
}

// OverridePolicy says what to change for which clusters.
type OverridePolicy struct {
	// OverrideRules are applied in their order, those that select the cluster: where two of
	// them change the same field, the later one has the last word.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	OverrideRules []OverrideRule `json:"overrideRules"`
}

// OverrideType says what an override does with the resources it selects.
type OverrideType string

const (
	// JSONPatchOverrideType patches the resources.
	JSONPatchOverrideType OverrideType = "JSONPatch"
	// DeleteOverrideType leaves the resources out, and removes them where they are.
	DeleteOverrideType OverrideType = "Delete"
)

// OverrideRule says what to change for some of the clusters.
//
// +kubebuilder:validation:XValidation:rule=`self.overrideType != "Delete" || !has(self.jsonPatchOverrides)`,message="JSONPatchOverrides cannot be set when the override type is Delete: remove jsonPatchOverrides, or set overrideType to JSONPatch"
// +kubebuilder:validation:XValidation:rule=`self.overrideType != "JSONPatch" || has(self.jsonPatchOverrides)`,message="JSONPatchOverrides cannot be empty when the override type is JSONPatch: add an operation to jsonPatchOverrides, or set overrideType to Delete"
type OverrideRule struct {
	// ClusterSelector picks the clusters by the labels of their MemberCluster. With an
	// empty list of terms, the rule is for every cluster; without a clusterSelector, for none.
	// +kubebuilder:validation:XValidation:rule=`self.clusterSelectorTerms.all(t, !has(t.propertySelector) && !has(t.propertySorter))`,message="only labelSelector is supported: remove propertySelector and propertySorter, overrides pick clusters by their labels"
	// +optional
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`

	// OverrideType is JSONPatch to patch the resources, Delete to leave them out on the
	// clusters, and to remove them from where they are.
	// +kubebuilder:default=JSONPatch
	// +kubebuilder:validation:Enum=JSONPatch;Delete
	// +optional
	OverrideType OverrideType `json:"overrideType,omitempty"`

	// JSONPatchOverrides are the operations of the patch, carried out in their order. Only
	// for JSONPatch.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +optional
	JSONPatchOverrides []JSONPatchOverride `json:"jsonPatchOverrides,omitempty"`
}

// JSONPatchOverrideOperator is an operation of a JSON patch.
type JSONPatchOverrideOperator string

const (
	// JSONPatchOverrideOpAdd sets a field or label, or inserts an element into a list.
	JSONPatchOverrideOpAdd JSONPatchOverrideOperator = "add"
	// JSONPatchOverrideOpRemove removes what is there.
	JSONPatchOverrideOpRemove JSONPatchOverrideOperator = "remove"
	// JSONPatchOverrideOpReplace sets what is already there to something else.
	JSONPatchOverrideOpReplace JSONPatchOverrideOperator = "replace"
)

// JSONPatchOverride is one operation of a JSON patch (RFC 6902).
//
// +kubebuilder:validation:XValidation:rule=`self.op != "remove" || !has(dyn(self).value)`,message="remove operation cannot have value: remove value, or set op to replace"
// +kubebuilder:validation:XValidation:rule=`self.op == "remove" || has(dyn(self).value)`,messageExpression=`self.op + " operation needs a value, and null is none: set value, or set op to remove to clear the field"`,message="the operation needs a value, and null is none: set value, or set op to remove to clear the field"
type JSONPatchOverride struct {
	// Operator is add to set a field or insert an element into a list, replace to set what
	// is already there, remove to take it out.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator JSONPatchOverrideOperator `json:"op"`

	// Path says where, as in RFC 6901: the names of the fields on the way there, each after
	// a slash, such as /spec/template/spec/containers/0/image. Elements of lists count from
	// 0, and - is the place behind the last one. Inside a name, write ~1 for a slash and ~0
	// for a tilde, such as /metadata/labels/example.com~1team. Except for annotations and
	// labels, metadata cannot be changed, and neither can apiVersion, kind and status.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self != ""`,message="path cannot be empty: name the field, such as /metadata/labels/team"
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.startsWith("/")`,message="path must start with /: write a slash before every name on the way, such as /spec/replicas"
	// +kubebuilder:validation:XValidation:rule=`!self.startsWith("/") || !(self + "/").contains("//")`,message="path cannot contain empty string: write one slash between names, and none at the end"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("~([^01]|$)")`,message="path has a ~ that is followed by neither 0 nor 1: inside a name, write ~0 for a tilde and ~1 for a slash"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("^/[^/]*~[01]")`,message="path starts with a name that has a slash or tilde inside, and no object has such a field: write the slashes between names as they are"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("^/(apiVersion|kind)(/|$)")`,message="cannot override typeMeta fields: take /apiVersion and /kind out; to place another kind of object, place that one"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("^/metadata(/|$)") || self.matches("^/metadata/(annotations|labels)(/|$)")`,message="cannot override metadata fields except annotations and labels: use a path that starts with /metadata/annotations or /metadata/labels"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("^/metadata/(annotations|labels)/[^/]+/.")`,message="path goes on after the key of a label or annotation: write a slash inside the key as ~1, such as /metadata/labels/example.com~1team"
	// +kubebuilder:validation:XValidation:rule=`!self.matches("^/status(/|$)")`,message="cannot override status fields: the cluster sets them; override the spec"
	Path string `json:"path"`

	// Value is what to set, of any type: required for add and replace, not allowed for
	// remove. A null is no value; to clear a field, remove it. In strings,
	// ${MEMBER-CLUSTER-NAME} becomes the name of the cluster, and
	// ${MEMBER-CLUSTER-LABEL-KEY-<key>} the value of its label of that key. Additions of fleetflow are
	// ${MEMBER-CLUSTER-ANNOTATION-KEY-<key>} for annotations of the MemberCluster whose keys begin with value.fleetflow.io/, and
	// ${MEMBER-CLUSTER-PROPERTY-KEY-<name>} for properties that the cluster reports.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitzero"`
}

// OverrideStatus says whether an override is in use. It is an addition of fleetflow to the
// API: KubeFleet's overrides have no status.
type OverrideStatus struct {
	// Conditions has Valid, set by the hub: False, with the other override in the message,
	// if an object is already selected by an older override, if there are too many
	// overrides, or if the placement that the override refers to does not exist. The hub
	// does not go by an override that is not valid.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
