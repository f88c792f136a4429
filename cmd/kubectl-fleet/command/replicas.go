package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// replicasWord is what `get` calls the shares of clusters in divided workloads.
const replicasWord = "replicas"

// runReplicas shows how the replicas of placements are divided.
func (o *getOptions) runReplicas(ctx context.Context, placements []string) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if len(placements) == 0 {
		return errors.New("say of which placement to show the replicas, as in: kubectl fleet get replicas web")
	}
	shares := []hub.ReplicaShare{}
	for _, name := range placements {
		found, err := o.readShares(ctx, name)
		if err != nil {
			return err
		}
		shares = append(shares, found...)
	}
	if o.Structured() {
		return o.Encode(o.streams.Out, shares)
	}
	if len(shares) == 0 {
		cli.Printf(o.streams.ErrOut, "No replicas are divided. The field policy.replicaScheduling of a placement divides those of its workloads.\n")
		return nil
	}
	columns := []cli.Column{
		{Name: "Workload"}, {Name: "Cluster"}, {Name: "Wanted"}, {Name: "In Force"}, {Name: "Ready"}, {Name: "Completions", Wide: true},
		{Name: "Reason", Wide: true},
	}
	rows := make([][]string, 0, len(shares))
	for _, s := range shares {
		wanted := strconv.Itoa(int(s.Wanted))
		if s.Dropped {
			wanted += " (dropped)"
		}
		rows = append(rows, []string{s.Workload, s.Cluster, wanted, countOr(s.InForce, "-"), countOr(s.Ready, "-"),
			countOr(s.Completions, ""), s.Reason})
	}
	return o.PrintTable(o.streams.Out, columns, rows)
}

// countOr writes a number, or what stands for none.
func countOr(count *int32, none string) string {
	if count == nil {
		return none
	}
	return strconv.Itoa(int(*count))
}

// readShares reads how the replicas of a placement are divided.
func (o *getOptions) readShares(ctx context.Context, name string) (shares []hub.ReplicaShare, err error) {
	c, found, err := o.findOne(ctx, name, hub.KindPlacement)
	if err != nil {
		return nil, err
	}
	reader := hub.Reader{Reader: c}
	ref := found.Ref()
	err = o.factory.Patiently(o.streams, fmt.Sprintf("reading the replicas of %s", ref), func() error {
		bindings, err := reader.BindingsOf(ctx, ref)
		if err != nil {
			return err
		}
		var works map[string][]placementv1beta1.Work
		if len(hub.ReplicaShares(bindings, nil)) > 0 {
			works, err = reader.AllWorks(ctx, ref, bindings)
		}
		if apierrors.IsForbidden(err) {
			cli.Printf(o.streams.ErrOut, "How many are ready is not shown: you may not read works. The role hub-agent-viewer lets you; an administrator of the hub can bind it\n")
			err = nil
		}
		shares = hub.ReplicaShares(bindings, works)
		return err
	})
	return shares, err
}
