//go:build integration

package integration

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// database is a StatefulSet whose controller makes a claim, on the hub as on members, before its pod.
func (s *spec) database() *appsv1.StatefulSet {
	labels := map[string]string{"app": "db"}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(s.name),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "db"}}
	set.Spec.ServiceName = "db"
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "c", Image: "example.com/db:1", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return set
}

// claimOfDatabase is the claim that the controller of the StatefulSet makes.
func (s *spec) claimOfDatabase() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "data-db-0"}}
}

func (s *spec) awaitApplied(index string) *placementv1beta1.ClusterResourcePlacement {
	s.Helper()
	return await(s, s.hub, s.placement(), "to be applied with resource index "+index, func(p *placementv1beta1.ClusterResourcePlacement) error {
		if p.Status.ObservedResourceIndex != index {
			return fmt.Errorf("it observes resource index %q", p.Status.ObservedResourceIndex)
		}
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeApplied), p.Generation)
	})
}

// byProductsAreNotPlaced has controllers of the hub make objects beside those of a user. Members make their own, which stay whatever
// becomes of those on the hub, and hold the namespace that they are in.
func byProductsAreNotPlaced(s *spec) {
	s.namespaceWithConfigMap()
	s.create(s.database())
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "istio-ca-root-cert"}})
	s.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	})
	s.create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: s.name, Name: "made", Labels: map[string]string{discoveryv1.LabelManagedBy: "controller.example.com"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	})
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "made"}, Data: map[string]string{"key": value1}}
	require.NoError(s, s.hub.Create(s.Context(), made, client.FieldOwner("kube-controller-manager")))
	isMade := func(c *corev1.PersistentVolumeClaim) error { return nil }
	await(s, s.hub, s.claimOfDatabase(), "to be made by the hub's controller", isMade)

	placement := s.place()
	require.ElementsMatch(s, []placementv1beta1.ResourceIdentifier{
		{Version: "v1", Kind: "Namespace", Name: s.name},
		{Version: "v1", Kind: "ConfigMap", Namespace: s.name, Name: configMapName},
		{Group: "apps", Version: "v1", Kind: "StatefulSet", Namespace: s.name, Name: "db"},
	}, s.awaitApplied("0").Status.SelectedResources)
	uids := map[string]types.UID{}
	for _, m := range s.members {
		uids[m.name] = await(s, m, s.claimOfDatabase(), "to be made by the member's controller", isMade).UID
	}

	s.delete(s.hub, s.claimOfDatabase())
	s.changeTo(value2)
	s.awaitApplied("1")
	for _, m := range s.members {
		claim := s.claimOfDatabase()
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(claim), claim))
		require.Equal(s, uids[m.name], claim.UID, "on %s", m.name)
		require.Nil(s, claim.DeletionTimestamp, "on %s", m.name)
	}

	s.delete(s.hub, placement)
	s.awaitRemains(placement, placementv1beta1.ReasonInUse, "Namespace "+s.name, "PersistentVolumeClaim "+s.name+"/data-db-0 of the cluster")
	for _, m := range s.members {
		s.delete(m, s.claimOfDatabase())
	}
	awaitGone(s, s.hub, placement)
	s.awaitCleared(allMembers...)
}

// finalizersOfTheHubStayThere places an object that a controller of the hub holds, and ends the placement: no member has that
// controller.
func finalizersOfTheHubStayThere(s *spec) {
	s.namespaceWithConfigMap()
	guarded := update(s, s.hub, s.configMap(""), func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/clean-up"} })
	ctx := context.WithoutCancel(s.Context()) // a test's own context is over when it is cleaned up
	s.Cleanup(func() {
		if err := client.IgnoreNotFound(s.hub.Patch(ctx, guarded, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))); err != nil {
			s.Logf("cleaning up: %v", err)
		}
	})
	placement := s.place()
	s.awaitAvailable("0")
	for _, m := range s.members {
		placed := s.configMap("")
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(placed), placed))
		require.Empty(s, placed.Finalizers, "on %s", m.name)
	}
	s.delete(s.hub, placement)
	awaitGone(s, s.hub, placement)
	s.awaitCleared(allMembers...)
}

// largeObjectIsLeftOut selects an object that is too large for a snapshot, until it is smaller.
func largeObjectIsLeftOut(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	large := s.configMap(strings.Repeat("<", 400_000)) // six times as large in a snapshot
	large.Name = "angle"
	s.create(large)
	await(s, s.hub, s.placement(), "to say what it leaves out", func(p *placementv1beta1.ClusterResourcePlacement) error {
		left := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionTypeResourcesLeftOut)
		if left == nil || left.Status != metav1.ConditionTrue || left.Reason != placementv1beta1.ReasonObjectTooLarge || !strings.Contains(left.Message, "angle") {
			return fmt.Errorf("it says %+v", left)
		}
		return has(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), metav1.ConditionFalse, p.Generation)
	})
	update(s, s.hub, large, func(c *corev1.ConfigMap) { c.Data["key"] = "small" })
	s.awaitAvailable("1")
	await(s, s.hub, s.placement(), "to leave nothing out", func(p *placementv1beta1.ClusterResourcePlacement) error {
		if left := placementv1beta1.FindTrue(p.Status.Conditions, placementv1beta1.ConditionTypeResourcesLeftOut); left != nil {
			return fmt.Errorf("it says %+v", left)
		}
		return nil
	})
}
