package availability

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func TestStall(t *testing.T) {
	const late = `{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: timed out}`
	for name, tc := range map[string]struct{ object, want string }{
		"a deployment past its progress deadline says so": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2},
			status: {observedGeneration: 2, conditions: [` + late + `]}}`, "ProgressDeadlineExceeded: timed out"},
		"one that was changed since is not meant": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3},
			status: {observedGeneration: 2, conditions: [` + late + `]}}`, ""},
		"nor one that nobody has looked at": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1},
			status: {conditions: [` + late + `]}}`, ""},
		"one whose rollout is paused makes no progress either, and does not say so": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1},
			status: {observedGeneration: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]}}`, ""},
		"one that progresses is not meant": {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1},
			status: {observedGeneration: 1, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]}}`, ""},
		"another kind says so by the condition of the conventions": {`{apiVersion: example.com/v1, kind: Release, metadata: {generation: 4},
			status: {observedGeneration: 4, conditions: [{type: Stalled, status: "True", reason: RetriesExceeded, message: no chart}]}}`, "RetriesExceeded: no chart"},
		"the condition may say itself which generation it is about": {`{apiVersion: example.com/v1, kind: Release, metadata: {generation: 4},
			status: {conditions: [{type: Stalled, status: "True", reason: RetriesExceeded, observedGeneration: 4}]}}`, "RetriesExceeded"},
		"what it says of an earlier one counts for nothing": {`{apiVersion: example.com/v1, kind: Release, metadata: {generation: 4},
			status: {observedGeneration: 4, conditions: [{type: Stalled, status: "True", observedGeneration: 3}]}}`, ""},
		"and so does what may be of an earlier one": {`{apiVersion: example.com/v1, kind: Release, metadata: {generation: 4},
			status: {conditions: [{type: Stalled, status: "True", reason: RetriesExceeded}]}}`, ""},
		"it need not give a reason": {`{apiVersion: example.com/v1, kind: Release, metadata: {generation: 4},
			status: {observedGeneration: 4, conditions: [{type: Stalled, status: "True"}]}}`, "Stalled"},
		"or only in its message": {`{apiVersion: example.com/v1, kind: Release, metadata: {generation: 4},
			status: {observedGeneration: 4, conditions: [{type: Stalled, status: "True", message: no chart}]}}`, "no chart"},
		"a condition that is False says that it goes on": {`{apiVersion: example.com/v1, kind: Release, metadata: {generation: 4},
			status: {observedGeneration: 4, conditions: [{type: Stalled, status: "False", reason: RetriesExceeded}]}}`, ""},
		"a kind of Kubernetes has no such condition": {`{apiVersion: v1, kind: Service, metadata: {generation: 1},
			status: {observedGeneration: 1, conditions: [{type: Stalled, status: "True", reason: Odd}]}}`, ""},
		"a status of another shape says nothing": {`{apiVersion: example.com/v1, kind: Release, status: {conditions: none, observedGeneration: two}}`, ""},
		"nor does one whose generation cannot be read": {`{apiVersion: example.com/v1, kind: Release,
			status: {observedGeneration: two, conditions: [{type: Stalled, status: "True"}]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := yaml.YAMLToJSON([]byte(tc.object))
			require.NoError(t, err)
			object := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(text, &object.Object))
			assert.Equal(t, tc.want, Stall(object))
		})
	}
}
