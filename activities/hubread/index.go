package hubread

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ByCluster is the index that finds bindings by the name of their cluster.
const ByCluster = "hub.cluster"

// ByReplacement is the index that finds members by the cluster that is to replace them.
const ByReplacement = "hub.replacement"

// AnyReplacement is what ByReplacement finds all members under that another is to replace. It is the name of no cluster.
const AnyReplacement = "*"

// ByAwaited is the index that finds bindings by the cluster whose copy has to be available before their own goes.
const ByAwaited = "hub.awaited"

// ByPlacement is the index that finds bindings by the name of their placement, as their label has it, and by an empty name those that have
// lost the label.
const ByPlacement = "hub.placement"

// byShare is the index that finds Works by the share that the name of their binding belongs to.
const byShare = "hub.share"

// shares is how many there are. A cluster has a Work of each placement that picks it, and the Works of one binding are looked for at each
// event of it. To go through all of a cluster takes the longer the more placements there are; an index of the names themselves would
// take 1.3 KiB of memory a Work.
const shares = 64

// byBusy is the index that finds, under granted, the members that are busy, or have been of late.
const (
	byBusy  = "hub.busy"
	granted = "granted"
)

// Index is one index of one kind of object in the hub's cache.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// Indexes returns those that activities use.
func Indexes() []Index {
	all := []Index{
		{Object: &clusterv1beta1.MemberCluster{}, Field: byBusy, Extract: grantOf},
		{Object: &clusterv1beta1.MemberCluster{}, Field: ByReplacement, Extract: replacementOf},
		{Object: &placementv1beta1.Work{}, Field: byShare, Extract: shareOfWork},
	}
	for _, scope := range placementv1beta1.Scopes() {
		all = append(all,
			Index{Object: scope.NewBinding(""), Field: ByCluster, Extract: targetCluster},
			Index{Object: scope.NewBinding(""), Field: ByAwaited, Extract: awaitedCluster},
			Index{Object: scope.NewBinding(""), Field: ByPlacement, Extract: labelledPlacement},
		)
	}
	return all
}

// Register registers indexes with a cache. Call it once, before the cache starts.
func Register(ctx context.Context, indexer client.FieldIndexer, indexes []Index) error {
	for _, i := range indexes {
		if err := indexer.IndexField(ctx, i.Object, i.Field, i.Extract); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.Object, i.Field, err)
		}
	}
	return nil
}

// NearBinding returns a selector that narrows a list of Works from the cache to those of the bindings that share an entry of the index with
// the one of a name. It goes with the label of the binding, which alone says whose a Work is.
func NearBinding(name string) client.MatchingFields {
	return client.MatchingFields{byShare: shareOf(name)}
}

// shareOf returns the share that a binding belongs to.
func shareOf(binding string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(binding)) // a hash never fails
	return strconv.Itoa(int(sum.Sum32() % shares))
}

func shareOfWork(work client.Object) []string {
	if binding := work.GetLabels()[placementv1beta1.ParentBindingLabel]; binding != "" {
		return []string{shareOf(binding)}
	}
	return nil
}

// labelledPlacement returns the placement that a binding is labelled with; empty if with none.
func labelledPlacement(object client.Object) []string {
	return []string{object.GetLabels()[placementv1beta1.ParentPlacementLabel]}
}

func targetCluster(object client.Object) []string {
	if binding, ok := object.(placementv1beta1.BindingObject); ok {
		return []string{binding.GetBindingSpec().TargetCluster}
	}
	return nil
}

func grantOf(object client.Object) []string {
	if member, ok := object.(*clusterv1beta1.MemberCluster); ok && member.Status.Busy != nil {
		return []string{granted}
	}
	return nil
}

func awaitedCluster(object client.Object) []string {
	if binding, ok := object.(placementv1beta1.BindingObject); ok && rules.ReplacedBy(binding) != "" {
		return []string{rules.ReplacedBy(binding)}
	}
	return nil
}

func replacementOf(object client.Object) []string {
	if name := object.GetAnnotations()[clusterv1beta1.ReplacedByAnnotation]; name != "" {
		return []string{name, AnyReplacement}
	}
	return nil
}
