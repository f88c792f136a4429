//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// lookEvery is how often a spec looks for what it cannot watch.
const lookEvery = 50 * time.Millisecond

// eventually waits until ok no longer says what is missing.
func (s *spec) eventually(what string, ok func() error) {
	s.Helper()
	var last error
	require.Eventually(s, func() bool { last = ok(); return last == nil }, patience, lookEvery, "%s", what)
	require.NoError(s, last)
}

// gadgets is the API group of the kind Gadget, which no other spec has.
func (s *spec) gadgets() string { return s.name + ".example.com" }

// definition is the CustomResourceDefinition of Gadgets, with a status of its own.
func (s *spec) definition() *unstructured.Unstructured {
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": s.gadgets(), "scope": "Namespaced",
		"names": map[string]any{"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": open, "status": open},
			}},
		}},
	}}}
	u.SetAPIVersion("apiextensions.k8s.io/v1")
	u.SetKind("CustomResourceDefinition")
	u.SetName("gadgets." + s.gadgets())
	return u
}

// gadget is the one Gadget in the spec's namespace.
func (s *spec) gadget() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "small"}}}
	u.SetAPIVersion(s.gadgets() + "/v1")
	u.SetKind("Gadget")
	u.SetNamespace(s.name)
	u.SetName("gadget")
	return u
}

// gadgetOn reads the Gadget on a cluster.
func (s *spec) gadgetOn(c *cluster) (*unstructured.Unstructured, error) {
	u := s.gadget()
	return u, c.Get(s.Context(), client.ObjectKeyFromObject(u), u)
}

// namespaceWithGadget creates the definition of Gadgets and one in the spec's namespace, and sees to it that the
// definition goes from everywhere.
func (s *spec) namespaceWithGadget() {
	s.Helper()
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	s.create(s.definition())
	s.Cleanup(func() {
		for _, c := range append(slices.Clone(s.members), s.hub) {
			_ = c.Delete(context.WithoutCancel(s.Context()), s.definition())
		}
	})
	s.eventually("the hub serves Gadgets", func() error { return s.hub.Create(s.Context(), s.gadget()) })
}

// setGadgetStatus writes the status of the Gadget on a member, as its controller would.
func (s *spec) setGadgetStatus(c *cluster, status map[string]any) {
	s.Helper()
	data, err := json.Marshal(map[string]any{"status": status})
	require.NoError(s, err)
	require.NoError(s, c.Status().Patch(s.Context(), s.gadget(), client.RawPatch("application/merge-patch+json", data)))
}

// definitionTerm and namespaceTerm select the definition of Gadgets and the spec's namespace.
func (s *spec) definitionTerm() placementv1beta1.ResourceSelectorTerm {
	return placementv1beta1.ResourceSelectorTerm{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: s.definition().GetName(),
	}
}

func (s *spec) namespaceTerm() placementv1beta1.ResourceSelectorTerm {
	return placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: s.name}
}

// theWork is the one Work of the spec's placement.
func (s *spec) theWork(c *cluster) (*placementv1beta1.Work, error) {
	var list placementv1beta1.WorkList
	err := s.hub.List(s.Context(), &list, client.InNamespace(placementv1beta1.MemberNamespace(c.name)), s.mine())
	if err == nil && len(list.Items) != 1 {
		err = fmt.Errorf("there are %d Works", len(list.Items))
	}
	if err != nil {
		return nil, err
	}
	return &list.Items[0], nil
}

// awaitWork waits until the Work for a member has a condition, with a reason if one is given.
func (s *spec) awaitWork(c *cluster, conditionType string, status metav1.ConditionStatus, reason string) *placementv1beta1.Work {
	s.Helper()
	var found *placementv1beta1.Work
	s.eventually("the Work to be "+conditionType+" "+string(status)+" "+reason, func() error {
		work, err := s.theWork(c)
		if err != nil {
			return err
		}
		found = work
		if err := has(work.Status.Conditions, conditionType, status, work.Generation); err != nil {
			return err
		}
		if got := meta.FindStatusCondition(work.Status.Conditions, conditionType).Reason; reason != "" && got != reason {
			return fmt.Errorf("the reason is %s", got)
		}
		return nil
	})
	return found
}

