package fleetview

import (
	"strconv"
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// RecordColumns are those of AuditRecords.
var RecordColumns = []Column[fleetflowv1alpha1.AuditRecord]{
	{Name: "Time", Text: func(r fleetflowv1alpha1.AuditRecord) string { return r.Spec.Time.UTC().Format(time.RFC3339) }},
	{Name: "Object", Text: func(r fleetflowv1alpha1.AuditRecord) string { return subjectText(r.Spec.SubjectRef) }},
	{Name: "Type", Text: func(r fleetflowv1alpha1.AuditRecord) string { return string(r.Spec.Type) }},
	{Name: "Stage", Text: func(r fleetflowv1alpha1.AuditRecord) string { return r.Spec.StageName }},
	{Name: "By", Text: func(r fleetflowv1alpha1.AuditRecord) string { return r.Actor() }},
	{Name: "Comment", Text: func(r fleetflowv1alpha1.AuditRecord) string { return r.Spec.Comment }},
	{Name: "Placement", Wide: true, Text: func(r fleetflowv1alpha1.AuditRecord) string { return r.Spec.PlacementName }},
	{Name: "Plan", Wide: true, Text: func(r fleetflowv1alpha1.AuditRecord) string { return r.Spec.PlanHash }},
	{Name: "Message", Wide: true, Text: func(r fleetflowv1alpha1.AuditRecord) string { return r.Spec.Message }},
}

// ChainColumns are those of what a look at the records of each subject has found.
var ChainColumns = []Column[fleetflowv1alpha1.AuditChain]{
	{Name: "Object", Text: func(c fleetflowv1alpha1.AuditChain) string { return subjectText(c.Subject) }},
	{Name: "Records", Text: func(c fleetflowv1alpha1.AuditChain) string { return strconv.FormatInt(c.Records, 10) }},
	{Name: "From", Text: func(c fleetflowv1alpha1.AuditChain) string { return strconv.FormatInt(c.First, 10) }},
	{Name: "To", Text: func(c fleetflowv1alpha1.AuditChain) string { return strconv.FormatInt(c.Last, 10) }},
	{Name: "Whole", Text: func(c fleetflowv1alpha1.AuditChain) string {
		if len(c.Breaks) > 0 {
			return "no"
		}
		return "yes"
	}},
	{Name: "Digest of the last", Text: func(c fleetflowv1alpha1.AuditChain) string { return c.Digest }},
}

// shortKinds are what objects of which there are records are called; an update run is called by its name alone.
var shortKinds = map[string]string{
	"ClusterStagedUpdateRun": "", "StagedUpdateRun": "", "ClusterResourcePlacement": "placement/", "ResourcePlacement": "placement/", "MemberCluster": "member/",
	"RolloutHold": "hold/", "ClusterResourcePlacementEviction": "eviction/", "ClusterResourceOverride": "override/", "ResourceOverride": "override/",
}

func subjectText(of fleetflowv1alpha1.AuditSubjectReference) string {
	name := of.Name
	if of.Namespace != "" {
		name = of.Namespace + "/" + name
	}
	return shortKinds[of.Kind] + name
}
