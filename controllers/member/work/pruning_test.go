package work

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// saying has a Work say how its placement removes objects.
func saying(work *placementv1beta1.Work, said string) *placementv1beta1.Work {
	work.Annotations = map[string]string{placementv1beta1.PruneAnnotation: said}
	return work
}

func TestWhatLeftStaysUntilTheRestIsAvailableIfAskedTo(t *testing.T) {
	for sentence, tc := range map[string]struct {
		said  string
		agent time.Duration
	}{
		"by the agent":                        {agent: 10 * time.Minute},
		"by the placement":                    {said: `{"reconcileTimeoutSeconds":600}`},
		"by the placement, which comes first": {said: `{"reconcileTimeoutSeconds":600}`, agent: time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := newAgent(t, []client.Object{saying(workWith("w", plainDeployment, plainMap), tc.said)}, nil)
			a.Pruning.ReconcileTimeout = tc.agent
			a.mustReconcile(t, "w")
			a.setManifests(t, "w", workWith("w", plainDeployment).Spec.Workload.Manifests)
			a.mustReconcile(t, "w")
			assert.True(t, a.hasConfigMap(t, "a"), "the Deployment is not available yet")
			assert.Nil(t, a.pending(t, "w"))

			a.clock.SetTime(a.clock.Now().Add(10*time.Minute - time.Second))
			a.mustReconcile(t, "w")
			assert.Nil(t, a.pending(t, "w"), "the time is not over")
			a.clock.SetTime(a.clock.Now().Add(time.Second))
			assert.Contains(t, a.mustReconcile(t, "w"), reportWrite)
			pending := a.pending(t, "w")
			require.NotNil(t, pending)
			assert.Equal(t, placementv1beta1.ReasonRemovalHeldBack, pending.Reason)
			assert.Equal(t, "ConfigMap n/a is not removed while not all other manifests of the same Work are available, although 10m0s have passed; "+
				"it is removed once that is corrected", pending.Message)
			assert.True(t, a.hasConfigMap(t, "a"))
			assert.NotContains(t, a.mustReconcile(t, "w"), reportWrite, "it is said once")

			a.setStatus(t, appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1})
			a.mustReconcile(t, "w")
			assert.False(t, a.hasConfigMap(t, "a"))
			assert.Nil(t, a.pending(t, "w"))
		})
	}
}

// A Job that has failed for good is not available, and never will be: what it may need stays.
func TestWhatLeftStaysBesideAJobThatHasFailed(t *testing.T) {
	w := saying(manifestWork("w", "a"), `{"reconcileTimeoutSeconds":60}`)
	w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, jobManifest("1", 600)...)
	a := newAgent(t, []client.Object{w}, nil)
	a.mustReconcile(t, "w")
	a.finishJob(t, "Failed")
	a.setManifests(t, "w", jobManifest("1", 600))
	a.mustReconcile(t, "w")
	assert.True(t, a.hasConfigMap(t, "a"))
}

func TestRemovedObjectsThatStayAreNamedInTime(t *testing.T) {
	for sentence, tc := range map[string]struct {
		said     string
		agent    time.Duration
		deleting bool
		want     time.Duration
	}{
		"after ten seconds if nothing is said":       {want: 10 * time.Second},
		"as the agent says":                          {agent: 5 * time.Minute, want: 5 * time.Minute},
		"as the placement says":                      {said: `{"pruneTimeoutSeconds":2}`, agent: 5 * time.Minute, want: 2 * time.Second},
		"as the placement says that ends":            {said: `{"pruneTimeoutSeconds":120}`, deleting: true, want: 2 * time.Minute},
		"what a Work says otherwise counts for none": {said: `{"pruneTimeoutSeconds":-2}`, want: 10 * time.Second},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := newAgent(t, []client.Object{saying(manifestWork("w", "a", "b"), tc.said)}, nil)
			a.Pruning.PruneTimeout = tc.agent
			a.mustReconcile(t, "w")
			held := &corev1.ConfigMap{}
			require.True(t, a.readMember(t, held, "a"))
			held.Finalizers = []string{"example.com/hold"}
			require.NoError(t, a.member.Update(t.Context(), held))
			if tc.deleting {
				require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
			} else {
				a.setManifests(t, "w", mapManifests("b"))
			}
			look := func() time.Duration {
				result, err := a.Reconcile(t.Context(), requestForWork(testNamespace, "w"))
				require.NoError(t, err)
				return result.RequeueAfter
			}
			assert.LessOrEqual(t, look(), min(tc.want, time.Minute), "it is looked at again in time")
			a.clock.SetTime(a.clock.Now().Add(tc.want - time.Millisecond))
			assert.Equal(t, time.Millisecond, look())
			assert.Nil(t, a.pending(t, "w"))
			a.clock.SetTime(a.clock.Now().Add(time.Millisecond))
			look()
			pending := a.pending(t, "w")
			require.NotNil(t, pending)
			assert.Equal(t, placementv1beta1.ReasonWaitingForFinalizers, pending.Reason)
			assert.Contains(t, pending.Message, "ConfigMap n/a is being deleted and waits for its finalizers: example.com/hold")

			a.memories = newMemories() // as after a restart of the agent
			look()
			assert.NotNil(t, a.pending(t, "w"), "it is still there")
		})
	}
}

