package v1beta1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestBindingName(t *testing.T) {
	const uid = types.UID("1f0c9e7e-6f5c-4d0a-9f0e-0b1f3a5c7d9e")
	long := strings.Repeat("a", 63)
	tests := map[string]struct {
		placement string
		cluster   string
		prefix    string
	}{
		"short names are kept":                        {"web", "member-1", "web-member-1-"},
		"a long placement is cut":                     {long, "member-1", strings.Repeat("a", 26) + "-member-1-"},
		"a long cluster is cut":                       {"web", long, "web-" + strings.Repeat("a", 26) + "-"},
		"both may be cut":                             {long, long, strings.Repeat("a", 26) + "-" + strings.Repeat("a", 26) + "-"},
		"a cut never ends with a dash":                {"web", strings.Repeat("a", 24) + "--bbbb", "web-" + strings.Repeat("a", 24) + "-"},
		"a cut never ends with a dot":                 {strings.Repeat("a", 25) + ".example.com", "eu", strings.Repeat("a", 25) + "-eu-"},
		"a name of exactly the share is kept":         {strings.Repeat("a", 26), "eu", strings.Repeat("a", 26) + "-eu-"},
		"a name with dots within the share is kept":   {"web.example.com", "eu.example.com", "web.example.com-eu.example.com-"},
		"one character is enough":                     {"a", "b", "a-b-"},
		"a name of only one more than the share":      {strings.Repeat("b", 27), "eu", strings.Repeat("b", 26) + "-eu-"},
		"digits at the cut are kept":                  {strings.Repeat("1", 30), "eu", strings.Repeat("1", 26) + "-eu-"},
		"several separators at the cut are all taken": {strings.Repeat("a", 22) + "-.-.xyz", "eu", strings.Repeat("a", 22) + "-eu-"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := BindingName(tc.placement, uid, tc.cluster)
			assert.True(t, strings.HasPrefix(got, tc.prefix), got)
			assert.Len(t, strings.TrimPrefix(got, tc.prefix), 8, "only the hash follows: %s", got)
			assert.Empty(t, validation.IsDNS1123Subdomain(got), "must be an object name")
			assert.Empty(t, validation.IsValidLabelValue(got), "must be a label value")
			assert.Equal(t, got, BindingName(tc.placement, uid, tc.cluster), "must not vary")
		})
	}
}

func TestBindingNamesDiffer(t *testing.T) {
	long := strings.Repeat("a", 40)
	base := BindingName("web", "uid-1", "eu")
	for name, other := range map[string]string{
		"another cluster":                    BindingName("web", "uid-1", "us"),
		"a placement created again":          BindingName("web", "uid-2", "eu"),
		"a cluster that differs after a cut": BindingName("web", "uid-1", long+"2"),
	} {
		t.Run(name, func(t *testing.T) { assert.NotEqual(t, base, other) })
	}
	assert.NotEqual(t, BindingName("web", "uid-1", long+"1"), BindingName("web", "uid-1", long+"2"))
}

func TestNames(t *testing.T) {
	tests := map[string]struct{ got, want string }{
		"the first policy snapshot":                   {PolicySnapshotName("web", 0), "web-0"},
		"a later policy snapshot":                     {PolicySnapshotName("web", 12), "web-12"},
		"the first resource snapshot":                 {ResourceSnapshotName("web", 0, 0), "web-0-snapshot"},
		"a later resource snapshot":                   {ResourceSnapshotName("web", 12, 0), "web-12-snapshot"},
		"a further part of a resource snapshot":       {ResourceSnapshotName("web", 12, 3), "web-12-3"},
		"the Work of the master":                      {WorkName("web", 0), "web-work"},
		"the Work of a further part":                  {WorkName("web", 3), "web-3"},
		"the Work of an envelope":                     {EnvelopeWorkName("web", EnvelopeIdentifier{Type: ResourceEnvelopeType, Namespace: "app", Name: "example"}), "web-work-envelope-abbafb00ca4681fe"},
		"a request after a stage":                     {AfterStageApprovalName(VocabularyDocumentation.Words(), "example-run", "canary"), "example-run-canary"},
		"a request before a stage":                    {BeforeStageApprovalName("example-run", "canary"), "example-run-before-canary"},
		"the namespace of a member":                   {MemberNamespace("eu"), "fleet-member-eu"},
		"the deletion stage":                          {DeletionStageName, "kubernetes-fleet.io/deleteStage"},
		"a condition of a placement as a whole":       {Scope{}.PlacementConditionType(ConditionTypeApplied), "ClusterResourcePlacementApplied"},
		"a condition of a placement in a namespace":   {Scope{Namespace: "team"}.PlacementConditionType(ConditionTypeApplied), "ResourcePlacementApplied"},
		"the label with the run on an approval":       {TargetUpdateRunLabel, "kubernetes-fleet.io/targetUpdateRun"},
		"the older label with the run on an approval": {TargetUpdateRunLowercaseLabel, "kubernetes-fleet.io/targetupdaterun"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, tc.got) })
	}
}

