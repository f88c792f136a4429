package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// drainTimeout is how long to wait for all evictions by default.
const drainTimeout = 5 * time.Minute

// NewDrain returns `kubectl fleet drain`.
func NewDrain(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	timeout := drainTimeout
	cmd := memberVerb(f, streams, &cobra.Command{
		Use:     "drain MEMBER",
		Aliases: []string{"draincluster"},
		Short:   "Keep new placements off a member and evict those that are there",
		Long: `Cordon a member, then evict every ClusterResourcePlacement from it, each within its disruption budget. Placements
that name their clusters (PickFixed) and namespaced placements cannot be evicted. They are listed: take the member out of
their lists.

Exits with 1 if something stays, and with 124 if an eviction has no outcome in time; run it again to try those again.`,
		Example: `  kubectl fleet drain member-3`,
	}, func(ctx context.Context, s *steering, c client.WithWatch, member *clusterv1beta1.MemberCluster) error {
		return s.drain(ctx, c, member, timeout)
	})
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "How long to wait for the evictions.")
	return cmd
}

// load is what is placed on a member: what can be evicted, and what stays, with the reason.
type load struct {
	evict []string
	stays []string
}

// loadOf works out what can be evicted from a cluster.
func loadOf(cluster string, placements []hub.Placement, bindings []hub.Binding) load {
	on := map[string]bool{}
	for _, b := range bindings {
		if b.Spec.TargetCluster == cluster && placementv1beta1.IsLiveBinding(b.Object) {
			on[b.Object.GetNamespace()+"/"+b.Object.GetLabels()[placementv1beta1.ParentPlacementLabel]] = true
		}
	}
	var l load
	for _, p := range placements {
		switch {
		case !on[p.Namespace+"/"+p.Name]:
		case p.Namespace != "":
			l.stays = append(l.stays, fmt.Sprintf("%s: namespaced placements cannot be evicted", p.Ref))
		case p.Spec.Policy != nil && p.Spec.Policy.PlacementType == placementv1beta1.PickFixedPlacementType:
			l.stays = append(l.stays, fmt.Sprintf("%s: it names its clusters (PickFixed); take %s out of its list", p.Ref, cluster))
		default:
			l.evict = append(l.evict, p.Name)
		}
	}
	slices.Sort(l.evict)
	slices.Sort(l.stays)
	return l
}

func (s *steering) drain(ctx context.Context, c client.WithWatch, member *clusterv1beta1.MemberCluster, timeout time.Duration) error {
	loads, err := readLoads(ctx, c)
	if err != nil {
		return err
	}
	l := loads(member.Name)
	question := fmt.Sprintf("Cordon member/%s? There is nothing to evict from it.", member.Name)
	if len(l.evict) > 0 {
		question = fmt.Sprintf("Cordon member/%s and evict %s from it (%s)?", member.Name, plural(len(l.evict), "placement"),
			strings.Join(l.evict, ", "))
	}
	if err := s.Ask(s.streams, question); err != nil {
		return err
	}
	if _, err := s.cordonMember(ctx, c, member); err != nil {
		return err
	}
	s.Done(s.streams, "member/%s cordoned", member.Name)
	left := append([]string(nil), l.stays...)
	evictions, err := s.evictAll(ctx, c, member.Name, l.evict)
	if err != nil {
		return err
	}
	if s.Sends() && !s.Dry() {
		more, err := s.awaitAll(ctx, c, evictions, timeout)
		if err != nil {
			return err
		}
		left = append(left, more...)
	}
	if len(left) > 0 {
		return fmt.Errorf("member/%s still has\n  %s", member.Name, strings.Join(left, "\n  "))
	}
	s.Done(s.streams, "member/%s drained", member.Name)
	return nil
}

// readLoads reads what is placed, and returns a function that reports how much of that is on a cluster.
func readLoads(ctx context.Context, c client.WithWatch) (func(cluster string) load, error) {
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
	return func(cluster string) load { return loadOf(cluster, placements, bindings[cluster]) }, nil
}

func (s *steering) evictAll(ctx context.Context, c client.WithWatch, cluster string,
	placements []string) ([]*placementv1beta1.ClusterResourcePlacementEviction, error) {
	var all []*placementv1beta1.ClusterResourcePlacementEviction
	for _, placement := range placements {
		eviction, err := s.createEviction(ctx, c, placement, cluster)
		if err != nil {
			return nil, err
		}
		if s.Dry() {
			s.Done(s.streams, "placement/%s evicted", placement)
		}
		all = append(all, eviction)
	}
	return all, nil
}

// awaitAll waits for the outcomes and returns what was not evicted, with the reason.
func (s *steering) awaitAll(ctx context.Context, c client.WithWatch, evictions []*placementv1beta1.ClusterResourcePlacementEviction,
	timeout time.Duration) ([]string, error) {
	end := s.factory.Clock.Now().Add(timeout)
	var left []string
	var failed []error
	for _, eviction := range evictions {
		err := s.factory.Patiently(s.streams, "waiting for "+eviction.Spec.PlacementName, func() error {
			return awaitEviction(ctx, c, eviction, max(time.Second, end.Sub(s.factory.Clock.Now())))
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
		s.Done(s.streams, "placement/%s evicted", eviction.Spec.PlacementName)
	}
	return left, errors.Join(failed...)
}
