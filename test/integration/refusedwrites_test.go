//go:build integration

package integration

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// frozenText is what the policy of freeze says.
const frozenText = "not while this cluster is frozen"

// freeze lets somebody's policy refuse any other snapshot for a cluster of the spec, until thaw is called.
func (s *spec) freeze(cluster string) (thaw func()) {
	s.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ObjectSelector: &metav1.LabelSelector{MatchLabels: s.mine()},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{placementv1beta1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"clusterresourcebindings"},
					},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("object.spec.targetCluster != '%s' || object.spec.?resourceSnapshotName.orValue('') == oldObject.spec.?resourceSnapshotName.orValue('')", cluster),
				Message:    frozenText,
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: s.name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	s.create(policy)
	s.create(binding)
	thaw = func() {
		require.NoError(s, client.IgnoreNotFound(s.hub.Delete(s.Context(), binding)))
		require.NoError(s, client.IgnoreNotFound(s.hub.Delete(s.Context(), policy)))
	}
	// It is not in force at once, of which nothing tells but a try.
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resourceSnapshotName":"another"}}`))
	require.Eventually(s, func() bool {
		err := s.hub.Patch(s.Context(), s.bindingOf(cluster), patch, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), frozenText)
	}, patience, visibilityEvery, "%s to be frozen", cluster)
	return thaw
}

// bindingOf is the binding of the spec's placement for a cluster.
func (s *spec) bindingOf(cluster string) *placementv1beta1.ClusterResourceBinding {
	s.Helper()
	var list placementv1beta1.ClusterResourceBindingList
	require.NoError(s, s.hub.List(s.Context(), &list, s.mine()))
	for i := range list.Items {
		if list.Items[i].Spec.TargetCluster == cluster {
			return &list.Items[i]
		}
	}
	require.Fail(s, "there must be a binding", cluster)
	return nil
}

// refusedClusterKeepsNobodyWaiting has a policy of somebody's refuse what a run writes to one cluster: the run says
// so, goes on with the others, can be stopped, and ends once the policy is gone.
func refusedClusterKeepsNobodyWaiting(s *spec) {
	s.externalPlacement()
	both := canary()
	both.MaxConcurrency = new(intstr.FromInt32(2))
	s.strategy(staging(), both)
	thaw := s.freeze("member-3")
	defer thaw()
	run := s.startRun("run", "0")
	awaitFrozen := func() {
		await(s, s.hub, run.DeepCopy(), "to tell that member-3 is frozen", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
			if len(r.Status.StagesStatus) < 2 {
				return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
			}
			for _, c := range r.Status.StagesStatus[1].Clusters {
				switch started := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionTypeStarted); {
				case c.ClusterName != "member-3" && !meta.IsStatusConditionTrue(c.Conditions, placementv1beta1.ConditionTypeSucceeded),
					c.ClusterName == "member-3" && (started == nil || !strings.Contains(started.Message, frozenText)):
					return fmt.Errorf("the conditions of %s are %s", c.ClusterName, spoken(c.Conditions))
				}
			}
			return nil
		})
	}
	awaitFrozen()
	s.awaitValue(value1, "member-1", "member-2")
	s.setState(run, placementv1beta1.StateStop)
	s.awaitStopped(run)
	s.requireNothingOn("member-3")

	s.setState(run, placementv1beta1.StateRun)
	awaitFrozen()
	thaw()
	ended := s.awaitSucceeded(run)
	require.Equal(s, "All stages are completed successfully", saidAtTheEnd(s, ended))
	s.awaitValue(value1, allMembers...)
}
