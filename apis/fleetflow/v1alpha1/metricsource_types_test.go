package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Who writes a template writes its labels, too.
func TestASourceAllowsTemplatesByTheirOwnName(t *testing.T) {
	named := func(name string, labels map[string]string) *fleetflowv1alpha1.StageAnalysis {
		return &fleetflowv1alpha1.StageAnalysis{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	source := &fleetflowv1alpha1.MetricSource{}
	assert.True(t, source.Allows(named("mine", nil)), "all")
	source.Spec.AllowedTemplates = &metav1.LabelSelector{MatchLabels: map[string]string{"fleetflow.io/template-name": "canary"}}
	assert.True(t, source.Allows(named("canary", nil)))
	assert.True(t, source.Allows(named("canary", map[string]string{"fleetflow.io/template-name": "other"})))
	assert.False(t, source.Allows(named("mine", map[string]string{"fleetflow.io/template-name": "canary"})), "a label makes no name")
	source.Spec.AllowedTemplates.MatchLabels["team"] = "web"
	assert.True(t, source.Allows(named("canary", map[string]string{"team": "web"})), "labels count as well")
	assert.False(t, source.Allows(named("canary", nil)))
}

func TestWhichRunsMayBeAnalysed(t *testing.T) {
	for text, allowed := range map[string]map[string]bool{
		`{}`:                              {"": true, "team": true, "other": true},
		`{"allowedNamespaces": []}`:       {"": true, "team": false},
		`{"allowedNamespaces": ["team"]}`: {"": true, "team": true, "other": false, "team2": false},
	} {
		var template fleetflowv1alpha1.StageAnalysis
		var source fleetflowv1alpha1.MetricSource
		require.NoError(t, json.Unmarshal([]byte(`{"spec": `+text+`}`), &template))
		require.NoError(t, json.Unmarshal([]byte(`{"spec": `+text+`}`), &source))
		for namespace, want := range allowed {
			assert.Equal(t, want, template.DeepCopy().AllowsNamespace(namespace), "%s %s", text, namespace)
			assert.Equal(t, want, source.DeepCopy().AllowsNamespace(namespace), "%s %s", text, namespace)
		}
		kept, err := json.Marshal(template.Spec)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(kept, &fields))
		assert.Equal(t, template.Spec.AllowedNamespaces != nil, fields["allowedNamespaces"] != nil, "an empty list stays one")
	}
}
