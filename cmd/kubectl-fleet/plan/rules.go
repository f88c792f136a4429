package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// publishedRules is the ConfigMap in which the chart of the hub agent tells every user what the hub places.
var publishedRules = client.ObjectKey{Namespace: metav1.NamespacePublic, Name: "fleetflow-placed"}

// readEnvelopeRules reads what the hub lets envelopes hold. A note says what could not be read; the plan is then made as if
// the hub had no such limit.
func (f *Facts) readEnvelopeRules(ctx context.Context, c client.Reader,
	served func() (*snapshot.Catalog, error)) (notes []string, err error) {
	f.Rules = envelope.Rules{ClusterScopedInConfigMaps: true}
	if !f.haveEnvelopes() {
		return nil, nil
	}
	catalog, err := served()
	if err != nil {
		return nil, err
	}
	f.Rules.Scope = envelope.Served(catalog)
	published := &corev1.ConfigMap{}
	if err := c.Get(ctx, publishedRules, published); err != nil {
		return []string{fmt.Sprintf("what the hub agent's flags keep out of envelopes is not known, the plan goes on as if they kept out nothing: reading ConfigMap %s: %v", publishedRules, err)}, nil
	}
	f.Rules.ClusterScopedInConfigMaps = published.Data["configMapEnvelopes"] != "namespaced"
	f.Rules.Filter, err = filterOf(published)
	if len(f.Rules.Filter.PlaceableNamespaces()) > 0 {
		f.Rules.ClusterScopedInConfigMaps = false
	}
	return nil, err
}

// PublishedFilter returns what the flags of the hub agent keep from being placed, as its chart tells every user.
func PublishedFilter(ctx context.Context, c client.Reader) (snapshot.Filter, error) {
	published := &corev1.ConfigMap{}
	if err := c.Get(ctx, publishedRules, published); err != nil {
		return snapshot.Filter{}, fmt.Errorf("reading ConfigMap %s: %w", publishedRules, err)
	}
	return filterOf(published)
}

func filterOf(published *corev1.ConfigMap) (snapshot.Filter, error) {
	filter, err := snapshot.NewFilter(snapshot.FilterOptions{
		SkippedAPIs: published.Data["skippedPropagatingAPIs"], AllowedAPIs: published.Data["allowedPropagatingAPIs"],
		SkippedNamespaces: published.Data["skippedPropagatingNamespaces"], PlaceableNamespaces: published.Data["placeableNamespaces"],
	})
	if err != nil {
		return snapshot.Filter{}, fmt.Errorf("reading ConfigMap %s: %w", publishedRules, err)
	}
	return filter, nil
}

// haveEnvelopes reports whether a snapshot that matters has an envelope.
func (f *Facts) haveEnvelopes() bool {
	for _, parts := range f.Parts {
		var all []placementv1beta1.ResourceSnapshotObject
		for _, part := range parts {
			if object, is := part.Object.(placementv1beta1.ResourceSnapshotObject); is {
				all = append(all, object)
			}
		}
		if workmodel.HasEnvelopes(all) {
			return true
		}
	}
	return false
}
