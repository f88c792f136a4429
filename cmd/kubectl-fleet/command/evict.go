package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// evictionTimeout is how long to wait for the outcome of an eviction by default.
	evictionTimeout = 30 * time.Second
	// maxEvictionName leaves room for the random end of a name.
	maxEvictionName = 57
	suffixLength    = 5
)

// NewEvict returns `kubectl fleet evict`.
func NewEvict(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	s := &steering{factory: f, streams: streams}
	timeout := evictionTimeout
	replace := false
	cmd := &cobra.Command{
		Use:   "evict PLACEMENT CLUSTER",
		Short: "Take what a placement has placed off a cluster",
		Long: `Take what a placement has placed off a cluster, by a ClusterResourcePlacementEviction. Its disruption budget decides
whether that may be. The scheduler picks another cluster, or the same one again unless that is tainted: see
kubectl fleet cordon.

From a namespaced placement, only what it has left behind can be taken off (strategy.failover.application with purgeMode
Never): its binding is deleted, and nothing is waited for.

Waits for the outcome; exits with 1 if the eviction is not allowed, and with 124 if there is no outcome in time: it stays pending
then, and may still be executed.

With --replace, the placement has to pick another cluster, and the binding to this one is marked instead (label
fleetflow.io/specified-delete): it goes within maxUnavailable and maxSurge, and only for another cluster. That
works for placements that pick a number of clusters; it is not waited for.`,
		Example: `  kubectl fleet evict web member-3 --reason "its disk is being replaced"

  # Move what is there to another cluster, within the limits of the placement
  kubectl fleet evict web member-3 --replace`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("kubectl fleet evict needs a placement and a cluster, as in: kubectl fleet evict web member-3")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if replace && s.reason != "" {
				return cli.Usagef("--replace marks a binding, on which no reason is kept: leave out --reason")
			}
			if replace {
				return s.replace(cmd.Context(), args[0], args[1])
			}
			return s.evict(cmd.Context(), args[0], args[1], timeout)
		},
		ValidArgsFunction: thenClusters(f, completeRefs(f, hub.KindPlacement), hub.KindPlacement),
	}
	s.AddFlags(cmd)
	s.addReason(cmd, "the eviction")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "How long to wait for the outcome; 0 does not wait.")
	cmd.Flags().BoolVar(&replace, "replace", false, "Have another cluster picked, and this one left within the limits of the placement.")
	return cmd
}

// replace marks the binding of a placement to a cluster, so that another cluster takes its place.
func (s *steering) replace(ctx context.Context, arg, cluster string) error {
	c, found, err := s.findOne(ctx, arg, hub.KindPlacement)
	if err != nil {
		return err
	}
	placement := found.Placement
	if policy := placement.Spec.Policy; policy == nil || policy.PlacementType != placementv1beta1.PickNPlacementType {
		return fmt.Errorf("%s wants every matching cluster: use a taint, or an eviction without --replace", placement.Ref)
	}
	bindings, err := hub.Reader{Reader: c}.BindingsOf(ctx, placement.Ref)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(bindings, func(b hub.Binding) bool {
		return b.Spec.TargetCluster == cluster && placementv1beta1.IsLiveBinding(b.Object)
	})
	if at < 0 {
		return fmt.Errorf("%s is not on %s: kubectl fleet status %s lists its clusters", placement.Ref, cluster, placement.Flags())
	}
	binding := bindings[at].Object
	if placementv1beta1.IsMarkedForDelete(binding) {
		s.Done(s.streams, "%s on %s is to be replaced already", placement.Ref, cluster)
		return nil
	}
	if err := s.Ask(s.streams, fmt.Sprintf("Have another cluster take the place of %s in %s?", cluster, placement.Ref)); err != nil {
		return err
	}
	if s.Sends() {
		marked := placementv1beta1.DeepCopyOf(binding)
		labels := maps.Clone(binding.GetLabels())
		labels[placementv1beta1.SpecifiedDeleteLabel] = placementv1beta1.LabelValueTrue
		marked.SetLabels(labels)
		if err := s.writer(c).Patch(ctx, marked, client.MergeFrom(binding)); err != nil {
			return fmt.Errorf("marking the binding of %s to %s: %w", placement.Ref, cluster, err)
		}
	}
	s.Done(s.streams, "%s on %s is to be replaced", placement.Ref, cluster)
	return nil
}

func (s *steering) evict(ctx context.Context, arg, cluster string, timeout time.Duration) error {
	c, found, err := s.findOne(ctx, arg, hub.KindPlacement)
	if err != nil {
		return err
	}
	return s.evictFrom(ctx, c, *found.Placement, cluster, timeout)
}

