package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AuditSink is where AuditRecords are delivered to: a server that takes webhooks, a collector of OpenTelemetry, or a file. Each record that
// is written from then on is delivered at least once, those of one update run in their order.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=asink,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Delivered",type=integer,JSONPath=`.status.delivered`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Oldest-Pending",type=date,JSONPath=`.status.oldestPendingTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Last-Error",type=string,priority=1,JSONPath=`.status.lastError`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name has more than 63 characters, and a Secret for the sink has it as the value of a label: choose a shorter name",reason=FieldValueInvalid,fieldPath=".metadata"
type AuditSink struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where records are delivered to, and which.
	// +required
	Spec AuditSinkSpec `json:"spec"`

	// Status says how far that has come.
	// +optional
	Status AuditSinkStatus `json:"status,omitempty"`
}

// AuditSinkSpec says where records are delivered to, and which.
//
// +kubebuilder:validation:XValidation:rule=`self.type == "Webhook" ? has(self.webhook) : !has(self.webhook)`,message="type Webhook needs webhook, and no other has it",reason=FieldValueInvalid,fieldPath=".webhook"
// +kubebuilder:validation:XValidation:rule=`self.type == "OTLP" ? has(self.otlp) : !has(self.otlp)`,message="type OTLP needs otlp, and no other has it",reason=FieldValueInvalid,fieldPath=".otlp"
// +kubebuilder:validation:XValidation:rule=`self.type == "File" ? has(self.file) : !has(self.file)`,message="type File needs file, and no other has it",reason=FieldValueInvalid,fieldPath=".file"
type AuditSinkSpec struct {
	// Type is Webhook, OTLP or File.
	// +required
	// +kubebuilder:validation:Enum=Webhook;OTLP;File
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type cannot be changed: create another sink",reason=FieldValueInvalid
	Type AuditSinkType `json:"type"`

	// Webhook gets events of CloudEvents 1.0, several in a request, as application/cloudevents-batch+json.
	// +optional
	Webhook *AuditSinkWebhook `json:"webhook,omitempty"`

	// OTLP gets logs of OpenTelemetry.
	// +optional
	OTLP *AuditSinkOTLP `json:"otlp,omitempty"`

	// File gets a line of JSON for each record.
	// +optional
	File *AuditSinkFile `json:"file,omitempty"`

	// Filter says which records are delivered. Without it, all are.
	// +optional
	Filter *AuditSinkFilter `json:"filter,omitempty"`
}

// AuditSinkType is what takes records.
type AuditSinkType string

const (
	// AuditSinkWebhookType is a server that takes webhooks.
	AuditSinkWebhookType AuditSinkType = "Webhook"
	// AuditSinkOTLPType is a collector of OpenTelemetry.
	AuditSinkOTLPType AuditSinkType = "OTLP"
	// AuditSinkFileType is a file of the hub agent, or its standard output.
	AuditSinkFileType AuditSinkType = "File"
)

// AuditSinkServer says where a server is, and how to speak to it.
type AuditSinkServer struct {
	// URL is where the server is, without a query and without credentials. Addresses of the hub agent's own machine, link-local ones and
	// those of the hub's API server are refused when they are called, whatever name they have.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self.matches("^https?://[^/?#@ ]+(/[^?#@ ]*)?$") && isURL(self)`,message="url must be like https://siem.example.com/fleet, without a query, a fragment and credentials",reason=FieldValueInvalid
	URL string `json:"url"`

	// AllowPlainText accepts a url that begins with http://.
	// +optional
	AllowPlainText bool `json:"allowPlainText,omitempty"`

	// Auth says how the hub agent says who it is; without it, it does not. Its Secrets are in the namespace of the hub agent, with the label
	// fleetflow.io/audit-sink, the name of the sink, and the annotation fleetflow.io/audit-sink-url, the beginning of its url.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.type == "None" ? !has(self.secret) : has(self.secret)`,message="auth of every type but None needs a secret, and type None has none",reason=FieldValueInvalid,fieldPath=".secret"
	// +kubebuilder:validation:XValidation:rule=`self.type == "Basic" ? has(self.username) : !has(self.username)`,message="auth of type Basic needs a username, and no other has one",reason=FieldValueInvalid,fieldPath=".username"
	// +kubebuilder:validation:XValidation:rule=`self.type == "ClientCert" ? has(self.privateKey) : !has(self.privateKey)`,message="auth of type ClientCert needs a privateKey, and no other has one",reason=FieldValueInvalid,fieldPath=".privateKey"
	Auth *MetricSourceAuth `json:"auth,omitempty"`

	// TLS says by which authority the server is known, if not by those that the hub agent's image trusts.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.caSecret) || !has(self.caConfigMap)`,message="the authorities are in a Secret or in a ConfigMap: remove caSecret or caConfigMap",reason=FieldValueForbidden,fieldPath=".caConfigMap"
	TLS *MetricSourceTLS `json:"tls,omitempty"`
}

