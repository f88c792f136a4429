//go:build integration

package integration

import (
	"fmt"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// patching is a rule that makes one operation on the clusters a selector picks.
func patching(selector *metav1.LabelSelector, operator placementv1beta1.JSONPatchOverrideOperator, path, value string) placementv1beta1.OverrideRule {
	return placementv1beta1.OverrideRule{
		ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: selector}}},
		JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{
			Operator: operator, Path: path, Value: apiextensionsv1.JSON{Raw: []byte(value)},
		}},
	}
}

// configMapOverride is an override of the spec's ConfigMap, made for its placement.
func (s *spec) configMapOverride(rules ...placementv1beta1.OverrideRule) *placementv1beta1.ResourceOverride {
	return &placementv1beta1.ResourceOverride{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.name},
		Spec: placementv1beta1.ResourceOverrideSpec{
			Placement:         &placementv1beta1.PlacementRef{Name: s.name},
			ResourceSelectors: []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: configMapName}},
			Policy:            placementv1beta1.OverridePolicy{OverrideRules: rules},
		},
	}
}

// namespaceOverride is an override of the spec's namespace, and so of all that is in it, made for its placement.
func (s *spec) namespaceOverride(rules ...placementv1beta1.OverrideRule) *placementv1beta1.ClusterResourceOverride {
	return &placementv1beta1.ClusterResourceOverride{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: placementv1beta1.ClusterResourceOverrideSpec{
			Placement:                &placementv1beta1.PlacementRef{Name: s.name},
			ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: s.name}},
			Policy:                   placementv1beta1.OverridePolicy{OverrideRules: rules},
		},
	}
}

// awaitOnCluster waits until the entry of a cluster in the placement's status is as wanted.
func (s *spec) awaitOnCluster(cluster, what string, ok func(*placementv1beta1.PerClusterPlacementStatus) error) {
	s.Helper()
	await(s, s.hub, s.placement(), "to say of "+cluster+" "+what, func(p *placementv1beta1.ClusterResourcePlacement) error {
		for i := range p.Status.PerClusterPlacementStatuses {
			if entry := &p.Status.PerClusterPlacementStatuses[i]; entry.ClusterName == cluster {
				return ok(entry)
			}
		}
		return fmt.Errorf("it says nothing of it")
	})
}

func overridesChangeWhatTheirClustersGet(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	s.awaitValue(value1, allMembers...)

	override := s.configMapOverride(
		patching(in("canary"), placementv1beta1.JSONPatchOverrideOpReplace, "/data/key", `"on ${MEMBER-CLUSTER-NAME}, ${MEMBER-CLUSTER-LABEL-KEY-order}"`))
	s.create(override)
	s.awaitValue("on member-1, 2", "member-1")
	s.awaitValue("on member-3, 1", "member-3")
	s.awaitValue(value1, "member-2")
	s.awaitOnCluster("member-1", "which override applies", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		return isOverridden(entry, placementv1beta1.NamespacedName{Namespace: s.name, Name: s.name + "-0"})
	})

	s.create(s.namespaceOverride(patching(in("canary"), placementv1beta1.JSONPatchOverrideOpAdd, "/metadata/labels", `{"team": "a"}`)))
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, s.configMap("")} {
		s.awaitLabel("member-1", object, "team", "a")
	}

	update(s, s.hub, override, func(o *placementv1beta1.ResourceOverride) {
		o.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Value.Raw = []byte(`"again"`)
	})
	s.awaitValue("again", "member-1", "member-3")
	s.delete(s.hub, override)
	s.awaitValue(value1, allMembers...)
	s.awaitAvailable("0")
}

func isOverridden(entry *placementv1beta1.PerClusterPlacementStatus, by placementv1beta1.NamespacedName) error {
	if len(entry.ApplicableResourceOverrides) != 1 || entry.ApplicableResourceOverrides[0] != by {
		return fmt.Errorf("it names %v", entry.ApplicableResourceOverrides)
	}
	if c := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeOverridden); c == nil || c.Reason != placementv1beta1.ReasonOverriddenSucceeded {
		return fmt.Errorf("its condition is %+v", c)
	}
	return nil
}