// evictFrom asks for an eviction, and waits for its outcome.
func (s *steering) evictFrom(ctx context.Context, c client.WithWatch, placement hub.Placement, cluster string,
	timeout time.Duration) error {
	if placement.Namespace != "" {
		return s.removeSuperseded(ctx, c, placement, cluster)
	}
	if err := s.Ask(s.streams, fmt.Sprintf("Take what %s has placed off %s?", placement.Ref, cluster)); err != nil {
		return err
	}
	eviction, err := s.createEviction(ctx, c, placement.Name, cluster)
	if err != nil {
		return err
	}
	if !s.Sends() || s.Dry() || timeout == 0 {
		s.Done(s.streams, "eviction/%s of %s from %s created", eviction.Name, placement.Ref, cluster)
		return nil
	}
	err = s.factory.Patiently(s.streams, "waiting for the outcome", func() error { return awaitEviction(ctx, c, eviction, timeout) })
	if err != nil {
		return err
	}
	executed, message := outcomeOf(eviction)
	s.Done(s.streams, "eviction/%s: %s", eviction.Name, message)
	if !executed {
		return &cli.Exit{Code: cli.CodeFailed}
	}
	return nil
}

// removeSuperseded removes the copy that a namespaced placement has left on a cluster, by its binding: there are no evictions from these
// placements. What is not superseded stays.
func (s *steering) removeSuperseded(ctx context.Context, c client.WithWatch, placement hub.Placement, cluster string) error {
	bindings, err := hub.Reader{Reader: c}.BindingsOf(ctx, placement.Ref)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(bindings, func(b hub.Binding) bool {
		return b.Spec.TargetCluster == cluster && placementv1beta1.IsSuperseded(b.Object) && !placementv1beta1.IsDeleting(b.Object)
	})
	if at < 0 {
		return fmt.Errorf("%s is namespaced: evictions are for ClusterResourcePlacements, and for what a placement has left behind (annotation %s on the binding), which there is none of on %s",
			placement.Ref, placementv1beta1.SupersededAnnotation, cluster)
	}
	if err := s.Ask(s.streams, fmt.Sprintf("Take what %s has placed off %s?", placement.Ref, cluster)); err != nil {
		return err
	}
	if s.reason != "" {
		cli.Printf(s.streams.ErrOut, "Warning: the reason is not kept: there is no eviction from a namespaced placement that could have it\n")
	}
	if s.Sends() {
		binding := bindings[at].Object
		seen := binding.GetUID()
		version := binding.GetResourceVersion() // nothing goes that is picked again meanwhile
		if err := s.writer(c).Delete(ctx, placementv1beta1.DeepCopyOf(binding),
			client.Preconditions{UID: &seen, ResourceVersion: &version}); err != nil {
			return fmt.Errorf("deleting binding %s/%s: %w", binding.GetNamespace(), binding.GetName(), err)
		}
	}
	s.Done(s.streams, "what %s had left on %s is being removed", placement.Ref, cluster)
	return nil
}

// createEviction asks for an eviction under a name of its own: each is decided once.
func (s *steering) createEviction(ctx context.Context, c client.WithWatch, placement,
	cluster string) (*placementv1beta1.ClusterResourcePlacementEviction, error) {
	name := placement + "-" + cluster
	name = fmt.Sprintf("%s-%s", name[:min(len(name), maxEvictionName)], rand.String(suffixLength))
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: placement, ClusterName: cluster},
	}
	if !s.Sends() {
		return eviction, nil
	}
	s.annotate(eviction)
	if err := s.writer(c).Create(ctx, eviction); err != nil {
		return nil, fmt.Errorf("creating eviction %q: %w", name, err)
	}
	return eviction, nil
}

// awaitEviction watches an eviction until it has its outcome.
func awaitEviction(ctx context.Context, c client.WithWatch, eviction *placementv1beta1.ClusterResourcePlacementEviction,
	timeout time.Duration) error {
	ended := func(e *placementv1beta1.ClusterResourcePlacementEviction, there bool) bool { return there && e.Ended() }
	err := await(ctx, c, eviction, &placementv1beta1.ClusterResourcePlacementEvictionList{}, timeout, ended, byName(eviction)...)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("eviction %q goes on: %w", eviction.Name, ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return &cli.Exit{Code: cli.CodeTimeout, Err: fmt.Errorf("eviction %q has no outcome after %s: it stays pending and may still be executed; kubectl delete crpe %s withdraws it",
			eviction.Name, timeout, eviction.Name)}
	}
	return fmt.Errorf("waiting for eviction %q: %w", eviction.Name, err)
}

// outcomeOf says whether an eviction was executed, and why or why not.
func outcomeOf(eviction *placementv1beta1.ClusterResourcePlacementEviction) (executed bool, message string) {
	if c := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionTypeExecuted); c != nil {
		return c.Status == metav1.ConditionTrue, c.Message
	}
	if c := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionTypeValid); c != nil {
		return false, c.Message
	}
	return false, "not decided yet"
}
