package notification

import (
	"encoding/json"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// webhookType is what Standard Webhooks call the type of a message.
const webhookType = "fleetflow.notification"

// webhookMessage is a message as a Standard Webhook has it.
type webhookMessage struct {
	Type string      `json:"type"`
	Time time.Time   `json:"timestamp"`
	Data webhookData `json:"data"`
}

type webhookData struct {
	ID      string   `json:"id"`
	Channel string   `json:"channel"`
	Mood    string   `json:"mood"`
	Title   string   `json:"title"`
	Lines   []string `json:"lines"`
	Next    string   `json:"next"`
	Link    string   `json:"link,omitempty"`
	// Reminder is how often the records were told before; left out the first time.
	Reminder int32 `json:"reminder,omitempty"`
	// Records are those that the message tells, at most 100 of them: Count is how many there are.
	Count   int             `json:"count"`
	Records []webhookRecord `json:"records,omitempty"`
}

// webhookRecord is what programs need of a record: they can ask the hub for the rest by its name.
type webhookRecord struct {
	Name          string                            `json:"name"`
	ID            string                            `json:"id"`
	Type          fleetflowv1alpha1.AuditRecordType `json:"type"`
	Time          time.Time                         `json:"time"`
	Namespace     string                            `json:"namespace,omitempty"`
	PlacementName string                            `json:"placementName,omitempty"`
	UpdateRunName string                            `json:"updateRunName,omitempty"`
	StageName     string                            `json:"stageName,omitempty"`
}

// maxWebhookRecords is how many records a message to a webhook names.
const maxWebhookRecords = 100

var moods = map[Mood]string{Plain: "Plain", Good: "Good", Waits: "Waits", Bad: "Bad"}

// webhookBody returns a message as a Standard Webhook has it. It is the same, to the byte, each time that it is sent.
func webhookBody(channel string, message *Message) ([]byte, error) {
	data := webhookData{
		ID: message.ID, Channel: channel, Mood: moods[message.Mood], Title: message.Title, Lines: message.Lines(), Next: message.Next, Link: message.Link,
		Reminder: message.Reminder,
		Count:    len(message.Records),
	}
	for _, record := range message.Records[:min(len(message.Records), maxWebhookRecords)] {
		spec := &record.Spec
		data.Records = append(data.Records, webhookRecord{
			Name: record.Name, ID: spec.ID, Type: spec.Type, Time: spec.Time.UTC(), Namespace: spec.SubjectRef.Namespace,
			PlacementName: spec.PlacementName, UpdateRunName: spec.UpdateRunName, StageName: spec.StageName,
		})
	}
	return json.Marshal(webhookMessage{Type: webhookType, Time: message.Time(), Data: data})
}
