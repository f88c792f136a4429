package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NotificationChannel is where people read messages about update runs: a channel of Slack or of Microsoft Teams, mailboxes, or a server
// that takes webhooks. NotificationRules say what is told there. It tells AuditRecords, which the hub agent writes if records.enabled is
// set in the values of its chart.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="versions=v1alpha1"
// +kubebuilder:resource:scope=Cluster,shortName=nchan,categories={fleet,fleet-placement}
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Last-Delivery",type=date,JSONPath=`.status.lastDeliveryTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name has more than 63 characters, and a Secret for the channel has it as the value of a label: choose a shorter name",reason=FieldValueInvalid,fieldPath=".metadata"
type NotificationChannel struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where messages go.
	// +required
	Spec NotificationChannelSpec `json:"spec"`

	// Status says whether they arrive.
	// +optional
	Status NotificationChannelStatus `json:"status,omitempty"`
}

// NotificationChannelSpec says where messages go.
//
// +kubebuilder:validation:XValidation:rule=`self.type == "Slack" ? has(self.slack) : !has(self.slack)`,message="slack belongs to type Slack, which needs it",reason=FieldValueInvalid,fieldPath=".slack"
// +kubebuilder:validation:XValidation:rule=`self.type == "Teams" ? has(self.teams) : !has(self.teams)`,message="teams belongs to type Teams, which needs it",reason=FieldValueInvalid,fieldPath=".teams"
// +kubebuilder:validation:XValidation:rule=`self.type == "Email" ? has(self.email) : !has(self.email)`,message="email belongs to type Email, which needs it",reason=FieldValueInvalid,fieldPath=".email"
// +kubebuilder:validation:XValidation:rule=`self.type == "Webhook" ? has(self.webhook) : !has(self.webhook)`,message="webhook belongs to type Webhook, which needs it",reason=FieldValueInvalid,fieldPath=".webhook"
type NotificationChannelSpec struct {
	// Type is Slack, Teams, Email or Webhook.
	// +required
	// +kubebuilder:validation:Enum=Slack;Teams;Email;Webhook
	Type NotificationChannelType `json:"type"`

	// Slack is the channel of type Slack.
	// +optional
	Slack *SlackChannel `json:"slack,omitempty"`

	// Teams is the channel of type Teams.
	// +optional
	Teams *TeamsChannel `json:"teams,omitempty"`

	// Email says who gets mail, for type Email.
	// +optional
	Email *EmailChannel `json:"email,omitempty"`

	// Webhook is the server of type Webhook.
	// +optional
	Webhook *WebhookChannel `json:"webhook,omitempty"`

	// DashboardURL is where those who read the messages find the dashboard: each message has the link to its page there. Without it,
	// messages have no link.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self.matches("^https?://[^/?#@ ]+(/[^?#@ ]*)?$") && isURL(self)`,message="dashboardURL must be like https://fleet.example.com, without a query, a fragment and credentials",reason=FieldValueInvalid
	DashboardURL string `json:"dashboardURL,omitempty"`
}

// NotificationChannelType is what a channel speaks.
type NotificationChannelType string

const (
	// ChannelSlack is a channel of Slack.
	ChannelSlack NotificationChannelType = "Slack"
	// ChannelTeams is a channel of Microsoft Teams.
	ChannelTeams NotificationChannelType = "Teams"
	// ChannelEmail sends mail.
	ChannelEmail NotificationChannelType = "Email"
	// ChannelWebhook is a server that takes Standard Webhooks.
	ChannelWebhook NotificationChannelType = "Webhook"
)

