package hubread

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/brake"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Brakes lists the holds and the windows of the hub, and which of its members are busy, and makes the gate of a subject of them.
// A hub that does not serve a kind yet has none of it. Windows and members come from the cache: that one has changed is known a moment
// later. Of the members, no more than the busy ones are taken from it.
//
// An activity that is about to write to clusters lists holds and exemptions past every cache: a hold that was stored before the
// list then stops the write, while a cache may not have it yet.
func Brakes(ctx context.Context, holding, cached client.Reader, rule ExemptionRule, of brake.Subject, now time.Time) (*brake.Chain, error) {
	var members clusterv1beta1.MemberClusterList
	if err := cached.List(ctx, &members, client.MatchingFields{byBusy: granted}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing busy member clusters: %w", err)
	}
	return BrakesOf(ctx, holding, cached, members.Items, rule, of, now)
}

// BrakesOf is Brakes where the members of the fleet are known already.
func BrakesOf(ctx context.Context, holding, cached client.Reader, members []clusterv1beta1.MemberCluster, rule ExemptionRule,
	of brake.Subject, now time.Time) (*brake.Chain, error) {
	var holds fleetflowv1alpha1.RolloutHoldList
	if err := listServed(ctx, holding, &holds); err != nil {
		return nil, fmt.Errorf("listing the rollout holds: %w", err)
	}
	var windows fleetflowv1alpha1.RolloutWindowList
	if err := listServed(ctx, cached, &windows); err != nil {
		return nil, fmt.Errorf("listing the rollout windows: %w", err)
	}
	objects := brake.Objects{Holds: holds.Items, Windows: windows.Items, Members: members}
	if !objects.AnyFor(of, now) {
		return nil, nil
	}
	var err error
	if of.Exemptions, err = Exemptions(ctx, holding, rule, of); err != nil {
		return nil, err
	}
	if SelectsNamespaces(holds.Items, windows.Items) {
		if of.NamespaceLabels, err = NamespaceLabels(ctx, holding, of.Namespace); err != nil {
			return nil, err
		}
	}
	return objects.Chain(of, now), nil
}

// SelectsNamespaces reports whether a hold or window asks for the labels of Namespaces.
func SelectsNamespaces(holds []fleetflowv1alpha1.RolloutHold, windows []fleetflowv1alpha1.RolloutWindow) bool {
	return slices.ContainsFunc(holds, func(h fleetflowv1alpha1.RolloutHold) bool { return h.Spec.NamespaceSelector != nil }) ||
		slices.ContainsFunc(windows, func(w fleetflowv1alpha1.RolloutWindow) bool { return w.Spec.NamespaceSelector != nil })
}

// NamespaceLabels reads the labels of the Namespace of a placement. What is in none, or in one that is gone, has none.
func NamespaceLabels(ctx context.Context, reader client.Reader, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	namespace := NamespaceMetadata(name)
	if err := reader.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace.Labels, nil
}

// NamespaceMetadata returns a Namespace of which no more than the metadata is read, as the cache has it.
func NamespaceMetadata(name string) *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// ExemptionRule says which exemptions count. The zero value is the careful one.
type ExemptionRule struct {
	// Unverified lets those count, too, of which the hub's API server does not say who has made them.
	Unverified bool
}

// Exemptions lists the exemptions of a subject that may count.
func Exemptions(ctx context.Context, reader client.Reader, rule ExemptionRule, of brake.Subject) (brake.Exemptions, error) {
	var all fleetflowv1alpha1.RolloutExemptionList
	if err := listServed(ctx, reader, &all); err != nil {
		return nil, fmt.Errorf("listing the rollout exemptions: %w", err)
	}
	return brake.ExemptionsOf(all.Items, of, !rule.Unverified), nil
}

