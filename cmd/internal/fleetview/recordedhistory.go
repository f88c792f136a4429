package fleetview

import (
	"cmp"
	"strconv"
	"strings"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// toldBeside are the types of facts that no object tells, even while it is there.
var toldBeside = map[fleetflowv1alpha1.AuditRecordType]bool{
	fleetflowv1alpha1.RecordRunStopped: true, fleetflowv1alpha1.RecordRunResumed: true, fleetflowv1alpha1.RecordRunTakenOver: true,
	fleetflowv1alpha1.RecordClusterSkipped: true, fleetflowv1alpha1.RecordClusterRetried: true,
	fleetflowv1alpha1.RecordPlacementChanged: true, fleetflowv1alpha1.RecordPlacementRolledOut: true, fleetflowv1alpha1.RecordPlacementFailed: true,
	fleetflowv1alpha1.RecordOverrideChanged: true,
}

// addRecorded adds what is on record to what the objects tell that are still there: all of those that are gone, and of the others what they
// do not tell.
func addRecorded(facts HistoryFacts, entries []Entry) []Entry {
	there := map[string]bool{string(facts.Placement.Object.GetUID()): true}
	for _, run := range facts.Runs {
		there[string(run.Object.GetUID())] = true
	}
	for i := range facts.Evictions {
		there[string(facts.Evictions[i].UID)] = true
	}
	snapshots := map[string]bool{}
	for _, part := range facts.Resources {
		snapshots[strconv.Itoa(part.Index)] = true
	}
	for i := range facts.Records {
		record := &facts.Records[i]
		spec := &record.Spec
		switch isThere := there[spec.SubjectRef.UID]; {
		case isThere && spec.Type == fleetflowv1alpha1.RecordPlacementCreated:
			entries[0].By, entries[0].Channel, entries[0].Verified = senderOf(record)
		case isThere && spec.Type == fleetflowv1alpha1.RecordSnapshotCreated && snapshots[string(spec.Data["snapshot"])]:
		case !isThere, toldBeside[spec.Type], spec.Type == fleetflowv1alpha1.RecordSnapshotCreated:
			entries = append(entries, recordedEntry(record))
		}
	}
	return entries
}

// recordedEntry returns what a record tells.
func recordedEntry(record *fleetflowv1alpha1.AuditRecord) Entry {
	spec := &record.Spec
	subject, deed, _ := strings.Cut(string(spec.Type), ".")
	entry := Entry{At: spec.Time.Time, What: aboutRun, Name: spec.SubjectRef.Name, Comment: spec.Comment, PlanHash: spec.PlanHash, Recorded: true, bad: failures[spec.Type]}
	switch subject {
	case "approval":
		entry.What = "approval"
		entry.Name = cmp.Or(string(spec.Data["approvalRequest"]), entry.Name)
		entry.Text = "stage " + spec.StageName + " " + approvalWords[spec.Type]
	case "stage":
		entry.Text = "stage " + spec.StageName + " " + deed
	case "analysis":
		entry.Text = "analysis of stage " + spec.StageName + " " + deed
	case "cluster":
		entry.Text = deedsOfClusters[spec.Type] + " " + string(spec.Data["cluster"])
	case "placement":
		entry.What = "placement"
		entry.Text = wordsOfPlacements(spec)
	case "snapshot":
		entry.What = "snapshot"
		entry.Text = "snapshot " + string(spec.Data["snapshot"]) + " taken"
	case "override":
		entry.What = "placement"
		entry.Text = "override " + spec.SubjectRef.Name + " " + string(spec.Data["change"])
	case "eviction":
		entry.What = "eviction"
		entry.Text = "of " + string(spec.Data["cluster"]) + " " + deed
	case "hold":
		entry.What = aboutHold
		entry.Text = wordsOfHolds[spec.Type]
	case "member":
		entry.What = aboutMember
		entry.Text = wordsOfMembers[spec.Type] + withPrefix(": ", spec.Message)
	default:
		entry.Text = deed
		if snapshot := spec.Data["askedSnapshot"]; snapshot != "" {
			entry.Text += " for snapshot " + string(snapshot)
		}
		if strategy := spec.Data["strategy"]; strategy != "" {
			entry.Text += " with strategy " + string(strategy)
		}
		if spec.Message != "" {
			entry.Text += ": " + spec.Message
		}
	}
	entry.By, entry.Channel, entry.Verified = senderOf(record)
	return entry
}

// failures are the types of facts that say that something has gone wrong.
var failures = map[fleetflowv1alpha1.AuditRecordType]bool{
	fleetflowv1alpha1.RecordRunRefused: true, fleetflowv1alpha1.RecordRunStuck: true, fleetflowv1alpha1.RecordRunFailed: true,
	fleetflowv1alpha1.RecordStageFailed: true, fleetflowv1alpha1.RecordAnalysisFailed: true, fleetflowv1alpha1.RecordAnalysisError: true,
	fleetflowv1alpha1.RecordPlacementFailed: true, fleetflowv1alpha1.RecordMemberLost: true,
}

// wordsOfHolds and wordsOfMembers are what records say of them.
var (
	wordsOfHolds = map[fleetflowv1alpha1.AuditRecordType]string{
		fleetflowv1alpha1.RecordHoldSet: "stops the line", fleetflowv1alpha1.RecordHoldLifted: "lifted", fleetflowv1alpha1.RecordHoldExpired: "has expired",
	}
	wordsOfMembers = map[fleetflowv1alpha1.AuditRecordType]string{
		fleetflowv1alpha1.RecordMemberJoined: "joined", fleetflowv1alpha1.RecordMemberLeft: "has left the fleet",
		fleetflowv1alpha1.RecordMemberForceRemoved: "let go before its agent had left", fleetflowv1alpha1.RecordMemberLost: "lost", fleetflowv1alpha1.RecordMemberBack: "back",
	}
)

// approvalWords are what records of approvals say of their stage.
var approvalWords = map[fleetflowv1alpha1.AuditRecordType]string{
	fleetflowv1alpha1.RecordApprovalRequested: "waits for an approval", fleetflowv1alpha1.RecordApprovalGiven: "approved",
	fleetflowv1alpha1.RecordApprovalVoted: "has a vote", fleetflowv1alpha1.RecordApprovalRejected: "rejected",
	fleetflowv1alpha1.RecordApprovalVoided: "has lost its approval", fleetflowv1alpha1.RecordApprovalExpired: "was not approved in time",
}

// deedsOfClusters are what runs were asked to do about a cluster.
var deedsOfClusters = map[fleetflowv1alpha1.AuditRecordType]string{
	fleetflowv1alpha1.RecordClusterSkipped: "asked to go on without", fleetflowv1alpha1.RecordClusterRetried: "asked to retry",
}

func wordsOfPlacements(spec *fleetflowv1alpha1.AuditRecordSpec) string {
	switch snapshot := string(spec.Data["snapshot"]); spec.Type {
	case fleetflowv1alpha1.RecordPlacementRolledOut:
		return "snapshot " + snapshot + " rolled out"
	case fleetflowv1alpha1.RecordPlacementFailed:
		return "snapshot " + snapshot + " failed: " + spec.Message
	default:
		_, deed, _ := strings.Cut(string(spec.Type), ".")
		return deed
	}
}

// senderOf returns who has done what is on record. What the fleet does by itself names no user.
func senderOf(record *fleetflowv1alpha1.AuditRecord) (by string, channel placementv1beta1.ApprovalChannel, verified bool) {
	actor := record.Spec.Actor
	switch {
	case actor == nil:
		return "", "", false
	case actor.Channel == "":
		return record.Actor(), "", actor.Verified
	}
	return actor.Username, placementv1beta1.ApprovalChannel(actor.Channel), actor.Verified
}
