package notification

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// telling is how records of a type are told: {run}, {stage} and {placement} stand for their names, in the sentence and in the command, and {name} for
// that of the object that the record is about.
type telling struct {
	mood       Mood
	text, next string
}

// Commands by which to look at a run.
const (
	lookWhy     = "kubectl fleet why run/{run}"
	lookStatus  = "kubectl fleet status run/{run}"
	lookRecords = "kubectl fleet records run/{run}"
	approve     = "kubectl fleet approve {run} --stage {stage}"
)

// Commands by which to look at other objects.
const (
	lookPlacement = "kubectl fleet status placement/{placement}"
	lookHolds     = "kubectl fleet get holds"
	lookMember    = "kubectl get memberclusters {name}"
)

// tellings are how records are told, by their type.
var tellings = map[fleetflowv1alpha1.AuditRecordType]telling{
	fleetflowv1alpha1.RecordRunCreated:     {Plain, "run {run} was created", lookStatus},
	fleetflowv1alpha1.RecordRunInitialized: {Plain, "run {run} has its plan", lookStatus},
	fleetflowv1alpha1.RecordRunRefused:     {Bad, "run {run} cannot begin", lookWhy},
	fleetflowv1alpha1.RecordRunHeld:        {Waits, "run {run} is held", lookWhy},
	fleetflowv1alpha1.RecordRunReleased:    {Good, "run {run} is not held any more", lookStatus},
	fleetflowv1alpha1.RecordRunStopped:     {Waits, "run {run} was stopped", "kubectl fleet resume {run}"},
	fleetflowv1alpha1.RecordRunResumed:     {Good, "run {run} goes on", lookStatus},
	fleetflowv1alpha1.RecordRunStuck:       {Bad, "run {run} is stuck", lookWhy},
	fleetflowv1alpha1.RecordRunSucceeded:   {Good, "run {run} has succeeded", lookRecords},
	fleetflowv1alpha1.RecordRunFailed:      {Bad, "run {run} has failed", lookWhy},
	fleetflowv1alpha1.RecordRunTakenOver:   {Waits, "run {run} ends for another", lookStatus},
	fleetflowv1alpha1.RecordRunAbandoned:   {Waits, "run {run} was deleted before its end", lookRecords},
	fleetflowv1alpha1.RecordRunDeleted:     {Plain, "run {run} was deleted", lookRecords},

	fleetflowv1alpha1.RecordStageStarted:   {Plain, "stage {stage} of run {run} has begun", lookStatus},
	fleetflowv1alpha1.RecordStageSucceeded: {Good, "stage {stage} of run {run} has succeeded", lookStatus},
	fleetflowv1alpha1.RecordStageSkipped:   {Plain, "stage {stage} of run {run} has no clusters", lookStatus},
	fleetflowv1alpha1.RecordStageFailed:    {Bad, "stage {stage} of run {run} has failed", lookWhy},

	fleetflowv1alpha1.RecordApprovalRequested: {Waits, "stage {stage} of run {run} waits for an approval", approve},
	fleetflowv1alpha1.RecordApprovalVoted:     {Waits, "stage {stage} of run {run} has a vote", lookStatus},
	fleetflowv1alpha1.RecordApprovalRejected:  {Bad, "stage {stage} of run {run} was rejected", lookStatus},
	fleetflowv1alpha1.RecordApprovalGiven:     {Good, "stage {stage} of run {run} was approved", lookStatus},
	fleetflowv1alpha1.RecordApprovalVoided:    {Bad, "an approval of stage {stage} of run {run} does not count", approve},

	fleetflowv1alpha1.RecordApprovalExpired: {Bad, "stage {stage} of run {run} was not approved in time", lookStatus},

	fleetflowv1alpha1.RecordClusterSkipped: {Waits, "run {run} goes on without a cluster, as it was asked to", lookStatus},
	fleetflowv1alpha1.RecordClusterRetried: {Plain, "run {run} tries a cluster again, as it was asked to", lookStatus},

	fleetflowv1alpha1.RecordAnalysisStarted:      {Plain, "the analysis of stage {stage} of run {run} has begun", lookStatus},
	fleetflowv1alpha1.RecordAnalysisPassed:       {Good, "the analysis of stage {stage} of run {run} has passed", lookStatus},
	fleetflowv1alpha1.RecordAnalysisFailed:       {Bad, "the analysis of stage {stage} of run {run} has failed", lookWhy},
	fleetflowv1alpha1.RecordAnalysisInconclusive: {Waits, "the analysis of stage {stage} of run {run} is inconclusive", lookWhy},
	fleetflowv1alpha1.RecordAnalysisError:        {Bad, "the analysis of stage {stage} of run {run} gives an error", lookWhy},
	fleetflowv1alpha1.RecordAnalysisWaived:       {Waits, "the analysis of stage {stage} of run {run} was waived", lookStatus},

	fleetflowv1alpha1.RecordPlacementCreated:   {Plain, "placement {name} was created", lookPlacement},
	fleetflowv1alpha1.RecordPlacementFound:     {Plain, "placement {name} is on record from now on", lookPlacement},
	fleetflowv1alpha1.RecordPlacementChanged:   {Plain, "placement {name} was changed", lookPlacement},
	fleetflowv1alpha1.RecordPlacementDeleted:   {Waits, "placement {name} was deleted", "kubectl fleet records placement/{name}"},
	fleetflowv1alpha1.RecordPlacementRolledOut: {Good, "a snapshot of placement {name} is available on all its clusters", lookPlacement},
	fleetflowv1alpha1.RecordPlacementFailed:    {Bad, "a snapshot of placement {name} could not be applied everywhere", lookPlacement},
	fleetflowv1alpha1.RecordSnapshotCreated:    {Plain, "placement {name} has a new snapshot", lookPlacement},

	fleetflowv1alpha1.RecordHoldSet:     {Waits, "hold {name} was set", lookHolds},
	fleetflowv1alpha1.RecordHoldLifted:  {Good, "hold {name} was lifted", lookHolds},
	fleetflowv1alpha1.RecordHoldExpired: {Good, "hold {name} has ended", lookHolds},

	fleetflowv1alpha1.RecordEvictionAsked:    {Plain, "eviction {name} was asked for", lookPlacement},
	fleetflowv1alpha1.RecordEvictionExecuted: {Plain, "eviction {name} was executed", lookPlacement},
	fleetflowv1alpha1.RecordEvictionRefused:  {Waits, "eviction {name} was refused", lookPlacement},

	fleetflowv1alpha1.RecordOverrideChanged: {Plain, "override {name} was changed", "kubectl fleet records --type override.changed"},

	fleetflowv1alpha1.RecordMemberJoined:       {Plain, "member cluster {name} has joined", lookMember},
	fleetflowv1alpha1.RecordMemberLeft:         {Plain, "member cluster {name} has left", "kubectl fleet records member/{name}"},
	fleetflowv1alpha1.RecordMemberForceRemoved: {Waits, "member cluster {name} was let go before its agent had left", "kubectl fleet records member/{name}"},
	fleetflowv1alpha1.RecordMemberLost:         {Bad, "member cluster {name} has not reported for too long", lookMember},
	fleetflowv1alpha1.RecordMemberBack:         {Good, "member cluster {name} is back", lookMember},

	fleetflowv1alpha1.RecordConfigRecordsDropped: {Bad, "records were deleted before they were delivered", "kubectl get auditsinks,notificationchannels"},
}

