package auditsink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

// webhook is a server that takes events.
type webhook struct {
	client *outbound.Client
	server outbound.Server
}

// batchOfEvents is the type of a request with several events.
const batchOfEvents = "application/cloudevents-batch+json"

// Deliver sends events in one request, which has the same ID however often it is sent.
func (w *webhook) Deliver(ctx context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	events := make([]fleetflowv1alpha1.CloudEvent, len(records))
	for i := range records {
		events[i] = records[i].Spec.CloudEvent()
	}
	body, err := json.Marshal(events)
	if err != nil {
		return fmt.Errorf("writing the events: %w", err)
	}
	answer, failure, err := w.client.Post(ctx, w.server, outbound.Request{ContentType: batchOfEvents, Body: body, ID: idOf(records)}, delivery.Bounds())
	if err != nil {
		return fmt.Errorf("preparing the request: %w", err)
	}
	return delivery.Judge("the sink", answer, failure, w.client.Clock.Now())
}

// idOf returns the ID of a message with some records: that of the record, if there is one.
func idOf(records []fleetflowv1alpha1.AuditRecord) string {
	if len(records) == 1 {
		return records[0].Spec.ID
	}
	sum := sha256.New()
	for i := range records {
		_, _ = sum.Write([]byte(records[i].Spec.ID)) // a hash takes all
	}
	return hex.EncodeToString(sum.Sum(nil))
}
