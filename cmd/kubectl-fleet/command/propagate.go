package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/federation"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// NewDisable returns `kubectl fleet disable`.
func NewDisable(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return kindVerb(f, streams, &cobra.Command{
		Use:   "disable KIND",
		Short: "Keep the changes of a kind from members, in all placements",
		Long: `Disable the propagation of a kind, with a PropagatedType. Members keep what placements have put there of it: no change,
addition or removal of its objects on the hub reaches them, and all other kinds go on. kubectl fleet enable ends that.
KIND is what kubectl takes: configmaps, cm, ConfigMap, deployments.apps.`,
		Example: `  kubectl fleet disable configmaps`,
		Args:    base.ExactlyOne("a kind", "kubectl fleet disable configmaps"),
	}, (*propagating).disableKind)
}

// NewEnable returns `kubectl fleet enable`.
func NewEnable(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return kindVerb(f, streams, &cobra.Command{
		Use:   "enable KIND",
		Short: "Let the changes of a kind reach members again",
		Long: `Enable the propagation of a kind after kubectl fleet disable. Placements take up what has changed, come or gone on the hub
in the meantime, and it reaches members as their rollout strategy allows.`,
		Example: `  kubectl fleet enable configmaps`,
		Args:    base.ExactlyOne("a kind", "kubectl fleet enable configmaps"),
	}, (*propagating).enableKind)
}

// propagating disables and enables the propagation of kinds.
type propagating struct{ base.Steering }

// kindVerb makes a command about one kind of objects.
func kindVerb(f *cli.Factory, streams genericiooptions.IOStreams, cmd *cobra.Command,
	do func(s *propagating, ctx context.Context, c client.WithWatch, kind propagatedKind) error) *cobra.Command {
	s := &propagating{base.Steering{Factory: f, Streams: streams}}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := s.Connect()
		if err != nil {
			return err
		}
		kind, err := s.findKind(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return do(s, cmd.Context(), c, kind)
	}
	s.AddPrintingFlags(cmd)
	return cmd
}

// propagatedKind is a kind and its PropagatedType, which is nil if there is none.
type propagatedKind struct {
	name string
	schema.GroupKind
	stored *fleetflowv1alpha1.PropagatedType
}

// findKind finds the kind that a word means: one that the hub serves, or, by its name, one that has a PropagatedType.
func (s *propagating) findKind(ctx context.Context, c client.WithWatch, word string) (propagatedKind, error) {
	mapper, err := s.Factory.Mapper()
	if err != nil {
		return propagatedKind{}, fmt.Errorf("asking the hub for the kinds it serves: %w", err)
	}
	kind := propagatedKind{name: word}
	mapping, unserved := (&federation.Finder{Mapper: mapper}).KindOf(word)
	if unserved == nil {
		kind.name = mapping.Resource.GroupResource().String()
		kind.GroupKind = mapping.GroupVersionKind.GroupKind()
	}
	stored := &fleetflowv1alpha1.PropagatedType{}
	err = c.Get(ctx, client.ObjectKey{Name: kind.name}, stored)
	switch {
	case err == nil:
		kind.stored = stored
		return kind, nil
	case meta.IsNoMatchError(err):
		return kind, errors.New("the hub has no PropagatedTypes: have its operator install the CustomResourceDefinitions of the hub agent's chart")
	case !apierrors.IsNotFound(err):
		return kind, fmt.Errorf("reading PropagatedType %s: %w", kind.name, err)
	}
	return kind, unserved
}

// disableKind disables the propagation of a kind. It is no harm to ask for what is the case.
func (s *propagating) disableKind(ctx context.Context, c client.WithWatch, kind propagatedKind) error {
	if kind.stored != nil && kind.stored.IsDisabled() {
		s.Done(s.Streams, "propagation of %s is disabled already", kind.name)
		return nil
	}
	if snapshot.Disabled(kind.GroupKind) || kind.Group == placementv1beta1.GroupName {
		return fmt.Errorf("%s are not placed as other kinds are: there is nothing to disable", kind.name)
	}
	placements, err := hub.Reader{Reader: c}.Placements(ctx)
	if err != nil {
		return err
	}
	objects, holding := countPlaced(placements, kind.GroupKind)
	if err := s.Ask(s.Streams, fmt.Sprintf("Disable the propagation of %s? %d object(s) in %d placement(s) stay on members as they are, and no others come.",
		kind.name, objects, holding)); err != nil {
		return err
	}
	if err := s.setPropagation(ctx, c, kind, fleetflowv1alpha1.PropagationDisabled); err != nil {
		return err
	}
	s.Done(s.Streams, "propagation of %s disabled: %d object(s) in %d placement(s) stay as they are", kind.name, objects, holding)
	return nil
}

// enableKind enables the propagation of a kind. It is no harm to ask for what is the case.
func (s *propagating) enableKind(ctx context.Context, c client.WithWatch, kind propagatedKind) error {
	if kind.stored == nil || !kind.stored.IsDisabled() {
		s.Done(s.Streams, "propagation of %s is enabled already", kind.name)
		return nil
	}
	if err := s.setPropagation(ctx, c, kind, fleetflowv1alpha1.PropagationEnabled); err != nil {
		return err
	}
	s.Done(s.Streams, "propagation of %s enabled: placements take up what has changed, as their rollout strategies allow", kind.name)
	return nil
}

// setPropagation writes the PropagatedType of a kind, which may not exist yet.
func (s *propagating) setPropagation(ctx context.Context, c client.WithWatch, kind propagatedKind,
	propagation fleetflowv1alpha1.Propagation) error {
	if !s.Sends() {
		return nil
	}
	var err error
	if kind.stored == nil {
		err = s.Writer(c).Create(ctx, &fleetflowv1alpha1.PropagatedType{
			ObjectMeta: metav1.ObjectMeta{Name: kind.name}, Spec: fleetflowv1alpha1.PropagatedTypeSpec{Propagation: propagation},
		})
	} else {
		err = steer.ChangeSpec(ctx, s.Writer(c), kind.stored, func(*fleetflowv1alpha1.PropagatedType) ([]fence.Op, error) {
			return []fence.Op{fence.Add("/spec", fleetflowv1alpha1.PropagatedTypeSpec{Propagation: propagation})}, nil
		})
	}
	if err != nil {
		return fmt.Errorf("writing PropagatedType %s: %w", kind.name, err)
	}
	return nil
}

// countPlaced counts the objects of a kind that placements have in their latest snapshots, and those placements.
func countPlaced(placements []hub.Placement, gk schema.GroupKind) (objects, holding int) {
	for _, placement := range placements {
		before := objects
		for _, selected := range placement.Object.GetPlacementStatus().SelectedResources {
			if selected.Group == gk.Group && selected.Kind == gk.Kind && selected.Envelope == nil {
				objects++
			}
		}
		if objects > before {
			holding++
		}
	}
	return objects, holding
}