// tellingOf returns how a record is told. One of a type that this agent does not know is told by its type.
func tellingOf(record *fleetflowv1alpha1.AuditRecord) telling {
	if known, is := tellings[record.Spec.Type]; is {
		return known
	}
	return telling{Plain, string(record.Spec.Type) + " of {name}", "kubectl fleet records"}
}

func moodOf(record *fleetflowv1alpha1.AuditRecord) Mood { return tellingOf(record).mood }

// sentenceOf says what has happened, and where.
func sentenceOf(record *fleetflowv1alpha1.AuditRecord) string {
	spec := &record.Spec
	text := inserted(record, tellingOf(record).text)
	if spec.PlacementName != "" {
		text += " (placement " + named(spec.SubjectRef.Namespace, spec.PlacementName) + ")"
	}
	return text
}

// nextOf returns the command by which to look at a run, or to have it go on.
func nextOf(record *fleetflowv1alpha1.AuditRecord) string {
	text := inserted(record, tellingOf(record).next)
	if namespace := record.Spec.SubjectRef.Namespace; namespace != "" {
		text += " -n " + namespace
	}
	return text
}

func inserted(record *fleetflowv1alpha1.AuditRecord, text string) string {
	return strings.NewReplacer("{run}", shown(record.Spec.UpdateRunName), "{stage}", shown(record.Spec.StageName),
		"{placement}", shown(record.Spec.PlacementName), "{name}", shown(record.Spec.SubjectRef.Name)).Replace(text)
}

