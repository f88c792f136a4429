// Command kinds writes what follows from which kinds there are: their registration and lists, the accessors of their
// conditions and, for the kinds that exist twice, the interfaces that both are spoken to by, with the constructors of
// Scope, which choose between the two. Run it in the folder of the API types, before controller-gen.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"text/template"
)

// group is an API group.
type group struct {
	// folder has the types of the group.
	folder        string
	Name, Version string
	Twins         []twins
	// Single are the kinds without a twin.
	Single []kind
}

// kind is a kind without a twin.
type kind struct {
	Name          string
	HasConditions bool
}

// twins are a cluster-scoped and a namespaced kind of one interface. Overrides have no Spec that both have.
type twins struct {
	Interface, ClusterScoped, Namespaced, Spec, Status, What string
}

// Kinds are both kinds.
func (t twins) Kinds() []kind {
	return []kind{{t.ClusterScoped, t.Status != ""}, {t.Namespaced, t.Status != ""}}
}

var groups = []group{
	{folder: "fleetflow/v1alpha1", Name: "fleetflow.io", Version: "v1alpha1",
		Single: []kind{{"PropagatedType", true}, {"RolloutHold", true}, {"RolloutWindow", true}, {"RolloutExemption", true},
			{"MetricSource", true}, {"StageAnalysis", true}, {"ClusterStageAnalysisRun", true}, {"StageAnalysisRun", true},
			{"MemberQuestion", true}, {"ClusterRehearsal", true}, {"Rehearsal", true}, {"AuditRecord", false}, {"AuditSink", true},
			{"NotificationChannel", true}, {"NotificationRule", true}}},
	{folder: "cluster/v1beta1", Name: "cluster.kubernetes-fleet.io", Version: "v1beta1",
		Single: []kind{{"MemberCluster", true}, {"InternalMemberCluster", true}}},
	{
		folder:  "placement/v1beta1",
		Name:    "placement.kubernetes-fleet.io",
		Version: "v1beta1",
		Twins: []twins{
			{"Placement", "ClusterResourcePlacement", "ResourcePlacement", "PlacementSpec", "PlacementStatus", "placement"},
			{"PolicySnapshot", "ClusterSchedulingPolicySnapshot", "SchedulingPolicySnapshot",
				"SchedulingPolicySnapshotSpec", "SchedulingPolicySnapshotStatus", "policy snapshot"},
			{"ResourceSnapshot", "ClusterResourceSnapshot", "ResourceSnapshot", "ResourceSnapshotSpec", "ResourceSnapshotStatus",
				"resource snapshot"},
			{"Binding", "ClusterResourceBinding", "ResourceBinding", "ResourceBindingSpec", "ResourceBindingStatus", "binding"},
			{"UpdateStrategy", "ClusterStagedUpdateStrategy", "StagedUpdateStrategy", "UpdateStrategySpec", "", "strategy"},
			{"UpdateRun", "ClusterStagedUpdateRun", "StagedUpdateRun", "UpdateRunSpec", "UpdateRunStatus", "update run"},
			{"ApprovalRequest", "ClusterApprovalRequest", "ApprovalRequest", "ApprovalRequestSpec", "ApprovalRequestStatus", "approval request"},
			{"Override", "ClusterResourceOverride", "ResourceOverride", "", "OverrideStatus", "override"},
			{"OverrideSnapshot", "ClusterResourceOverrideSnapshot", "ResourceOverrideSnapshot", "", "", "override snapshot"},
		},
		Single: []kind{
			{"ClusterResourcePlacementStatus", false}, {"ClusterResourceEnvelope", false}, {"ResourceEnvelope", false},
			{"ClusterResourcePlacementEviction", true}, {"ClusterResourcePlacementDisruptionBudget", false},
			{"Work", true}, {"AppliedWork", false},
		},
	},
}

//go:embed kinds.go.tmpl
var text string

func main() {
	file := template.Must(template.New("").Parse(text))
	for _, g := range groups {
		if err := write(file, g); err != nil {
			fmt.Fprintln(os.Stderr, "kinds:", err)
			os.Exit(1)
		}
	}
}

func write(file *template.Template, g group) error {
	out := &bytes.Buffer{}
	if err := file.Execute(out, g); err != nil {
		return fmt.Errorf("writing for %s: %w", g.folder, err)
	}
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return fmt.Errorf("formatting for %s: %w", g.folder, err)
	}
	return os.WriteFile(filepath.Join(g.folder, "zz_generated.kinds.go"), formatted, 0o644)
}
