package v1alpha1

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MetricSource is where analyses measure: a server that answers the queries of Prometheus, or one that answers webhooks. It is
// the only place that has addresses and credentials: templates name a source, and who writes templates can make the hub agent
// call nothing else.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=msrc,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.spec.url`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name has more than 63 characters, and a Secret for the source has it as the value of a label: choose a shorter name",reason=FieldValueInvalid,fieldPath=".metadata"
type MetricSource struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where the source is, and how to speak to it.
	// +required
	Spec MetricSourceSpec `json:"spec"`

	// Status says whether the source can be used.
	// +optional
	Status MetricSourceStatus `json:"status,omitempty"`
}

// MetricSourceSpec says where a source is, and how to speak to it.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.auth) || self.auth.type != "HMAC" || self.type == "Webhook"`,message="auth of type HMAC signs webhooks: a source of type Prometheus has Bearer, Basic or ClientCert",reason=FieldValueInvalid,fieldPath=".auth.type"
// +kubebuilder:validation:XValidation:rule=`!has(self.auth) || self.auth.type != "ClientCert" || self.url.startsWith("https://")`,message="auth of type ClientCert needs a url that begins with https://",reason=FieldValueInvalid,fieldPath=".url"
// +kubebuilder:validation:XValidation:rule=`self.url.startsWith("https://") || (has(self.allowPlainText) && self.allowPlainText)`,message="url has to begin with https://: others on the way could read the credentials and choose the answers; allowPlainText: true accepts that",reason=FieldValueInvalid,fieldPath=".url"
type MetricSourceSpec struct {
	// Type is Prometheus, for servers with its HTTP API (Thanos, Mimir, VictoriaMetrics too), or Webhook.
	// +required
	// +kubebuilder:validation:Enum=Prometheus;Webhook
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type cannot be changed: create another source",reason=FieldValueInvalid
	Type MetricSourceType `json:"type"`

	// URL is where the source is, without a query and without credentials. It cannot be changed: create another source.
	// Addresses of the hub agent's own machine, link-local ones and those of the hub's API server are refused when they
	// are called, whatever name they have.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self.matches("^https?://[^/?#@ ]+(/[^?#@ ]*)?$") && isURL(self)`,message="url must be like https://prometheus.monitoring.svc:9090, without a query, a fragment and credentials",reason=FieldValueInvalid
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="url cannot be changed: create another source",reason=FieldValueInvalid
	URL string `json:"url"`

	// AllowPlainText accepts a url that begins with http://.
	// +optional
	AllowPlainText bool `json:"allowPlainText,omitempty"`

	// Auth says how the hub agent says who it is; without it, it does not.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.type == "None" ? !has(self.secret) : has(self.secret)`,message="auth of every type but None needs a secret, and type None has none",reason=FieldValueInvalid,fieldPath=".secret"
	// +kubebuilder:validation:XValidation:rule=`self.type == "Basic" ? has(self.username) : !has(self.username)`,message="auth of type Basic needs a username, and no other has one",reason=FieldValueInvalid,fieldPath=".username"
	// +kubebuilder:validation:XValidation:rule=`self.type == "ClientCert" ? has(self.privateKey) : !has(self.privateKey)`,message="auth of type ClientCert needs a privateKey, and no other has one",reason=FieldValueInvalid,fieldPath=".privateKey"
	Auth *MetricSourceAuth `json:"auth,omitempty"`

	// TLS says by which authority the source is known, if not by those that the hub agent's image trusts.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.caSecret) || !has(self.caConfigMap)`,message="the authorities are in a Secret or in a ConfigMap: remove caSecret or caConfigMap",reason=FieldValueForbidden,fieldPath=".caConfigMap"
	TLS *MetricSourceTLS `json:"tls,omitempty"`

	// Limits bound what the source is asked, and what it answers.
	// +optional
	// +kubebuilder:default={}
	Limits *MetricSourceLimits `json:"limits,omitempty"`

	// AllowedTemplates says which StageAnalyses may use the source, by their labels. Without it, all may. Who may write a template may
	// change its labels, but not fleetflow.io/template-name, which every template has here.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ["In", "NotIn"] ? has(e.values) && size(e.values) > 0 : e.operator in ["Exists", "DoesNotExist"] && (!has(e.values) || size(e.values) == 0))`,message="an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without",reason=FieldValueInvalid,fieldPath=".matchExpressions"
	AllowedTemplates *metav1.LabelSelector `json:"allowedTemplates,omitempty"`

	// AllowedNamespaces are the namespaces whose StagedUpdateRuns may be analysed with the source: the teams there choose the arguments. ClusterStagedUpdateRuns
	// may anyhow. Without it, the runs of all namespaces may; if it is empty, those of none.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	AllowedNamespaces []string `json:"allowedNamespaces,omitzero"`
}

// MetricSourceType is what a source speaks.
type MetricSourceType string

