package main

import (
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/promise"
)

// kinds are those that are recorded, by the plural names under which the hub stores them.
var kinds = map[string]func() client.Object{
	"clusterresourceplacements":                 func() client.Object { return &placementv1beta1.ClusterResourcePlacement{} },
	"clusterresourcebindings":                   func() client.Object { return &placementv1beta1.ClusterResourceBinding{} },
	"works":                                     func() client.Object { return &placementv1beta1.Work{} },
	"clusterresourceplacementevictions":         func() client.Object { return &placementv1beta1.ClusterResourcePlacementEviction{} },
	"clusterresourceplacementdisruptionbudgets": func() client.Object { return &placementv1beta1.ClusterResourcePlacementDisruptionBudget{} },
	"clusterstagedupdateruns":                   func() client.Object { return &placementv1beta1.ClusterStagedUpdateRun{} },
	"clusterapprovalrequests":                   func() client.Object { return &placementv1beta1.ClusterApprovalRequest{} },
	"rolloutholds":                              func() client.Object { return &fleetflowv1alpha1.RolloutHold{} },
	"memberclusters":                            func() client.Object { return &clusterv1beta1.MemberCluster{} },
}

// batch is for how long a hub agent that had begun a batch when a hold was made may still write it: it may have been frozen
// in between.
const batch = 30 * time.Second

// verdict is what a judge says of a bundle.
type verdict struct {
	// Writes were recorded; Judged of them took a cluster away, gave one its first resources or deleted one.
	Writes, Judged, Placements int
	// Breaches are the writes that break a promise, in their order.
	Breaches []string
}

// judge replays the writes of a bundle.
func judge(b *bundle) (verdict, error) {
	fleet := promise.NewFleet()
	fleet.Batch = batch
	v := verdict{}
	err := b.eachWrite(func(w write) error {
		v.Writes++
		object := kinds[w.Resource]()
		if err := json.Unmarshal(w.Object, object); err != nil {
			return fmt.Errorf("reading the %s of revision %d: %w", w.Resource, w.Revision, err)
		}
		fleet.At(w.At)
		if err := fleet.Take(object, w.Gone); err != nil {
			v.Breaches = append(v.Breaches, fmt.Sprintf("revision %d, %s, %s: %v", w.Revision, w.At.Format(time.TimeOnly), w.Resource, err))
		}
		return nil
	})
	v.Judged, v.Placements = fleet.Judged()
	return v, err
}
