package analysis

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func TestExpressionsDoNotMultiplyTexts(t *testing.T) {
	env, err := newEnvironment(fleetflowv1alpha1.AnalysisMetric{Webhook: &fleetflowv1alpha1.WebhookCall{}})
	require.NoError(t, err)
	for text, name := range map[string]string{
		`response.replace("", response.replace("", "x")) == ""`:                        "replace",
		`["a"].exists(x, x.replace("a", "b", 1) == "b")`:                               "replace",
		`["a", "b"].join("") == "ab"`:                                                  "join",
		`{"a": ["a"].join(string(response))}["a"].size() > 1 ? true : true`:            "join",
		`response.b == "a" || [response.a, response.b].map(x, string(x)).join() == ""`: "join",
	} {
		_, problem := compileExpression(env, text)
		assert.Contains(t, problem, "calls "+name+",", text)
	}
	_, problem := compileExpression(env, `response.join == "replace" && response.words.split(",").size() == 2`)
	assert.Empty(t, problem)
}
