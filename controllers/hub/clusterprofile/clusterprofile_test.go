package clusterprofile

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/membership"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var began = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func said(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: began}
}

func member(conditions ...metav1.Condition) *clusterv1beta1.MemberCluster {
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "one", CreationTimestamp: began}}
	m.Status.Conditions = conditions
	return m
}

var (
	hasJoined = said("Joined", metav1.ConditionTrue, "MemberClusterJoined", "Member cluster has successfully joined the fleet")
	isHealthy = said("Healthy", metav1.ConditionTrue, membership.ReasonHealthy, "Member cluster is healthy")
)

// reporting is a member that has said all there is to say, at a time.
func reporting(at metav1.Time) *clusterv1beta1.MemberCluster {
	m := member(hasJoined, isHealthy)
	value := func(v string) clusterv1beta1.PropertyValue {
		return clusterv1beta1.PropertyValue{Value: v, ObservationTime: at}
	}
	m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.NodeCountProperty:                   value("3"),
		clusterv1beta1.LargestPodProperty("cpu"):           value("2"),
		clusterv1beta1.KubernetesVersionProperty:           value("v1.35.0"),
		clusterv1beta1.ClusterEntryPointProperty:           value("https://one:6443"),
		clusterv1beta1.ClusterCertificateAuthorityProperty: value("UEVN"),
	}
	m.Status.ResourceUsage = clusterv1beta1.ResourceUsage{
		Capacity:        corev1.ResourceList{"cpu": resource.MustParse("40"), "nvidia.com/gpu": resource.MustParse("8")},
		Allocatable:     corev1.ResourceList{"cpu": resource.MustParse("32")},
		Available:       corev1.ResourceList{"cpu": resource.MustParse("2")},
		ObservationTime: at,
	}
	return m
}

func TestWhatAProfileSaysOfItsMember(t *testing.T) {
	status, news := Status(reporting(began), &inventoryv1alpha1.ClusterProfile{})
	assert.True(t, news)
	assert.Equal(t, "v1.35.0", status.Version.Kubernetes)
	values := map[string]string{}
	for _, p := range status.Properties {
		values[p.Name] = p.Value
		assert.Equal(t, began, p.LastObservedTime)
	}
	assert.Equal(t, map[string]string{
		"kubernetes-fleet.io/node-count":                     "3",
		"resources.kubernetes-fleet.io/total-cpu":            "40",
		"resources.kubernetes-fleet.io/total-nvidia.com.gpu": "8",
		"resources.kubernetes-fleet.io/allocatable-cpu":      "32",
	}, values)
	require.Len(t, status.AccessProviders, 1)
	assert.Equal(t, "https://one:6443", status.AccessProviders[0].Cluster.Server)
	assert.Equal(t, "PEM", string(status.AccessProviders[0].Cluster.CertificateAuthorityData))
}

func TestHealthOfAProfile(t *testing.T) {
	for sentence, test := range map[string]struct {
		said    []metav1.Condition
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"an agent that finds its API server ready": {
			[]metav1.Condition{isHealthy}, metav1.ConditionTrue, ReasonHealthy, "The API server of the member cluster is healthy"},
		"an agent that does not": {
			[]metav1.Condition{said("Healthy", metav1.ConditionFalse, membership.ReasonUnhealthy, "readyz failed")}, metav1.ConditionFalse, ReasonUnhealthy, "readyz failed"},
		"an agent that is silent": {
			[]metav1.Condition{said("Healthy", metav1.ConditionUnknown, clusterv1beta1.ReasonMemberClusterHeartbeatMissed, "not since noon")}, metav1.ConditionUnknown, ReasonHeartbeatLost, "not since noon"},
		"an agent that has not said it yet": {
			[]metav1.Condition{said("Healthy", metav1.ConditionUnknown, membership.ReasonHealthUnknown, "")}, metav1.ConditionUnknown, ReasonNoHealthInfo, "has not said"},
		"no agent": {nil, metav1.ConditionUnknown, ReasonNoHealthInfo, "has not said"},
	} {
		t.Run(sentence, func(t *testing.T) {
			status, _ := Status(member(test.said...), &inventoryv1alpha1.ClusterProfile{})
			condition := meta.FindStatusCondition(status.Conditions, "ControlPlaneHealthy")
			require.NotNil(t, condition)
			assert.Equal(t, test.status, condition.Status)
			assert.Equal(t, test.reason, condition.Reason)
			assert.Contains(t, condition.Message, test.message)
			assert.Equal(t, began, condition.LastTransitionTime)
		})
	}
}

