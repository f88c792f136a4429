package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWaves(t *testing.T) {
	gk := schema.ParseGroupKind
	tests := map[string]struct {
		kinds    []string
		want     [][]string
		reversed [][]string
	}{
		"nothing gives no wave": {want: [][]string{}, reversed: [][]string{}},
		"a namespace comes before what lives in it": {
			kinds:    []string{"Deployment.apps", "ConfigMap", "Namespace"},
			want:     [][]string{{"Namespace"}, {"ConfigMap"}, {"Deployment.apps"}},
			reversed: [][]string{{"Deployment.apps"}, {"ConfigMap"}, {"Namespace"}},
		},
		"unnamed kinds come after named ones and before validating webhooks": {
			kinds: []string{
				"ValidatingWebhookConfiguration.admissionregistration.k8s.io", "Widget.example.com",
				"CustomResourceDefinition.apiextensions.k8s.io", "PodDisruptionBudget.policy",
			},
			want: [][]string{
				{"CustomResourceDefinition.apiextensions.k8s.io"}, {"PodDisruptionBudget.policy"},
				{"Widget.example.com"}, {"ValidatingWebhookConfiguration.admissionregistration.k8s.io"},
			},
			reversed: [][]string{
				{"ValidatingWebhookConfiguration.admissionregistration.k8s.io"}, {"Widget.example.com"},
				{"PodDisruptionBudget.policy"}, {"CustomResourceDefinition.apiextensions.k8s.io"},
			},
		},
		"a kind of the same name in another group is not the built-in one": {
			kinds:    []string{"Service.serving.knative.dev", "Service"},
			want:     [][]string{{"Service"}, {"Service.serving.knative.dev"}},
			reversed: [][]string{{"Service.serving.knative.dev"}, {"Service"}},
		},
		"inside a wave the order is kept, and turned round for removal": {
			kinds:    []string{"B.x", "A.x", "C.x"},
			want:     [][]string{{"B.x", "A.x", "C.x"}},
			reversed: [][]string{{"C.x", "A.x", "B.x"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, cmp.Diff(tc.want, Waves(tc.kinds, gk)))
			assert.Empty(t, cmp.Diff(tc.reversed, ReversedWaves(tc.kinds, gk)))
		})
	}
}
