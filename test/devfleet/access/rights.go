package access

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AwaitRights returns once the API server lets the user of a client do what all of the rules say in a namespace; without a
// namespace they are rules of the whole cluster. An API server learns of roles and of bindings by a watch of each, so what was
// just created is in force a moment later. Nothing can be watched that tells when, so the server is asked again and again.
func AwaitRights(ctx context.Context, user client.Client, namespace string, rules ...rbacv1.PolicyRule) error {
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	var missing *rbacv1.PolicyRule
	err := wait.PollUntilContextCancel(ctx, retryEvery/4, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		if err := user.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking the API server what the user may do in %s: %w", namespace, err)
		}
		missing = lacking(&review.Status, rules)
		return missing == nil, nil
	})
	if err != nil && missing != nil {
		return fmt.Errorf("waiting until the user has the rule %s in %s: %w", missing, namespace, err)
	}
	return err
}

// lacking returns the first rule that a user has not been given, or nil.
func lacking(given *authorizationv1.SubjectRulesReviewStatus, rules []rbacv1.PolicyRule) *rbacv1.PolicyRule {
	for i := range rules {
		rule := &rules[i]
		ofResources := len(rule.Resources) == 0 || slices.ContainsFunc(given.ResourceRules, func(r authorizationv1.ResourceRule) bool {
			return slices.Equal(r.Verbs, rule.Verbs) && slices.Equal(r.APIGroups, rule.APIGroups) && slices.Equal(r.Resources, rule.Resources) &&
				slices.Equal(r.ResourceNames, rule.ResourceNames)
		})
		ofURLs := len(rule.NonResourceURLs) == 0 || slices.ContainsFunc(given.NonResourceRules, func(r authorizationv1.NonResourceRule) bool {
			return slices.Equal(r.Verbs, rule.Verbs) && slices.Equal(r.NonResourceURLs, rule.NonResourceURLs)
		})
		if !ofResources || !ofURLs {
			return rule
		}
	}
	return nil
}
