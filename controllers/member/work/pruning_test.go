package work

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// reconcileAndLog reconciles Work w and returns the log.
func (a *agent) reconcileAndLog(t *testing.T) string {
	t.Helper()
	said := ""
	logger := funcr.New(func(_, args string) { said += args + "\n" }, funcr.Options{})
	_, err := a.Reconcile(log.IntoContext(t.Context(), logger), requestForWork(testNamespace, "w"))
	require.NoError(t, err)
	return said
}

func TestWhatLeftStaysUntilTheRestIsAvailableIfAskedTo(t *testing.T) {
	a := newAgent(t, []client.Object{workWith("w", plainDeployment, plainMap)}, nil)
	a.Pruning.ReconcileTimeout = 10 * time.Minute
	a.mustReconcile(t, "w")
	a.setManifests(t, "w", workWith("w", plainDeployment).Spec.Workload.Manifests)
	assert.Empty(t, a.reconcileAndLog(t))
	assert.True(t, a.hasConfigMap(t, "a"), "the Deployment is not available yet")

	a.clock.SetTime(a.clock.Now().Add(10 * time.Minute))
	assert.Contains(t, a.reconcileAndLog(t), "has become available in time")
	assert.Empty(t, a.reconcileAndLog(t), "it is said once")
	assert.True(t, a.hasConfigMap(t, "a"))

	a.setStatus(t, appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1})
	a.mustReconcile(t, "w")
	assert.False(t, a.hasConfigMap(t, "a"))
}

func TestRemovedObjectsThatStayAreNamedIfAskedTo(t *testing.T) {
	a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
	a.Pruning.PruneTimeout = time.Minute
	a.mustReconcile(t, "w")
	held := &corev1.ConfigMap{}
	require.True(t, a.readMember(t, held, "a"))
	held.Finalizers = []string{"example.com/hold"}
	require.NoError(t, a.member.Update(t.Context(), held))
	a.setManifests(t, "w", mapManifests("b"))
	assert.Empty(t, a.reconcileAndLog(t))
	a.clock.SetTime(a.clock.Now().Add(time.Minute))
	assert.Contains(t, a.reconcileAndLog(t), "ConfigMap n/a")
	assert.Empty(t, a.reconcileAndLog(t), "it is said once")
}

func TestPruningOfAnotherGenerationBeginsAnew(t *testing.T) {
	var p pruningProgress
	p.forGeneration(1, noon.Time).loggedPostponed = true
	assert.True(t, p.forGeneration(1, noon.Add(time.Hour)).loggedPostponed)
	assert.Equal(t, noon.Time, p.forGeneration(1, noon.Add(time.Hour)).began)
	assert.Equal(t, pruningProgress{generation: 2, began: noon.Add(time.Hour)}, *p.forGeneration(2, noon.Add(time.Hour)))
}

func TestDependentsGoAsConfigured(t *testing.T) {
	for name, tc := range map[string]struct{ configured, want metav1.DeletionPropagation }{
		"in the background if nothing is said": {"", metav1.DeletePropagationBackground},
		"first, in the foreground":             {metav1.DeletePropagationForeground, metav1.DeletePropagationForeground},
		"not at all":                           {metav1.DeletePropagationOrphan, metav1.DeletePropagationOrphan},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, []client.Object{manifestWork("w", "a", "b")}, nil)
			a.engine.Propagation = tc.configured
			var got []metav1.DeletionPropagation
			a.engine.Client = deleteRecorder{a.member, &got}
			a.mustReconcile(t, "w")
			a.setManifests(t, "w", mapManifests("b"))
			a.mustReconcile(t, "w")
			assert.Equal(t, []metav1.DeletionPropagation{tc.want}, got)
		})
	}
}

// deleteRecorder is a client that records the options of deletions.
type deleteRecorder struct {
	client.Client
	asked *[]metav1.DeletionPropagation
}

func (d deleteRecorder) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	options := &client.DeleteOptions{}
	options.ApplyOptions(opts)
	*d.asked = append(*d.asked, *options.PropagationPolicy)
	return d.Client.Delete(ctx, o, opts...)
}
