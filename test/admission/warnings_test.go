//go:build integration

package admission

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// heard keeps the warnings of an API server.
type heard struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeaderWithContext notes one warning.
func (h *heard) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, text)
}

// all returns the warnings, and clear forgets them.
func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.said)
}

func (h *heard) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = nil
}

func TestWhoWritesIsWarned(t *testing.T) {
	placement := func(limit string) string {
		return `
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: warned}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]
  strategy: {rollingUpdate: {maxUnavailable: ` + limit + `, maxSurge: 1}}
`
	}
	override := func(kind, placement string) string {
		selector := `resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: web}]`
		metadata := "{name: warned, namespace: default}"
		if kind == "ClusterResourceOverride" {
			selector = `clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]`
			metadata = "{name: warned}"
		}
		return "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: " + kind + "\nmetadata: " + metadata + "\nspec: {" + placement + selector +
			", policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}}\n"
	}
	for sentence, test := range map[string]struct {
		manifest string
		warnings []string
	}{
		"that nothing may be unavailable": {placement("0"), []string{"spec.strategy.rollingUpdate.maxUnavailable is 0: a change of the resources never reaches a cluster that is available"}},
		"that no percent may be":          {placement("0%"), []string{"spec.strategy.rollingUpdate.maxUnavailable is 0"}},
		"not of a limit of one":           {placement("1"), nil},
		"not of a status that is copied into the namespace": {`
apiVersion: placement.kubernetes-fleet.io/v1
kind: ClusterResourcePlacement
metadata: {name: warned}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]
  statusReportingScope: NamespaceAccessible
`, nil},
		"that the status of a namespaced placement is there already": {`
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourcePlacement
metadata: {name: warned, namespace: default}
spec:
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: web}]
  statusReportingScope: NamespaceAccessible
`, []string{
			"spec.statusReportingScope NamespaceAccessible has no effect on a ResourcePlacement: its status is in its namespace already",
		}},
		"not of a placement in a namespace": {`
apiVersion: placement.kubernetes-fleet.io/v1
kind: ResourcePlacement
metadata: {name: warned, namespace: default}
spec: {resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: web}]}
`, nil},
		"that an override names no placement": {override("ClusterResourceOverride", ""), []string{
			"spec.placement is left out: this override concerns every placement that has the objects",
		}},
		"not of an override of one placement": {override("ClusterResourceOverride", "placement: {name: web}, "), nil},
		"that an override in a namespace names none": {override("ResourceOverride", ""), []string{
			"spec.placement is left out: this override concerns every placement that has the objects",
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			said := &heard{}
			config := rest.CopyConfig(admin.config)
			config.WarningHandlerWithContext = said
			s, err := newSession(config)
			require.NoError(t, err)
			_, err = s.try(t.Context(), parse(t, test.manifest), metav1.DryRunAll)
			require.NoError(t, err)
			assert.Len(t, said.said, len(test.warnings))
			for _, warning := range test.warnings {
				assert.Contains(t, strings.Join(said.said, "\n"), warning)
			}
		})
	}
}
