//go:build integration

package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

const (
	// giveBackTimeout bounds how long the fleet may take to be as it was found.
	giveBackTimeout = 2 * time.Minute
	// settleTimeout bounds how long members may take to clear what a test has deleted on the hub in the end.
	settleTimeout = 15 * time.Second
)

// evictionKind is the kind of objects that the hub deletes by itself, a while after they were decided.
const evictionKind = "ClusterResourcePlacementEviction"

// leftOnClusters are the kinds of objects that guides and specs create on the hub and on members, leftOnHub those that
// they create on the hub alone. Namespaces take along what is in them; the hub agent deletes what it has created itself.
var (
	leftOnClusters = []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	}
	leftOnHub = []schema.GroupVersionKind{
		fleetflowv1alpha1.GroupVersion.WithKind("PropagatedType"),
		fleetflowv1alpha1.GroupVersion.WithKind("RolloutHold"),
		fleetflowv1alpha1.GroupVersion.WithKind("RolloutExemption"),
		fleetflowv1alpha1.GroupVersion.WithKind("RolloutWindow"),
		fleetflowv1alpha1.GroupVersion.WithKind("StageAnalysis"),
		fleetflowv1alpha1.GroupVersion.WithKind("MetricSource"),
		placementv1beta1.GroupVersion.WithKind("ClusterStagedUpdateRun"),
		placementv1beta1.GroupVersion.WithKind(evictionKind),
		placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"),
		placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacementDisruptionBudget"),
		placementv1beta1.GroupVersion.WithKind("ClusterResourceOverride"),
		placementv1beta1.GroupVersion.WithKind("ClusterResourceEnvelope"),
		placementv1beta1.GroupVersion.WithKind("ClusterStagedUpdateStrategy"),
		clusterv1beta1.GroupVersion.WithKind("MemberCluster"),
	}
)

// fleetState is what guides and specs may change about a fleet that others after them rely on.
type fleetState struct {
	// ready are the components that run.
	ready   []string
	members map[string]clusterv1beta1.MemberCluster
	objects map[types.UID]leftover
}

// leftover is an object of a cluster.
type leftover struct {
	*metav1.PartialObjectMetadata
	on *cluster
}

func (l leftover) String() string { return fmt.Sprintf("%s %s on %s", l.Kind, l.Name, l.on.name) }

// leaveAsFound gives the fleet back as it is now once the test has ended, however it ends, so that what one test leaves
// behind makes no other fail. A test that succeeds has to give it back itself.
func leaveAsFound(t *testing.T, f *fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), giveBackTimeout)
	defer cancel()
	found, err := f.state(ctx)
	require.NoError(t, err, "looking at the fleet")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
		defer cancel()
		left, err := f.giveBack(ctx, found, t.Failed())
		if err != nil {
			t.Errorf("giving the fleet back as it was found: %v", err)
		}
		switch {
		case len(left) == 0:
		case t.Failed():
			t.Logf("taken away after the failure:\n  %s", strings.Join(left, "\n  "))
		default:
			t.Errorf("left behind, and taken away now:\n  %s", strings.Join(left, "\n  "))
		}
	})
}

// state looks at the fleet.
func (f *fleet) state(ctx context.Context) (*fleetState, error) {
	p := &fleetState{members: map[string]clusterv1beta1.MemberCluster{}, objects: map[types.UID]leftover{}}
	status, err := f.Control.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, component := range status.Components {
		if component.State != control.Stopped {
			p.ready = append(p.ready, component.Name)
		}
	}
	var members clusterv1beta1.MemberClusterList
	if err := f.hub.List(ctx, &members); err != nil {
		return nil, fmt.Errorf("listing the members: %w", err)
	}
	for i := range members.Items {
		p.members[members.Items[i].Name] = members.Items[i]
	}
	for _, c := range append([]*cluster{f.hub}, f.members...) {
		kinds := leftOnClusters
		if c == f.hub {
			kinds = slices.Concat(leftOnHub, leftOnClusters)
		}
		for _, kind := range kinds {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind)
			if err := c.List(ctx, list); err != nil {
				return nil, fmt.Errorf("listing each %s on %s: %w", kind.Kind, c.name, err)
			}
			for i := range list.Items {
				object := &list.Items[i]
				object.SetGroupVersionKind(kind)
				p.objects[object.UID] = leftover{object, c}
			}
		}
	}
	return p, nil
}

