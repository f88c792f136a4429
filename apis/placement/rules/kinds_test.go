package rules_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestTheKindsThatClustersHaveToServeAreThoseOfWhatIsPlaced(t *testing.T) {
	manifests := [][]byte{
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`), []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`),
		[]byte(`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ResourceEnvelope","metadata":{"name":"e"}}`),
		[]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}`), []byte(`no JSON`),
	}
	config := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	policy := &placementv1beta1.PlacementPolicy{UnservedKinds: placementv1beta1.UnservedKindsExclude}
	assert.Equal(t, []schema.GroupVersionKind{config, widget}, rules.KindsToServe(policy, rules.KindsIn(manifests)))
	assert.Empty(t, rules.KindsToServe(&placementv1beta1.PlacementPolicy{}, rules.KindsIn(manifests)))
	assert.Empty(t, rules.KindsToServe(nil, rules.KindsIn(manifests)))

	manifests = append(manifests, []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"}}`))
	assert.False(t, slices.Contains(rules.KindsToServe(policy, rules.KindsIn(manifests)), widget), "the kind comes with its definition")

	placement := &placementv1beta1.ClusterResourcePlacement{}
	placement.Status.SelectedResources = []placementv1beta1.ResourceIdentifier{{Version: "v1", Kind: "ConfigMap", Name: "a"}}
	assert.Equal(t, []schema.GroupVersionKind{config}, rules.KindsToServe(policy, rules.SelectedKinds(placement)))
}