// awaitLabel waits until an object on a member has a label.
func (s *spec) awaitLabel(member string, object client.Object, key, value string) {
	s.Helper()
	require.Eventually(s, func() bool {
		err := s.member(member).Get(s.Context(), client.ObjectKeyFromObject(object), object)
		return err == nil && object.GetLabels()[key] == value
	}, patience, visibilityEvery, "%T %s on %s has no label %s=%s: %v", object, object.GetName(), member, key, value, object.GetLabels())
}

func labelsOfAClusterDecideWhichOverrideApplies(s *spec) {
	key := "fleetflow.test/" + s.name
	s.namespaceWithConfigMap()
	s.create(s.configMapOverride(patching(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}},
		placementv1beta1.JSONPatchOverrideOpReplace, "/data/key", `"is ${MEMBER-CLUSTER-LABEL-KEY-`+key+`}"`)))
	s.place()
	s.awaitAvailable("0")
	s.awaitValue(value1, allMembers...)

	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-2"}}
	update(s, s.hub, member, func(m *clusterv1beta1.MemberCluster) { m.Labels[key] = "yes" })
	s.awaitValue("is yes", "member-2")
	update(s, s.hub, member, func(m *clusterv1beta1.MemberCluster) { m.Labels[key] = "sure" })
	s.awaitValue("is sure", "member-2")
	update(s, s.hub, member, func(m *clusterv1beta1.MemberCluster) { delete(m.Labels, key) })
	s.awaitValue(value1, "member-2")
}

func overrideThatFailsIsShownOnItsClusters(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	override := s.configMapOverride(patching(in("staging"), placementv1beta1.JSONPatchOverrideOpAdd, "/data/no/such", `"value"`))
	s.create(override)
	s.awaitOnCluster("member-2", "that it failed", func(entry *placementv1beta1.PerClusterPlacementStatus) error {
		return has(entry.Conditions, placementv1beta1.ConditionTypeOverridden, metav1.ConditionFalse, 1)
	})
	failed := await(s, s.hub, s.placement(), "to say that overriding failed", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return has(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeOverridden), metav1.ConditionFalse, p.Generation)
	})
	for _, entry := range failed.Status.PerClusterPlacementStatuses {
		c := meta.FindStatusCondition(entry.Conditions, placementv1beta1.ConditionTypeOverridden)
		require.NotNil(s, c, entry.ClusterName)
		if entry.ClusterName != "member-2" {
			require.Equal(s, metav1.ConditionTrue, c.Status, entry.ClusterName)
			continue
		}
		require.Equal(s, placementv1beta1.ReasonOverriddenFailed, c.Reason)
		require.Contains(s, c.Message, `Failed to apply the override rules on the resources: add operation does not apply: doc is missing path: "/data/no/such"`)
		require.Contains(s, c.Message, s.name+"-0")
	}
	s.awaitValue(value1, "member-2")

	update(s, s.hub, override, func(o *placementv1beta1.ResourceOverride) {
		o.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Path = "/data/key"
	})
	s.awaitValue("value", "member-2")
	s.awaitAvailable("0")
}

