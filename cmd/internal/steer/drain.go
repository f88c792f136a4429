package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// drainTimeout is how long to wait for all evictions by default.
const drainTimeout = 5 * time.Minute

// Drain keeps new placements off a member and evicts those that are there.
func Drain() Verb {
	return onMember(Verb{
		Name: "drain", Aliases: []string{"draincluster"}, Asks: true,
		Short: "Keep new placements off a member and evict those that are there",
		Long: `Cordon a member, then evict every ClusterResourcePlacement from it, each within its disruption budget. Placements
that name their clusters (PickFixed) and namespaced placements cannot be evicted. They are listed: take the member out of
their lists.

Exits with 1 if something stays, and with 124 if an eviction has no outcome in time; run it again to try those again.`,
	}, func() *Request {
		d := &drain{timeout: drainTimeout}
		return &Request{
			Fields:  []Field{{Name: "timeout", Into: &d.timeout, Usage: "How long to wait for the evictions."}},
			Prepare: d.prepare,
		}
	})
}

// Load is what is placed on a member: what can be evicted, and what stays, with the reason.
type Load struct {
	Evict []string
	Stays []string
}

// loadOf works out what can be evicted from a cluster.
func loadOf(cluster string, placements []hub.Placement, bindings []hub.Binding) Load {
	on := map[string]bool{}
	for _, b := range bindings {
		if b.Spec.TargetCluster == cluster && rules.IsLiveBinding(b.Object) {
			on[b.Object.GetNamespace()+"/"+b.Object.GetLabels()[placementv1beta1.ParentPlacementLabel]] = true
		}
	}
	var l Load
	for _, p := range placements {
		switch {
		case !on[p.Namespace+"/"+p.Name]:
		case p.Namespace != "":
			l.Stays = append(l.Stays, fmt.Sprintf("%s: namespaced placements cannot be evicted", p.Ref))
		case p.Spec.Policy != nil && p.Spec.Policy.PlacementType == placementv1beta1.PickFixedPlacementType:
			l.Stays = append(l.Stays, fmt.Sprintf("%s: it names its clusters (PickFixed); take %s out of its list", p.Ref, cluster))
		default:
			l.Evict = append(l.Evict, p.Name)
		}
	}
	slices.Sort(l.Evict)
	slices.Sort(l.Stays)
	return l
}

// ReadLoads reads what is placed, and returns a function that reports how much of that is on a cluster.
func ReadLoads(ctx context.Context, c client.Reader) (func(cluster string) Load, error) {
	reader := hub.Reader{Reader: c}
	placements, err := reader.Placements(ctx)
	if err != nil {
		return nil, err
	}
	bindings := map[string][]hub.Binding{}
	found, err := reader.Bindings(ctx)
	if err != nil {
		return nil, err
	}
	for _, binding := range found {
		bindings[binding.Spec.TargetCluster] = append(bindings[binding.Spec.TargetCluster], binding)
	}
	return func(cluster string) Load { return loadOf(cluster, placements, bindings[cluster]) }, nil
}

// drain is what was asked for.
type drain struct{ timeout time.Duration }

func (d *drain) prepare(ctx context.Context, call *Call, target hub.Found) (Deed, error) {
	loads, err := ReadLoads(ctx, call.Client)
	if err != nil {
		return Deed{}, err
	}
	l := loads(target.Member.Name)
	question := fmt.Sprintf("Cordon member/%s? There is nothing to evict from it.", target.Member.Name)
	if len(l.Evict) > 0 {
		question = fmt.Sprintf("Cordon member/%s and evict %s from it (%s)?", target.Member.Name, tree.Plural(len(l.Evict), "placement"),
			strings.Join(l.Evict, ", "))
	}
	return Deed{Question: question, Do: func(ctx context.Context) (Result, error) { return d.drainMember(ctx, call, target.Member, l) }}, nil
}

func (d *drain) drainMember(ctx context.Context, call *Call, member *clusterv1beta1.MemberCluster, l Load) (Result, error) {
	if _, err := cordonMember(ctx, call, member); err != nil {
		return Result{}, err
	}
	call.Progress(fmt.Sprintf("member/%s cordoned", member.Name))
	var evictions []*placementv1beta1.ClusterResourcePlacementEviction
	for _, placement := range l.Evict {
		eviction, err := createEviction(ctx, call, placement, member.Name, "")
		if err != nil {
			return Result{}, err
		}
		if call.Dry() {
			call.Progress(fmt.Sprintf("placement/%s evicted", placement))
		}
		evictions = append(evictions, eviction)
	}
	left := slices.Clone(l.Stays)
	if !call.Dry() {
		more, err := d.awaitAll(ctx, call, evictions)
		if err != nil {
			return Result{}, err
		}
		left = append(left, more...)
	}
	if len(left) > 0 {
		return Result{}, fmt.Errorf("member/%s still has\n  %s", member.Name, strings.Join(left, "\n  "))
	}
	return resultSaying("member/%s drained", member.Name), nil
}

// awaitAll waits for the outcomes and returns what was not evicted, with the reason.
func (d *drain) awaitAll(ctx context.Context, call *Call, evictions []*placementv1beta1.ClusterResourcePlacementEviction) ([]string, error) {
	end := call.Clock.Now().Add(d.timeout)
	var left []string
	var failed []error
	for _, eviction := range evictions {
		err := call.Wait("waiting for "+eviction.Spec.PlacementName, func() error {
			return awaitEviction(ctx, call.Client, eviction, max(time.Second, end.Sub(call.Clock.Now())))
		})
		if err != nil {
			failed = append(failed, err)
			continue
		}
		executed, message := outcomeOf(eviction)
		if !executed {
			left = append(left, fmt.Sprintf("placement/%s: %s", eviction.Spec.PlacementName, message))
			continue
		}
		call.Progress(fmt.Sprintf("placement/%s evicted", eviction.Spec.PlacementName))
	}
	return left, errors.Join(failed...)
}

// plural counts things.
