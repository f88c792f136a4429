//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// wrapped are objects as an envelope holds them, by key.
func (s *spec) wrapped(objects map[string]client.Object) map[string]placementv1beta1.ResourceContent {
	s.Helper()
	data := map[string]placementv1beta1.ResourceContent{}
	for key, object := range objects {
		gvk, err := s.hub.GroupVersionKindFor(object)
		require.NoError(s, err)
		object.GetObjectKind().SetGroupVersionKind(gvk)
		raw, err := json.Marshal(object)
		require.NoError(s, err)
		data[key] = placementv1beta1.ResourceContent{RawExtension: runtime.RawExtension{Raw: raw}}
	}
	return data
}

func (s *spec) config(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config", Namespace: s.name}, Data: map[string]string{"foo": value}}
}

// quota is one that nothing in the specs comes near to.
func (s *spec) quota() *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: s.name},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceConfigMaps: resource.MustParse("100")}},
	}
}

func (s *spec) envelope(objects map[string]client.Object) *placementv1beta1.ResourceEnvelope {
	s.Helper()
	return &placementv1beta1.ResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Name: "example", Namespace: s.name}, Data: s.wrapped(objects)}
}

func (s *spec) wrappedRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-pod-reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}},
	}
}

// guard is the webhook of the how-to, asked for objects that nobody creates.
func (s *spec) guard() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-guard"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "guard.example.com",
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"nobody.example.com"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
			}},
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "guard", Namespace: "ops"}},
			AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: new(int32(10)),
		}},
	}
}

// withClusterEnvelope selects the spec's ClusterResourceEnvelope beside its namespace. The readiness of a webhook cannot
// be told, so it is waited for; not for long here.
func (s *spec) withClusterEnvelope(p *placementv1beta1.PlacementSpec) {
	p.ResourceSelectors = append(p.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{
		Group: placementv1beta1.GroupVersion.Group, Version: "v1beta1", Kind: "ClusterResourceEnvelope", Name: s.name,
	})
	p.Strategy = &placementv1beta1.RolloutStrategy{
		Type: placementv1beta1.RollingUpdateRolloutStrategyType, RollingUpdate: &placementv1beta1.RollingUpdateConfig{UnavailablePeriodSeconds: new(int32(1))},
	}
}

func envelopesReachTheMembersOnly(s *spec) {
	s.namespaceWithConfigMap()
	s.create(s.envelope(map[string]client.Object{"cm.yaml": s.config(value1), "quota.yaml": s.quota()}))
	s.create(&placementv1beta1.ClusterResourceEnvelope{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Data:       s.wrapped(map[string]client.Object{"webhook.yaml": s.guard(), "clusterrole.yaml": s.wrappedRole()}),
	})
	s.place(s.withClusterEnvelope)
	placed := s.awaitAvailable("0")
	group := placementv1beta1.GroupVersion.Group
	require.ElementsMatch(s, []placementv1beta1.ResourceIdentifier{
		{Version: "v1", Kind: "Namespace", Name: s.name},
		{Version: "v1", Kind: "ConfigMap", Namespace: s.name, Name: configMapName},
		{Group: group, Version: "v1beta1", Kind: "ResourceEnvelope", Namespace: s.name, Name: "example"},
		{Group: group, Version: "v1beta1", Kind: "ClusterResourceEnvelope", Name: s.name},
	}, placed.Status.SelectedResources)
	s.requireEnvelopesAreWorks()
	for _, wrapped := range []client.Object{s.config(""), s.quota(), s.wrappedRole(), s.guard()} {
		err := s.hub.Get(s.Context(), client.ObjectKeyFromObject(wrapped), wrapped)
		require.NoError(s, client.IgnoreNotFound(err))
		require.Error(s, err, "%T on the hub", wrapped)
		for _, m := range s.members {
			require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(wrapped), wrapped), "%T on %s", wrapped, m.name)
		}
	}

	s.changeEnvelope(map[string]client.Object{"cm.yaml": s.config(value2)})
	s.awaitAvailable("1")
	for _, m := range s.members {
		config := s.config("")
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(config), config))
		require.Equal(s, value2, config.Data["foo"], "on %s", m.name)
		awaitGone(s, m, s.quota())
	}

	s.delete(s.hub, s.envelope(nil))
	s.awaitAvailable("2")
	for _, m := range s.members {
		awaitGone(s, m, s.config(""))
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(s.wrappedRole()), &rbacv1.ClusterRole{}), "the other envelope stays")
	}
}

func (s *spec) changeEnvelope(objects map[string]client.Object) {
	s.Helper()
	update(s, s.hub, s.envelope(nil), func(e *placementv1beta1.ResourceEnvelope) { e.Data = s.wrapped(objects) })
}

// requireEnvelopesAreWorks asserts how the hub tells of envelopes: in the snapshot and in the Works.
func (s *spec) requireEnvelopesAreWorks() {
	s.Helper()
	var snapshot placementv1beta1.ClusterResourceSnapshot
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: s.name + "-0-snapshot"}, &snapshot))
	require.Equal(s, "2", snapshot.Annotations[placementv1beta1.NumberOfEnvelopedObjectsAnnotation])
	var works placementv1beta1.WorkList
	require.NoError(s, s.hub.List(s.Context(), &works, s.mine(), client.InNamespace(placementv1beta1.MemberNamespace("member-1"))))
	require.Len(s, works.Items, 3)
	slices.SortFunc(works.Items, func(a, b placementv1beta1.Work) int { return strings.Compare(a.Name, b.Name) })
	require.Equal(s, s.name+"-work", works.Items[0].Name)
	byType := map[string][2]string{}
	for i := range works.Items[1:] {
		work := &works.Items[1+i]
		require.Regexp(s, `-work-envelope-[0-9a-f]{16}$`, work.Name)
		byType[work.Labels[placementv1beta1.EnvelopeTypeLabel]] = [2]string{
			work.Labels[placementv1beta1.EnvelopeNamespaceLabel], work.Labels[placementv1beta1.EnvelopeNameLabel],
		}
	}
	require.Equal(s, map[string][2]string{"ResourceEnvelope": {s.name, "example"}, "ClusterResourceEnvelope": {"", s.name}}, byType)
}

