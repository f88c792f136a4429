package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	rehearsals "github.com/fleetflow/fleetflow/activities/rehearsal"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/hub/fieldindex"
)

// invalidError says why there is nothing to ask. Trying again does not help.
type invalidError struct{ text string }

// Error returns why.
func (e *invalidError) Error() string { return e.text }

func invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

// change is what is asked about: a revision of a placement, for some clusters.
type change struct {
	placement placementv1beta1.PlacementObject
	// index of the revision.
	index string
	// clusters that are asked, by name.
	clusters []cluster
	// keepsGone has clusters that are not there stay among them, without a binding: each counts for itself.
	keepsGone bool
}

// cluster is one that is asked, and its binding as the change would leave it.
type cluster struct {
	name     string
	binding  placementv1beta1.BindingObject
	revision string
}

// resolver finds out what a rehearsal is about.
type resolver struct {
	client    client.Reader
	live      client.Reader
	overrides OverridesFor
}

// resolve returns the change that a rehearsal is about; an invalidError says what of it is not there.
func (r *resolver) resolve(ctx context.Context, asked fleetflowv1alpha1.RehearsalObject) (change, error) {
	spec := asked.GetRehearsalSpec()
	scope := placementv1beta1.ScopeOf(asked)
	placement := scope.NewPlacement(spec.PlacementName)
	err := r.client.Get(ctx, scope.Key(spec.PlacementName), placement, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return change{}, fmt.Errorf("reading placement %s%s: %w", scope, spec.PlacementName, err)
	}
	if err != nil || rules.IsDeleting(placement) {
		return change{}, invalid("%s %s%s is not there", scope.PlacementKind().Kind, scope, spec.PlacementName)
	}
	run, err := r.readRun(ctx, scope, spec)
	if err != nil {
		return change{}, err
	}
	c := change{placement: placement, keepsGone: spec.PullImages != nil}
	if c.index, err = r.findRevision(ctx, placement, spec, run); err != nil {
		return change{}, err
	}
	goal, err := r.goalOf(ctx, c, run)
	if err != nil {
		return change{}, err
	}
	bindings, err := r.readBindings(ctx, placement)
	if err != nil {
		return change{}, err
	}
	names, err := namesOf(spec, run, bindings, placement)
	if err != nil {
		return change{}, err
	}
	return c, r.addClusters(ctx, &c, names, bindings, goal)
}

// readRun reads the update run of which is asked what it would write; nil if none is named.
func (r *resolver) readRun(ctx context.Context, scope placementv1beta1.Scope,
	spec *fleetflowv1alpha1.RehearsalSpec) (placementv1beta1.UpdateRunObject, error) {
	if spec.UpdateRunName == "" {
		return nil, nil
	}
	run, err := hubread.Existing(ctx, r.live, scope.NewUpdateRun(spec.UpdateRunName), "update run")
	kind := scope.UpdateRunKind().Kind
	switch {
	case err != nil:
		return nil, err
	case run == nil:
		return nil, invalid("%s %s%s is not there", kind, scope, spec.UpdateRunName)
	case run.GetUpdateRunSpec().PlacementName != spec.PlacementName:
		return nil, invalid("%s %s%s is of placement %s, not of %s", kind, scope, spec.UpdateRunName,
			run.GetUpdateRunSpec().PlacementName, spec.PlacementName)
	case len(run.GetUpdateRunStatus().StagesStatus) == 0:
		return nil, invalid("%s %s%s is not initialized: it has no clusters yet", kind, scope, spec.UpdateRunName)
	}
	return run, nil
}

// findRevision returns the index of the revision that is asked about, if its snapshot is there.
func (r *resolver) findRevision(ctx context.Context, placement placementv1beta1.PlacementObject, spec *fleetflowv1alpha1.RehearsalSpec,
	run placementv1beta1.UpdateRunObject) (string, error) {
	if run != nil {
		return run.GetUpdateRunStatus().ResourceSnapshotIndexUsed, nil
	}
	scope := placementv1beta1.ScopeOf(placement)
	list := fieldindex.SnapshotMetadataList(scope)
	err := r.client.List(ctx, list, client.InNamespace(scope.Namespace), client.MatchingFields{fieldindex.ByPlacement: placement.GetName()},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return "", fmt.Errorf("listing the snapshots of placement %s%s: %w", scope, placement.GetName(), err)
	}
	snapshots := make([]*metav1.PartialObjectMetadata, 0, len(list.Items))
	for i := range list.Items {
		snapshots = append(snapshots, &list.Items[i])
	}
	kind := scope.PlacementKind().Kind
	if spec.ResourceSnapshotIndex == "" {
		latest := rules.LatestSnapshot(snapshots, placementv1beta1.ResourceIndexLabel)
		if latest == nil {
			return "", invalid("%s %s%s has no resource snapshot yet", kind, scope, placement.GetName())
		}
		return latest.GetLabels()[placementv1beta1.ResourceIndexLabel], nil
	}
	index, err := strconv.Atoi(spec.ResourceSnapshotIndex)
	found := slices.ContainsFunc(snapshots, func(s *metav1.PartialObjectMetadata) bool {
		return rules.IndexOf(s, placementv1beta1.ResourceIndexLabel) == index
	})
	if err != nil || !found {
		return "", invalid("%s %s%s has no resource snapshot %s: it is gone from the hub, or was never there", kind, scope,
			placement.GetName(), spec.ResourceSnapshotIndex)
	}
	return strconv.Itoa(index), nil
}