// AuditSinkWebhook is a server that takes events. A signature, by auth of type HMAC, is that of Standard Webhooks.
//
// +kubebuilder:validation:XValidation:rule=`self.url.startsWith("https://") || (has(self.allowPlainText) && self.allowPlainText)`,message="url has to begin with https://: others on the way could read and change the records; allowPlainText: true accepts that",reason=FieldValueInvalid,fieldPath=".url"
// +kubebuilder:validation:XValidation:rule=`!has(self.auth) || self.auth.type != "ClientCert" || self.url.startsWith("https://")`,message="auth of type ClientCert needs a url that begins with https://",reason=FieldValueInvalid,fieldPath=".url"
type AuditSinkWebhook struct {
	AuditSinkServer `json:",inline"`

	// Batch is how many events a request has at most.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	Batch int32 `json:"batch,omitempty"`
}

// AuditSinkOTLP is a collector of OpenTelemetry.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.auth) || self.auth.type != "HMAC"`,message="auth of type HMAC signs webhooks: a collector has Bearer, Basic or ClientCert",reason=FieldValueInvalid,fieldPath=".auth.type"
// +kubebuilder:validation:XValidation:rule=`self.url.startsWith("https://") || (has(self.allowPlainText) && self.allowPlainText)`,message="url has to begin with https://: others on the way could read and change the records; allowPlainText: true accepts that",reason=FieldValueInvalid,fieldPath=".url"
// +kubebuilder:validation:XValidation:rule=`!has(self.auth) || self.auth.type != "ClientCert" || self.url.startsWith("https://")`,message="auth of type ClientCert needs a url that begins with https://",reason=FieldValueInvalid,fieldPath=".url"
type AuditSinkOTLP struct {
	AuditSinkServer `json:",inline"`

	// Protocol is HTTP, which sends protobuf to v1/logs below the url, or GRPC, of which the url has scheme, host and port alone.
	// +optional
	// +kubebuilder:default=HTTP
	// +kubebuilder:validation:Enum=HTTP;GRPC
	Protocol AuditSinkProtocol `json:"protocol,omitempty"`
}

// AuditSinkProtocol is how OpenTelemetry is spoken.
type AuditSinkProtocol string

const (
	// AuditSinkHTTP sends protobuf by HTTP.
	AuditSinkHTTP AuditSinkProtocol = "HTTP"
	// AuditSinkGRPC calls by gRPC.
	AuditSinkGRPC AuditSinkProtocol = "GRPC"
)

// AuditSinkFile is a file of the hub agent.
type AuditSinkFile struct {
	// Name of the file, in the folder that the values of the hub agent's chart name by records.files; "-" is standard output, beside the log.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule=`self == "-" || self.matches("^[A-Za-z0-9][A-Za-z0-9_-]*[.]jsonl$")`,message="name must be - or like audit.jsonl: the folder of the file is in the values of the hub agent's chart",reason=FieldValueInvalid
	Name string `json:"name"`

	// MaxSizeMiB is how large the file becomes before another is begun.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10240
	MaxSizeMiB int32 `json:"maxSizeMiB,omitempty"`

	// Keep is how many full files are kept.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Keep int32 `json:"keep,omitempty"`
}

// AuditSinkFilter says which records are delivered.
type AuditSinkFilter struct {
	// Types are the types of records, such as approval.given, or approval.* for all that begin so. Without any, all are.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.all(t, t.matches("^(placement|snapshot|run|stage|cluster|budget|rollback|approval|analysis|hold|exemption|window|eviction|override|member|config)[.]([*]|[a-z][A-Za-z]*)$"))`,message="a type is like approval.given, or approval.* for all that begin so: there are placement, snapshot, run, stage, cluster, approval, analysis, hold, eviction, override, member and config",reason=FieldValueInvalid
	Types []string `json:"types,omitempty"`

	// PlacementSelector is matched against the labels of placements: records of those that match are delivered, and none that is of no
	// placement. Without it, and if it is empty, all are. Every placement has fleetflow.io/placement-name and
	// fleetflow.io/placement-namespace here. Of one that is gone nothing else is known: a selector
	// that asks for more does not match it, whatever it asks.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	PlacementSelector *metav1.LabelSelector `json:"placementSelector,omitempty"`
}

// AuditSinkStatus says how far the delivery of records has come.
type AuditSinkStatus struct {
	// Conditions: Ready is False if the sink cannot be used, such as without its Secret, and if the last attempt has failed. It says why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Delivered is how many records the sink has taken. It is written at most once a minute, as are the following.
	// +optional
	Delivered int64 `json:"delivered,omitempty"`

	// Pending is how many records wait for it.
	// +optional
	Pending int64 `json:"pending,omitempty"`

	// OldestPendingTime is when the first of those that wait was written.
	// +optional
	OldestPendingTime *metav1.Time `json:"oldestPendingTime,omitempty"`

	// LastError says why the last attempt has failed. It is empty if it has not.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	LastError string `json:"lastError,omitempty"`
}