// annotatedConfigMap is an envelope of the older kind.
func (s *spec) annotatedConfigMap(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "older", Namespace: s.name, Annotations: map[string]string{placementv1beta1.EnvelopeConfigMapAnnotation: "true"}},
		Data:       map[string]string{"quota.yaml": text},
	}
}

// brokenEnvelopeSaysWhatIsWrong breaks an envelope that was fine, with a change of something else along with it.
func brokenEnvelopeSaysWhatIsWrong(s *spec) {
	const quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: quota\nspec:\n  hard:\n    configmaps: \"%d\"\n"
	s.namespaceWithConfigMap()
	s.create(s.annotatedConfigMap(fmt.Sprintf(quota, 100)))
	s.place()
	s.requireAvailable(s.awaitAvailable("0"), "0", "", allMembers...)

	s.changeAnnotated("kind: ResourceQuota\n metadata: {")
	s.changeTo(value2)
	broken := await(s, s.hub, s.placement(), "to say which envelope is broken", func(p *placementv1beta1.ClusterResourcePlacement) error {
		if len(synchronizationFailures(p)) != 1 {
			return fmt.Errorf("its conditions are %s", spoken(p.Status.Conditions))
		}
		return nil
	})
	for cluster, message := range synchronizationFailures(broken) {
		require.Contains(s, message, "Failed to synchronize the work to the latest: ConfigMap "+s.name+`/older: key "quota.yaml": it is neither YAML nor JSON: `)
		s.awaitValue(value2, cluster)
		for _, m := range s.members {
			require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(s.quota()), &corev1.ResourceQuota{}), "what the envelope brought stays on %s", m.name)
		}
	}
	s.requireNoHotLoop()

	s.changeAnnotated(fmt.Sprintf(quota, 200))
	s.awaitValue(value2, allMembers...)
	for _, m := range s.members {
		await(s, m, s.quota(), "to be changed", func(q *corev1.ResourceQuota) error {
			if hard := q.Spec.Hard[corev1.ResourceConfigMaps]; hard.Value() != 200 {
				return fmt.Errorf("it is %s", hard.String())
			}
			return nil
		})
	}
	await(s, s.hub, s.placement(), "to be available everywhere again", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), p.Generation)
	})
}

// objectTwiceInAnEnvelope has an object under two keys of an envelope, and the rest beside it.
func objectTwiceInAnEnvelope(s *spec) {
	s.namespaceWithConfigMap()
	s.create(s.envelope(map[string]client.Object{"a.yaml": s.config(value1), "b.yaml": s.config(value2), "quota.yaml": s.quota()}))
	s.place()
	placed := await(s, s.hub, s.placement(), "to report the object that is there twice", func(p *placementv1beta1.ClusterResourcePlacement) error {
		for _, entry := range p.Status.PerClusterPlacementStatuses {
			if len(entry.FailedPlacements) == 1 {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %s", spoken(p.Status.Conditions))
	})
	for _, entry := range placed.Status.PerClusterPlacementStatuses {
		for _, failed := range entry.FailedPlacements {
			require.Equal(s, "config", failed.Name)
			require.Equal(s, "example", failed.Envelope.Name)
			require.Equal(s, placementv1beta1.ReasonDuplicated, failed.Condition.Reason)
			member := s.member(entry.ClusterName)
			applied := s.config("")
			require.NoError(s, member.Get(s.Context(), client.ObjectKeyFromObject(applied), applied))
			require.Equal(s, value1, applied.Data["foo"], "the first key counts")
			require.NoError(s, member.Get(s.Context(), client.ObjectKeyFromObject(s.quota()), &corev1.ResourceQuota{}), "the rest is applied")
		}
	}
	s.changeEnvelope(map[string]client.Object{"a.yaml": s.config(value1), "quota.yaml": s.quota()})
	await(s, s.hub, s.placement(), "to be available everywhere", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), p.Generation)
	})
}

func (s *spec) changeAnnotated(text string) {
	s.Helper()
	update(s, s.hub, s.annotatedConfigMap(""), func(c *corev1.ConfigMap) { c.Data["quota.yaml"] = text })
}

// synchronizationFailures are the messages of the clusters whose Works could not be written.
func synchronizationFailures(p *placementv1beta1.ClusterResourcePlacement) map[string]string {
	failures := map[string]string{}
	for _, entry := range p.Status.PerClusterPlacementStatuses {
		c := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeWorkSynchronized)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason == placementv1beta1.ReasonSyncWorkFailed {
			failures[entry.ClusterName] = c.Message
		}
	}
	return failures
}

// requireNoHotLoop asserts that bindings and Works are left alone after a while.
func (s *spec) requireNoHotLoop() {
	s.Helper()
	recordings := []*recording{
		s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine()), s.record(s.hub, &placementv1beta1.Work{}, s.mine()),
	}
	var happened []string
	for range quietTries {
		if happened = s.during(recordings, quietFor); len(happened) == 0 {
			return
		}
	}
	require.Empty(s, happened, "though nothing changes")
}
