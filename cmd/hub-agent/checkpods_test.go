package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamespacesAreRefusedByTheExpressionOfTheChart(t *testing.T) {
	refuses, err := refusal(`!(["fleet-","kube-"].exists(p, name.startsWith(p)) && !(name in ["fleet-default"])) && !(name in ["temporal"])`)
	require.NoError(t, err)
	for namespace, want := range map[string]bool{"argocd": true, "kube-system": false, "fleet-system": false, "fleet-default": true, "temporal": false} {
		is, err := refuses(namespace)
		require.NoError(t, err)
		assert.Equal(t, want, is, namespace)
	}
	for _, wrong := range []string{"", "request.namespace", `"argocd"`} {
		assert.Error(t, checkPods(t.Context(), []string{"--refused=" + wrong, "--kubeconfig=none"}, t.Output()), wrong)
	}
	assert.Equal(t, []string{"web", "argocd"}, union("web", []string{"argocd"}))
	assert.Equal(t, []string{"argocd"}, union("", []string{"argocd"}))
}