const (
	// MetricSourcePrometheus answers queries of Prometheus.
	MetricSourcePrometheus MetricSourceType = "Prometheus"
	// MetricSourceWebhook answers a POST with JSON.
	MetricSourceWebhook MetricSourceType = "Webhook"
)

// MetricSourceAuth says how the hub agent says to a source who it is.
type MetricSourceAuth struct {
	// Type is None, Bearer (the secret's value is a token), Basic (it is a password), ClientCert (it is a certificate in PEM)
	// or HMAC (it is one key or, while keys change, several with white space between them, with which webhooks are signed as
	// Standard Webhooks are: whsec_ and the key in base64).
	// +required
	// +kubebuilder:validation:Enum=None;Bearer;Basic;ClientCert;HMAC
	Type MetricSourceAuthType `json:"type"`

	// Secret has the credential.
	// +optional
	Secret *MetricSourceSecret `json:"secret,omitempty"`

	// Username is the user's name of type Basic, without a colon. A Secret of type kubernetes.io/basic-auth has it under the key
	// username, beside the password.
	// +optional
	Username *MetricSourceSecret `json:"username,omitempty"`

	// PrivateKey is the key of a ClientCert, in PEM.
	// +optional
	PrivateKey *MetricSourceSecret `json:"privateKey,omitempty"`
}

// MetricSourceAuthType is a way to say who one is.
type MetricSourceAuthType string

const (
	// MetricSourceAuthNone says nothing.
	MetricSourceAuthNone MetricSourceAuthType = "None"
	// MetricSourceAuthBearer sends a token.
	MetricSourceAuthBearer MetricSourceAuthType = "Bearer"
	// MetricSourceAuthBasic sends a user's name and password.
	MetricSourceAuthBasic MetricSourceAuthType = "Basic"
	// MetricSourceAuthClientCert shows a certificate.
	MetricSourceAuthClientCert MetricSourceAuthType = "ClientCert"
	// MetricSourceAuthHMAC signs what is sent.
	MetricSourceAuthHMAC MetricSourceAuthType = "HMAC"
)