func definitionAndResourceAreAppliedInOrder(s *spec) {
	member := s.member("member-1")
	s.namespaceWithGadget()
	works := s.record(s.hub, &placementv1beta1.Work{}, client.InNamespace(placementv1beta1.MemberNamespace(member.name)), s.mine())
	s.place(selecting(s.namespaceTerm(), s.definitionTerm()), pickFixed(member.name))
	work := s.awaitWork(member, placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, "")
	_, err := s.gadgetOn(member)
	require.NoError(s, err)
	for _, c := range works.upTo(s, revisionOf(work)) {
		applied := meta.FindStatusCondition(c.object.(*placementv1beta1.Work).Status.Conditions, placementv1beta1.ConditionTypeApplied)
		require.False(s, applied != nil && applied.Status == metav1.ConditionFalse, "the resource waits for its definition: %v", applied)
	}

	s.awaitWork(member, placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue, placementv1beta1.ReasonWorkNotTrackable)
	s.setGadgetStatus(member, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}})
	s.awaitWork(member, placementv1beta1.ConditionTypeAvailable, metav1.ConditionFalse, "")
	s.setGadgetStatus(member, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	s.awaitWork(member, placementv1beta1.ConditionTypeAvailable, metav1.ConditionTrue, placementv1beta1.ReasonAllManifestsAvailable)
}

func kindThatComesLaterIsAppliedThen(s *spec) {
	member := s.member("member-2")
	s.namespaceWithGadget()
	s.place(pickFixed(member.name))
	work := s.awaitWork(member, placementv1beta1.ConditionTypeApplied, metav1.ConditionFalse, "")
	i := slices.IndexFunc(work.Status.ManifestConditions, func(m placementv1beta1.ManifestCondition) bool { return m.Identifier.Kind == "Gadget" })
	require.GreaterOrEqual(s, i, 0)
	message := meta.FindStatusCondition(work.Status.ManifestConditions[i].Conditions, placementv1beta1.ConditionTypeApplied).Message
	require.Contains(s, message, "The cluster has no kind Gadget in "+s.gadgets()+"/v1")

	require.NoError(s, member.Create(s.Context(), s.definition()))
	installed := time.Now()
	s.awaitWork(member, placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, "")
	// The API server itself holds back the first object of a new kind for two seconds.
	s.Logf("applied %s after the definition was installed", time.Since(installed).Round(time.Millisecond))
	_, err := s.gadgetOn(member)
	require.NoError(s, err)
}

func jobIsAvailableOnceAPodIs(s *spec) {
	member := s.member("member-3")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: s.name}, Spec: batchv1.JobSpec{
		Suspend: new(true),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		}},
	}}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	s.create(s.envelope(map[string]client.Object{"job.yaml": job}))
	s.place(pickFixed(member.name))
	await(s, member, job.DeepCopy(), "to be there", func(*batchv1.Job) error { return nil })
	await(s, s.hub, s.placement(), "not to be available", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return has(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), metav1.ConditionFalse, p.Generation)
	})
	job.Spec.Suspend = new(false)
	s.changeEnvelope(map[string]client.Object{"job.yaml": job})
	s.awaitAvailable("1")
	require.NoError(s, member.Get(s.Context(), client.ObjectKeyFromObject(job), job))
	require.True(s, job.Status.Succeeded > 0 || job.Status.Ready != nil && *job.Status.Ready > 0, "%+v", job.Status)
}

// whatIsPrunedGoesLastFirst drops three objects of a placement at once.
func whatIsPrunedGoesLastFirst(s *spec) {
	member := s.member("member-1")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Value: 1}
	grant := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.name},
	}
	s.Cleanup(func() {
		_, _ = s.hub.Delete(context.WithoutCancel(s.Context()), class), s.hub.Delete(context.WithoutCancel(s.Context()), grant)
	})
	s.namespaceWithConfigMap()
	var terms []placementv1beta1.ResourceSelectorTerm
	for _, object := range []client.Object{role, class, grant} {
		gvk, err := s.hub.GroupVersionKindFor(object)
		require.NoError(s, err)
		s.create(object)
		terms = append(terms, placementv1beta1.ResourceSelectorTerm{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: s.name})
	}
	placement := s.place(selecting(append(terms, s.namespaceTerm())...), pickFixed(member.name))
	s.awaitAvailable("0")

	named := client.MatchingFields{"metadata.name": s.name}
	gone := map[string]*recording{
		"role": s.record(member, &rbacv1.ClusterRole{}, named), "class": s.record(member, &schedulingv1.PriorityClass{}, named),
		"grant": s.record(member, &rbacv1.ClusterRoleBinding{}, named),
	}
	update(s, s.hub, placement, func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{s.namespaceTerm()}
	})
	var order []string
	revisions := map[string]uint64{}
	for name, deletions := range gone {
		order = append(order, name)
		s.eventually(name+" to be pruned", func() error {
			for _, c := range deletions.soFar() {
				if c.kind == watch.Deleted {
					revisions[name] = c.revision
					return nil
				}
			}
			return fmt.Errorf("it is there")
		})
	}
	slices.SortFunc(order, func(a, b string) int { return int(revisions[a]) - int(revisions[b]) })
	require.Equal(s, "class, grant, role", strings.Join(order, ", "))
	s.awaitAvailable("1")
}