func TestAnObjectThatWasKeptHasItsTimeOnceItIsRemoved(t *testing.T) {
	since := remnantsSince{}
	item := placementv1beta1.AppliedResourceMeta{WorkResourceIdentifier: placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Name: "a"}}
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	kept := postponedRemnants([]placementv1beta1.AppliedResourceMeta{item}, 2*time.Hour)
	told, more := since.note(kept, 10*time.Minute, now)
	assert.Empty(t, told)
	assert.Equal(t, now.Add(2*time.Hour), more)
	told, more = since.note([]remnant{{item: item}}, 10*time.Minute, now.Add(time.Hour))
	assert.Empty(t, told, "its removal has only begun")
	assert.Equal(t, now.Add(time.Hour+10*time.Minute), more)

	failing := heldBackRemnants([]placementv1beta1.AppliedResourceMeta{item}, "another manifest of the same Work fails")
	_, more = since.note(failing, 24*time.Hour, now)
	assert.Equal(t, now.Add(removalPatience), more, "what a user has to act on is told whatever a removal may take")
}

func TestDependentsGoAsConfigured(t *testing.T) {
	for name, tc := range map[string]struct {
		configured metav1.DeletionPropagation
		fixed      bool
		said       string
		want       metav1.DeletionPropagation
	}{
		"in the background if nothing is said":      {"", false, "", metav1.DeletePropagationBackground},
		"first, in the foreground":                  {metav1.DeletePropagationForeground, false, "", metav1.DeletePropagationForeground},
		"not at all":                                {metav1.DeletePropagationOrphan, false, "", metav1.DeletePropagationOrphan},
		"as the placement says":                     {"", false, `{"prunePropagationPolicy":"Foreground"}`, metav1.DeletePropagationForeground},
		"as the placement says, not the agent":      {metav1.DeletePropagationOrphan, false, `{"prunePropagationPolicy":"Background"}`, metav1.DeletePropagationBackground},
		"as the agent says if the placement cannot": {metav1.DeletePropagationOrphan, false, `{"prunePropagationPolicy":"All"}`, metav1.DeletePropagationOrphan},
		"as the agent says if its word is fixed":    {metav1.DeletePropagationBackground, true, `{"prunePropagationPolicy":"Orphan"}`, metav1.DeletePropagationBackground},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, []client.Object{saying(manifestWork("w", "a", "b"), tc.said)}, nil)
			a.Pruning.Propagation = tc.configured
			a.Pruning.PropagationFixed = tc.fixed
			var got []metav1.DeletionPropagation
			a.engine.Client = deleteRecorder{a.member, &got}
			a.mustReconcile(t, "w")
			a.setManifests(t, "w", mapManifests("b"))
			a.mustReconcile(t, "w")
			require.NoError(t, a.hub.Delete(t.Context(), a.work(t, "w")))
			a.mustReconcile(t, "w")
			assert.Equal(t, []metav1.DeletionPropagation{tc.want, tc.want}, got, "of what leaves, and of what is there at the end")
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
