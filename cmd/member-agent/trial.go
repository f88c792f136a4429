package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// trialLasts is for how long a trial waits until the hub says what is wanted, and trialPause after how long it looks again.
	trialLasts, trialPause = time.Minute, 2 * time.Second
	// periodsMissed is how many reports may be missing of an agent that reports.
	periodsMissed = 3
)

// tryHub asks the hub, with the agent's own token, whether the agent of this cluster has joined and reports. It waits for that, and says so.
func tryHub(ctx context.Context, hub *rest.Config, cluster string, out io.Writer) error {
	scheme := runtime.NewScheme()
	if err := clusterv1beta1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("registering the fleet's kinds: %w", err)
	}
	c, err := client.New(hub, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making a client for the hub: %w", err)
	}
	var said string
	var last error
	key := client.ObjectKey{Namespace: placementv1beta1.MemberNamespace(cluster), Name: cluster}
	err = wait.PollUntilContextTimeout(ctx, trialPause, trialLasts, true, func(ctx context.Context) (bool, error) {
		box := &clusterv1beta1.InternalMemberCluster{}
		if last = c.Get(ctx, key, box); last == nil {
			said, last = judge(box, time.Now())
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("asking the hub at %s for %s: %w", hub.Host, cluster, errors.Join(last, err))
	}
	_, err = fmt.Fprintln(out, said)
	return err
}

// judge says that the agent of a cluster has joined and reports, or what is missing.
func judge(box *clusterv1beta1.InternalMemberCluster, now time.Time) (said string, err error) {
	if box.Spec.State != clusterv1beta1.ClusterStateJoin {
		return "", fmt.Errorf("the hub wants it in state %s: it leaves the fleet", box.Spec.State)
	}
	for i := range box.Status.AgentStatus {
		agent := &box.Status.AgentStatus[i]
		if agent.Type != clusterv1beta1.MemberAgent {
			continue
		}
		silent := now.Sub(agent.LastReceivedHeartbeat.Time).Round(time.Second)
		switch period := time.Duration(box.Spec.HeartbeatPeriodSeconds) * time.Second; {
		case !meta.IsStatusConditionTrue(agent.Conditions, clusterv1beta1.ConditionTypeJoined):
			return "", errors.New("its agent has not joined")
		case silent > periodsMissed*period:
			return "", fmt.Errorf("its agent has not reported for %s, with a report due every %s", silent, period)
		}
		return fmt.Sprintf("%s has joined; its agent reported %s ago", box.Name, silent), nil
	}
	return "", errors.New("its agent has never reported")
}
