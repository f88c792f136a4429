package workmodel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	front = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: front, namespace: app}, spec: {replicas: 10}}`
	batch = `{apiVersion: batch/v1, kind: Job, metadata: {name: batch, namespace: app}, spec: {parallelism: 6, completions: 12}}`
)

func assigned(kind, name string, replicas int32, change ...func(*placementv1beta1.ReplicaAssignment)) placementv1beta1.ReplicaAssignment {
	a := placementv1beta1.ReplicaAssignment{Group: "apps", Kind: kind, Namespace: "app", Name: name, Replicas: replicas, Reason: "weight 1 of 3"}
	if kind == "Job" {
		a.Group = "batch"
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

func dropped(a *placementv1beta1.ReplicaAssignment) { a.Dropped = true }

func inForce(assignments ...placementv1beta1.ReplicaAssignment) func(*placementv1beta1.ClusterResourceBinding) {
	return func(b *placementv1beta1.ClusterResourceBinding) { b.Spec.ReplicaAssignments = assignments }
}

// divided are the Works of a binding after overrides, as they come back from the API server.
func divided(t *testing.T, b *placementv1beta1.ClusterResourceBinding, patch *override.Patch) []placementv1beta1.Work {
	t.Helper()
	content, err := NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp, front, batch, resourceEnvelope})).Divide(b.Spec.ReplicaAssignments)
	require.NoError(t, err)
	if patch != nil {
		content, err = content.Override(patch)
		require.NoError(t, err)
	}
	works, err := Generate(b, content)
	require.NoError(t, err)
	for i := range works {
		works[i].Generation = 2
	}
	return works
}

func manifestsOf(work placementv1beta1.Work) (all []string) {
	for _, manifest := range work.Spec.Workload.Manifests {
		all = append(all, string(manifest.Raw))
	}
	return all
}

func TestAssignmentsAreAppliedToManifests(t *testing.T) {
	without := divided(t, binding(), nil)
	assert.Equal(t, generate(t, NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp, front, batch, resourceEnvelope})))[0].Spec, without[0].Spec,
		"without assignments the Work is what it was")
	assert.NotContains(t, without[0].Annotations, AssignmentsAnnotation)

	works := divided(t, binding(inForce(assigned("Deployment", "front", 4), assigned("Job", "batch", 2, func(a *placementv1beta1.ReplicaAssignment) { a.Completions = new(int32(5)) }),
		assigned("Deployment", "ingress", 9))), nil)
	assert.Equal(t, manifestsOf(without[0])[0], manifestsOf(works[0])[0], "what is not assigned is the same to the byte")
	assert.JSONEq(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"front","namespace":"app"},"spec":{"replicas":4}}`, manifestsOf(works[0])[1])
	assert.JSONEq(t, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"batch","namespace":"app"},"spec":{"parallelism":2,"completions":5}}`, manifestsOf(works[0])[2])
	assert.Equal(t, []int32{1, 2}, works[0].Spec.ReportReplicas)
	assert.Equal(t, manifestsOf(without[1]), manifestsOf(works[1]), "what is in an envelope is not divided")
	assert.Empty(t, works[1].Spec.ReportReplicas)

	works = divided(t, binding(inForce(assigned("Deployment", "front", 0, dropped), assigned("Job", "batch", 2))), nil)
	assert.Len(t, works[0].Spec.Workload.Manifests, 2, "the Deployment is left out")
	assert.Equal(t, []int32{1}, works[0].Spec.ReportReplicas)
}

func TestTheReasonOfAnAssignmentIsNoReasonToWrite(t *testing.T) {
	other := func(a *placementv1beta1.ReplicaAssignment) { a.Reason = "at its maxReplicas" }
	assert.Equal(t, hashAssignments(binding(inForce(assigned("Deployment", "front", 4)))), hashAssignments(binding(inForce(assigned("Deployment", "front", 4, other)))))
	assert.NotEqual(t, hashAssignments(binding(inForce(assigned("Deployment", "front", 4)))), hashAssignments(binding(inForce(assigned("Deployment", "front", 5)))))
	assert.Equal(t, Revision(binding()), Revision(binding(inForce(assigned("Deployment", "front", 5)))), "it is no other version")
}

func TestOverridesOfReplicasHaveTheLastWordAndAreTold(t *testing.T) {
	rules := placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
		ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}},
		JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{
			Operator: placementv1beta1.JSONPatchOverrideOpReplace, Path: "/spec/replicas", Value: apiextensionsv1.JSON{Raw: []byte("5")},
		}},
	}}}
	namespaced := &placementv1beta1.ResourceOverrideSnapshot{}
	namespaced.Namespace = "app"
	namespaced.Name = "small-0"
	namespaced.Spec.OverrideSpec.ResourceSelectors = []placementv1beta1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "front"}}
	namespaced.Spec.OverrideSpec.Policy = rules
	patch := override.Compile([]placementv1beta1.OverrideSnapshotObject{namespaced}).On(override.Cluster{Name: "member1"})

	b := binding(inForce(assigned("Deployment", "front", 4)), func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.ResourceOverrideSnapshots = []placementv1beta1.NamespacedName{{Namespace: "app", Name: "small-0"}}
	})
	works := divided(t, b, patch)
	assert.Contains(t, manifestsOf(works[0])[1], `"replicas":5`)
	said := meta.FindStatusCondition(BindingConditions(b, works, nil, now), placementv1beta1.ConditionTypeOverridden)
	assert.Contains(t, said.Message, "; apps/Deployment app/front: overridden to 5 by ResourceOverrideSnapshot app/small-0")

	b.Spec.ReplicaAssignments[0].Replicas = 5
	assert.NotContains(t, divided(t, b, patch)[0].Annotations, OverriddenReplicasAnnotation, "nothing is told if it is what is assigned")
}

// count is a report of pods of the Deployment, with whether it is available.
func count(work *placementv1beta1.Work, replicas, ready int32) {
	status := metav1.ConditionTrue
	if ready < replicas {
		status = metav1.ConditionFalse
	}
	work.Status = placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{{
		Identifier:    placementv1beta1.WorkResourceIdentifier{Ordinal: 1, Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "app", Name: "front"},
		Conditions:    []metav1.Condition{{Type: placementv1beta1.ConditionTypeAvailable, Status: status}},
		ReplicaStatus: &placementv1beta1.ReplicaStatus{Replicas: replicas, Ready: ready},
	}}}
	report(work, placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, placementv1beta1.ReasonAllManifestsApplied)
	report(work, placementv1beta1.ConditionTypeAvailable, status, "")
}

// scale is the Work of a binding with another number of replicas, as the API server has it once it has replaced the one before.
func scale(t *testing.T, b *placementv1beta1.ClusterResourceBinding, have placementv1beta1.Work, replicas int32) placementv1beta1.Work {
	t.Helper()
	b.Generation++
	b.Spec.ReplicaAssignments = []placementv1beta1.ReplicaAssignment{assigned("Deployment", "front", replicas)}
	want := single(t, b)
	CarryVersion(&want, &have)
	want.Generation = have.Generation + 1
	want.Status = have.Status
	return want
}

// single is the one Work of a binding.
func single(t *testing.T, b *placementv1beta1.ClusterResourceBinding) placementv1beta1.Work {
	t.Helper()
	content, err := NewContent(envelope.Rules{}, partsOf(t, []string{namespaceApp, front})).Divide(b.Spec.ReplicaAssignments)
	require.NoError(t, err)
	works, err := Generate(b, content)
	require.NoError(t, err)
	return works[0]
}

func TestAClusterStaysAvailableWhileOnlyItsReplicasChange(t *testing.T) {
	b := binding(inForce(assigned("Deployment", "front", 4)))
	work := single(t, b)
	work.Generation = 1
	look := func() (ClusterState, string) {
		works := []placementv1beta1.Work{work}
		b.Status.Conditions = BindingConditions(b, works, nil, now)
		said := meta.FindStatusCondition(b.Status.Conditions, placementv1beta1.ConditionTypeAvailable)
		if said == nil {
			return StateOf(b, works), ""
		}
		return StateOf(b, works), fmt.Sprintf("%s %s", said.Status, said.Reason)
	}
	state, said := look()
	assert.False(t, state.Available, "a first version is no scaling")
	assert.Empty(t, said)
	count(&work, 4, 4)
	_, said = look()
	assert.Equal(t, "True AllWorkAreAvailable", said)

	work = scale(t, b, work, 9)
	state, said = look()
	assert.True(t, state.Available, "before the member has seen it")
	assert.True(t, state.Synced)
	assert.Equal(t, "True ScalingOnly", said)
	count(&work, 9, 5)
	_, said = look()
	assert.Equal(t, "True ScalingOnly", said, "4 are enough")

	work = scale(t, b, work, 2)
	count(&work, 9, 3)
	_, said = look()
	assert.Equal(t, "True ScalingOnly", said, "2 are enough now, as there are to be no more")
	work = scale(t, b, work, 20)
	count(&work, 20, 2)
	_, said = look()
	assert.Equal(t, "True ScalingOnly", said, "no more than that were promised meanwhile")
	count(&work, 20, 1)
	state, said = look()
	assert.False(t, state.Available)
	assert.Equal(t, "False NotAllWorkAreAvailable", said, "a pod was lost")
	count(&work, 20, 19)
	_, said = look()
	assert.Equal(t, "False NotAllWorkAreAvailable", said, "once it was not available, all have to be ready")
	count(&work, 20, 20)
	_, said = look()
	assert.Equal(t, "True AllWorkAreAvailable", said)
	count(&work, 20, 19)
	_, said = look()
	assert.Equal(t, "False NotAllWorkAreAvailable", said, "the scaling is over: a pod is missing for another reason")
}

func TestAScaledClusterIsNotAvailableIfItWasNotBefore(t *testing.T) {
	b := binding(inForce(assigned("Deployment", "front", 4)))
	work := single(t, b)
	work.Generation = 1
	count(&work, 4, 3)
	work = scale(t, b, work, 2)
	count(&work, 2, 1)
	assert.False(t, StateOf(b, []placementv1beta1.Work{work}).Available)

	count(&work, 2, 2)
	require.True(t, StateOf(b, []placementv1beta1.Work{work}).Available)
	b.Spec.ResourceSnapshotName = "crp-1-6-snapshot"
	former := work
	assert.False(t, StateOf(b, []placementv1beta1.Work{former}).Available, "another version is no scaling")
}

func TestBeforeItsWorksAreWrittenAScaledClusterIsAsItWas(t *testing.T) {
	b := binding(inForce(assigned("Deployment", "front", 4)))
	work := single(t, b)
	work.Generation = 1
	count(&work, 4, 4)
	b.Spec.ReplicaAssignments[0].Replicas = 5
	state := StateOf(b, []placementv1beta1.Work{work})
	assert.False(t, state.Synced, "the Works are to be written")
	assert.True(t, state.Available)
	count(&work, 4, 3)
	assert.False(t, StateOf(b, []placementv1beta1.Work{work}).Available)
}