func TestEnvelopeWorkNamesDiffer(t *testing.T) {
	base := EnvelopeIdentifier{Type: ResourceEnvelopeType, Namespace: "app", Name: "example"}
	for name, other := range map[string]EnvelopeIdentifier{
		"another type":      {Type: ConfigMapEnvelopeType, Namespace: "app", Name: "example"},
		"another namespace": {Type: ResourceEnvelopeType, Namespace: "ap", Name: "example"},
		"another name":      {Type: ResourceEnvelopeType, Namespace: "app", Name: "example-2"},
	} {
		t.Run(name, func(t *testing.T) { assert.NotEqual(t, EnvelopeWorkName("web", base), EnvelopeWorkName("web", other)) })
	}
	assert.Empty(t, validation.IsDNS1123Subdomain(EnvelopeWorkName(strings.Repeat("a", 63), base)))
}

func TestLabelsAndAnnotationsAreQualifiedNames(t *testing.T) {
	for _, name := range []string{
		ParentPlacementLabel, IsLatestSnapshotLabel, ResourceIndexLabel, PolicyIndexLabel, OverrideIndexLabel,
		ParentOverrideLabel, FleetResourceLabel, ParentResourceSnapshotIndexLabel, ParentBindingLabel,
		ParentNamespaceLabel, EnvelopeTypeLabel, EnvelopeNamespaceLabel, EnvelopeNameLabel, TargetUpdateRunLabel,
		TargetUpdateRunLowercaseLabel, TargetUpdatingStageLabel, IsLatestUpdateRunApprovalLabel, TaskTypeLabel,
		ResourceGroupHashAnnotation, NumberOfEnvelopedObjectsAnnotation, NumberOfResourceSnapshotsAnnotation,
		SubindexOfResourceSnapshotAnnotation, NumberOfClustersAnnotation, CRPGenerationAnnotation,
		PreviousBindingStateAnnotation, ParentResourceSnapshotNameAnnotation,
		ManifestHashAnnotation, LastAppliedConfigAnnotation, EnvelopeConfigMapAnnotation, RevisionAnnotation, BindingUIDAnnotation,
		BindingGenerationAnnotation, WorkCountAnnotation, UpdateRunAnnotation, UpdateRunUIDAnnotation,
		UpdateRunCreatedAnnotation, PreviousResourceSnapshotAnnotation, SelectionVerdictAnnotation,
		PlacementCleanupFinalizer, WorkFinalizer, UpdateRunFinalizer,
	} {
		assert.Empty(t, validation.IsQualifiedName(name), name)
		assert.True(t, strings.HasPrefix(name, FleetPrefix) || strings.HasPrefix(name, OwnPrefix), name)
	}
}

func TestRollbackNames(t *testing.T) {
	for sentence, tc := range map[string]struct{ run, want string }{
		"a short name is kept":         {"web-2", "web-2-rollback"},
		"the longest that fits":        {strings.Repeat("a", 54), strings.Repeat("a", 54) + "-rollback"},
		"a longer one is cut":          {strings.Repeat("a", 55), strings.Repeat("a", 45) + "-4a49acf8-rollback"},
		"a cut never ends with a dash": {strings.Repeat("a", 44) + "-" + strings.Repeat("b", 18), strings.Repeat("a", 44) + "-4a49acf8-rollback"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := RollbackName(tc.run, "uid-1")
			assert.Equal(t, tc.want, got)
			assert.Empty(t, validation.IsDNS1123Label(got), "must be an object name")
		})
	}
	assert.Equal(t, "web-2-4a49acf8-rollback", UniqueRollbackName("web-2", "uid-1"))
	assert.NotEqual(t, UniqueRollbackName("web-2", "uid-1"), UniqueRollbackName("web-2", "uid-2"))
}

func TestRequestsOfTwoRunsNeverHaveOneName(t *testing.T) {
	assert.Equal(t, "web-canary", AfterStageApprovalName(VocabularyDocumentation.Words(), "web", "canary"), "as KubeFleet's")
	assert.Equal(t, "web-after-canary", AfterStageApprovalName(VocabularyKubeFleet.Words(), "web", "canary"))
	assert.Equal(t, "before-canary", AfterStageApprovalName(VocabularyDocumentation.Words(), "before", "canary"))
	owners := map[string]string{}
	for _, run := range []string{
		"web", "web-before", "web-after", "web-before-before", "web-after-before", "web-before-after", "web-after-after", "before", "after", "web-b", "web-canary",
	} {
		for _, stage := range []string{"canary", "before", "after"} {
			for _, name := range []string{
				BeforeStageApprovalName(run, stage),
				AfterStageApprovalName(VocabularyDocumentation.Words(), run, stage),
				AfterStageApprovalName(VocabularyKubeFleet.Words(), run, stage),
			} {
				if owner := owners[name]; owner != "" && owner != run {
					t.Errorf("%s is a request of run %s and of run %s", name, owner, run)
				}
				owners[name] = run
			}
		}
	}
}
