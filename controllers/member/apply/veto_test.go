package apply

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// patterns reads kind patterns that are right.
func patterns(t *testing.T, texts ...string) []KindPattern {
	t.Helper()
	var all []KindPattern
	for _, text := range texts {
		pattern, err := ParseKindPattern(text)
		require.NoError(t, err, text)
		all = append(all, pattern)
	}
	return all
}

// Acceptance N1.
func TestAnAgentForSomeNamespacesRefusesWhatIsElsewhere(t *testing.T) {
	veto := Veto{Namespaces: []string{"team-a", "team-b"}, DeniedKinds: patterns(t, "Secret")}
	for sentence, test := range map[string]struct {
		id      placementv1beta1.WorkResourceIdentifier
		refused string // the reason; empty if it may be placed
	}{
		"not what is in its namespaces":        {placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "team-b", Name: "c"}, ""},
		"what is in another namespace":         {placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "team-c", Name: "c"}, placementv1beta1.ReasonManifestApplyFailed},
		"what is in none":                      {placementv1beta1.WorkResourceIdentifier{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "r"}, placementv1beta1.ReasonManifestApplyFailed},
		"Namespaces, its own included":         {placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "team-a"}, placementv1beta1.ReasonManifestApplyFailed},
		"what the owner of the cluster vetoes": {placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Secret", Namespace: "team-a", Name: "s"}, placementv1beta1.ReasonRefusedByMember},
	} {
		t.Run(sentence, func(t *testing.T) {
			problem := veto.problemOf(test.id)
			if test.refused == "" {
				assert.Nil(t, problem)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, test.refused, problem.Reason)
			assert.True(t, problem.NoRetry && problem.Refused)
			if problem.Reason == placementv1beta1.ReasonManifestApplyFailed {
				assert.Contains(t, problem.Message, "the agent may only write to namespaces team-a, team-b")
			}
		})
	}
}

func TestAVetoRefusesWhatTheOwnerOfTheClusterSays(t *testing.T) {
	secret := placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Secret", Namespace: "team", Name: "s"}
	binding := placementv1beta1.WorkResourceIdentifier{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding", Name: "b"}
	namespace := placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "istio-system"}
	inside := placementv1beta1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "istio-system", Name: "d"}
	for sentence, test := range map[string]struct {
		veto Veto
		id   placementv1beta1.WorkResourceIdentifier
		want string // a part of the message; empty if it may be placed
	}{
		"nothing by itself":                         {Veto{}, binding, ""},
		"a denied kind":                             {Veto{DeniedKinds: patterns(t, "Secret")}, secret, "no Secret may be placed (--denied-kinds"},
		"all kinds of a group":                      {Veto{DeniedKinds: patterns(t, "*.rbac.authorization.k8s.io")}, binding, "no ClusterRoleBinding.rbac.authorization.k8s.io may be placed"},
		"not a kind of another group":               {Veto{DeniedKinds: patterns(t, "*.rbac.authorization.k8s.io", "Secret.example.com")}, secret, ""},
		"all that is not allowed":                   {Veto{AllowedKinds: patterns(t, "Secret", "Namespace")}, binding, "is none of the kinds that may be placed (--allowed-kinds"},
		"not what is allowed":                       {Veto{AllowedKinds: patterns(t, "Secret", "Namespace")}, secret, ""},
		"what is allowed and denied":                {Veto{AllowedKinds: patterns(t, "*"), DeniedKinds: patterns(t, "Secret")}, secret, "--denied-kinds"},
		"everything":                                {Veto{DeniedKinds: patterns(t, "*")}, inside, "--denied-kinds"},
		"a denied namespace":                        {Veto{DeniedNamespaces: []string{"istio-system"}}, namespace, "into namespace istio-system (--denied-namespaces"},
		"what is in a denied namespace":             {Veto{DeniedNamespaces: []string{"istio-*"}}, inside, "into namespace istio-system (--denied-namespaces"},
		"not a namespace that begins alike":         {Veto{DeniedNamespaces: []string{"istio"}}, inside, ""},
		"not a cluster-scoped object by namespaces": {Veto{DeniedNamespaces: []string{"*"}}, binding, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			problem := test.veto.problemOf(test.id)
			if test.want == "" {
				assert.Nil(t, problem)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, placementv1beta1.ReasonRefusedByMember, problem.Reason)
			assert.Contains(t, problem.Message, KeyOf(test.id).String()+" is refused by the owner of the cluster: ")
			assert.Contains(t, problem.Message, test.want)
			assert.True(t, problem.Refused && problem.NoRetry)
		})
	}
}