// giveBack makes the fleet what it was found as, and says what it had to do for that. What is on its way out is waited
// for after a failure only: who succeeds has no reason to doubt that it goes.
func (f *fleet) giveBack(ctx context.Context, found *fleetState, failed bool) (left []string, err error) {
	status, err := f.Control.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range found.ready {
		if component, _ := status.Component(name); component.State == control.Stopped {
			left = append(left, name+" stopped")
			if err := f.Control.Do(ctx, control.Start, name); err != nil {
				return left, fmt.Errorf("starting %s: %w", name, err)
			}
		}
	}
	if err := f.Control.WaitReady(ctx, found.ready...); err != nil {
		return left, fmt.Errorf("waiting for the components: %w", err)
	}
	now, err := f.settled(ctx, found)
	if err != nil {
		return left, err
	}
	for name, before := range found.members {
		changed, err := f.giveMemberBack(ctx, before, now)
		left = append(left, changed...)
		if err != nil {
			return left, fmt.Errorf("changing member/%s back: %w", name, err)
		}
	}
	deleted, err := deleteNew(ctx, found, now, failed)
	return append(left, deleted...), err
}

// settled looks at the fleet once everything that was not found there is on its way out, or settleTimeout has passed.
func (f *fleet) settled(ctx context.Context, found *fleetState) (now *fleetState, err error) {
	waiting, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	_ = wait.PollUntilContextCancel(waiting, againEvery, true, func(context.Context) (bool, error) {
		if now, err = f.state(ctx); err != nil {
			return false, nil //nolint:nilerr // a server may be starting
		}
		for uid, object := range now.objects {
			if _, before := found.objects[uid]; !before && object.Kind != evictionKind && object.DeletionTimestamp == nil {
				return false, nil
			}
		}
		return true, nil
	})
	return now, err
}

// giveMemberBack gives a member the labels and taints that it had.
func (f *fleet) giveMemberBack(ctx context.Context, before clusterv1beta1.MemberCluster, now *fleetState) (changed []string, err error) {
	member, is := now.members[before.Name]
	if !is {
		return nil, nil
	}
	differs := func(member clusterv1beta1.MemberCluster) bool {
		return !maps.Equal(member.Labels, before.Labels) || !slices.EqualFunc(member.Spec.Taints, before.Spec.Taints, equalTaints)
	}
	if !differs(member) {
		return nil, nil
	}
	changed = []string{fmt.Sprintf("member/%s with labels %v and taints %v", member.Name, member.Labels, member.Spec.Taints)}
	return changed, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var fresh clusterv1beta1.MemberCluster
		if err := f.hub.Get(ctx, client.ObjectKeyFromObject(&before), &fresh); err != nil || !differs(fresh) {
			return client.IgnoreNotFound(err)
		}
		fresh.Labels = before.Labels
		fresh.Spec.Taints = before.Spec.Taints
		return f.hub.Update(ctx, &fresh)
	})
}

func equalTaints(a, b clusterv1beta1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// deleteNew deletes what was not there before, says what that was, and waits until it is gone.
func deleteNew(ctx context.Context, found, now *fleetState, failed bool) (deleted []string, err error) {
	var going []leftover
	for uid, object := range now.objects {
		if _, before := found.objects[uid]; before {
			continue
		}
		if object.DeletionTimestamp == nil {
			if object.Kind != evictionKind {
				deleted = append(deleted, object.String())
			}
			if err := object.on.Delete(ctx, object.PartialObjectMetadata); client.IgnoreNotFound(err) != nil {
				return deleted, fmt.Errorf("deleting %s: %w", object, err)
			}
		}
		going = append(going, object)
	}
	slices.Sort(deleted)
	if len(deleted) == 0 && !failed {
		return nil, nil
	}
	for _, object := range going {
		err := wait.PollUntilContextCancel(ctx, againEvery, true, func(ctx context.Context) (bool, error) {
			fresh := object.DeepCopy()
			err := object.on.Get(ctx, client.ObjectKeyFromObject(fresh), fresh)
			return apierrors.IsNotFound(err) || err == nil && fresh.UID != object.UID, nil
		})
		if err != nil {
			return deleted, fmt.Errorf("waiting until %s is gone: %w", object, err)
		}
	}
	return deleted, nil
}
