package hollow

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

const (
	// joinEvery is how often joining is looked at.
	joinEvery = 250 * time.Millisecond
	// beatEvery is how often members are looked for that are to report: a second's worth of them at a time.
	beatEvery = time.Second
)

// Name is that of the i-th member, counted from 0.
func Name(i int) string { return fmt.Sprintf("hollow-%04d", i) }

// Grow lets members join until there are n of them. It returns when the hub says that all have joined. Members that the
// hub knows already are taken over.
func (f *Fleet) Grow(ctx context.Context, n int) error {
	f.mu.Lock()
	first := len(f.members)
	for i := first; i < n; i++ {
		f.members = append(f.members, Name(i))
	}
	f.mu.Unlock()
	group, joining := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := first; i < n; i++ {
		group.Go(func() error { return f.invite(joining, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return f.awaitJoined(ctx, n)
}

// Leave asks the hub to let members leave. They report that they have left; how far they are, their MemberClusters say.
func (f *Fleet) Leave(ctx context.Context, members ...string) error {
	for _, name := range members {
		member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(f.client.Delete(ctx, member)); err != nil {
			return fmt.Errorf("deleting member cluster %s: %w", name, err)
		}
	}
	return nil
}

// Rejoin lets the i-th member join again after it has left. It changes nothing while the member is still leaving.
func (f *Fleet) Rejoin(ctx context.Context, i int) error { return f.invite(ctx, i) }

// invite makes the i-th member known to the hub.
func (f *Fleet) invite(ctx context.Context, i int) error {
	name := Name(i)
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity:               rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name},
		HeartbeatPeriodSeconds: int32(f.options.Heartbeat / time.Second),
	}}
	if f.options.Labels != nil {
		member.Labels = f.options.Labels(i)
	}
	if err := f.client.Create(ctx, member); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating member cluster %s: %w", name, err)
	}
	return nil
}

// awaitJoined returns when n members have joined.
func (f *Fleet) awaitJoined(ctx context.Context, n int) error {
	joined := 0
	err := wait.PollUntilContextCancel(ctx, joinEvery, true, func(ctx context.Context) (bool, error) {
		var list clusterv1beta1.MemberClusterList
		options := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
		if err := f.client.List(ctx, &list, options); err != nil {
			return false, fmt.Errorf("listing the member clusters: %w", err)
		}
		joined = 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, clusterv1beta1.ConditionTypeJoined) {
				joined++
			}
		}
		return joined >= n, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d members have joined: %w", joined, n, err)
	}
	return nil
}

// boxChanged lets a member report when the hub wants something else of it.
func (f *Fleet) boxChanged(object client.Object) {
	box, ok := object.(*clusterv1beta1.InternalMemberCluster)
	if !ok {
		return
	}
	generation, beat := joinedAt(box)
	if generation != box.Generation {
		f.reports.Add(client.ObjectKeyFromObject(box))
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.reported[box.Name]; !known { // an earlier process has played it
		f.reported[box.Name] = beat
	}
}

// joinedAt returns the generation at which a member said that it has joined, 0 if it has not, and when it last reported.
func joinedAt(box *clusterv1beta1.InternalMemberCluster) (int64, time.Time) {
	for _, agent := range box.Status.AgentStatus {
		if said := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTypeJoined); said != nil {
			return said.ObservedGeneration, agent.LastReceivedHeartbeat.Time
		}
	}
	return 0, time.Time{}
}

// report writes a member's mailbox.
func (f *Fleet) report(ctx context.Context, key client.ObjectKey) error {
	behaviour := f.behaviour(key.Name)
	if behaviour.Vanished {
		return nil
	}
	box := &clusterv1beta1.InternalMemberCluster{}
	if err := f.cache.Get(ctx, key, box); err != nil {
		return client.IgnoreNotFound(err)
	}
	now := time.Now()
	patch, err := json.Marshal(map[string]any{"status": letter(box, metav1.NewTime(now.Add(behaviour.Clock)))})
	if err != nil {
		return fmt.Errorf("encoding the report of %s: %w", key.Name, err)
	}
	target := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := f.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(err)
	}
	f.mu.Lock()
	f.reported[key.Name] = now
	f.mu.Unlock()
	return nil
}

// letter returns the report of a healthy member, which leaves as soon as it is asked to. What it says of itself stays the same,
// heartbeats apart.
func letter(box *clusterv1beta1.InternalMemberCluster, now metav1.Time) clusterv1beta1.InternalMemberClusterStatus {
	said := func(kind, reason string) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "A hollow member says so",
			ObservedGeneration: box.Generation, LastTransitionTime: began,
		}
	}
	joined := said(clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ReasonInternalMemberClusterJoined)
	if box.Spec.State == clusterv1beta1.ClusterStateLeave {
		joined.Status = metav1.ConditionFalse
		joined.Reason = clusterv1beta1.ReasonInternalMemberClusterLeft
	}
	return clusterv1beta1.InternalMemberClusterStatus{
		Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
			clusterv1beta1.NodeCountProperty: {Value: strconv.Itoa(nodes), ObservationTime: now},
		},
		ResourceUsage: usage(),
		AgentStatus: []clusterv1beta1.AgentStatus{{
			Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now,
			Conditions: []metav1.Condition{
				joined,
				said(clusterv1beta1.ConditionTypeHealthy, clusterv1beta1.ReasonInternalMemberClusterHealthy),
			},
		}},
	}
}

// nodes is how many a simulated member claims to have.
const nodes = 3

// began is since when members are what they are.
var began = metav1.Now()

func usage() clusterv1beta1.ResourceUsage {
	var u clusterv1beta1.ResourceUsage
	u.ObservationTime = began
	u.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("12"), corev1.ResourceMemory: resource.MustParse("48Gi")}
	u.Allocatable = u.Capacity
	u.Available = u.Capacity
	return u
}

// beat lets members report when it is time, each at its own moment of the period.
func (f *Fleet) beat(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			f.mu.Lock()
			for _, name := range f.members {
				last, known := f.reported[name]
				if known && now.Sub(last) >= f.options.Heartbeat-early(name, f.options.Heartbeat) {
					f.reported[name] = now
					f.reports.Add(client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name})
				}
			}
			f.mu.Unlock()
		}
	}
}

// early spreads members that have joined together over time.
func early(name string, period time.Duration) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	return period / 10 * time.Duration(hash.Sum32()%100) / 100
}
