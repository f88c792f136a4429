// Package propertyprovider lets a platform tell the fleet about its clusters: a PropertyProvider that is built into the
// member agent reports properties and resources, by which placements select and rank clusters. A Runner keeps the agent
// safe from it: a provider that fails, hangs or panics costs its properties, not the heartbeat.
package propertyprovider

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// PropertyProvider reports what it knows about the cluster the agent runs in.
type PropertyProvider interface {
	// Collect is called once a heartbeat, and when the number of nodes changes. It should be prompt: its context ends
	// after CollectDeadline, and what comes later is lost. It is never called again before it has returned.
	Collect(ctx context.Context) PropertyCollectionResponse
	// Start is called once, when the agent starts, with the access to the cluster. It should not block; the context ends
	// with the agent.
	Start(ctx context.Context, config *rest.Config) error
}

// PropertyCollectionResponse is what a provider reports.
type PropertyCollectionResponse struct {
	// Properties are facts about the cluster by name. What placements are to compare must be a quantity. The agent adds
	// those of its own that are not here: the number of nodes, the version and the address of the API server.
	Properties map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue
	// Resources are what the cluster has, can give and has left. The agent sums up the nodes for each of the three that
	// is empty.
	Resources clusterv1beta1.ResourceUsage
	// Conditions tell how the provider fares. They are shown in the status of the MemberCluster.
	Conditions []metav1.Condition
}
