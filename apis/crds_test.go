package apis_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// promise is what users rely on about a kind besides its fields.
type promise struct {
	chart      string
	versions   []string // in the order in which kubectl prefers them
	scope      apiextensionsv1.ResourceScope
	shortNames []string
	hasStatus  bool
	columns    []string // as kubectl get prints them
	wide       []string // further ones with -o wide
}

// The versions that kinds are served in.
var (
	one   = []string{"v1beta1"}
	two   = []string{"v1", "v1beta1"}
	three = []string{"v1", "v1beta1", "v1alpha1"}
	own   = []string{"v1alpha1"}
)

func promises() map[string]promise {
	const hub, member = "hub-agent", "member-agent"
	return map[string]promise{
		"MemberCluster": {hub, two, apiextensionsv1.ClusterScoped, []string{"mc", "cluster"}, true,
			[]string{"Joined", "Age", "Member-Agent-Last-Seen", "Node-Count", "Available-CPU", "Available-Memory", "Healthy"},
			[]string{"Allocatable-CPU", "Allocatable-Memory"}},
		"InternalMemberCluster": {hub, two, apiextensionsv1.NamespaceScoped, []string{"imc"}, true,
			[]string{"State", "Joined", "Member-Agent-Last-Seen", "Age"}, nil},
		"ClusterResourcePlacement": {hub, two, apiextensionsv1.ClusterScoped, []string{"crp"}, true,
			[]string{"Gen", "Scheduled", "Scheduled-Gen", "Available", "Available-Gen", "Age", "Updated"},
			[]string{"Type", "Work-Synchronized", "Work-Synchronized-Gen", "Applied", "Applied-Gen"}},
		"ClusterSchedulingPolicySnapshot": {hub, two, apiextensionsv1.ClusterScoped, []string{"csps"}, true, []string{"Gen", "Age"}, nil},
		"ClusterResourceSnapshot":         {hub, two, apiextensionsv1.ClusterScoped, []string{"crs"}, true, []string{"Gen", "Age"}, nil},
		"ClusterResourceBinding": {hub, two, apiextensionsv1.ClusterScoped, []string{"crb", "rb"}, true,
			[]string{"WorkSynchronized", "ResourcesApplied", "Age"},
			[]string{"WorkCreated", "ResourceAvailable", "Cluster", "State", "Snapshot"}},
		"Work":                        {hub, two, apiextensionsv1.NamespaceScoped, nil, true, []string{"Applied", "Available", "Age"}, nil},
		"AppliedWork":                 {member, two, apiextensionsv1.ClusterScoped, nil, true, []string{"Age"}, []string{"Work-Namespace"}},
		"ClusterStagedUpdateStrategy": {hub, three, apiextensionsv1.ClusterScoped, []string{"csus"}, false, []string{"Stages", "Age"}, nil},
		"ClusterStagedUpdateRun": {hub, three, apiextensionsv1.ClusterScoped, []string{"csur", "crsur"}, true,
			[]string{"Placement", "Resource-Snapshot", "Policy-Snapshot", "Initialized", "Succeeded", "Age", "Reason", "Updated"},
			[]string{"Resource-Snapshot-Index", "Policy-Snapshot-Index", "Progressing", "Strategy", "State"}},
		"ClusterApprovalRequest": {hub, three, apiextensionsv1.ClusterScoped, []string{"careq"}, true,
			[]string{"Update-Run", "Stage", "Approved", "ApprovalAccepted", "Age"}, []string{"Votes", "Expires"}},
		"ClusterResourcePlacementStatus": {hub, two, apiextensionsv1.NamespaceScoped, []string{"crps"}, false,
			[]string{"Resource-Index", "Last-Updated", "Age"}, nil},
		// The namespaced twins.
		"ResourcePlacement": {hub, two, apiextensionsv1.NamespaceScoped, []string{"rp"}, true,
			[]string{"Gen", "Scheduled", "Scheduled-Gen", "Available", "Available-Gen", "Age", "Updated"},
			[]string{"Type", "Work-Synchronized", "Work-Synchronized-Gen", "Applied", "Applied-Gen"}},
		"SchedulingPolicySnapshot": {hub, one, apiextensionsv1.NamespaceScoped, []string{"sps"}, true, []string{"Gen", "Age"}, nil},
		"ResourceSnapshot":         {hub, one, apiextensionsv1.NamespaceScoped, nil, true, []string{"Gen", "Age"}, nil},
		"ResourceBinding": {hub, one, apiextensionsv1.NamespaceScoped, nil, true,
			[]string{"WorkSynchronized", "ResourcesApplied", "Age"},
			[]string{"WorkCreated", "ResourceAvailable", "Cluster", "State", "Snapshot"}},
		"StagedUpdateStrategy": {hub, two, apiextensionsv1.NamespaceScoped, []string{"sus"}, false, []string{"Stages", "Age"}, nil},
		"StagedUpdateRun": {hub, two, apiextensionsv1.NamespaceScoped, []string{"sur"}, true,
			[]string{"Placement", "Resource-Snapshot", "Policy-Snapshot", "Initialized", "Succeeded", "Age", "Reason", "Updated"},
			[]string{"Resource-Snapshot-Index", "Policy-Snapshot-Index", "Progressing", "Strategy", "State"}},
		"ApprovalRequest": {hub, two, apiextensionsv1.NamespaceScoped, []string{"areq"}, true,
			[]string{"Update-Run", "Stage", "Approved", "ApprovalAccepted", "Age"}, []string{"Votes", "Expires"}},
		"ClusterResourceOverride": {hub, three, apiextensionsv1.ClusterScoped, []string{"cro"}, true,
			[]string{"Placement", "Valid", "Age"}, []string{"Reason"}},
		"ResourceOverride": {hub, three, apiextensionsv1.NamespaceScoped, []string{"ro"}, true,
			[]string{"Placement", "Valid", "Age"}, []string{"Reason"}},
		"ClusterResourceOverrideSnapshot": {hub, three, apiextensionsv1.ClusterScoped, nil, false, []string{"Gen", "Age"}, nil},
		"ResourceOverrideSnapshot":        {hub, three, apiextensionsv1.NamespaceScoped, nil, false, []string{"Gen", "Age"}, nil},
		"ClusterResourceEnvelope":         {hub, one, apiextensionsv1.ClusterScoped, nil, false, []string{"Age"}, nil},
		"ResourceEnvelope":                {hub, one, apiextensionsv1.NamespaceScoped, nil, false, []string{"Age"}, nil},
		"ClusterResourcePlacementEviction": {hub, three, apiextensionsv1.ClusterScoped, []string{"crpe"}, true,
			[]string{"Valid", "Executed", "Placement", "Cluster", "Age"}, []string{"Message"}},
		"ClusterResourcePlacementDisruptionBudget": {hub, three, apiextensionsv1.ClusterScoped, []string{"crpdb"}, false,
			[]string{"Max-Unavailable", "Min-Available", "Age"}, nil},
		"PropagatedType": {hub, own, apiextensionsv1.ClusterScoped, []string{"pt"}, true,
			[]string{"Propagation", "Accepted", "Placements", "Age"}, []string{"Reason"}},
		"RolloutWindow": {hub, own, apiextensionsv1.ClusterScoped, []string{"rwin"}, true,
			[]string{"Type", "Scope", "Active", "Starts", "Next-Transition", "Clusters", "Accepted", "Age"}, []string{"Zone", "Message"}},
		"RolloutExemption": {hub, own, apiextensionsv1.ClusterScoped, []string{"rex"}, true,
			[]string{"Kind", "Target", "Exempt-From", "Created-By", "Effective", "Expires", "Age"}, []string{"Accepted", "Namespace", "Ticket", "Message"}},
		"MetricSource": {hub, own, apiextensionsv1.ClusterScoped, []string{"msrc"}, true, []string{"Type", "Accepted", "Ready", "Age"}, []string{"URL"}},
		"NotificationChannel": {hub, own, apiextensionsv1.ClusterScoped, []string{"nchan"}, true,
			[]string{"Type", "Accepted", "Ready", "Last-Delivery", "Age"}, []string{"Message"}},
		"NotificationRule": {hub, own, apiextensionsv1.ClusterScoped, []string{"nrule"}, true, []string{"Accepted", "Ready", "Channels", "Age"}, []string{"Message"}},
		"StageAnalysis":    {hub, own, apiextensionsv1.ClusterScoped, []string{"stan"}, true, []string{"Metrics", "Accepted", "Age"}, nil},
		"ClusterStageAnalysisRun": {hub, own, apiextensionsv1.ClusterScoped, []string{"cstar"}, true,
			[]string{"Run", "Stage", "Attempt", "Succeeded", "Reason", "Age"}, []string{"Message"}},
		"StageAnalysisRun": {hub, own, apiextensionsv1.NamespaceScoped, []string{"star"}, true,
			[]string{"Run", "Stage", "Attempt", "Succeeded", "Reason", "Age"}, []string{"Message"}},
		"MemberQuestion": {hub, own, apiextensionsv1.NamespaceScoped, []string{"mq"}, true,
			[]string{"Type", "Answered", "Reason", "Deadline", "Age"}, nil},
		"ClusterRehearsal": {hub, own, apiextensionsv1.ClusterScoped, []string{"creh"}, true,
			[]string{"Placement", "Revision", "Clusters", "Answered", "Refused", "Unknown", "Completed", "Age"}, []string{"Message"}},
		"Rehearsal": {hub, own, apiextensionsv1.NamespaceScoped, []string{"reh"}, true,
			[]string{"Placement", "Revision", "Clusters", "Answered", "Refused", "Unknown", "Completed", "Age"}, []string{"Message"}},
		"AuditRecord": {hub, own, apiextensionsv1.ClusterScoped, []string{"arec"}, true,
			[]string{"Time", "Type", "Update-Run", "Stage", "By", "Sequence", "Age"}, []string{"Namespace", "Verified", "Message"}},
		"AuditSink": {hub, own, apiextensionsv1.ClusterScoped, []string{"asink"}, true,
			[]string{"Type", "Ready", "Reason", "Delivered", "Pending", "Oldest-Pending", "Age"}, []string{"Last-Error"}},
		"RolloutHold": {hub, own, apiextensionsv1.ClusterScoped, []string{"rhold"}, true,
			[]string{"Effective", "Quiet", "Held-Runs", "Held-Placements", "In-Flight", "Expires", "Age"}, []string{"Accepted", "Message"}},
	}
}

