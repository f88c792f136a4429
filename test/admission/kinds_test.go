//go:build integration

package admission

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served is what clients find of a kind.
type served struct {
	versions   string
	namespaced bool
	short      string
	// columns are those of `kubectl get`, wide the further ones of `-o wide`; Name and Age go without saying.
	columns, wide string
}

const (
	clusterGroup   = "cluster.kubernetes-fleet.io"
	placementGroup = "placement.kubernetes-fleet.io"
	ownGroup       = "fleetflow.io"

	stable    = "v1 v1beta1"
	all       = "v1 v1beta1 v1alpha1"
	onlyBeta  = "v1beta1"
	onlyAlpha = "v1alpha1"

	ofPlacement     = "Gen Scheduled Scheduled-Gen Available Available-Gen Updated"
	ofPlacementWide = "Type Work-Synchronized Work-Synchronized-Gen"
	ofRun           = "Placement Resource-Snapshot Policy-Snapshot Initialized Succeeded Reason Updated"
	ofRunWide       = "Resource-Snapshot-Index Policy-Snapshot-Index Progressing Strategy"
)

// kinds are all kinds of the three groups.
var kinds = map[string]served{
	"MemberCluster": {versions: stable, short: "cluster mc",
		columns: "Joined Member-Agent-Last-Seen Node-Count Available-CPU Available-Memory Healthy", wide: "Allocatable-CPU Allocatable-Memory"},
	"InternalMemberCluster": {versions: stable, namespaced: true, short: "imc", columns: "State Joined Member-Agent-Last-Seen"},

	"ClusterResourcePlacement":        {versions: stable, short: "crp", columns: ofPlacement, wide: ofPlacementWide},
	"ResourcePlacement":               {versions: stable, namespaced: true, short: "rp", columns: ofPlacement, wide: ofPlacementWide},
	"ClusterResourcePlacementStatus":  {versions: stable, namespaced: true, short: "crps", columns: "Resource-Index Last-Updated"},
	"ClusterResourceBinding":          {versions: stable, short: "crb rb", columns: "WorkSynchronized ResourcesApplied", wide: "ResourceAvailable"},
	"ResourceBinding":                 {versions: onlyBeta, namespaced: true, columns: "WorkSynchronized ResourcesApplied", wide: "ResourceAvailable"},
	"ClusterResourceSnapshot":         {versions: stable, short: "crs", columns: "Gen"},
	"ResourceSnapshot":                {versions: onlyBeta, namespaced: true, columns: "Gen"},
	"ClusterSchedulingPolicySnapshot": {versions: stable, short: "csps", columns: "Gen"},
	"SchedulingPolicySnapshot":        {versions: onlyBeta, namespaced: true, short: "sps", columns: "Gen"},
	"Work":                            {versions: stable, namespaced: true},
	"AppliedWork":                     {versions: stable},

	"ClusterResourceOverride":         {versions: all, columns: "Placement Valid", wide: "Reason"},
	"ResourceOverride":                {versions: all, namespaced: true, columns: "Placement Valid", wide: "Reason"},
	"ClusterResourceOverrideSnapshot": {versions: all},
	"ResourceOverrideSnapshot":        {versions: all, namespaced: true},
	"ClusterResourceEnvelope":         {versions: onlyBeta},
	"ResourceEnvelope":                {versions: onlyBeta, namespaced: true},

	"ClusterStagedUpdateRun":      {versions: all, short: "csur crsur", columns: ofRun, wide: ofRunWide},
	"StagedUpdateRun":             {versions: stable, namespaced: true, short: "sur", columns: ofRun, wide: ofRunWide},
	"ClusterStagedUpdateStrategy": {versions: all, short: "csus", columns: "Stages"},
	"StagedUpdateStrategy":        {versions: stable, namespaced: true, short: "sus", columns: "Stages"},
	"ClusterApprovalRequest":      {versions: all, short: "careq", columns: "Update-Run Stage Approved ApprovalAccepted"},
	"ApprovalRequest":             {versions: stable, namespaced: true, short: "areq", columns: "Update-Run Stage Approved ApprovalAccepted"},

	"ClusterResourcePlacementEviction":         {versions: all, short: "crpe", columns: "Valid Executed Placement Cluster Age", wide: "Message"},
	"ClusterResourcePlacementDisruptionBudget": {versions: all, short: "crpdb"},

	"PropagatedType":          {versions: onlyAlpha, short: "pt", columns: "Propagation Accepted Placements", wide: "Reason"},
	"RolloutWindow":           {versions: onlyAlpha, short: "rwin", columns: "Type Scope Active Starts Next-Transition Clusters Accepted", wide: "Zone Message"},
	"RolloutExemption":        {versions: onlyAlpha, short: "rex", columns: "Kind Target Exempt-From Created-By Effective Expires", wide: "Accepted Namespace Ticket Message"},
	"MetricSource":            {versions: onlyAlpha, short: "msrc", columns: "Type Accepted Ready", wide: "URL"},
	"NotificationChannel":     {versions: onlyAlpha, short: "nchan", columns: "Type Accepted Ready Last-Delivery", wide: "Message"},
	"NotificationRule":        {versions: onlyAlpha, short: "nrule", columns: "Accepted Ready Channels", wide: "Message"},
	"StageAnalysis":           {versions: onlyAlpha, short: "stan", columns: "Metrics Accepted"},
	"ClusterStageAnalysisRun": {versions: onlyAlpha, short: "cstar", columns: "Run Stage Attempt Succeeded Reason", wide: "Message"},
	"StageAnalysisRun":        {namespaced: true, versions: onlyAlpha, short: "star", columns: "Run Stage Attempt Succeeded Reason", wide: "Message"},
	"MemberQuestion":          {namespaced: true, versions: onlyAlpha, short: "mq", columns: "Type Answered Reason Deadline"},
	"ClusterRehearsal":        {versions: onlyAlpha, short: "creh", columns: "Placement Revision Clusters Answered Refused Unknown Completed", wide: "Message"},
	"Rehearsal":               {namespaced: true, versions: onlyAlpha, short: "reh", columns: "Placement Revision Clusters Answered Refused Unknown Completed", wide: "Message"},
	"AuditRecord":             {versions: onlyAlpha, short: "arec", columns: "Time Type Update-Run Stage By Sequence", wide: "Namespace Verified Message"},
	"AuditSink":               {versions: onlyAlpha, short: "asink", columns: "Type Ready Reason Delivered Pending Oldest-Pending", wide: "Last-Error"},
	"RolloutHold":             {versions: onlyAlpha, short: "rhold", columns: "Effective Quiet Held-Runs Held-Placements In-Flight Expires", wide: "Accepted Message"},
}

