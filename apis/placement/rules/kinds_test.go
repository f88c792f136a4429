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
	config := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	placement := &placementv1beta1.ClusterResourcePlacement{}
	selected := func(kind schema.GroupVersionKind, name string) {
		placement.Status.SelectedResources = append(placement.Status.SelectedResources, placementv1beta1.ResourceIdentifier{
			Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Name: name,
		})
	}
	selected(config, "a")
	selected(config, "b")
	selected(placementv1beta1.GroupVersion.WithKind("ResourceEnvelope"), "e")
	selected(widget, "w")
	policy := &placementv1beta1.PlacementPolicy{UnservedKinds: placementv1beta1.UnservedKindsExclude}
	assert.Equal(t, []schema.GroupVersionKind{config, widget}, rules.KindsToServe(policy, rules.SelectedKinds(placement)))
	assert.Nil(t, rules.KindsToServe(&placementv1beta1.PlacementPolicy{}, rules.SelectedKinds(placement)))
	assert.Nil(t, rules.KindsToServe(nil, rules.SelectedKinds(placement)))

	selected(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "widgets.example.com")
	assert.False(t, slices.Contains(rules.KindsToServe(policy, rules.SelectedKinds(placement)), widget), "the kind comes with its definition")
}
