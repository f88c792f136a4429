package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	deployment      = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"},"spec":{"replicas":2,"selector":{}}}`
	unscaled        = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"},"spec":{"selector":{},"paused":true}}`
	scaledElsewhere = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n","annotations":{"fleetflow.io/retain-replicas":"true"}},"spec":{"replicas":2,"selector":{}}}`
)

func TestReplicasAreKept(t *testing.T) {
	scaled := func(by string) func(*testing.T, *Engine) {
		return func(t *testing.T, e *Engine) {
			t.Helper()
			object := storedDeployment(t, e)
			object.Spec.Replicas = new(int32(7))
			require.NoError(t, e.Client.Update(t.Context(), object, client.FieldOwner(by)))
		}
	}
	tests := map[string]struct {
		first, then string
		between     func(*testing.T, *Engine)
		want        int32
	}{
		"replicas that the manifest sets are set back":                       {deployment, deployment, scaled("hpa"), 2},
		"replicas that it sets no longer stay":                               {deployment, unscaled, nil, 2},
		"also if an autoscaler has taken them over":                          {deployment, unscaled, scaled("hpa"), 7},
		"replicas that it never set stay":                                    {unscaled, unscaled, scaled("hpa"), 7},
		"if the object asks for it, they stay though the manifest sets them": {scaledElsewhere, scaledElsewhere, scaled("hpa"), 7},
	}
	for name, tc := range tests {
		for _, kind := range []placementv1beta1.ApplyStrategyType{clientSide, serverSide} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				e, writes := newEngine(nil)
				strategy := placementv1beta1.ApplyStrategy{Type: kind, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}}
				mustApply(t, e, requestWith(tc.first, strategy))
				if tc.between != nil {
					tc.between(t, e)
				}
				mustApply(t, e, requestWith(tc.then, strategy))
				require.NotNil(t, storedDeployment(t, e).Spec.Replicas)
				assert.Equal(t, tc.want, *storedDeployment(t, e).Spec.Replicas)
				*writes = 0
				mustApply(t, e, requestWith(tc.then, strategy))
				assert.Zero(t, *writes)
			})
		}
	}
}

func storedDeployment(t *testing.T, e *Engine) *appsv1.Deployment {
	t.Helper()
	out := &appsv1.Deployment{}
	require.NoError(t, e.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, out))
	return out
}

func TestWhatControllersInTheClusterOwnIsKept(t *testing.T) {
	tests := map[string]struct {
		before, now string
		change      func(o map[string]any)
		want        string // the patch, without annotations
	}{
		"node ports and addresses of a Service": {
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"clusterIP":"10.0.0.1","ports":[{"port":80,"nodePort":30001}]}}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`, nil, `{}`,
		},
		"secrets of a ServiceAccount": {
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"secrets":[{"name":"token"}]}`,
			`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"}}`, nil, `{}`,
		},
		"the pods of a CloneSet that are to go": {
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"a"},"spec":{"scaleStrategy":{"maxUnavailable":1,"podsToDelete":["a-1"]}}}`,
			`{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"a"},"spec":{"scaleStrategy":{"maxUnavailable":1}}}`, nil, `{}`,
		},
		"the rules that the cluster gathers for a role": {
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[{}]},"rules":[{"verbs":["get"]}]}`,
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[{}]},"rules":[{"verbs":["get"]}]}`,
			func(o map[string]any) {
				o["rules"] = []any{map[string]any{"verbs": []any{"list"}}}
				base, _, _ := unstructured.NestedString(o, "metadata", "annotations", placementv1beta1.LastAppliedConfigAnnotation)
				base = strings.Replace(base, `"kind"`, `"rules":[{"verbs":["get"]}],"kind"`, 1) // as it was written before
				_ = unstructured.SetNestedField(o, base, "metadata", "annotations", placementv1beta1.LastAppliedConfigAnnotation)
			}, `{}`,
		},
		"a certificate that the cluster injects": {
			`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"a","annotations":{"cert-manager.io/inject-ca-from":"n/c"}},"webhooks":[{"name":"x","clientConfig":{"caBundle":"eA=="}}]}`,
			`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"a","annotations":{"cert-manager.io/inject-ca-from":"n/c"}},"webhooks":[{"name":"x","clientConfig":{"caBundle":"eA=="}}]}`,
			func(o map[string]any) {
				o["webhooks"] = []any{map[string]any{"name": "x", "clientConfig": map[string]any{"caBundle": "eQ=="}}}
			}, `{}`,
		},
		"the volume of a claim": {
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"},"spec":{"volumeName":"v"}}`,
			`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"},"spec":{}}`, nil, `{}`,
		},
		"finalizers of others": {
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","finalizers":["hub/old"]}}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","finalizers":["hub/new"]}}`,
			func(o map[string]any) {
				_ = unstructured.SetNestedStringSlice(o, []string{"hub/old", "theirs/one"}, "metadata", "finalizers")
			}, `{"metadata":{"finalizers":["theirs/one","hub/new"]}}`,
		},
		"annotations of others": {
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","annotations":{"x":"1"}}}`,
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`,
			func(o map[string]any) { _ = unstructured.SetNestedField(o, "1", "metadata", "annotations", "theirs") }, `{}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			there := live(t, tc.before, tc.change)
			wanted := desired(t, tc.now)
			retainFinalizers(there, wanted)
			patch, err := ThreeWay(there, wanted)
			require.NoError(t, err)
			got := map[string]any{}
			if !patch.Empty() {
				require.NoError(t, json.Unmarshal(patch.Data, &got))
			}
			annotations, _, _ := unstructured.NestedMap(got, "metadata", "annotations")
			assert.NotContains(t, annotations, "theirs")
			unstructured.RemoveNestedField(got, "metadata", "annotations")
			if metadata, _ := got["metadata"].(map[string]any); len(metadata) == 0 {
				delete(got, "metadata")
			}
			data, err := json.Marshal(got)
			require.NoError(t, err)
			assert.JSONEq(t, tc.want, string(data))
		})
	}
}