func groupOf(kind string) string {
	if strings.HasSuffix(kind, "MemberCluster") {
		return clusterGroup
	}
	if kinds[kind].versions == onlyAlpha {
		return ownGroup
	}
	return placementGroup
}

// category is the second category of a kind; the first is fleet.
func category(group string) string {
	if group == clusterGroup {
		return "fleet-cluster"
	}
	return "fleet-placement"
}

func TestEveryKindIsFound(t *testing.T) {
	for kind, want := range kinds {
		t.Run(kind, func(t *testing.T) {
			group := groupOf(kind)
			assert.ElementsMatch(t, strings.Fields(want.versions), versionsOf(t, schema.GroupVersionKind{Group: group, Kind: kind}))
			for version := range strings.FieldsSeq(want.versions) {
				found := discovered(t, group+"/"+version, kind)
				assert.Equal(t, want.namespaced, found.Namespaced, "%s is namespaced", version)
				assert.Subset(t, found.ShortNames, strings.Fields(want.short), "short names in %s", version)
				assert.ElementsMatch(t, []string{"fleet", category(group)}, found.Categories, "categories in %s", version)
			}
		})
	}
}

func TestNoOtherKindIsServed(t *testing.T) {
	_, lists, err := admin.discovery.ServerGroupsAndResources()
	require.NoError(t, err)
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, found := range list.APIResources {
			if isOurs(group.Group) && !strings.Contains(found.Name, "/") {
				assert.Contains(t, kinds, found.Kind, list.GroupVersion)
			}
		}
	}
}

func TestNoShortNameIsAmbiguous(t *testing.T) {
	owner := map[string]string{}
	for kind, served := range kinds {
		version := strings.Fields(served.versions)
		for _, name := range discovered(t, groupOf(kind)+"/"+version[len(version)-1], kind).ShortNames {
			assert.Empty(t, owner[name], "%s and %s are both called %s", kind, owner[name], name)
			owner[name] = kind
		}
	}
}

func TestEveryKindPrintsItsColumns(t *testing.T) {
	for kind, want := range kinds {
		for version := range strings.FieldsSeq(want.versions) {
			t.Run(kind+" in "+version, func(t *testing.T) {
				columns := printed(t, groupOf(kind), version, discovered(t, groupOf(kind)+"/"+version, kind).Name).ColumnDefinitions
				assert.Equal(t, "Name", columns[0].Name)
				assert.Subset(t, names(columns, 0), strings.Fields(want.columns))
				assert.Subset(t, names(columns, 1), append(strings.Fields(want.wide), "Age"))
			})
		}
	}
}