// ChannelSecret names a value in a Secret. The Secret is in the namespace of the hub agent and has the label fleetflow.io/channel with
// the name of the NotificationChannel: no channel can name the Secret of something else.
type ChannelSecret struct {
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

// ChannelConfigMap names a text in a ConfigMap in the namespace of the hub agent.
type ChannelConfigMap struct {
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

// SlackChannel is a channel of Slack, by the token of an app or by an incoming webhook.
//
// +kubebuilder:validation:XValidation:rule=`has(self.tokenSecret) != has(self.urlSecret)`,message="Slack is reached by the token of an app, or by the url of an incoming webhook: set either tokenSecret or urlSecret",reason=FieldValueInvalid,fieldPath=".tokenSecret"
// +kubebuilder:validation:XValidation:rule=`has(self.tokenSecret) == has(self.channel)`,message="channel belongs to tokenSecret, which needs it: an incoming webhook has its channel already",reason=FieldValueInvalid,fieldPath=".channel"
type SlackChannel struct {
	// Channel is its name or its ID, such as #ops or C024BE91L.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:Pattern=`^#?[^#@<> ]+$`
	Channel string `json:"channel,omitempty"`

	// TokenSecret has the token of an app that may write there (scope chat:write), which begins with xoxb-. It is told to Slack alone.
	// +optional
	TokenSecret *ChannelSecret `json:"tokenSecret,omitempty"`

	// URLSecret has the url of an incoming webhook, which is a secret: who knows it can write there.
	// +optional
	URLSecret *ChannelSecret `json:"urlSecret,omitempty"`
}

// TeamsChannel is a channel of Microsoft Teams.
type TeamsChannel struct {
	// URLSecret has the url of a workflow that posts what it is sent to the channel (When a Teams webhook request is received). It is a
	// secret: who knows it can write there.
	// +required
	URLSecret ChannelSecret `json:"urlSecret"`
}

// EmailChannel says who gets mail. It is handed over to a server encrypted, or not at all.
//
// +kubebuilder:validation:XValidation:rule=`has(self.usernameSecret) == has(self.passwordSecret)`,message="who sends mail says a username and a password, or neither: set usernameSecret and passwordSecret",reason=FieldValueInvalid,fieldPath=".passwordSecret"
type EmailChannel struct {
	// Server takes mail by SMTP: its host and port, such as smtp.example.com:587. With port 465 the connection begins encrypted; with
	// any other, STARTTLS has to follow.
	// +required
	// +kubebuilder:validation:MaxLength=259
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$`
	Server string `json:"server"`

	// From is the address of the sender.
	// +required
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:Pattern=`^[^@\s<>(),;:"\\\[\]]+@[A-Za-z0-9.-]+$`
	From string `json:"from"`

	// To are the addresses of those who get it.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=254
	// +kubebuilder:validation:items:Pattern=`^[^@\s<>(),;:"\\\[\]]+@[A-Za-z0-9.-]+$`
	To []string `json:"to"`

	// UsernameSecret and PasswordSecret have the account by which the hub agent sends. The Secret also has the annotation
	// fleetflow.io/channel-server with the server: no channel of the name sends the password elsewhere.
	// +optional
	UsernameSecret *ChannelSecret `json:"usernameSecret,omitempty"`

	// PasswordSecret has the password of the account.
	// +optional
	PasswordSecret *ChannelSecret `json:"passwordSecret,omitempty"`

	// CAConfigMap has the certificates, in PEM, of the authorities that may vouch for the server, if not those that the hub agent's image
	// trusts.
	// +optional
	CAConfigMap *ChannelConfigMap `json:"caConfigMap,omitempty"`
}

// WebhookChannel is a server that takes messages as Standard Webhooks.
//
// +kubebuilder:validation:XValidation:rule=`self.url.startsWith("https://") || (has(self.allowPlainText) && self.allowPlainText)`,message="url has to begin with https://: others on the way could read the messages; allowPlainText: true accepts that",reason=FieldValueInvalid,fieldPath=".url"
type WebhookChannel struct {
	// URL is where the server is, without a query and without credentials. Addresses of the hub agent's own machine, link-local ones
	// and those of the hub's API server are refused when they are called, whatever name they have.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`self.matches("^https?://[^/?#@ ]+(/[^?#@ ]*)?$") && isURL(self)`,message="url must be like https://hooks.example.com/fleet, without a query, a fragment and credentials",reason=FieldValueInvalid
	URL string `json:"url"`

	// AllowPlainText accepts a url that begins with http://.
	// +optional
	AllowPlainText bool `json:"allowPlainText,omitempty"`

	// SigningSecret has one key or, while keys change, several with white space between them, with which messages are signed as Standard
	// Webhooks are: whsec_ and the key in base64.
	// +required
	SigningSecret ChannelSecret `json:"signingSecret"`

	// CAConfigMap has the certificates, in PEM, of the authorities that may vouch for the server, if not those that the hub agent's image
	// trusts.
	// +optional
	CAConfigMap *ChannelConfigMap `json:"caConfigMap,omitempty"`
}

// NotificationChannelStatus says whether messages arrive.
type NotificationChannelStatus struct {
	// Conditions: Accepted is False if the channel cannot be used, such as without its Secret. Ready is False then, too, and if the last
	// message did not arrive; before the first it is Unknown. Each says why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastDeliveryTime is when a message has arrived, to the minute.
	// +optional
	LastDeliveryTime *metav1.Time `json:"lastDeliveryTime,omitempty"`

	// LastTest is what has become of the message that kubectl fleet notify test has asked for last.
	// +optional
	LastTest *ChannelTest `json:"lastTest,omitempty"`
}

// ChannelTest is what has become of a message that was sent to see whether it arrives.
type ChannelTest struct {
	// ID is what the annotation fleetflow.io/test-message had when the message was asked for.
	// +required
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// Time is when it was sent.
	// +required
	Time metav1.Time `json:"time"`

	// Delivered tells whether it has arrived.
	// +optional
	Delivered bool `json:"delivered"`

	// Message says why it has not.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// NotificationChannels is what NotificationChannels are in URLs.
var NotificationChannels = schema.GroupResource{Group: GroupName, Resource: "notificationchannels"}

const (
	// ChannelLabel has, on a Secret, the name of the one NotificationChannel that may use it.
	ChannelLabel = GroupName + "/channel"
	// ChannelServerAnnotation has, on a Secret with an account, the server that may be told it: the user who writes the Secret says who
	// gets it, and not one who writes a NotificationChannel of the name.
	ChannelServerAnnotation = GroupName + "/channel-server"
	// TestMessageAnnotation asks, on a NotificationChannel, for a message to see whether it arrives: one for each value.
	TestMessageAnnotation = GroupName + "/test-message"
)

// Reasons of the conditions Accepted and Ready of a channel. Of one that is accepted, Accepted has ReasonAccepted. Those about Secrets,
// ConfigMaps and addresses are those of a MetricSource.
const (
	ReasonChannelReady       = "ChannelReady"       // the last message has arrived
	ReasonNotTried           = "NotTried"           // nothing was sent yet: whether messages arrive is unknown
	ReasonSecretNotForServer = "SecretNotForServer" // the account in the Secret is for another server than that of the channel
	ReasonInvalidSecret      = "InvalidSecret"      // what is in the Secret cannot be what the channel takes it for
	ReasonRefused            = "Refused"            // the server has refused a message, and will the next; or a mailbox was
)

// deliveryEvery is how exact LastDeliveryTime is: no message is worth a write.
const deliveryEvery = time.Minute

// NoteDelivery writes into the status that a message has arrived; changed is false if that is known well enough.
func (c *NotificationChannel) NoteDelivery(at time.Time) (changed bool) {
	if last := c.Status.LastDeliveryTime; last == nil || at.Sub(last.Time) >= deliveryEvery {
		c.Status.LastDeliveryTime = &metav1.Time{Time: at}
		changed = true
	}
	return meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: ConditionTypeReady, Status: metav1.ConditionTrue, Reason: ReasonChannelReady, Message: "The last message has arrived",
		ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(at),
	}) || changed
}

// NoteFailure writes into the status that a message has not arrived, and why.
func (c *NotificationChannel) NoteFailure(reason, why string, at time.Time) (changed bool) {
	return meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: ConditionTypeReady, Status: metav1.ConditionFalse, Reason: reason, Message: why,
		ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(at),
	})
}