// goal returns what the binding of a cluster is to say.
type goal func(member *clusterv1beta1.MemberCluster) bind.Target

// goalOf returns what the change has bindings say: what a run has frozen, or what a run that starts now would freeze.
func (r *resolver) goalOf(ctx context.Context, c change, run placementv1beta1.UpdateRunObject) (goal, error) {
	if run != nil {
		stages := run.GetUpdateRunStatus().StagesStatus
		return func(member *clusterv1beta1.MemberCluster) bind.Target {
			for i := range stages {
				for j := range stages[i].Clusters {
					if stages[i].Clusters[j].ClusterName == member.Name {
						return bind.TargetInRun(run, &stages[i], member.Name)
					}
				}
			}
			return bind.TargetInRun(run, &placementv1beta1.StageUpdatingStatus{}, member.Name)
		}, nil
	}
	matcher, err := r.overrides(ctx, c.placement, c.index)
	if lacking, is := errors.AsType[*override.LackingError](err); is {
		return nil, invalid("%v", lacking)
	}
	if err != nil {
		return nil, err
	}
	index, err := strconv.Atoi(c.index)
	if err != nil {
		return nil, fmt.Errorf("reading the index of a snapshot: %w", err)
	}
	target := bind.Target{
		Snapshot:      placementv1beta1.ResourceSnapshotName(c.placement.GetName(), index, 0),
		ApplyStrategy: new(rules.EffectiveApplyStrategy(rules.StrategyOf(c.placement).ApplyStrategy)),
	}
	return func(member *clusterv1beta1.MemberCluster) bind.Target {
		if matcher == nil {
			return target
		}
		applicable := matcher.Applicable(override.ClusterOf(member))
		overridden := target
		overridden.ClusterResourceOverrideSnapshots = applicable.ClusterResourceOverrideSnapshots
		overridden.ResourceOverrideSnapshots = applicable.ResourceOverrideSnapshots
		return overridden
	}, nil
}

// readBindings reads the bindings of the clusters that a placement has picked, by cluster.
func (r *resolver) readBindings(ctx context.Context,
	placement placementv1beta1.PlacementObject) (map[string]placementv1beta1.BindingObject, error) {
	scope := placementv1beta1.ScopeOf(placement)
	list := scope.NewBindingList()
	err := r.client.List(ctx, list, client.InNamespace(scope.Namespace), client.MatchingFields{fieldindex.ByPlacement: placement.GetName()},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the bindings of placement %s%s: %w", scope, placement.GetName(), err)
	}
	bindings := map[string]placementv1beta1.BindingObject{}
	for _, binding := range list.Objects() {
		if rules.IsLiveBinding(binding) {
			bindings[binding.GetBindingSpec().TargetCluster] = binding
		}
	}
	return bindings, nil
}

// namesOf returns the clusters that are asked, sorted.
func namesOf(spec *fleetflowv1alpha1.RehearsalSpec, run placementv1beta1.UpdateRunObject,
	bindings map[string]placementv1beta1.BindingObject, placement placementv1beta1.PlacementObject) ([]string, error) {
	names := slices.Clone(spec.Clusters)
	if len(names) == 0 && run != nil {
		for _, stage := range run.GetUpdateRunStatus().StagesStatus {
			for i := range stage.Clusters {
				names = append(names, stage.Clusters[i].ClusterName)
			}
		}
	}
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(bindings))
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 0 {
		return names, nil
	}
	scope := placementv1beta1.ScopeOf(placement)
	return nil, invalid("%s %s%s has picked no cluster that could be asked", scope.PlacementKind().Kind, scope, placement.GetName())
}

// namedMissing is how many clusters are named that are not there.
const namedMissing = 5

// addClusters adds the clusters with their bindings as the change would leave them. Only those that the placement has picked are asked:
// what is placed goes into the namespace of the member with the question, where its agent reads it.
func (r *resolver) addClusters(ctx context.Context, c *change, names []string, bindings map[string]placementv1beta1.BindingObject,
	targetOf goal) error {
	var missing []string
	for _, name := range names {
		binding := bindings[name]
		if binding == nil {
			missing = append(missing, name)
			continue
		}
		member := &clusterv1beta1.MemberCluster{}
		err := r.client.Get(ctx, types.NamespacedName{Name: name}, member, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading member cluster %s: %w", name, err)
		}
		if err != nil {
			missing = append(missing, name)
			continue
		}
		target := targetOf(member)
		target.Annotations = bind.RemovedResources(binding, c.placement)
		c.clusters = append(c.clusters, cluster{
			name: name, binding: target.On(binding), revision: rehearsals.RevisionOf(c.placement.GetName(), target.Snapshot),
		})
	}
	if len(missing) == 0 {
		return nil
	}
	if c.keepsGone && len(c.clusters) > 0 {
		for _, name := range missing {
			c.clusters = append(c.clusters, cluster{name: name})
		}
		return nil
	}
	named := strings.Join(missing[:min(len(missing), namedMissing)], ", ")
	if len(missing) > namedMissing {
		named += fmt.Sprintf(" and %d more", len(missing)-namedMissing)
	}
	return invalid("these clusters are not there, or the placement has not picked them: %s", named)
}
