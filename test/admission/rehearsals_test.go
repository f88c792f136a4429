//go:build integration

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// grant lets a user do what rules say, everywhere, and returns a session of the user once the server knows.
func grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) *session {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "granted-" + user}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, object := range []client.Object{role, binding} {
		require.NoError(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), object) })
	}
	s := granted(t, user)
	s.awaitRole(t, role.Name)
	return s
}

func TestARehearsalTakesTheRightToCreateARunOfTheSameScope(t *testing.T) {
	creates := func(group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"create"}}
	}
	rehearse := creates("fleetflow.io", "clusterrehearsals", "rehearsals")
	everywhere := func(s *session) error {
		return s.Create(t.Context(), &fleetflowv1alpha1.ClusterRehearsal{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "rights-"}, Spec: fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"},
		})
	}
	inNamespace := func(s *session) error {
		return s.Create(t.Context(), &fleetflowv1alpha1.Rehearsal{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "rights-"}, Spec: fleetflowv1alpha1.RehearsalSpec{PlacementName: "web"},
		})
	}
	const run, namespacedRun = "clusterstagedupdateruns.placement.kubernetes-fleet.io", "stagedupdateruns.placement.kubernetes-fleet.io"
	reader := grant(t, "rehearsal-reader", rehearse)
	requireRefusal(t, everywhere(reader), "it takes the right to create "+run+", which the user lacks")
	requireRefusal(t, inNamespace(reader), "it takes the right to create "+namespacedRun+", which the user lacks")

	tenant := grant(t, "rehearsal-tenant", rehearse, creates("placement.kubernetes-fleet.io", "stagedupdateruns"))
	requireRefusal(t, everywhere(tenant), "it takes the right to create "+run+", which the user lacks")
	require.NoError(t, inNamespace(tenant))

	releaser := grant(t, "rehearsal-releaser", rehearse, creates("placement.kubernetes-fleet.io", "clusterstagedupdateruns", "stagedupdateruns"))
	require.NoError(t, everywhere(releaser))
	require.NoError(t, inNamespace(releaser))
}

func TestAMemberAnswersItsOwnQuestionsAndNoMoreThanThereIsRoomFor(t *testing.T) {
	r := newRegistrar()
	r.invite(t, "answers-own")
	r.invite(t, "answers-neighbour")
	member := login(t, "answers-own-hub-cluster-access")
	const own, neighbour = "fleet-member-answers-own", "fleet-member-answers-neighbour"
	require.Eventually(t, func() bool {
		return member.List(t.Context(), &fleetflowv1alpha1.MemberQuestionList{}, client.InNamespace(own)) == nil
	}, accessPatience, 50*time.Millisecond)
	question := func(namespace string) *fleetflowv1alpha1.MemberQuestion {
		return &fleetflowv1alpha1.MemberQuestion{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rehearsal-u"},
			Spec: fleetflowv1alpha1.MemberQuestionSpec{
				Type: fleetflowv1alpha1.QuestionRehearse, Deadline: metav1.NewTime(time.Now().Add(time.Minute)),
				AskedFor: fleetflowv1alpha1.QuestionOrigin{Kind: "ClusterRehearsal", Name: "web", UID: "u"},
				Rehearse: &fleetflowv1alpha1.RehearseQuestion{Revision: "1"},
			},
		}
	}
	for _, namespace := range []string{own, neighbour} {
		require.NoError(t, admin.Create(t.Context(), question(namespace)))
	}
	merge := func(patch string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(patch)) }
	answer := func(namespace, objects string) error {
		return member.Status().Patch(t.Context(), question(namespace), merge(fmt.Sprintf(`{"status":{"rehearsal":{"revision":"1","objects":%q}}}`, objects)))
	}
	require.NoError(t, answer(own, "aGFzaA=="))
	for sentence, size := range map[string]int{"more than 64 KiB": 100_000, "10 MB": 10_000_000} {
		err := answer(own, strings.Repeat("aaaa", size/4))
		require.Error(t, err, sentence)
		assert.True(t, apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err), "%s: %v", sentence, err)
	}
	for sentence, err := range map[string]error{
		"answers for its neighbour":   answer(neighbour, "aGFzaA=="),
		"reads what others are asked": member.List(t.Context(), &fleetflowv1alpha1.MemberQuestionList{}, client.InNamespace(neighbour)),
		"changes what it is asked":    member.Patch(t.Context(), question(own), merge(`{"spec":{"rehearse":{"revision":"2"}}}`)),
		"asks": func() error {
			other := question(own)
			other.Name = "mine"
			return member.Create(t.Context(), other)
		}(),
		"deletes what it is asked": member.Delete(t.Context(), question(own)),
	} {
		require.Error(t, err, sentence)
		assert.True(t, apierrors.IsForbidden(err), "a member that %s is refused for another reason: %v", sentence, err)
	}
	err := admin.Patch(t.Context(), question(own), merge(`{"spec":{"rehearse":{"revision":"2"}}}`))
	requireRefusal(t, err, "a question cannot be changed: ask another")
}