// readCRDs reads every CRD of both charts.
func readCRDs(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../deploy/charts/*/crds/*fleet*.io_*.yaml")
	require.NoError(t, err)
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Less(t, len(text), 900<<10, "%s is near the limit of what a request may have", file)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, yaml.UnmarshalStrict(text, crd), file)
		crd.Annotations[chartKey] = filepath.Base(filepath.Dir(filepath.Dir(file)))
		crds = append(crds, crd)
	}
	return crds
}

// chartKey is the annotation that readCRDs leaves the chart of a CRD in.
const chartKey = "chart"

func TestCRDsKeepTheirPromises(t *testing.T) {
	want := promises()
	crds := readCRDs(t)
	assert.Len(t, crds, len(want))
	for _, crd := range crds {
		t.Run(crd.Spec.Names.Kind, func(t *testing.T) {
			promised, known := want[crd.Spec.Names.Kind]
			require.True(t, known, "a kind nobody promised")
			assert.Equal(t, promised.chart, crd.Annotations[chartKey])
			assert.Equal(t, promised.scope, crd.Spec.Scope)
			assert.Equal(t, promised.shortNames, crd.Spec.Names.ShortNames)
			assert.True(t, slices.Contains(crd.Spec.Names.Categories, "fleet"))
			assertVersions(t, promised, crd.Spec)
			assertCanBeApplied(t, crd)
			version := crd.Spec.Versions[0]
			columns, wide := columnsOf(version)
			assert.Equal(t, promised.columns, columns)
			assert.Equal(t, promised.wide, wide)
			assertColumnsCanBeRead(t, version)
		})
	}
}

// assertCanBeApplied checks that the copy that kubectl apply keeps in an annotation fits there.
func assertCanBeApplied(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	text, err := json.Marshal(crd)
	require.NoError(t, err)
	assert.Less(t, len(text), 256<<10)
}

// assertVersions checks that a kind is served in the promised versions, which differ in nothing but their names.
func assertVersions(t *testing.T, promised promise, spec apiextensionsv1.CustomResourceDefinitionSpec) {
	t.Helper()
	assert.Equal(t, &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}, spec.Conversion)
	var names []string
	for _, version := range spec.Versions {
		names = append(names, version.Name)
		assert.True(t, version.Served, version.Name)
		assert.Equal(t, version.Name == "v1beta1" || len(spec.Versions) == 1, version.Storage, version.Name)
		assert.Equal(t, promised.hasStatus, version.Subresources != nil && version.Subresources.Status != nil, version.Name)
		alike := spec.Versions[0]
		alike.Name = version.Name
		alike.Storage = version.Storage
		assert.Equal(t, alike, version)
	}
	require.Equal(t, promised.versions, names)
}

func columnsOf(version apiextensionsv1.CustomResourceDefinitionVersion) (columns, wide []string) {
	for _, column := range version.AdditionalPrinterColumns {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
	}
	return columns, wide
}

// assertColumnsCanBeRead checks what the API server only finds out when it prints.
func assertColumnsCanBeRead(t *testing.T, version apiextensionsv1.CustomResourceDefinitionVersion) {
	t.Helper()
	for _, column := range version.AdditionalPrinterColumns {
		path := jsonpath.New(column.Name).AllowMissingKeys(true)
		require.NoError(t, path.Parse("{"+column.JSONPath+"}"), column.Name)
		_, err := path.FindResults(map[string]any{"metadata": map[string]any{}})
		assert.NoError(t, err, column.Name)
	}
}
