//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// labelling is a policy that puts a label on what it concerns, on every cluster.
func labelling(value string) placementv1beta1.OverridePolicy {
	return placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
		ClusterSelector: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}},
		JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{{
			Operator: placementv1beta1.JSONPatchOverrideOpAdd, Path: "/metadata/labels",
			Value: apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"override": %q}`, value)},
		}},
	}}}
}

// awaitOverrideSnapshots waits until the snapshots of the spec's override are these, by name; the one in force has a star.
func awaitOverrideSnapshots[T any, P interface {
	*T
	client.Object
}](s *spec, want ...string) []P {
	s.Helper()
	return awaitAll(s, s.hub, fmt.Sprintf("to be %v", want), func(all []P) error {
		var names []string
		for _, snapshot := range all {
			name := snapshot.GetName()
			if snapshot.GetLabels()[placementv1beta1.IsLatestSnapshotLabel] == "true" {
				name += "*"
			}
			names = append(names, name)
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			return fmt.Errorf("they are %v", names)
		}
		return nil
	}, client.MatchingLabels{placementv1beta1.ParentOverrideLabel: s.name})
}

func awaitValid[T any, P interface {
	*T
	client.Object
	GetConditions() []metav1.Condition
}](s *spec, override P) P {
	s.Helper()
	return await(s, s.hub, override, "to be valid", func(o P) error {
		valid := meta.FindStatusCondition(o.GetConditions(), placementv1beta1.ConditionTypeValid)
		if valid == nil || valid.Status != metav1.ConditionTrue || valid.ObservedGeneration != o.GetGeneration() {
			return fmt.Errorf("its condition is %+v", valid)
		}
		return nil
	})
}

// snapshotsFollowTheOverride takes an override of each kind through its life. Nothing of what they select exists.
func snapshotsFollowTheOverride(s *spec) {
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	cluster := &placementv1beta1.ClusterResourceOverride{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: placementv1beta1.ClusterResourceOverrideSpec{
			ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
				{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: s.name}},
			Policy: labelling("one"),
		},
	}
	namespaced := &placementv1beta1.ResourceOverride{
		ObjectMeta: metav1.ObjectMeta{Name: s.name, Namespace: s.name},
		Spec: placementv1beta1.ResourceOverrideSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "config"}},
			Policy:            labelling("one"),
		},
	}
	s.create(cluster)
	s.create(namespaced)
	require.Equal(s, []string{placementv1beta1.OverrideCleanupFinalizer}, awaitValid(s, cluster).Finalizers)
	require.Equal(s, []string{placementv1beta1.OverrideCleanupFinalizer}, awaitValid(s, namespaced).Finalizers)
	awaitOverrideSnapshots[placementv1beta1.ClusterResourceOverrideSnapshot](s, s.name+"-0*")
	awaitOverrideSnapshots[placementv1beta1.ResourceOverrideSnapshot](s, s.name+"-0*")

	update(s, s.hub, cluster, func(o *placementv1beta1.ClusterResourceOverride) { o.Spec.Policy = labelling("two") })
	update(s, s.hub, namespaced, func(o *placementv1beta1.ResourceOverride) { o.Spec.Policy = labelling("two") })
	taken := awaitOverrideSnapshots[placementv1beta1.ClusterResourceOverrideSnapshot](s, s.name+"-0", s.name+"-1*")
	require.Equal(s, cluster.Spec, taken[1].Spec.OverrideSpec)
	require.Len(s, taken[1].Spec.OverrideHash, 64)
	awaitOverrideSnapshots[placementv1beta1.ResourceOverrideSnapshot](s, s.name+"-0", s.name+"-1*")

	update(s, s.hub, cluster, func(o *placementv1beta1.ClusterResourceOverride) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, "a", "b")
	})
	awaitValid(s, cluster)
	awaitOverrideSnapshots[placementv1beta1.ClusterResourceOverrideSnapshot](s, s.name+"-0", s.name+"-1*")

	s.delete(s.hub, cluster)
	s.delete(s.hub, namespaced)
	awaitGone(s, s.hub, cluster)
	awaitGone(s, s.hub, namespaced)
	require.Empty(s, awaitOverrideSnapshots[placementv1beta1.ClusterResourceOverrideSnapshot](s))
	require.Empty(s, awaitOverrideSnapshots[placementv1beta1.ResourceOverrideSnapshot](s))
	s.longestNameIsTaken()
}

// longestNameIsTaken checks that the name of an override, and that of its snapshot, may be as long as the rule says.
func (s *spec) longestNameIsTaken() {
	s.Helper()
	longest := &placementv1beta1.ClusterResourceOverride{
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-" + strings.Repeat("x", 62-len(s.name))},
		Spec: placementv1beta1.ClusterResourceOverrideSpec{
			ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
				{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: s.name}},
			Policy: labelling("one"),
		},
	}
	s.create(longest)
	await(s, s.hub, &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: longest.Name + "-0"}}, "to be taken",
		func(*placementv1beta1.ClusterResourceOverrideSnapshot) error { return nil })
	s.delete(s.hub, longest)
	awaitGone(s, s.hub, longest)
}