func TestRolesOfKubernetesAreNeitherTakenOverNorRemoved(t *testing.T) {
	view := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: "view", UID: "uid-view", Labels: map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	read := func(e *Engine) *rbacv1.ClusterRole {
		role := &rbacv1.ClusterRole{}
		require.NoError(t, e.Client.Get(t.Context(), types.NamespacedName{Name: "view"}, role))
		return role
	}
	const manifest = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"view"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`
	e, writes := newEngine(nil, view.DeepCopy())
	_, problem, err := e.Apply(t.Context(), request(manifest))
	require.NoError(t, err)
	require.NotNil(t, problem)
	assert.Equal(t, placementv1beta1.ReasonReservedForKubernetes, problem.Reason)
	assert.Contains(t, problem.Message, "ClusterRole.rbac.authorization.k8s.io view is refused: Kubernetes keeps it for itself")
	assert.Zero(t, *writes)

	// An earlier agent has taken it over: it is let go of with its Work.
	taken := view.DeepCopy()
	taken.OwnerReferences = []metav1.OwnerReference{me}
	taken.Annotations = map[string]string{placementv1beta1.ManifestHashAnnotation: "hash"}
	e, _ = newEngine(nil, taken)
	gone, err := e.Remove(t.Context(), Decode(raw(manifest))[0].Identifier, me, "")
	require.NoError(t, err)
	assert.True(t, gone)
	role := read(e)
	assert.Empty(t, role.OwnerReferences)
	assert.Empty(t, role.Annotations)
	assert.Equal(t, view.Rules, role.Rules)
}

func TestManifestsOfRolesOfKubernetesAreMarked(t *testing.T) {
	e, _ := newEngine(nil)
	manifests := Decode(raw(
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"system:node"}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"mine","labels":{"kubernetes.io/bootstrapping":"rbac-defaults"}}}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"theirs"}}`,
		`{"kind":"ClusterRole"`,
	))
	e.Veto.MarkRefused(manifests)
	assert.Equal(t, placementv1beta1.ReasonReservedForKubernetes, manifests[0].Problem.Reason)
	assert.Equal(t, placementv1beta1.ReasonReservedForKubernetes, manifests[1].Problem.Reason)
	assert.Nil(t, manifests[2].Problem)
	assert.Equal(t, placementv1beta1.ReasonDecodingErred, manifests[3].Problem.Reason, "what cannot be read says so")
}

const (
	secretAB = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"n"},"data":{"a":"MQ==","b":"Mg=="}}`
	secretA  = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"n"},"data":{"a":"MQ=="}}`
)

func storedSecret(t *testing.T, e *Engine) *corev1.Secret {
	t.Helper()
	out := &corev1.Secret{}
	require.NoError(t, e.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, out))
	return out
}

func TestASecretIsAppliedWithoutACopyOfItsValues(t *testing.T) {
	e, writes := newEngine(nil)
	mustApply(t, e, requestWith(secretAB, placementv1beta1.ApplyStrategy{}))
	assert.NotContains(t, storedSecret(t, e).Annotations, placementv1beta1.LastAppliedConfigAnnotation)
	*writes = 0
	mustApply(t, e, requestWith(secretAB, placementv1beta1.ApplyStrategy{}))
	assert.Zero(t, *writes)

	drifted := storedSecret(t, e)
	drifted.Data["a"], drifted.Data["c"] = []byte("9"), []byte("theirs")
	require.NoError(t, e.Client.Update(t.Context(), drifted, client.FieldOwner("kubectl")))
	result, problem, err := e.Apply(t.Context(), requestWith(secretAB, placementv1beta1.ApplyStrategy{WhenToApply: ifNot}))
	require.NoError(t, err)
	require.NotNil(t, problem)
	assert.Equal(t, placementv1beta1.ReasonFoundDrifts, problem.Reason)
	assert.Len(t, result.Findings.Details, 1)
	mustApply(t, e, requestWith(secretAB, placementv1beta1.ApplyStrategy{}))
	assert.Equal(t, map[string][]byte{"a": []byte("1"), "b": []byte("2"), "c": []byte("theirs")}, storedSecret(t, e).Data)

	mustApply(t, e, requestWith(secretA, placementv1beta1.ApplyStrategy{}))
	assert.Equal(t, map[string][]byte{"a": []byte("1"), "c": []byte("theirs")}, storedSecret(t, e).Data, "what left the manifest goes")
}

