package migration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestFieldsThatTheAPIDoesNotHaveAreNamed(t *testing.T) {
	stored := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "web"},
		"spec":     map[string]any{"revisionHistoryLimit": int64(3), "later": map[string]any{"thing": "x"}},
	}}
	placement, unknown, err := decodeStrictly[placementv1beta1.PlacementObject](fixture.Scheme(t), placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"), stored)
	require.NoError(t, err)
	assert.Equal(t, "web", placement.GetName())
	assert.Equal(t, int32(3), *placement.GetPlacementSpec().RevisionHistoryLimit, "the others are read")
	assert.Equal(t, []string{`unknown field "spec.later"`}, unknown)
}
