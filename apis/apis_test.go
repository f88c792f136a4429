package apis_test

import (
	"encoding/json"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1beta1.AddToScheme(scheme))
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	require.NoError(t, fleetflowv1alpha1.AddToScheme(scheme))
	return scheme
}

// kinds lists every kind that is promised.
func kinds() []schema.GroupVersionKind {
	all := []schema.GroupVersionKind{fleetflowv1alpha1.GroupVersion.WithKind("PropagatedType"), fleetflowv1alpha1.GroupVersion.WithKind("RolloutHold"), fleetflowv1alpha1.GroupVersion.WithKind("RolloutWindow"), fleetflowv1alpha1.GroupVersion.WithKind("RolloutExemption"),
		fleetflowv1alpha1.GroupVersion.WithKind("MetricSource"), fleetflowv1alpha1.GroupVersion.WithKind("StageAnalysis"), fleetflowv1alpha1.GroupVersion.WithKind("ClusterStageAnalysisRun"), fleetflowv1alpha1.GroupVersion.WithKind("StageAnalysisRun"),
		fleetflowv1alpha1.GroupVersion.WithKind("MemberQuestion"), fleetflowv1alpha1.GroupVersion.WithKind("ClusterRehearsal"), fleetflowv1alpha1.GroupVersion.WithKind("Rehearsal"),
		fleetflowv1alpha1.GroupVersion.WithKind("AuditRecord"), fleetflowv1alpha1.GroupVersion.WithKind("AuditSink"),
		fleetflowv1alpha1.GroupVersion.WithKind("NotificationChannel"), fleetflowv1alpha1.GroupVersion.WithKind("NotificationRule")}
	for _, kind := range []string{"MemberCluster", "InternalMemberCluster"} {
		all = append(all, clusterv1beta1.GroupVersion.WithKind(kind))
	}
	for _, kind := range []string{
		"ClusterResourcePlacement", "ClusterSchedulingPolicySnapshot", "ClusterResourceSnapshot",
		"ClusterResourceBinding", "Work", "AppliedWork", "ClusterStagedUpdateStrategy",
		"ClusterStagedUpdateRun", "ClusterApprovalRequest", "ClusterResourcePlacementStatus",
		"ResourcePlacement", "SchedulingPolicySnapshot", "ResourceSnapshot", "ResourceBinding",
		"StagedUpdateStrategy", "StagedUpdateRun", "ApprovalRequest",
		"ClusterResourceOverride", "ResourceOverride", "ClusterResourceOverrideSnapshot",
		"ResourceOverrideSnapshot", "ClusterResourceEnvelope", "ResourceEnvelope",
		"ClusterResourcePlacementEviction", "ClusterResourcePlacementDisruptionBudget",
	} {
		all = append(all, placementv1beta1.GroupVersion.WithKind(kind))
	}
	return all
}

func TestEveryKindIsRegistered(t *testing.T) {
	scheme := newScheme(t)
	for _, gvk := range kinds() {
		assert.True(t, scheme.Recognizes(gvk), gvk)
		assert.True(t, scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")), gvk)
	}
}

func TestEveryKindSurvivesTheWire(t *testing.T) {
	scheme := newScheme(t)
	codecs := serializer.NewCodecFactory(scheme)
	// Raw objects have to be JSON, and durations are written with seconds at the least.
	custom := func(serializer.CodecFactory) []any {
		return []any{
			func(raw *runtime.RawExtension, _ randfill.Continue) {
				*raw = runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)}
			},
			func(value *apiextensionsv1.JSON, _ randfill.Continue) { value.Raw = []byte(`{"a":[1,null]}`) },
			func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Intn(1e6)) * time.Second },
			func(d *fleetflowv1alpha1.Duration, c randfill.Continue) {
				d.Duration = time.Duration(c.Intn(1e6)) * time.Millisecond
			},
		}
	}
	fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, custom), rand.NewSource(1), codecs)
	roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, fill, nil)
}

func TestAStageWithoutClustersSaysSo(t *testing.T) {
	tests := map[string]struct {
		clusters []placementv1beta1.ClusterUpdatingStatus
		want     string
	}{
		"no clusters are an empty list": {clusters: []placementv1beta1.ClusterUpdatingStatus{}, want: `{"stageName":"a","clusters":[]}`},
		"unset clusters are left out":   {want: `{"stageName":"a"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stage := placementv1beta1.StageUpdatingStatus{StageName: "a", Clusters: tc.clusters}
			text, err := json.Marshal(stage)
			require.NoError(t, err)
			assert.JSONEq(t, tc.want, string(text))
			asMap, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&stage)
			require.NoError(t, err)
			text, err = json.Marshal(asMap)
			require.NoError(t, err)
			assert.JSONEq(t, tc.want, string(text))
		})
	}
}

func TestUnsetTimesAreLeftOut(t *testing.T) {
	text, err := json.Marshal(clusterv1beta1.MemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "null")
}
