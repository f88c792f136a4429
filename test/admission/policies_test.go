//go:build integration

package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// marker is the name of the policy, and of what it refuses, that tells when policies are in force.
	marker = "marker-of-the-tests"
	// everybody is the group that may do everything, as far as RBAC is concerned.
	everybody = "tests:everybody"
	// probeEvery is short: policies come into force within about a second.
	probeEvery = 50 * time.Millisecond
)

// letEverybodyWrite leaves the decision to admission: RBAC is not what is tested here.
func letEverybodyWrite(ctx context.Context) error {
	err := admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everybody-may-do-everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: everybody}},
	})
	if err != nil {
		return fmt.Errorf("letting everybody write: %w", err)
	}
	return nil
}

// awaitPolicies returns when all policies created so far are in force: the server learns of them in their order, so
// that they are once a later one is.
func awaitPolicies(ctx context.Context) error {
	policy, binding := markerPolicy()
	for _, object := range []client.Object{policy, binding} {
		if err := admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating the marker: %w", err)
		}
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: marker}}
	err := wait.PollUntilContextCancel(ctx, probeEvery, true, func(ctx context.Context) (bool, error) {
		err := admin.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		if apierrors.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the policies to be in force: %w", err)
	}
	return errors.Join(admin.Delete(ctx, binding), admin.Delete(ctx, policy))
}

func markerPolicy() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: marker},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("object.metadata.name != %q", marker)}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: marker},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: marker, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	return policy, binding
}
