package access

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// answering is a client of an API server that answers what a user may do, one answer after the other and the last one again.
func answering(t *testing.T, answers ...authorizationv1.SubjectRulesReviewStatus) (user client.Client, asked *int) {
	t.Helper()
	asked = new(int)
	user = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			review, ok := object.(*authorizationv1.SelfSubjectRulesReview)
			require.True(t, ok, "%T", object)
			assert.Equal(t, "default", review.Spec.Namespace)
			review.Status = answers[min(*asked, len(answers)-1)]
			*asked++
			return nil
		},
	}).Build()
	return user, asked
}

func TestRightsAreAwaitedUntilTheServerKnowsAllRules(t *testing.T) {
	ofMaps := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}
	ofURLs := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
	maps := authorizationv1.ResourceRule{APIGroups: ofMaps.APIGroups, Resources: ofMaps.Resources, Verbs: ofMaps.Verbs}
	one := maps
	one.ResourceNames = []string{"one"}
	urls := authorizationv1.NonResourceRule{NonResourceURLs: ofURLs.NonResourceURLs, Verbs: ofURLs.Verbs}

	user, asked := answering(t,
		authorizationv1.SubjectRulesReviewStatus{},
		authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{one}, NonResourceRules: []authorizationv1.NonResourceRule{urls}},
		authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{one, maps}},
		authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{maps}, NonResourceRules: []authorizationv1.NonResourceRule{urls}})
	require.NoError(t, AwaitRights(t.Context(), user, "", ofMaps, ofURLs))
	assert.Equal(t, 4, *asked)
}

func TestAwaitedRightsThatDoNotComeAreNamed(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	user, _ := answering(t, authorizationv1.SubjectRulesReviewStatus{})
	cancel(errors.New("it took too long"))
	err := AwaitRights(ctx, user, "", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	require.ErrorContains(t, err, "configmaps")
}