// letAgentWriteGadgetStatus gives the hub agent the right that its chart gives on request, for Gadgets.
func (s *spec) letAgentWriteGadgetStatus() {
	s.Helper()
	agent := &rbacv1.ClusterRoleBinding{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: "hub-agent"}, agent))
	own := metav1.ObjectMeta{Name: s.name + "-mirror"}
	s.create(&rbacv1.ClusterRole{ObjectMeta: own, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{s.gadgets()}, Resources: []string{"gadgets/status"}, Verbs: []string{"patch"},
	}}})
	granted := &rbacv1.ClusterRoleBinding{ObjectMeta: own, Subjects: agent.Subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: own.Name}}
	s.create(granted)
	s.Cleanup(func() { _ = s.hub.Delete(context.WithoutCancel(s.Context()), granted) })
}

func statusIsMirroredOnTheOriginal(s *spec) {
	member := s.member("member-2")
	s.namespaceWithGadget()
	s.letAgentWriteGadgetStatus()
	placement := s.place(selecting(s.namespaceTerm(), s.definitionTerm()), pickFixed(member.name), func(p *placementv1beta1.PlacementSpec) {
		p.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.RollingUpdateRolloutStrategyType, ReportBackStrategy: mirrorTo(placementv1beta1.ReportBackDestinationOriginalResource)}
	})
	s.awaitWork(member, placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, "")
	s.setGadgetStatus(member, map[string]any{"phase": "warm"})
	s.eventually("the original to say the same", func() error { return s.hubSaysOfGadget("warm") })

	update(s, s.hub, placement, func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.ReportBackStrategy = mirrorTo(placementv1beta1.ReportBackDestinationWorkAPI)
	})
	s.setGadgetStatus(member, map[string]any{"phase": "hot"})
	s.eventually("the Work to say it", func() error {
		work, err := s.theWork(member)
		if err != nil {
			return err
		}
		for _, m := range work.Status.ManifestConditions {
			if m.BackReportedStatus != nil && strings.Contains(string(m.BackReportedStatus.ObservedStatus.Raw), `"phase":"hot"`) {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", work.Status.ManifestConditions)
	})
	require.NoError(s, s.hubSaysOfGadget("warm"), "the original is not told any more")
}

func mirrorTo(destination placementv1beta1.ReportBackDestination) *placementv1beta1.ReportBackStrategy {
	return &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackStrategyTypeMirror, Destination: &destination}
}

func (s *spec) hubSaysOfGadget(phase string) error {
	u, err := s.gadgetOn(s.hub)
	if err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedString(u.Object, "status", "phase"); got != phase {
		return fmt.Errorf("its phase is %q", got)
	}
	return nil
}

// namespaceThatEndsComesBack deletes a namespace on a member while somebody holds on to an object in it.
func namespaceThatEndsComesBack(s *spec) {
	member := s.member("member-2")
	s.namespaceWithConfigMap()
	s.place(pickFixed(member.name))
	s.awaitAvailable("0")
	const hold = "example.com/hold"
	before := update(s, member, s.configMap(""), func(c *corev1.ConfigMap) { c.Finalizers = append(c.Finalizers, hold) }).UID
	s.delete(member, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	work := s.awaitWork(member, placementv1beta1.ConditionTypeApplied, metav1.ConditionFalse, "")
	for _, m := range work.Status.ManifestConditions {
		applied := meta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionTypeApplied)
		if m.Identifier.Kind == "Namespace" {
			require.Contains(s, applied.Message, "being deleted")
		}
	}
	update(s, member, s.configMap(""), func(c *corev1.ConfigMap) {
		c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == hold })
	})
	s.awaitWork(member, placementv1beta1.ConditionTypeApplied, metav1.ConditionTrue, "")
	after := s.configMap("")
	require.NoError(s, member.Get(s.Context(), client.ObjectKeyFromObject(after), after))
	require.NotEqual(s, before, after.UID)
}
