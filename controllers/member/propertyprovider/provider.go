// Package propertyprovider lets a platform report on its clusters: a PropertyProvider that is built
// into the member agent reports properties and resources, by which placements select and rank
// clusters. A Runner protects the agent from it: if a provider fails, hangs or panics, its
// properties are missing, but the heartbeat is sent.
package propertyprovider

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// PropertyProvider reports facts about the cluster that the agent runs in.
type PropertyProvider interface {
	// Collect is called once per heartbeat, and when the number of nodes changes. It should be
	// fast: its context ends after CollectDeadline, and later results are lost. It is never called
	// again before it has returned.
	Collect(ctx context.Context) PropertyCollectionResponse
	// Start is called once, when the agent starts, with the configuration to access the cluster. It
	// should not block; the context ends with the agent.
	Start(ctx context.Context, config *rest.Config) error
}

// PropertyCollectionResponse is what a provider reports.
type PropertyCollectionResponse struct {
	// Properties are facts about the cluster by name. A property that placements compare must be a
	// quantity. The agent adds its own if they are missing here: the number of nodes, the version
	// and the address of the API server.
	Properties map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue
	// Resources are the capacity, the allocatable and the available resources of the cluster. The
	// agent computes each of the three that is empty from the nodes.
	Resources clusterv1beta1.ResourceUsage
	// Conditions describe the state of the provider. They are shown in the status of the
	// MemberCluster.
	Conditions []metav1.Condition
}