// listServed lists objects of a kind that the hub may not serve.
func listServed(ctx context.Context, reader client.Reader, list client.ObjectList) error {
	err := reader.List(ctx, list)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// BrakesServed reports whether the hub serves the kinds that close clusters: its CustomResourceDefinitions may be older than the agent.
func BrakesServed(mapper meta.RESTMapper) (bool, error) {
	return serves(mapper, "RolloutHold", "RolloutWindow")
}

// ExemptionsServed reports whether the hub serves RolloutExemptions.
func ExemptionsServed(mapper meta.RESTMapper) (bool, error) {
	return serves(mapper, "RolloutExemption")
}

// RehearsalsServed reports whether the hub serves rehearsals, and the questions to members.
func RehearsalsServed(mapper meta.RESTMapper) (bool, error) {
	return serves(mapper, "ClusterRehearsal", "Rehearsal", "MemberQuestion")
}

func serves(mapper meta.RESTMapper, kinds ...string) (bool, error) {
	for _, kind := range kinds {
		_, err := mapper.RESTMapping(fleetflowv1alpha1.GroupVersion.WithKind(kind).GroupKind(), fleetflowv1alpha1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("asking whether the hub serves the kind %s: %w", kind, err)
		}
	}
	return true, nil
}

// ClusterLabels reads the labels of a cluster from the cache. Of one that leaves the fleet, or has left it, what it has is taken
// away whatever is closed: it is not gated.
func ClusterLabels(ctx context.Context, cached client.Reader, cluster string) (of brake.Cluster, gated bool, err error) {
	member := &clusterv1beta1.MemberCluster{}
	err = cached.Get(ctx, types.NamespacedName{Name: cluster}, member)
	if client.IgnoreNotFound(err) != nil {
		return of, false, fmt.Errorf("reading member cluster %s: %w", cluster, err)
	}
	return brake.Cluster{Name: cluster, Labels: member.Labels}, err == nil && !rules.IsDeleting(member), nil
}

// freshFor is for how long a batch relies on what was listed before it: one that takes longer to write lists again.
const freshFor = 500 * time.Millisecond

// BrakeKeeper keeps the gate for one call of an activity that starts clusters.
type BrakeKeeper struct {
	// Cached has the labels of clusters; Live is past every cache.
	Cached, Live client.Reader
	Clock        clock.PassiveClock
	// Rule says which exemptions count.
	Rule ExemptionRule

	mu      sync.Mutex
	subject brake.Subject
	gate    *brake.Chain
	read    time.Time
}

// Read reads what closes clusters for a subject. It comes before a batch is decided, and after every wait.
func (k *BrakeKeeper) Read(ctx context.Context, of brake.Subject) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.subject = of
	return k.readGate(ctx)
}

// Refresh is Read, unless that was a moment ago.
func (k *BrakeKeeper) Refresh(ctx context.Context, of brake.Subject) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.subject = of
	return k.refresh(ctx)
}

func (k *BrakeKeeper) readGate(ctx context.Context) (err error) {
	k.read = k.Clock.Now()
	k.gate, err = Brakes(ctx, k.Live, k.Cached, k.Rule, k.subject, k.read)
	return err
}

// Closed says, from what was read last, whether a cluster is closed for a kind of start, and why.
func (k *BrakeKeeper) Closed(ctx context.Context, cluster string, start brake.Start) (rollout.Wait, bool, error) {
	k.mu.Lock()
	gate := k.gate
	k.mu.Unlock()
	if gate == nil {
		return rollout.Wait{}, false, nil
	}
	of, gated, err := ClusterLabels(ctx, k.Cached, cluster)
	if err != nil || !gated {
		return rollout.Wait{}, false, err
	}
	closure, closed := gate.Closed(of, start, k.Clock.Now())
	return closure, closed, nil
}

// ForbidsWrite says right before a write whether the cluster is closed for it. What was read too long ago is read again.
func (k *BrakeKeeper) ForbidsWrite(ctx context.Context, cluster string, start brake.Start) (bool, error) {
	k.mu.Lock()
	err := k.refresh(ctx)
	k.mu.Unlock()
	if err != nil {
		return false, err
	}
	_, closed, err := k.Closed(ctx, cluster, start)
	return closed, err
}

func (k *BrakeKeeper) refresh(ctx context.Context) error {
	if k.Clock.Since(k.read) < freshFor {
		return nil
	}
	return k.readGate(ctx)
}

// IsOpen reports whether nothing was read that closes any cluster.
func (k *BrakeKeeper) IsOpen() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gate == nil
}

// NextChange returns when time alone may open or close a cluster; zero if it never does.
func (k *BrakeKeeper) NextChange() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gate.NextChange(k.Clock.Now())
}