func named(namespace, name string) string {
	return strings.TrimPrefix(shown(namespace)+"/"+shown(name), "/")
}

// shown returns a text as it is told: on one line.
func shown(text string) string {
	return strings.Join(strings.Fields(clusterv1beta1.Printable(text)), " ")
}

func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// entryOf returns the entry about one record.
func entryOf(record *fleetflowv1alpha1.AuditRecord) Entry {
	spec := &record.Spec
	entry := Entry{Time: spec.Time.UTC(), What: inserted(record, tellingOf(record).text), Why: shown(spec.Message)}
	if spec.Actor != nil {
		entry.Who = shown(record.Actor())
	}
	if said := shown(spec.Comment); said != "" {
		entry.Why = strings.TrimPrefix(entry.Why+"; "+said, "; ")
	}
	return entry
}

// maxWhy is how much of what was said a line of a message has.
const maxWhy = 1024

// Line returns an entry as a text.
func (e *Entry) Line() string {
	if e.Custom != "" {
		return e.Custom
	}
	text := e.Time.Format(time.TimeOnly) + " UTC " + e.What
	if e.Who != "" {
		text += ", by " + e.Who
	}
	if e.Why != "" {
		text += ": " + clusterv1beta1.CutText(e.Why, maxWhy)
	}
	return text
}

// Lines returns what the message tells beyond its title.
func (m *Message) Lines() []string {
	var lines []string
	if m.Earlier > 0 {
		lines = append(lines, fmt.Sprintf("%d records before these are not shown", m.Earlier))
	}
	for i := range m.Entries {
		lines = append(lines, m.Entries[i].Line())
	}
	return lines
}

// runPath returns where the dashboard shows the run of a record.
func runPath(record *fleetflowv1alpha1.AuditRecord) string {
	if record.Spec.UpdateRunName == "" {
		return "/"
	}
	path := "/runs/" + url.PathEscape(record.Spec.UpdateRunName)
	if namespace := record.Spec.SubjectRef.Namespace; namespace != "" {
		path = "/ns/" + url.PathEscape(namespace) + path
	}
	return path
}

// linkTo returns the address of a page of the dashboard; empty if the channel does not know where it is.
func linkTo(channel *fleetflowv1alpha1.NotificationChannel, path string) string {
	if channel.Spec.DashboardURL == "" {
		return ""
	}
	return strings.TrimSuffix(channel.Spec.DashboardURL, "/") + path
}

// TestMessage is what kubectl fleet notify test has sent.
func TestMessage(channel *fleetflowv1alpha1.NotificationChannel, id string, now time.Time) Message {
	return Message{
		ID: "msg_test-" + id, Title: "Test of channel " + channel.Name, Mood: Good, Link: linkTo(channel, "/"),
		Entries: []Entry{{Time: now.UTC(), What: "messages of the fleet arrive here"}},
		Next:    "kubectl get notificationrules",
	}
}
