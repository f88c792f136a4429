package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEnvelopesAreCounted(t *testing.T) {
	content := contentOf(t,
		object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: app, annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}}`),
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: app, annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}}`),
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: app, annotations: {kubernetes-fleet.io/envelope-configmap: "false"}}}`),
		object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app}}`),
		object(t, `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: a, namespace: app}, data: {}}`),
		object(t, `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceEnvelope, metadata: {name: a}, data: {}}`),
	)
	assert.Equal(t, 3, content.Envelopes)
	assert.Len(t, content.Manifests, 6, "envelopes are kept in the snapshot as they are")
}