// A column that looks at the wrong field is empty, which the columns' names do not tell.
func TestColumnsShowWhatAnObjectSays(t *testing.T) {
	for resource, one := range map[string]struct {
		group, manifest, status string
		want                    map[string]string
	}{
		"memberclusters": {clusterGroup, `
kind: MemberCluster
metadata: {name: columns}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: columns}}
`, `
conditions:
- {type: Joined, status: "True", reason: Joined, message: "", lastTransitionTime: "2025-03-12T23:24:00Z"}
- {type: Healthy, status: Unknown, reason: MemberClusterHeartbeatMissed, message: "", lastTransitionTime: "2025-03-12T23:24:00Z"}
properties: {kubernetes-fleet.io/node-count: {value: "7", observationTime: "2025-03-12T23:24:00Z"}}
resourceUsage: {available: {cpu: 5, memory: 6Gi}, allocatable: {cpu: 8, memory: 9Gi}}
agentStatus: [{type: MemberAgent, lastReceivedHeartbeat: "2025-03-12T23:24:00Z"}]
`, map[string]string{
			"Joined": "True", "Node-Count": "7", "Available-CPU": "5", "Available-Memory": "6Gi",
			"Allocatable-CPU": "8", "Allocatable-Memory": "9Gi", "Healthy": "Unknown", "Member-Agent-Last-Seen": "",
		}},
		"internalmemberclusters": {clusterGroup, `
kind: InternalMemberCluster
metadata: {name: columns, namespace: default}
spec: {state: Join}
`, `
agentStatus:
- type: MemberAgent
  lastReceivedHeartbeat: "2025-03-12T23:24:00Z"
  conditions: [{type: Joined, status: "True", reason: Joined, message: "", lastTransitionTime: "2025-03-12T23:24:00Z"}]
`, map[string]string{"State": "Join", "Joined": "True", "Member-Agent-Last-Seen": ""}},
		"clusterstagedupdateruns": {placementGroup, `
kind: ClusterStagedUpdateRun
metadata: {name: columns}
spec: {placementName: web, stagedRolloutStrategyName: careful}
`, `
conditions: [{type: Progressing, status: "False", reason: UpdateRunWaiting, message: "", lastTransitionTime: "2025-03-12T23:24:00Z"}]
`, map[string]string{"Placement": "web", "Reason": "UpdateRunWaiting", "Strategy": "careful"}},
		"clusterresourceplacementevictions": {placementGroup, `
kind: ClusterResourcePlacementEviction
metadata: {name: columns}
spec: {placementName: web, clusterName: member-1}
`, `
conditions:
- {type: Valid, status: "True", reason: Valid, message: "", lastTransitionTime: "2025-03-12T23:24:00Z"}
- {type: Executed, status: "False", reason: Blocked, message: "the budget forbids it", lastTransitionTime: "2025-03-12T23:24:00Z"}
`, map[string]string{"Placement": "web", "Cluster": "member-1", "Valid": "True", "Executed": "False", "Message": "the budget forbids it"}},
		"resourceoverrides": {placementGroup, `
kind: ResourceOverride
metadata: {name: columns, namespace: default}
spec:
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: a}]
  policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}
`, `
conditions: [{type: Valid, status: "False", reason: OverrideConflict, message: "", lastTransitionTime: "2025-03-12T23:24:00Z"}]
`, map[string]string{"Valid": "False", "Reason": "OverrideConflict"}},
	} {
		t.Run(resource, func(t *testing.T) {
			object := admin.create(t, "apiVersion: "+one.group+"/v1"+one.manifest)
			require.NoError(t, setStatus(t, object, one.status))
			cells := map[string]any{}
			answer := printed(t, one.group, "v1", resource)
			for _, row := range answer.Rows {
				if row.Cells[0] != "columns" {
					continue
				}
				for i, column := range answer.ColumnDefinitions {
					cells[column.Name] = row.Cells[i]
				}
			}
			for column, want := range one.want {
				if want != "" {
					assert.Equal(t, want, cells[column], column)
				}
				assert.NotContains(t, []any{nil, "<unknown>", ""}, cells[column], column)
			}
		})
	}
}

func discovered(t *testing.T, groupVersion, kind string) metav1.APIResource {
	t.Helper()
	list, err := admin.discovery.ServerResourcesForGroupVersion(groupVersion)
	require.NoError(t, err)
	i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Kind == kind && !strings.Contains(r.Name, "/")
	})
	require.GreaterOrEqual(t, i, 0, "%s is not served in %s", kind, groupVersion)
	return list.APIResources[i]
}

// printed returns what `kubectl get` prints of all objects of a kind.
func printed(t *testing.T, group, version, resource string) *metav1.Table {
	t.Helper()
	answer := &metav1.Table{}
	text, err := admin.discovery.RESTClient().Get().AbsPath("apis", group, version, resource).
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").DoRaw(t.Context())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, answer))
	require.NotEmpty(t, answer.ColumnDefinitions)
	return answer
}

// names returns the columns up to a priority: 0 is what is always printed, 1 what is printed with `-o wide`.
func names(columns []metav1.TableColumnDefinition, priority int32) []string {
	var found []string
	for _, column := range columns {
		if column.Priority <= priority {
			found = append(found, column.Name)
		}
	}
	return found
}
