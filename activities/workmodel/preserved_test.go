package workmodel

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var frontWorkload = rules.Workload{Group: "apps", Kind: "Deployment", Namespace: "app", Name: "front"}

func TestAMemberChoosesNothingButValues(t *testing.T) {
	preserved := []placementv1beta1.StatePreservationRule{{AliasLabelName: "job", JSONPath: "{.job}"}, {AliasLabelName: "phase", JSONPath: "{.phase}"}}
	id := placementv1beta1.WorkResourceIdentifier{Ordinal: 1, Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "app", Name: "front"}
	for sentence, tc := range map[string]struct {
		id     func(*placementv1beta1.WorkResourceIdentifier)
		values []placementv1beta1.StateValue
		want   map[string]string
	}{
		"a value becomes the label of its rule":  {values: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: "7"}}, want: map[string]string{"job": "7"}},
		"each of several":                        {values: []placementv1beta1.StateValue{{JSONPath: "{.phase}", Value: "up"}, {JSONPath: "{.job}", Value: "7"}}, want: map[string]string{"job": "7", "phase": "up"}},
		"of a path that no rule has":             {values: []placementv1beta1.StateValue{{JSONPath: "{.other}", Value: "7"}}},
		"what was not taken":                     {values: []placementv1beta1.StateValue{{JSONPath: "{.job}", Message: "it is empty"}}},
		"what can be no label":                   {values: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: "a b"}}},
		"of an object that was not placed there": {id: func(id *placementv1beta1.WorkResourceIdentifier) { id.Name = "back" }, values: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: "7"}}},
		"of another one that was":                {id: func(id *placementv1beta1.WorkResourceIdentifier) { id.Ordinal = 0 }, values: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: "7"}}},
		"of no manifest":                         {id: func(id *placementv1beta1.WorkResourceIdentifier) { id.Ordinal = 9 }, values: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: "7"}}},
		"of less than none":                      {id: func(id *placementv1beta1.WorkResourceIdentifier) { id.Ordinal = -1 }, values: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: "7"}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			work := single(t, binding())
			said := placementv1beta1.ManifestCondition{Identifier: id, StateValues: tc.values}
			if tc.id != nil {
				tc.id(&said.Identifier)
			}
			work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{said}
			want := rules.PreservedState{}
			if tc.want != nil {
				want[frontWorkload] = tc.want
			}
			assert.Equal(t, want, ReportedState(&work, preserved))
		})
	}
}

func TestPreservedStateBecomesLabelsAndOverridesHaveTheLastWord(t *testing.T) {
	plain := NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp, front, resourceEnvelope}))
	same, err := plain.Label(nil)
	require.NoError(t, err)
	assert.Same(t, plain, same)

	before := generate(t, plain)
	labelled, err := plain.Label(rules.PreservedState{
		frontWorkload: {"job": "7", "phase": "up"},
		{Kind: "ConfigMap", Namespace: "app", Name: "elsewhere"}: {"job": "8"},
	})
	require.NoError(t, err)
	works := generate(t, labelled)
	assert.Equal(t, manifestsOf(before[0])[0], manifestsOf(works[0])[0], "what gets no label is the same to the byte")
	assert.JSONEq(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"front","namespace":"app","labels":{"job":"7","phase":"up"}},"spec":{"replicas":10}}`, manifestsOf(works[0])[1])
	assert.Equal(t, manifestsOf(before[1]), manifestsOf(works[1]))
	assert.Equal(t, manifestsOf(before[0]), manifestsOf(generate(t, plain)[0]), "the content of other clusters is left as it was")

	patch := override.Compile([]placementv1beta1.OverrideSnapshotObject{labelOverride("job", "mine")}).On(override.Cluster{Name: "member1"})
	overridden, err := labelled.Override(patch)
	require.NoError(t, err)
	assert.JSONEq(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"front","namespace":"app","labels":{"job":"mine","phase":"up"}},"spec":{"replicas":10}}`, manifestsOf(generate(t, overridden)[0])[1])
}

// labelOverride replaces a label of the Deployment.
func labelOverride(name, value string) *placementv1beta1.ResourceOverrideSnapshot {
	snapshot := &placementv1beta1.ResourceOverrideSnapshot{}
	snapshot.Name = "o-0"
	snapshot.Namespace = "app"
	snapshot.Spec.OverrideSpec = placementv1beta1.ResourceOverrideSpec{
		ResourceSelectors: []placementv1beta1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "front"}},
		Policy: placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
			ClusterSelector:    &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}},
			JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{Operator: placementv1beta1.JSONPatchOverrideOpReplace, Path: "/metadata/labels/" + name, Value: apiextensionsv1.JSON{Raw: []byte(`"` + value + `"`)}}},
		}}},
	}
	return snapshot
}

func TestPreservedStateMakesAnotherRevision(t *testing.T) {
	base := Revision(binding())
	given := binding(func(b *placementv1beta1.ClusterResourceBinding) {
		b.Annotations = map[string]string{placementv1beta1.PreservedStateAnnotation: rules.PreservedState{frontWorkload: {"job": "7"}}.Encode()}
	})
	assert.NotEqual(t, base, Revision(given), "its Works have other manifests")
}