// overrideOfNothingSaysSo leaves out the scope of a reference, by which it means a ClusterResourcePlacement.
func overrideOfNothingSaysSo(s *spec) {
	s.namespaceWithConfigMap()
	require.NoError(s, s.member("member-1").Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}))
	placement := s.teamPlacement(pickFixed("member-1"))
	s.create(placement)
	s.awaitValue(value1, "member-1")
	override := func(ref placementv1beta1.PlacementRef) *placementv1beta1.ResourceOverride {
		o := s.configMapOverride(patching(in("canary"), placementv1beta1.JSONPatchOverrideOpReplace, "/data/key", `"canary"`))
		o.Spec.Placement = &ref
		return o
	}
	for ref, meant := range map[placementv1beta1.PlacementRef]string{
		{Name: placement.Name}: fmt.Sprintf("ResourcePlacement %s/%s exists: if that is meant, set placement.scope: Namespaced", s.name, placement.Name),
		{Name: "misspelt", Scope: placementv1beta1.NamespaceScoped}: fmt.Sprintf("The override refers to ResourcePlacement %s/misspelt, which does not exist", s.name),
	} {
		o := override(ref)
		s.create(o)
		told := await(s, s.hub, o, "to say that it has no effect", func(o *placementv1beta1.ResourceOverride) error {
			valid := meta.FindStatusCondition(o.GetConditions(), placementv1beta1.ConditionTypeValid)
			if valid == nil || valid.Status != metav1.ConditionFalse || valid.Reason != placementv1beta1.ReasonOverridePlacementNotFound {
				return fmt.Errorf("its condition is %+v", valid)
			}
			return nil
		})
		require.Contains(s, meta.FindStatusCondition(told.GetConditions(), placementv1beta1.ConditionTypeValid).Message, meant)
		s.delete(s.hub, o)
		awaitGone(s, s.hub, o)
	}
	s.awaitValue(value1, "member-1")

	right := override(placementv1beta1.PlacementRef{Name: placement.Name, Scope: placementv1beta1.NamespaceScoped})
	s.create(right)
	awaitValid(s, right)
	s.awaitValue("canary", "member-1")
}

func runFreezesTheOverridesItStartsWith(s *spec) {
	s.externalPlacement()
	override := s.configMapOverride(patching(in("canary"), placementv1beta1.JSONPatchOverrideOpReplace, "/data/key", `"first"`))
	s.create(override)
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.awaitValue(value1, "member-2")
	update(s, s.hub, override, func(o *placementv1beta1.ResourceOverride) {
		o.Spec.Policy.OverrideRules[0].JSONPatchOverrides[0].Value.Raw = []byte(`"second"`)
	})
	awaitOverrideSnapshots[placementv1beta1.ResourceOverrideSnapshot](s, s.name+"-0", s.name+"-1*")
	kubectlChannel.approve(s, run, "staging")
	done := s.awaitSucceeded(run)
	for _, cluster := range done.Status.StagesStatus[1].Clusters {
		require.Equal(s, []placementv1beta1.NamespacedName{{Namespace: s.name, Name: s.name + "-0"}}, cluster.ResourceOverrideSnapshots)
	}
	require.Empty(s, done.Status.StagesStatus[0].Clusters[0].ResourceOverrideSnapshots)
	s.awaitValue("first", "member-1", "member-3")

	s.approveAndSucceed(s.startRun("next", "0"), "staging")
	s.awaitValue("second", "member-1", "member-3")
}

// deletedOverrideStaysForARunThatHasFrozenIt deletes an override while a run has yet to bring it to its clusters.
func deletedOverrideStaysForARunThatHasFrozenIt(s *spec) {
	s.externalPlacement()
	override := s.configMapOverride(patching(in("canary"), placementv1beta1.JSONPatchOverrideOpReplace, "/data/key", `"first"`))
	s.create(override)
	s.strategy(staging(approval), canary())
	run := s.startRun("run", "0")
	s.awaitRequest(run, "staging")
	s.delete(s.hub, override)
	awaitOverrideSnapshots[placementv1beta1.ResourceOverrideSnapshot](s, s.name+"-0")
	kubectlChannel.approve(s, run, "staging")
	s.awaitSucceeded(run)
	s.awaitValue("first", "member-1", "member-3")
	awaitGone(s, s.hub, override)

	s.approveAndSucceed(s.startRun("next", "0"), "staging")
	s.awaitValue(value1, allMembers...)
}

// approveAndSucceed approves a stage and waits for the end of its run.
func (s *spec) approveAndSucceed(run *placementv1beta1.ClusterStagedUpdateRun, stage string) {
	s.Helper()
	s.awaitRequest(run, stage)
	kubectlChannel.approve(s, run, stage)
	s.awaitSucceeded(run)
}
