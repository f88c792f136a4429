package worksync

import (
	"context"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// keptSnapshots and keptBytes are how many snapshots are kept in memory, and how
	// much JSON of them: those that rollouts under way bring to many clusters. A hub that is
	// taken over brings the snapshots of all its placements to all their clusters at once.
	keptSnapshots = 4096
	keptBytes     = 256 << 20
	// parallelParts bounds the requests for the parts of one binding.
	parallelParts = 8
)

// SnapshotMissingError says that the resource snapshot a binding names, or a
// part of it, does not exist. What the cluster already has is kept.
type SnapshotMissingError struct {
	// Name of the snapshot object that is missing.
	Name string
}

// Error names the missing snapshot.
func (e *SnapshotMissingError) Error() string {
	return fmt.Sprintf("resource snapshot %q is missing or incomplete", e.Name)
}

// snapshotLoader reads the content of resource snapshots. They never change, so
// what was read and unpacked once is kept by uid.
type snapshotLoader struct {
	cached client.Reader
	live   client.Reader
	kept   *keptContents
	flight singleflight.Group
	// envelopes tells what the hub lets envelopes hold.
	envelopes EnvelopeRules
}

func newSnapshotLoader(cached, live client.Reader, envelopes EnvelopeRules) *snapshotLoader {
	return &snapshotLoader{cached: cached, live: live, envelopes: envelopes, kept: newKept(keptSnapshots, keptBytes)}
}

// loadContent returns the content of the snapshot a binding names, the same for all bindings
// that name it. Callers must not change it.
func (l *snapshotLoader) loadContent(ctx context.Context, binding placementv1beta1.BindingObject) (*workmodel.Content, error) {
	scope := placementv1beta1.ScopeOf(binding)
	name := binding.GetBindingSpec().ResourceSnapshotName
	master := &metav1.PartialObjectMetadata{}
	master.SetGroupVersionKind(scope.ResourceSnapshotKind())
	err := l.cached.Get(ctx, scope.Key(name), master)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the metadata of snapshot %s%s: %w", scope, name, err)
	}
	if err == nil && belongsToPlacement(binding, master) {
		if content, ok := l.kept.contentOf(master.UID); ok {
			return content, nil
		}
	}
	placement := rules.PlacementNameOf(binding)
	content, err, _ := l.flight.Do(scope.String()+name+"/"+placement, func() (any, error) {
		return l.readParts(ctx, scope, name, placement)
	})
	if err != nil {
		return nil, err
	}
	read := content.(*workmodel.Content)
	if !belongsToPlacement(binding, read.Parts()[0]) {
		return nil, &SnapshotMissingError{Name: name}
	}
	return read, nil
}

// belongsToPlacement reports whether a snapshot is of the placement the binding is of.
func belongsToPlacement(binding placementv1beta1.BindingObject, snapshot metav1.Object) bool {
	placement := snapshot.GetLabels()[placementv1beta1.ParentPlacementLabel]
	return placement == "" || placement == rules.PlacementNameOf(binding)
}

func (l *snapshotLoader) readParts(ctx context.Context, scope placementv1beta1.Scope, name, placement string) (*workmodel.Content, error) {
	master := scope.NewResourceSnapshot(name)
	if err := l.getPart(ctx, master); err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(master.GetAnnotations()[placementv1beta1.NumberOfResourceSnapshotsAnnotation])
	if err != nil || count < 1 {
		return nil, &SnapshotMissingError{Name: name}
	}
	index, err := strconv.Atoi(master.GetLabels()[placementv1beta1.ResourceIndexLabel])
	if err != nil {
		return nil, fmt.Errorf("reading the index of snapshot %s: %w", name, err)
	}
	parts := make([]placementv1beta1.ResourceSnapshotObject, count)
	parts[0] = master
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelParts)
	for i := 1; i < count; i++ {
		group.Go(func() error {
			parts[i] = scope.NewResourceSnapshot(placementv1beta1.ResourceSnapshotName(placement, index, i))
			return l.getPart(groupCtx, parts[i])
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := workmodel.CheckNamespace(parts); err != nil {
		return nil, err
	}
	var rules envelope.Rules
	if workmodel.HasEnvelopes(parts) {
		if rules, err = l.envelopes(ctx); err != nil {
			return nil, fmt.Errorf("finding out what the envelopes of snapshot %s%s may hold: %w", scope, name, err)
		}
	}
	content := workmodel.NewContent(rules, parts)
	l.kept.addContent(master.GetUID(), content)
	return content, nil
}

func (l *snapshotLoader) getPart(ctx context.Context, part placementv1beta1.ResourceSnapshotObject) error {
	key := client.ObjectKeyFromObject(part)
	err := l.live.Get(ctx, key, part)
	if apierrors.IsNotFound(err) {
		return &SnapshotMissingError{Name: key.Name}
	}
	if err != nil {
		return fmt.Errorf("reading snapshot %s%s: %w", placementv1beta1.ScopeOf(part), key.Name, err)
	}
	return nil
}
