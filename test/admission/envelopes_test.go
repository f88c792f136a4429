//go:build integration

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// editors write ConfigMaps in the namespace of their application. The platform's may create ClusterResourceEnvelopes,
// wrappers ResourceEnvelopes in that namespace; what else the Role of the wrappers grants, it cannot grant in a namespace.
const editors = `
apiVersion: v1
kind: Namespace
metadata: {name: placed-app}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tests-edit}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tests-edit, namespace: placed-app}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tests-edit}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: editors}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tests-wrap}
rules:
- {apiGroups: [placement.kubernetes-fleet.io], resources: [clusterresourceenvelopes], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tests-wrap}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tests-wrap}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: platform}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tests-wrap, namespace: placed-app}
rules:
- {apiGroups: [placement.kubernetes-fleet.io], resources: [clusterresourceenvelopes, resourceenvelopes], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tests-wrap, namespace: placed-app}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tests-wrap}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: wrappers}
`

const (
	crb      = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}}`
	plainMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: placed-app}, data: {crb: "` + crb + `"}}`
	wrapping = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: placed-app,
		annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}, data: {crb: "` + crb + `"}}`

	noEnvelope = "the annotation kubernetes-fleet.io/envelope-configmap makes the ConfigMap an envelope, and its content is placed on " +
		"member clusters"
	takesTheRight = ": that takes the right to create %s, which the user lacks: have an administrator of the hub grant it, "
)

// refusedEnvelope says that a ConfigMap would become an envelope, and keptEnvelope that one would change or go.
func refusedEnvelope(right string) string {
	return noEnvelope + fmt.Sprintf(takesTheRight, right) + "leave the annotation out, or have"
}

func keptEnvelope(right string) string {
	return noEnvelope + " and removed there with it" + fmt.Sprintf(takesTheRight, right) + "leave the ConfigMap as it is, or have"
}

func createEditors(t *testing.T) {
	for manifest := range strings.SplitSeq(editors, "\n---\n") {
		admin.create(t, manifest)
	}
}

func TestAnEditorOfAPlacedNamespaceMakesNoConfigMapAnEnvelope(t *testing.T) {
	createEditors(t)
	mallory := granted(t, "mallory", "editors")
	paula := granted(t, "paula", "editors", "platform")
	const right = "clusterresourceenvelopes.placement.kubernetes-fleet.io"
	refusal := refusedEnvelope(right)
	kept := keptEnvelope(right)
	awaitAdmission(t, func(context.Context) error { return creates(fmt.Sprintf(plainMap, "probe"))(t, mallory) })
	awaitAdmission(t, func(context.Context) error { return creates(fmt.Sprintf(wrapping, "probe"))(t, paula) })

	requireRefusal(t, creates(fmt.Sprintf(wrapping, "x"))(t, mallory), refusal)
	requireRefusal(t, creates(fmt.Sprintf(wrapping, "x"))(t, mallory), "user: 'mallory' in '[editors, system:authenticated]' is not allowed to CREATE resource v1, Kind=ConfigMap: placed-app/x; ")
	requireRefusal(t, creates(fmt.Sprintf(wrapping, "x"))(t, granted(t, "walter", "editors", "wrappers")), refusal)

	admin.create(t, fmt.Sprintf(plainMap, "plain"))
	admin.create(t, fmt.Sprintf(wrapping, "wrapped"))
	const annotate = `{metadata: {annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}}`
	changed := func(name, patch string) func(*testing.T, *session) error {
		return changes(configMap, "placed-app", name, patch)
	}
	const anOwner = `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: "1"}]}}`
	for sentence, deed := range map[string]struct {
		do      func(*testing.T, *session) error
		refusal string
	}{
		"annotate a ConfigMap":                        {changed("plain", annotate), refusal},
		"change what an envelope holds":               {changed("wrapped", `{data: {crb: other}}`), kept},
		"add to what an envelope holds":               {changed("wrapped", `{data: {another: one}}`), kept},
		"put bytes into an envelope":                  {changed("wrapped", `{binaryData: {another: aGk=}}`), kept},
		"empty an envelope":                           {changed("wrapped", `{data: null}`), kept},
		"make an envelope a mere ConfigMap":           {changed("wrapped", `{metadata: {annotations: null}}`), kept},
		"say that an envelope is none any more":       {changed("wrapped", `{metadata: {annotations: {kubernetes-fleet.io/envelope-configmap: "false"}}}`), kept},
		"have no placement select an envelope":        {changed("wrapped", `{metadata: {labels: {a: b}}}`), kept},
		"give an envelope an owner that is not there": {changed("wrapped", anOwner), kept},
		"delete an envelope that somebody else made":  {deletes(configMap, "placed-app", "wrapped"), kept},
		"delete all ConfigMaps at once":               {empties(configMap, "placed-app"), kept},
		"annotate a ConfigMap with something else":    {changed("plain", `{metadata: {annotations: {a: b}}}`), ""},
		"say that a ConfigMap is no envelope":         {changed("plain", `{metadata: {annotations: {kubernetes-fleet.io/envelope-configmap: "false"}}}`), ""},
		"label an ordinary ConfigMap":                 {changed("plain", `{metadata: {labels: {a: b}}}`), ""},
		"annotate an envelope with something else":    {changed("wrapped", `{metadata: {annotations: {a: b}}}`), ""},
		"write an envelope as it is":                  {changed("wrapped", `{}`), ""},
		"change what an ordinary ConfigMap holds":     {changed("plain", `{data: {another: one}}`), ""},
		"create an ordinary ConfigMap":                {creates(fmt.Sprintf(plainMap, "more")), ""},
		"delete an ordinary ConfigMap":                {deletes(configMap, "placed-app", "plain"), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			require.NoError(t, deed.do(t, paula), "she may create ClusterResourceEnvelopes")
			if deed.refusal == "" {
				require.NoError(t, deed.do(t, mallory))
				return
			}
			requireRefusal(t, deed.do(t, mallory), deed.refusal)
		})
	}
	t.Run("a namespace that is deleted takes its envelopes with it", func(t *testing.T) {
		controller := as(t, "system:serviceaccount:kube-system:namespace-controller", "system:serviceaccounts", "system:serviceaccounts:kube-system")
		require.NoError(t, deletes(configMap, "placed-app", "wrapped")(t, controller))
	})
}

// TestALargeEnvelopeIsJudgedToo is about the cost that the API server allows an expression.
func TestALargeEnvelopeIsJudgedToo(t *testing.T) {
	createEditors(t)
	mallory := granted(t, "mallory", "editors")
	paula := granted(t, "paula", "editors", "platform")
	large := parse(t, fmt.Sprintf(wrapping, "large"))
	data := map[string]any{}
	for i := range 900 {
		data[fmt.Sprintf("key-%d", i)] = strings.Repeat("x", 1000)
	}
	require.NoError(t, unstructured.SetNestedMap(large.Object, data, "data"))
	awaitAdmission(t, func(ctx context.Context) error { _, err := paula.try(ctx, large, "All"); return err })
	stored := admin.createObject(t, large)
	assert.NoError(t, mallory.update(t.Context(), stored, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": "b"}}}, "All"))
	requireRefusal(t, mallory.update(t.Context(), stored, map[string]any{"data": map[string]any{"key-899": "y"}}, "All"), "makes the ConfigMap an envelope")
}

func TestAHubWhoseConfigMapsHoldNamespacedObjectsAsksForResourceEnvelopes(t *testing.T) {
	createEditors(t)
	awaitAdmission(t, func(context.Context) error {
		return creates(fmt.Sprintf(wrapping, "x"))(t, granted(t, "paula", "editors", "platform"))
	})
	install(t, "configMapEnvelopes: any", "configMapEnvelopes: namespaced")
	paula := granted(t, "paula", "editors", "platform")
	err := awaitRefusal(t, func(context.Context) error { return creates(fmt.Sprintf(wrapping, "x"))(t, paula) })
	requireRefusal(t, err, refusedEnvelope("resourceenvelopes.placement.kubernetes-fleet.io in the namespace"))
	assert.NoError(t, creates(fmt.Sprintf(wrapping, "x"))(t, granted(t, "paula", "editors", "platform", "wrappers")))
}