// MetricSourceSecret names a value in a Secret. The Secret is in the namespace of the hub agent and has the label
// fleetflow.io/metric-source with the name of the source: no source can name the Secret of something else. For a credential it also has
// the annotation fleetflow.io/metric-source-url with the beginning of the source's url, at least its scheme, host and port: no source
// of the name sends the credential elsewhere. The Secret of an AuditSink has fleetflow.io/audit-sink and fleetflow.io/audit-sink-url instead.
type MetricSourceSecret struct {
	// Name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key of the value in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// MetricSourceConfigMap names a text in a ConfigMap in the namespace of the hub agent. What is public needs no label for the source:
// several may use one.
type MetricSourceConfigMap struct {
	// Name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key of the text in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// MetricSourceTLS says by which authority a source is known.
type MetricSourceTLS struct {
	// CASecret has the certificates, in PEM, of the authorities that may vouch for the source.
	// +optional
	CASecret *MetricSourceSecret `json:"caSecret,omitempty"`

	// CAConfigMap has them, too, for those who keep their authorities where all may read them. Either is enough.
	// +optional
	CAConfigMap *MetricSourceConfigMap `json:"caConfigMap,omitempty"`

	// ServerName is the name that the source's certificate has to have, if not that in the url.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`
}

// MetricSourceLimits bound what a source is asked, by each process of the hub agent, and what it answers.
type MetricSourceLimits struct {
	// MaxConcurrent is how many requests may be under way.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	MaxConcurrent int32 `json:"maxConcurrent,omitempty"`

	// RequestsPerSecond is how many requests begin in a second at most.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RequestsPerSecond int32 `json:"requestsPerSecond,omitempty"`

	// Timeout is how long an answer may take, 1m at most.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:XValidation:rule=`self.matches("^([0-9]{1,5}(h|m|s|ms)){1,4}$") && duration(self) >= duration("100ms") && duration(self) <= duration("1m")`,message="timeout must be 100ms to 1m: write it like 10s",reason=FieldValueInvalid
	Timeout *Duration `json:"timeout,omitempty"`

	// MaxResponseBytes is how long an answer may be: a longer one is an error.
	// +optional
	// +kubebuilder:default=1048576
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=16777216
	MaxResponseBytes int64 `json:"maxResponseBytes,omitempty"`
}

// MetricSourceStatus says whether a source can be used.
type MetricSourceStatus struct {
	// Conditions: Accepted is False if the source cannot be used, such as without its Secret. Ready is False then, too, and if the
	// source has not answered when it was asked last. Either says why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastContactTime is when the source has answered, to the minute. It is asked by analyses alone.
	// +optional
	LastContactTime *metav1.Time `json:"lastContactTime,omitempty"`
}

// MetricSources is what MetricSources are in URLs.
var MetricSources = schema.GroupResource{Group: GroupName, Resource: "metricsources"}

// MetricSourceLabel has, on a Secret, the name of the one MetricSource that may use it.
const MetricSourceLabel = GroupName + "/metric-source"

// MetricSourceURLAnnotation has, on a Secret with a credential, the url of the server that it is for, or what that begins with: the
// user who writes the Secret says who gets it, and not one who writes a MetricSource of the name.
const MetricSourceURLAnnotation = GroupName + "/metric-source-url"

// ConditionTypeReady of a MetricSource is False if it cannot be used, or does not answer.
const ConditionTypeReady = "Ready"

// Reasons of the conditions Accepted and Ready. Of a source that is accepted, Accepted has ReasonAccepted.
const (
	ReasonSourceReady       = "SourceReady"       // its Secrets and its ConfigMap are there
	ReasonSecretNotFound    = "SecretNotFound"    // there is no such Secret, or it has no such key
	ReasonConfigMapNotFound = "ConfigMapNotFound" // there is no such ConfigMap, or it has no such key
	ReasonSecretNotLabelled = "SecretNotLabelled" // the Secret is not labelled for this source
	ReasonSecretNotForURL   = "SecretNotForURL"   // the Secret is for another server than that of the source's url
	ReasonAddressRefused    = "AddressRefused"    // its address is one that the hub agent does not call
	ReasonUnreachable       = "Unreachable"       // it has not answered when it was asked last
)

// The limits of a source that sets none.
const (
	defaultSourceConcurrency = 4
	defaultSourcePerSecond   = 5
	defaultSourceTimeout     = 10 * time.Second
	defaultSourceBytes       = 1 << 20
)

// EffectiveLimits returns the limits of a source, with those that it does not set.
func (s *MetricSource) EffectiveLimits() MetricSourceLimits {
	limits := MetricSourceLimits{}
	if s.Spec.Limits != nil {
		limits = *s.Spec.Limits
	}
	limits.MaxConcurrent = cmp.Or(limits.MaxConcurrent, defaultSourceConcurrency)
	limits.RequestsPerSecond = cmp.Or(limits.RequestsPerSecond, defaultSourcePerSecond)
	limits.MaxResponseBytes = cmp.Or(limits.MaxResponseBytes, defaultSourceBytes)
	if limits.Timeout == nil {
		limits.Timeout = &Duration{Duration: defaultSourceTimeout}
	}
	return limits
}

// TemplateNameLabel has, for allowedTemplates alone, the name of a template, whatever its own labels say.
const TemplateNameLabel = GroupName + "/template-name"

// Allows reports whether a template may use the source. A selector that cannot be read allows none.
func (s *MetricSource) Allows(template metav1.Object) bool {
	if s.Spec.AllowedTemplates == nil {
		return true
	}
	seen := labels.Merge(template.GetLabels(), labels.Set{TemplateNameLabel: template.GetName()})
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.AllowedTemplates)
	return err == nil && selector.Matches(seen)
}

// AllowsNamespace reports whether update runs of a namespace, or of the cluster, may be analysed with the source.
func (s *MetricSource) AllowsNamespace(namespace string) bool {
	return allowsNamespace(s.Spec.AllowedNamespaces, namespace)
}

func allowsNamespace(allowed []string, namespace string) bool {
	return namespace == "" || allowed == nil || slices.Contains(allowed, namespace)
}

// contactEvery is how exact LastContactTime is: no measurement is worth a write.
const contactEvery = time.Minute

// IsUnreachable reports whether the source, as it is now, has not answered when it was asked last.
func (s *MetricSource) IsUnreachable() bool {
	ready := meta.FindStatusCondition(s.Status.Conditions, ConditionTypeReady)
	return ready != nil && ready.Reason == ReasonUnreachable && ready.ObservedGeneration == s.Generation
}

// NoteAnswer writes into the status that the source has answered; changed is false if that is known well enough.
func (s *MetricSource) NoteAnswer(at time.Time) (changed bool) {
	if last := s.Status.LastContactTime; last == nil || at.Sub(last.Time) >= contactEvery {
		s.Status.LastContactTime = &metav1.Time{Time: at}
		changed = true
	}
	if s.IsUnreachable() {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
			Type: ConditionTypeReady, Status: metav1.ConditionTrue, Reason: ReasonSourceReady, Message: "The source answers",
			ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(at),
		})
		return true
	}
	return changed
}

// NoteSilence writes into the status that the source has not answered, and why. What else is wrong with it says more.
func (s *MetricSource) NoteSilence(why string, at time.Time) (changed bool) {
	ready := meta.FindStatusCondition(s.Status.Conditions, ConditionTypeReady)
	if s.IsUnreachable() || ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason != ReasonUnreachable {
		return false
	}
	return meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: ConditionTypeReady, Status: metav1.ConditionFalse, Reason: ReasonUnreachable, Message: "When it was asked last: " + why,
		ObservedGeneration: s.Generation, LastTransitionTime: metav1.NewTime(at),
	})
}
