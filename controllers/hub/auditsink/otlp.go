package auditsink

import (
	"context"
	"fmt"
	"slices"
	"strings"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

// collector takes logs of OpenTelemetry by HTTP.
type collector struct {
	client *outbound.Client
	server outbound.Server
}

// logsPath is where collectors take logs.
const logsPath = "v1/logs"

// Deliver sends a log for each record.
func (c *collector) Deliver(ctx context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	now := c.client.Clock.Now()
	body, err := proto.Marshal(logsOf(records, uint64(max(now.UnixNano(), 0))))
	if err != nil {
		return fmt.Errorf("writing the logs: %w", err)
	}
	answer, failure, err := c.client.Post(ctx, c.server, outbound.Request{Path: logsPath, ContentType: "application/x-protobuf", Body: body}, delivery.Bounds())
	if err != nil {
		return fmt.Errorf("preparing the request: %w", err)
	}
	said := &collectorlogs.ExportLogsServiceResponse{}
	if failure == nil && answer.Status >= 200 && answer.Status < 300 && proto.Unmarshal(answer.Body, said) == nil {
		return rejected(said, answer.Credentials)
	}
	if answer != nil && strings.HasPrefix(answer.Header.Get("Content-Type"), "application/x-protobuf") {
		answer.Body = nil // a message for programs
	}
	return delivery.Judge("the collector", answer, failure, now)
}

// rejected returns what a collector says that it has not taken of what it has.
func rejected(said *collectorlogs.ExportLogsServiceResponse, credentials []string) error {
	partial := said.GetPartialSuccess()
	if partial.GetRejectedLogRecords() == 0 {
		return nil
	}
	return &delivery.RefusedError{
		Content: true,
		Why: fmt.Sprintf("the collector rejects %d of the logs: %s", partial.GetRejectedLogRecords(),
			outbound.Words(partial.GetErrorMessage(), delivery.MaxWords, credentials)),
	}
}

// logsOf returns the logs of records, as they are seen at a time.
func logsOf(records []fleetflowv1alpha1.AuditRecord, observed uint64) *collectorlogs.ExportLogsServiceRequest {
	all := make([]*logs.LogRecord, len(records))
	for i := range records {
		all[i] = logOf(&records[i].Spec, observed)
	}
	return &collectorlogs.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{
		Resource:  &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "fleetflow-hub-agent")}},
		ScopeLogs: []*logs.ScopeLogs{{Scope: &common.InstrumentationScope{Name: "fleetflow.io/audit"}, LogRecords: all}},
	}}}
}

// logOf returns the log of a record. Its fields are attributes, of which a receiver knows by log.record.uid whether it has the record.
func logOf(spec *fleetflowv1alpha1.AuditRecordSpec, observed uint64) *logs.LogRecord {
	actor := fleetflowv1alpha1.AuditActor{Username: fleetflowv1alpha1.AuditedFleet}
	if spec.Actor != nil {
		actor = *spec.Actor
	}
	attributes := []*common.KeyValue{
		text("log.record.uid", spec.ID),
		text("fleetflow.subject.api_version", spec.SubjectRef.APIVersion), text("fleetflow.subject.kind", spec.SubjectRef.Kind),
		text("fleetflow.subject.namespace", spec.SubjectRef.Namespace), text("fleetflow.subject.name", spec.SubjectRef.Name),
		text("fleetflow.subject.uid", spec.SubjectRef.UID),
		text("fleetflow.placement", spec.PlacementName), text("fleetflow.update_run", spec.UpdateRunName), text("fleetflow.stage", spec.StageName),
		text("fleetflow.actor.username", actor.Username), flag("fleetflow.actor.verified", actor.Verified), text("fleetflow.actor.channel", actor.Channel),
		text("fleetflow.actor.groups", strings.Join(actor.Groups, ", ")),
		text("fleetflow.comment", spec.Comment), text("fleetflow.plan_hash", spec.PlanHash),
		number("fleetflow.sequence", spec.Sequence), text("fleetflow.previous", spec.Previous),
	}
	for name, value := range spec.Data {
		attributes = append(attributes, text("fleetflow.data."+name, string(value)))
	}
	attributes = slices.DeleteFunc(attributes, func(a *common.KeyValue) bool {
		said, is := a.GetValue().GetValue().(*common.AnyValue_StringValue)
		return is && said.StringValue == ""
	})
	slices.SortFunc(attributes, func(a, b *common.KeyValue) int { return strings.Compare(a.GetKey(), b.GetKey()) })
	severity := severityOf(spec.Type)
	body := spec.Message
	if body == "" {
		body = string(spec.Type)
	}
	return &logs.LogRecord{
		TimeUnixNano: uint64(max(spec.Time.UnixNano(), 0)), ObservedTimeUnixNano: observed, EventName: "io.fleetflow." + string(spec.Type),
		SeverityNumber: severity, SeverityText: strings.TrimPrefix(severity.String(), "SEVERITY_NUMBER_"),
		Body:       text("", body).GetValue(),
		Attributes: attributes,
	}
}

// severityOf returns how grave a fact is.
func severityOf(of fleetflowv1alpha1.AuditRecordType) logs.SeverityNumber {
	switch of {
	case fleetflowv1alpha1.RecordRunFailed, fleetflowv1alpha1.RecordStageFailed, fleetflowv1alpha1.RecordAnalysisFailed, fleetflowv1alpha1.RecordAnalysisError,
		fleetflowv1alpha1.RecordPlacementFailed:
		return logs.SeverityNumber_SEVERITY_NUMBER_ERROR
	case fleetflowv1alpha1.RecordRunRefused, fleetflowv1alpha1.RecordRunHeld, fleetflowv1alpha1.RecordRunStuck, fleetflowv1alpha1.RecordRunAbandoned,
		fleetflowv1alpha1.RecordRunStopped, fleetflowv1alpha1.RecordClusterSkipped,
		fleetflowv1alpha1.RecordApprovalRejected, fleetflowv1alpha1.RecordApprovalVoided, fleetflowv1alpha1.RecordApprovalExpired,
		fleetflowv1alpha1.RecordAnalysisInconclusive, fleetflowv1alpha1.RecordEvictionRefused,
		fleetflowv1alpha1.RecordMemberLost, fleetflowv1alpha1.RecordMemberForceRemoved, fleetflowv1alpha1.RecordConfigRecordsDropped:
		return logs.SeverityNumber_SEVERITY_NUMBER_WARN
	default:
		return logs.SeverityNumber_SEVERITY_NUMBER_INFO
	}
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func flag(key string, value bool) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: value}}}
}

func number(key string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}
