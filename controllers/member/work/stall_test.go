package work

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestADeploymentThatMakesNoProgressIsReportedOnce(t *testing.T) {
	w := manifestWork("w")
	w.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"n","name":"d"},"spec":{"replicas":1}}`),
	}}}
	a := newAgent(t, []client.Object{w}, nil)
	require.Contains(t, a.mustReconcile(t, "w"), "member create Deployment d")
	says := func(condition map[string]any) {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		live.SetNamespace("n")
		require.True(t, a.readMember(t, live, "d"))
		live.SetGeneration(1)
		require.NoError(t, a.member.Update(t.Context(), live))
		condition["type"] = "Progressing"
		live.Object["status"] = map[string]any{"observedGeneration": live.GetGeneration(), "conditions": []any{condition}}
		require.NoError(t, a.member.Status().Update(t.Context(), live))
	}
	late := func(message string) map[string]any {
		return map[string]any{"status": "False", "reason": "ProgressDeadlineExceeded", "message": message}
	}
	stall := func() string {
		if said := a.work(t, "w").Status.ManifestConditions[0].Stall(); said != nil {
			return said.Message
		}
		return ""
	}

	says(late("timed out"))
	assert.Contains(t, a.mustReconcile(t, "w"), "hub status Work w")
	assert.Equal(t, "The object says that it makes no progress: ProgressDeadlineExceeded: timed out", stall())
	says(late("timed out once more"))
	assert.NotContains(t, a.mustReconcile(t, "w"), "hub status Work w", "other words are no news")
	says(map[string]any{"status": "True", "reason": "ReplicaSetUpdated"})
	a.mustReconcile(t, "w")
	assert.Empty(t, stall(), "it goes on")
}

func TestAnObjectThatIsMadeAnewSpeaksForItself(t *testing.T) {
	object := func(uid types.UID, says string) *unstructured.Unstructured {
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(1)}}}
		live.SetUID(uid)
		live.SetGeneration(1)
		live.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{
			map[string]any{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": says},
		}}
		return live
	}
	assess := func(live *unstructured.Unstructured, before outcome) outcome {
		var o outcome
		o.recordObserved(live)
		o.assessAvailability(live, before, noon.Time)
		return o
	}
	first := assess(object("1", "timed out"), outcome{})
	assert.Equal(t, first.failing.why, assess(object("1", "timed out once more"), first).failing.why, "other words of the same object are no news")
	assert.Contains(t, assess(object("2", "timed out once more"), first).failing.why, "once more")
}
