//go:build integration

package integration

import (
	"cmp"
	"slices"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// merge brings what was recorded of several kinds into the order in which the hub wrote it.
func merge(recorded ...[]change) []change {
	all := slices.Concat(recorded...)
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.revision, b.revision) })
	return all
}

// picture is what the hub has stored of one cluster of a placement.
type picture struct {
	wants     string // the snapshot its binding asks for
	has       string // the snapshot in its Work
	available bool   // its member says that the Work as it is now is up
}

// up says whether the cluster runs what it is asked to run.
func (p picture) up() bool { return p.wants != "" && p.wants == p.has && p.available }

func (p *picture) take(object any) {
	switch o := object.(type) {
	case *placementv1beta1.ClusterResourceBinding:
		p.wants = o.Spec.ResourceSnapshotName
	case *placementv1beta1.Work:
		p.has = o.Annotations[placementv1beta1.ParentResourceSnapshotNameAnnotation]
		c := meta.FindStatusCondition(o.Status.Conditions, placementv1beta1.ConditionTypeAvailable)
		p.available = c != nil && c.Status == "True" && c.ObservedGeneration == o.Generation
	}
}

// clusterOf is the cluster that a binding or a Work is about.
func clusterOf(object any) string {
	switch o := object.(type) {
	case placementv1beta1.BindingObject:
		return o.GetBindingSpec().TargetCluster
	case *placementv1beta1.Work:
		return o.Namespace[len(placementv1beta1.MemberNamespace("")):]
	}
	return ""
}

func initialClusters(recordings ...*recording) map[string]*picture {
	clusters := map[string]*picture{}
	for _, r := range recordings {
		for _, object := range r.initial {
			name := clusterOf(object)
			if clusters[name] == nil {
				clusters[name] = &picture{}
			}
			clusters[name].take(object)
		}
	}
	return clusters
}

// requireWindow replays what was written and asserts that at no write more than so many clusters were away, and that
// every cluster did change.
func requireWindow(s *spec, clusters map[string]*picture, changes []change, most int) {
	s.Helper()
	require.Len(s, clusters, members)
	changed := map[string]bool{}
	for _, c := range changes {
		name := clusterOf(c.object)
		require.NotEqual(s, watch.Deleted, c.kind, "%T of %s was deleted", c.object, name)
		before := *clusters[name]
		clusters[name].take(c.object)
		changed[name] = changed[name] || before.wants != clusters[name].wants
		var away []string
		for cluster, p := range clusters {
			if !p.up() {
				away = append(away, cluster)
			}
		}
		require.LessOrEqual(s, len(away), most, "clusters in flight at revision %d, a write of a %T of %s: %v", c.revision, c.object, name, away)
	}
	require.Len(s, changed, members)
	for name, did := range changed {
		require.True(s, did, "cluster %s has changed", name)
	}
}

// newestWork is the revision at which the last of the placement's Works was written.
func newestWork(s *spec) uint64 {
	s.Helper()
	var works placementv1beta1.WorkList
	require.NoError(s, s.hub.List(s.Context(), &works, s.mine()))
	newest := uint64(0)
	for i := range works.Items {
		newest = max(newest, revisionOf(&works.Items[i]))
	}
	return newest
}

// writes are the clusters whose binding was given something else to run, in the order of the writes.
func writes(recorded []change, initial set) []string {
	wants := map[string]string{}
	for _, object := range initial {
		wants[clusterOf(object)] = object.(placementv1beta1.BindingObject).GetBindingSpec().ResourceSnapshotName
	}
	var order []string
	for _, c := range recorded {
		binding := c.object.(placementv1beta1.BindingObject)
		if name := clusterOf(binding); wants[name] != binding.GetBindingSpec().ResourceSnapshotName {
			wants[name] = binding.GetBindingSpec().ResourceSnapshotName
			order = append(order, name)
		}
	}
	return order
}
