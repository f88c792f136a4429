package apis_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// printed is what KubeFleet's documentation shows of kubectl get: the name it gets by, and the columns.
type printed struct {
	kind, get, header string
	ours              string // columns that follow the documented ones
	wide              bool   // only -o wide has all of them, because there are newer names for the same or they were dropped
}

func outputs() map[string]printed {
	return map[string]printed{
		"a placement":                         {kind: "ClusterResourcePlacement", get: "crp", header: "GEN SCHEDULED SCHEDULED-GEN AVAILABLE AVAILABLE-GEN AGE", ours: "UPDATED"},
		"a placement while a rollout is slow": {kind: "ClusterResourcePlacement", get: "crp", header: "GEN SCHEDULED SCHEDULEDGEN APPLIED APPLIEDGEN AGE", wide: true},
		"snapshots of resources":              {kind: "ClusterResourceSnapshot", get: "clusterresourcesnapshots", header: "GEN AGE"},
		"a staged run": {kind: "ClusterStagedUpdateRun", get: "csur",
			header: "PLACEMENT RESOURCE-SNAPSHOT POLICY-SNAPSHOT INITIALIZED SUCCEEDED AGE", ours: "REASON UPDATED"},
		"a staged run that failed": {kind: "ClusterStagedUpdateRun", get: "csur",
			header: "PLACEMENT RESOURCE-SNAPSHOT-INDEX POLICY-SNAPSHOT-INDEX INITIALIZED SUCCEEDED AGE", wide: true},
		"a request for approval":       {kind: "ClusterApprovalRequest", get: "clusterapprovalrequest", header: "UPDATE-RUN STAGE APPROVED APPROVALACCEPTED AGE"},
		"requests for approval":        {kind: "ClusterApprovalRequest", get: "clusterapprovalrequests", header: "UPDATE-RUN STAGE APPROVED APPROVALACCEPTED AGE"},
		"an eviction":                  {kind: "ClusterResourcePlacementEviction", get: "crpe", header: "VALID EXECUTED", ours: "PLACEMENT CLUSTER AGE"},
		"members":                      {kind: "MemberCluster", get: "memberclusters", header: "JOINED AGE MEMBER-AGENT-LAST-SEEN NODE-COUNT AVAILABLE-CPU AVAILABLE-MEMORY", ours: "HEALTHY"},
		"members and all they can do":  {kind: "MemberCluster", get: "memberclusters", header: "JOINED AGE NODE-COUNT AVAILABLE-CPU AVAILABLE-MEMORY ALLOCATABLE-CPU ALLOCATABLE-MEMORY", wide: true},
		"bindings":                     {kind: "ClusterResourceBinding", get: "clusterresourcebindings", header: "WORKSYNCHRONIZED RESOURCESAPPLIED AGE"},
		"bindings of a placement":      {kind: "ClusterResourceBinding", get: "clusterresourcebinding", header: "WORKCREATED RESOURCESAPPLIED AGE", wide: true},
		"bindings by their other name": {kind: "ClusterResourceBinding", get: "rb", header: "WORKSYNCHRONIZED RESOURCESAPPLIED AGE"},
	}
}

func TestKubectlGetPrintsTheDocumentedColumns(t *testing.T) {
	crds := readCRDs(t)
	for name, tc := range outputs() {
		t.Run(name, func(t *testing.T) {
			crd := resolve(crds, tc.get)
			require.NotNil(t, crd, tc.get)
			assert.Equal(t, tc.kind, crd.Spec.Names.Kind)
			var have []string
			for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
				if column.Priority == 0 || tc.wide {
					have = append(have, normalized(column.Name))
				}
			}
			want := strings.Fields(normalized(tc.header + " " + tc.ours))
			if tc.wide { // further columns may stand in between
				have = slices.DeleteFunc(have, func(column string) bool { return !slices.Contains(want, column) })
			}
			assert.Equal(t, want, have)
		})
	}
}

// normalized leaves out what differs between releases: SCHEDULEDGEN and SCHEDULED-GEN.
func normalized(columns string) string { return strings.ToUpper(strings.ReplaceAll(columns, "-", "")) }

