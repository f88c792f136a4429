//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// awaitRemains waits until a placement says of what is still to be removed what it is to say.
func (s *spec) awaitRemains(placement *placementv1beta1.ClusterResourcePlacement, reason string, words ...string) {
	s.Helper()
	await(s, s.hub, placement.DeepCopy(), "to say "+reason, func(p *placementv1beta1.ClusterResourcePlacement) error {
		said := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionTypeRemovalPending)
		if said == nil {
			return errors.New("it says nothing of removals")
		}
		for _, word := range words {
			if said.Reason != reason || !strings.Contains(said.Message, word) {
				return fmt.Errorf("it says %s: %s", said.Reason, said.Message)
			}
		}
		return nil
	})
}

// uidOf reads the UID of an object on a member.
func (s *spec) uidOf(member string, object client.Object) types.UID {
	s.Helper()
	require.NoError(s, s.member(member).Get(s.Context(), client.ObjectKeyFromObject(object), object))
	return object.GetUID()
}

// endOfOnePlacementKeepsWhatOthersHave ends two placements that share a namespace, one after the other.
func endOfOnePlacementKeepsWhatOthersHave(s *spec) {
	s.namespaceWithConfigMap()
	second := s.configMap("second")
	second.Name = "second"
	second.Labels = map[string]string{"of": "two"}
	s.create(second)
	namespace := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: s.name, SelectionScope: placementv1beta1.NamespaceOnly}
	one := s.place(selecting(namespace))
	s.awaitAvailable("0")
	two := s.teamPlacement(selecting(placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "ConfigMap", Name: second.Name}))
	s.create(two)
	s.awaitTeamPlacement(placementv1beta1.ConditionTypeAvailable, "0")
	other := s.placement(selecting(namespace))
	other.Name += "-other"
	s.create(other)
	before := s.uidOf("member-1", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: second.Name, Namespace: s.name}})
	home := s.uidOf("member-1", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	local := s.configMap("local")
	local.Name = "local"
	require.NoError(s, s.member("member-1").Create(s.Context(), local))

	s.delete(s.hub, one)
	awaitGone(s, s.hub, one)
	await(s, s.hub, other.DeepCopy(), "to have the namespace now", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return isTrue(p.Status.Conditions, ofPlacement(placementv1beta1.ConditionTypeAvailable), p.Generation)
	})
	require.Equal(s, home, s.uidOf("member-1", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}), "it was handed over")

	s.delete(s.hub, other)
	s.awaitRemains(other, placementv1beta1.ReasonInUse, "Namespace "+s.name, "ConfigMap "+s.name+"/second of placement "+s.name+"/web")
	s.delete(s.hub, two)
	awaitGone(s, s.hub, two)
	s.awaitRemains(other, placementv1beta1.ReasonInUse, "member-1: Namespace "+s.name, "ConfigMap "+s.name+"/local of the cluster")
	require.Equal(s, home, s.uidOf("member-1", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}))
	require.NotEmpty(s, before)
	s.delete(s.member("member-1"), local)
	awaitGone(s, s.hub, other)
}

// refusedRemovalIsTold has a member refuse that an object is removed, first while its placement lives and then while that ends.
func refusedRemovalIsTold(s *spec) {
	s.namespaceWithConfigMap()
	leaves := s.configMap("x")
	leaves.Name = "leaves"
	s.create(leaves)
	placement := s.place()
	s.awaitAvailable("0")
	member := s.member("member-1")
	policy, binding := s.policyAgainstRemoval(leaves.Name)
	require.NoError(s, member.Create(s.Context(), policy))
	require.NoError(s, member.Create(s.Context(), binding))
	ctx := context.WithoutCancel(s.Context()) // a test's own context is over when it is cleaned up
	s.Cleanup(func() {
		for _, object := range []client.Object{binding, policy} {
			if err := client.IgnoreNotFound(member.Delete(ctx, object)); err != nil {
				s.Logf("cleaning up: %v", err)
			}
		}
	})
	s.eventually("the policy to be in force on member-1", func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: leaves.Name, Namespace: s.name}}
		if err := member.Delete(s.Context(), probe, client.DryRunAll); err == nil {
			return errors.New("the removal is allowed")
		}
		return nil
	})

	s.delete(s.hub, leaves)
	s.awaitRemains(placement, placementv1beta1.ReasonRemovalRefused, "member-1: ConfigMap "+s.name+"/leaves is still there", "nothing leaves")
	s.delete(s.hub, placement)
	await(s, s.hub, placement.DeepCopy(), "to name what its deletion waits for", func(p *placementv1beta1.ClusterResourcePlacement) error {
		said := meta.FindStatusCondition(p.Status.Conditions, placementv1beta1.ConditionTypeDeleting)
		if said == nil || !strings.Contains(said.Message, "nothing leaves") {
			return fmt.Errorf("it says %v", said)
		}
		return nil
	})
	require.NoError(s, member.Delete(s.Context(), binding))
	awaitGone(s, s.hub, placement)
	s.awaitCleared(allMembers...)
}

// policyAgainstRemoval refuses that a ConfigMap of the spec's namespace is removed.
func (s *spec) policyAgainstRemoval(name string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-policy"}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: fmt.Sprintf("oldObject.metadata.name != %q || oldObject.metadata.namespace != %q", name, s.name), Message: "nothing leaves",
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec.PolicyName = policy.Name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	return policy, binding
}
