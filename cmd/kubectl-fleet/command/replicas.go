package command

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// replicasWord is what `get` calls the shares of clusters in divided workloads.
const replicasWord = "replicas"

// runReplicas shows how the replicas of placements are divided.
func (l *lists) runReplicas(ctx context.Context, placements []string) error {
	if len(placements) == 0 {
		return errors.New("say of which placement to show the replicas, as in: kubectl fleet get replicas web")
	}
	shares := []hub.ReplicaShare{}
	for _, name := range placements {
		found, err := l.readShares(ctx, name)
		if err != nil {
			return err
		}
		shares = append(shares, found...)
	}
	return base.Show(&l.Viewing, shares, fleetview.ReplicaColumns, shares,
		"No replicas are divided. The field policy.replicaScheduling of a placement divides those of its workloads.")
}

// readShares reads how the replicas of a placement are divided.
func (l *lists) readShares(ctx context.Context, name string) (shares []hub.ReplicaShare, err error) {
	c, found, err := l.FindOne(ctx, name, hub.KindPlacement)
	if err != nil {
		return nil, err
	}
	reader := hub.Reader{Reader: c}
	ref := found.Ref()
	err = l.Factory.Patiently(l.Streams, fmt.Sprintf("reading the replicas of %s", ref), func() error {
		bindings, err := reader.Of(ref).Bindings(ctx)
		if err != nil {
			return err
		}
		var works map[string][]placementv1beta1.Work
		if len(hub.ReplicaShares(bindings, nil)) > 0 {
			works, err = reader.Of(ref).AllWorks(ctx, bindings)
		}
		if apierrors.IsForbidden(err) {
			cli.Printf(l.Streams.ErrOut, "How many are ready is not shown: you may not read works. The role hub-agent-viewer lets you; an administrator of the hub can bind it\n")
			err = nil
		}
		shares = hub.ReplicaShares(bindings, works)
		return err
	})
	return shares, err
}