func TestDocumentedNamesAreFound(t *testing.T) {
	crds := readCRDs(t)
	for kind, names := range map[string][]string{
		"MemberCluster":                            {"membercluster", "memberclusters", "cluster", "mc"},
		"InternalMemberCluster":                    {"imc", "internalmembercluster", "internalmemberclusters"},
		"ClusterResourcePlacement":                 {"crp", "clusterresourceplacement", "clusterresourceplacements", "clusterresourceplacement.v1beta1.placement.kubernetes-fleet.io"},
		"ResourcePlacement":                        {"rp", "resourceplacement"},
		"ClusterResourcePlacementStatus":           {"crps", "clusterresourceplacementstatus"},
		"ClusterSchedulingPolicySnapshot":          {"csps", "clusterschedulingpolicysnapshot"},
		"SchedulingPolicySnapshot":                 {"sps", "schedulingpolicysnapshot"},
		"ClusterResourceSnapshot":                  {"crs", "clusterresourcesnapshot", "clusterresourcesnapshots", "ClusterResourceSnapshot"},
		"ClusterResourceBinding":                   {"crb", "rb", "clusterresourcebinding", "clusterresourcebindings"},
		"Work":                                     {"work", "works"},
		"ClusterStagedUpdateRun":                   {"csur", "crsur", "clusterstagedupdaterun"},
		"StagedUpdateRun":                          {"sur", "stagedupdaterun"},
		"ClusterStagedUpdateStrategy":              {"csus", "clusterstagedupdatestrategy"},
		"StagedUpdateStrategy":                     {"sus", "stagedupdatestrategy"},
		"ClusterApprovalRequest":                   {"careq", "clusterapprovalrequest", "clusterapprovalrequests"},
		"ApprovalRequest":                          {"areq", "approvalrequest"},
		"ClusterResourcePlacementEviction":         {"crpe", "clusterresourceplacementeviction"},
		"PropagatedType":                           {"pt", "propagatedtype", "propagatedtypes"},
		"RolloutHold":                              {"rhold", "rollouthold", "rolloutholds"},
		"RolloutWindow":                            {"rwin", "rolloutwindow", "rolloutwindows"},
		"RolloutExemption":                         {"rex", "rolloutexemption", "rolloutexemptions"},
		"MetricSource":                             {"msrc", "metricsource", "metricsources"},
		"NotificationChannel":                      {"nchan", "notificationchannel", "notificationchannels"},
		"NotificationRule":                         {"nrule", "notificationrule", "notificationrules"},
		"StageAnalysis":                            {"stan", "stageanalysis", "stageanalyses"},
		"ClusterStageAnalysisRun":                  {"cstar", "clusterstageanalysisrun", "clusterstageanalysisruns"},
		"StageAnalysisRun":                         {"star", "stageanalysisrun", "stageanalysisruns"},
		"ClusterRehearsal":                         {"creh", "clusterrehearsal", "clusterrehearsals"},
		"Rehearsal":                                {"reh", "rehearsal", "rehearsals"},
		"AuditRecord":                              {"arec", "auditrecord", "auditrecords"},
		"AuditSink":                                {"asink", "auditsink", "auditsinks"},
		"MemberQuestion":                           {"mq", "memberquestion", "memberquestions"},
		"ClusterResourcePlacementDisruptionBudget": {"crpdb", "clusterresourceplacementdisruptionbudget"},
	} {
		for _, name := range names {
			crd := resolve(crds, name)
			if assert.NotNil(t, crd, name) {
				assert.Equal(t, kind, crd.Spec.Names.Kind, name)
			}
		}
	}
}

// resolve finds the kind that kubectl takes a name for: name, or name.version.group.
func resolve(crds []*apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinition {
	name, rest, qualified := strings.Cut(strings.ToLower(name), ".")
	version, group, _ := strings.Cut(rest, ".")
	for _, crd := range crds {
		isServed := slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
		if slices.Contains(namesOf(crd), name) && (!qualified || crd.Spec.Group == group && isServed) {
			return crd
		}
	}
	return nil
}

// namesOf returns everything that kubectl takes for a kind.
func namesOf(crd *apiextensionsv1.CustomResourceDefinition) []string {
	names := crd.Spec.Names
	return append([]string{names.Plural, names.Singular, strings.ToLower(names.Kind)}, names.ShortNames...)
}

// Of two kinds with one name, kubectl takes either, and the API server refuses the second one of a group.
func TestNoNameIsTwoKinds(t *testing.T) {
	owners := map[string]string{"rs": "ReplicaSet", "po": "Pod", "ns": "Namespace", "cs": "ComponentStatus", "no": "Node", "sc": "StorageClass"}
	for _, crd := range readCRDs(t) {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(namesOf(crd)))) {
			assert.Empty(t, owners[name], "%s is %s already", name, owners[name])
			owners[name] = crd.Spec.Names.Kind
		}
	}
}