// bench is a Reconciler on a fake hub that counts its writes.
type bench struct {
	*Reconciler
	hub    client.Client
	events *events.FakeRecorder
	writes int
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := fixture.Scheme(t)
	require.NoError(t, inventoryv1alpha1.AddToScheme(scheme))
	b := &bench{events: events.NewFakeRecorder(10)}
	b.hub = interceptor.NewClient(fixture.NewClientBuilder(scheme).WithObjects(objects...).
		WithStatusSubresource(&inventoryv1alpha1.ClusterProfile{}, &clusterv1beta1.MemberCluster{}).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID("uid") // the fake gives none
			return c.Create(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			b.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	b.Reconciler = NewReconciler(b.hub, b.events, "fleet-system")
	return b
}

func (b *bench) reconcile(t *testing.T) {
	t.Helper()
	_, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "one"}})
	require.NoError(t, err)
}

// profile reads the member's profile; nil if there is none.
func (b *bench) profile(t *testing.T) *inventoryv1alpha1.ClusterProfile {
	t.Helper()
	profile := &inventoryv1alpha1.ClusterProfile{}
	err := b.hub.Get(t.Context(), client.ObjectKey{Namespace: "fleet-system", Name: "one"}, profile)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return profile
}

// report replaces what the member has said.
func (b *bench) report(t *testing.T, as *clusterv1beta1.MemberCluster) {
	t.Helper()
	current := &clusterv1beta1.MemberCluster{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "one"}, current))
	current.Status = as.Status
	require.NoError(t, b.hub.Status().Update(t.Context(), current))
}

func TestAMemberHasAProfileFromJoiningToLeaving(t *testing.T) {
	m := member()
	m.Finalizers = []string{clusterv1beta1.MemberClusterFinalizer}
	b := newBench(t, m)
	b.reconcile(t)
	assert.Nil(t, b.profile(t), "it has not joined")

	b.report(t, reporting(began))
	b.reconcile(t)
	profile := b.profile(t)
	require.NotNil(t, profile)
	assert.Equal(t, "one", profile.Spec.DisplayName)
	assert.Equal(t, ManagerName, profile.Spec.ClusterManager.Name)
	assert.Equal(t, ManagerName, profile.Labels[inventoryv1alpha1.LabelClusterManagerKey])
	assert.True(t, meta.IsStatusConditionTrue(profile.Status.Conditions, "Joined"))

	b.report(t, member(said("Joined", metav1.ConditionUnknown, "MemberClusterJoinStateUnknown", "?")))
	b.reconcile(t)
	require.NotNil(t, b.profile(t), "it has not left")
	assert.False(t, meta.IsStatusConditionTrue(b.profile(t).Status.Conditions, "Joined"))

	require.NoError(t, b.hub.Delete(t.Context(), m))
	b.reconcile(t)
	assert.Nil(t, b.profile(t), "it leaves")
}

func TestAHeartbeatWithoutNewsWritesNoProfile(t *testing.T) {
	b := newBench(t, reporting(began))
	b.reconcile(t)
	require.Equal(t, 1, b.writes)
	for beat := range 39 { // every 15 seconds
		b.report(t, reporting(metav1.NewTime(began.Add(time.Duration(beat+1)*15*time.Second))))
		b.reconcile(t)
	}
	assert.Equal(t, 1, b.writes)
	b.report(t, reporting(metav1.NewTime(began.Add(observedAfresh))))
	b.reconcile(t)
	assert.Equal(t, 2, b.writes, "the times of observation are not left to become old")

	more := reporting(metav1.NewTime(began.Add(observedAfresh + 15*time.Second)))
	more.Status.Properties[clusterv1beta1.NodeCountProperty] = clusterv1beta1.PropertyValue{Value: "4", ObservationTime: began}
	b.report(t, more)
	b.reconcile(t)
	assert.Equal(t, 3, b.writes)
}

func TestWhatSomebodyChangedInAProfileIsPutRight(t *testing.T) {
	b := newBench(t, reporting(began))
	b.reconcile(t)
	profile := b.profile(t)
	profile.Labels = nil
	profile.Spec.DisplayName = "another"
	require.NoError(t, b.hub.Update(t.Context(), profile))
	b.reconcile(t)
	assert.Equal(t, "one", b.profile(t).Spec.DisplayName)
	assert.Equal(t, ManagerName, b.profile(t).Labels[inventoryv1alpha1.LabelClusterManagerKey])
}

func TestAProfileThatNoMemberHasIsDeleted(t *testing.T) {
	b := newBench(t, &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "one"},
		Spec:       inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: ManagerName}},
	})
	b.reconcile(t)
	assert.Nil(t, b.profile(t))
}

func TestProfilesOfOthersAreLeftAlone(t *testing.T) {
	theirs := &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "one"},
		Spec:       inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "somebody"}},
	}
	b := newBench(t, theirs)
	b.reconcile(t)
	require.NotNil(t, b.profile(t), "it is not ours to delete")

	b = newBench(t, theirs, reporting(began))
	b.reconcile(t)
	assert.Equal(t, "somebody", b.profile(t).Spec.ClusterManager.Name)
	assert.Zero(t, b.writes)
	assert.Contains(t, <-b.events.Events, ReasonNameTaken)
}
