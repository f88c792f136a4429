//go:build integration

package integration

import (
	"fmt"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// awaitFinding waits until an object of the spec is the only one that failed on a cluster, and returns the condition.
func (s *spec) awaitFinding(cluster, name, reason string) metav1.Condition {
	s.Helper()
	var found metav1.Condition
	s.awaitOnCluster(cluster, name+" failed for "+reason, func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.FailedPlacements) != 1 || entry.FailedPlacements[0].Name != name || entry.FailedPlacements[0].Condition.Reason != reason {
			return fmt.Errorf("it names %+v", entry.FailedPlacements)
		}
		found = entry.FailedPlacements[0].Condition
		return nil
	})
	return found
}

func whatClustersDecideOnIsKept(s *spec) {
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	scaled := s.deployment()
	scaled.Annotations = map[string]string{placementv1beta1.RetainReplicasAnnotation: "true"}
	s.create(scaled)
	service := s.service()
	service.Spec.Type = corev1.ServiceTypeNodePort
	s.create(service)
	s.place(applying(placementv1beta1.ApplyStrategy{}))
	s.awaitAvailable("0")

	member := s.member("member-1")
	before := s.service()
	require.NoError(s, member.Get(s.Context(), keyOf(before), before))
	update(s, member, s.deployment(), func(d *appsv1.Deployment) {
		d.Spec.Replicas = new(int32(4))
		d.Annotations["theirs"] = "kept"
	})
	update(s, s.hub, s.service(), func(o *corev1.Service) { o.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	update(s, s.hub, s.deployment(), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/web:2" })

	await(s, member, s.deployment(), "to have the new image", func(d *appsv1.Deployment) error {
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example/web:2" {
			return fmt.Errorf("it has %s", image)
		}
		require.EqualValues(s, 4, *d.Spec.Replicas)
		require.Equal(s, "kept", d.Annotations["theirs"])
		return nil
	})
	await(s, member, s.service(), "to have the new affinity", func(o *corev1.Service) error {
		if o.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
			return fmt.Errorf("it has %s", o.Spec.SessionAffinity)
		}
		require.Equal(s, before.Spec.ClusterIP, o.Spec.ClusterIP)
		require.Equal(s, before.Spec.Ports[0].NodePort, o.Spec.Ports[0].NodePort)
		return nil
	})
	require.EqualValues(s, 2, s.replicasOn("member-2"))
}

func (s *spec) replicasOn(name string) int32 {
	s.Helper()
	d := s.deployment()
	require.NoError(s, s.member(name).Get(s.Context(), keyOf(d), d))
	return *d.Spec.Replicas
}

func conflictsNameFieldsAndOwners(s *spec) {
	s.namespaceWithConfigMap()
	s.place(applying(placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeServerSideApply}))
	s.awaitAvailable("0")
	changed := s.configMap("")
	require.NoError(s, s.member("member-1").Get(s.Context(), keyOf(changed), changed))
	before := changed.DeepCopy()
	changed.Data["key"] = "theirs"
	require.NoError(s, s.member("member-1").Patch(s.Context(), changed, client.MergeFrom(before), client.FieldOwner("somebody")))
	c := s.awaitFinding("member-1", configMapName, "ApplyConflictWithOtherApplier")
	require.Contains(s, c.Message, `.data.key is owned by "somebody"`)
	s.awaitValue("theirs", "member-1")

	s.applyBy(placementv1beta1.ApplyStrategy{
		Type: placementv1beta1.ApplyStrategyTypeServerSideApply, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true},
	})
	s.awaitValue(value1, allMembers...)
	s.awaitAvailable("0")
}

func immutableFieldIsNamed(s *spec) {
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	fixed := func(value string) *corev1.ConfigMap {
		object := s.configMap(value)
		object.Immutable = new(true)
		return object
	}
	s.create(fixed(value1))
	s.place(applying(placementv1beta1.ApplyStrategy{}))
	s.awaitAvailable("0")
	s.delete(s.hub, fixed(value1))
	s.create(fixed(value2))
	c := s.awaitFinding("member-1", configMapName, "ManifestApplyFailed")
	require.Contains(s, c.Message, "Failed to apply the manifest: data cannot be changed once the object exists")

	s.applyBy(reportDiff)
	s.awaitOnCluster("member-1", "that it differs", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DiffedPlacements) != 1 {
			return fmt.Errorf("it names %+v", entry.DiffedPlacements)
		}
		require.Equal(s, []placementv1beta1.PatchDetail{{Path: "/data/key", ValueInHub: value2, ValueInMember: value1}}, entry.DiffedPlacements[0].ObservedDiffs)
		return nil
	})
	s.applyBy(placementv1beta1.ApplyStrategy{})
	for _, name := range allMembers {
		s.delete(s.member(name), s.configMap(""))
	}
	s.awaitValue(value2, allMembers...)
}

func secretsAreNeverShown(s *spec) {
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: s.name}}
	secret.Data = map[string][]byte{"token": []byte("of the hub")}
	s.create(secret.DeepCopy())
	s.place(applying(placementv1beta1.ApplyStrategy{WhenToApply: placementv1beta1.WhenToApplyTypeIfNotDrifted}))
	s.awaitAvailable("0")
	update(s, s.member("member-1"), secret.DeepCopy(), func(o *corev1.Secret) { o.Data["token"] = []byte("of the member") })
	const redacted = "(redacted for security reasons)"
	s.awaitOnCluster("member-1", "that the Secret drifted", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		if len(entry.DriftedPlacements) != 1 {
			return fmt.Errorf("it names %+v", entry.DriftedPlacements)
		}
		require.Equal(s, []placementv1beta1.PatchDetail{{Path: "/data/token", ValueInHub: redacted, ValueInMember: redacted}}, entry.DriftedPlacements[0].ObservedDrifts)
		return nil
	})
}