// shownSecret is a Secret as KubeFleet's agent and earlier ones of ours applied it.
func shownSecret(t *testing.T, text string) *Engine {
	t.Helper()
	m := Decode(raw(text))[0]
	desired, fits, err := Desired(m, me, nil)
	require.NoError(t, err)
	require.False(t, fits, "a Secret is applied server-side")
	e, _ := newEngine(nil)
	require.NoError(t, e.Client.Create(context.Background(), desired, client.FieldOwner(FieldManager)))
	return e
}

func TestASecretThatShowsItsValuesInAnAnnotationIsCleaned(t *testing.T) {
	for sentence, strategy := range map[string]placementv1beta1.ApplyStrategy{
		"client-side": {}, "server-side": {Type: serverSide}, "if not drifted": {WhenToApply: ifNot},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := shownSecret(t, secretAB)
			before := storedSecret(t, e)
			require.Contains(t, before.Annotations, placementv1beta1.LastAppliedConfigAnnotation)
			mustApply(t, e, requestWith(secretAB, strategy))
			cleaned := storedSecret(t, e)
			assert.NotContains(t, cleaned.Annotations, placementv1beta1.LastAppliedConfigAnnotation)
			assert.Equal(t, before.Annotations[placementv1beta1.ManifestHashAnnotation], cleaned.Annotations[placementv1beta1.ManifestHashAnnotation])
			assert.Equal(t, before.Data, cleaned.Data)

			mustApply(t, e, requestWith(secretA, strategy))
			assert.Equal(t, map[string][]byte{"a": []byte("1")}, storedSecret(t, e).Data, "what left the manifest goes")
		})
	}
	t.Run("if it has drifted and is left alone", func(t *testing.T) {
		e := shownSecret(t, secretAB)
		drifted := storedSecret(t, e)
		drifted.Data["a"] = []byte("9")
		require.NoError(t, e.Client.Update(t.Context(), drifted, client.FieldOwner("kubectl")))
		_, problem, err := e.Apply(t.Context(), requestWith(secretAB, placementv1beta1.ApplyStrategy{WhenToApply: ifNot}))
		require.NoError(t, err)
		require.NotNil(t, problem)
		assert.NotContains(t, storedSecret(t, e).Annotations, placementv1beta1.LastAppliedConfigAnnotation)
		assert.Equal(t, []byte("9"), storedSecret(t, e).Data["a"])
	})
	t.Run("only with its first change, if KubeFleet's agent left it", func(t *testing.T) {
		e := shownSecret(t, secretAB)
		left := storedSecret(t, e)
		left.Annotations[placementv1beta1.ManifestHashAnnotation] = kubeFleetHash(Decode(raw(secretAB))[0].Object)
		require.NoError(t, e.Client.Update(t.Context(), left, client.FieldOwner(FieldManager)))
		for _, strategy := range []placementv1beta1.ApplyStrategy{{}, {WhenToApply: ifNot}, {ComparisonOption: placementv1beta1.ComparisonOptionTypeFullComparison}} {
			mustApply(t, e, requestWith(secretAB, strategy))
			assert.Equal(t, left.ResourceVersion, storedSecret(t, e).ResourceVersion, "a takeover writes nothing")
		}

		drifted := storedSecret(t, e)
		drifted.Data["a"] = []byte("9")
		require.NoError(t, e.Client.Update(t.Context(), drifted, client.FieldOwner("kubectl")))
		mustApply(t, e, requestWith(secretAB, placementv1beta1.ApplyStrategy{}))
		assert.Equal(t, []byte("1"), storedSecret(t, e).Data["a"])
		assert.NotContains(t, storedSecret(t, e).Annotations, placementv1beta1.LastAppliedConfigAnnotation)
	})
	t.Run("if no client is known to have written it", func(t *testing.T) {
		live := shownSecret(t, secretAB)
		restored := storedSecret(t, live)
		restored.ManagedFields = nil
		restored.ResourceVersion = ""
		e, _ := newEngine(nil, restored)
		mustApply(t, e, requestWith(secretAB, placementv1beta1.ApplyStrategy{}))
		assert.NotContains(t, storedSecret(t, e).Annotations, placementv1beta1.LastAppliedConfigAnnotation)
	})
}

func TestKindPatternsMatchAnyVersion(t *testing.T) {
	assert.True(t, matchesAny(patterns(t, "Deployment.apps"), schema.GroupKind{Group: "apps", Kind: "Deployment"}))
	assert.False(t, matchesAny(patterns(t, "Deployment.apps"), schema.GroupKind{Group: "apps", Kind: "StatefulSet"}))
}
