package selection

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// series is the metadata of all resource snapshots of a placement.
type series struct {
	groups map[int]*snapshotGroup
	// inherited were made before the placement got its UID, and are to be adopted.
	inherited []*metav1.PartialObjectMetadata
	// disputed is the highest index of what belongs to another owner, or -1.
	disputed int
	// revision of the hub's store at which the snapshots were listed.
	revision string
}

// snapshotGroup is the objects that make up one resource snapshot.
type snapshotGroup struct {
	index  int
	master *metav1.PartialObjectMetadata
	parts  map[int]*metav1.PartialObjectMetadata
	// content is the hash of the content, if it is known to be another one than the master states.
	content string
}

// listSeries reads live which snapshots there are, without their content.
func listSeries(ctx context.Context, live client.Reader, placement placementv1beta1.PlacementObject) (*series, error) {
	list := &metav1.PartialObjectMetadataList{}
	kind := placementv1beta1.ScopeOf(placement).ResourceSnapshotKind()
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := live.List(ctx, list, client.InNamespace(placement.GetNamespace()),
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()}); err != nil {
		return nil, fmt.Errorf("listing resource snapshots of placement %s: %w", placement.GetName(), err)
	}
	s := &series{groups: map[int]*snapshotGroup{}, revision: list.ResourceVersion, disputed: -1}
	for i := range list.Items {
		s.addObject(&list.Items[i], rules.PlacementOwner(placement))
	}
	return s, nil
}

func (s *series) addObject(object *metav1.PartialObjectMetadata, owner metav1.OwnerReference) {
	index, err := strconv.Atoi(object.Labels[placementv1beta1.ResourceIndexLabel])
	if err != nil || object.DeletionTimestamp != nil {
		return // not ours to make sense of
	}
	switch rules.KinshipOf(object, owner) {
	case rules.KinshipDisputed:
		s.disputed = max(s.disputed, index)
		return
	case rules.KinshipInherited:
		s.inherited = append(s.inherited, object)
	case rules.KinshipOwn:
	}
	group := s.groupAt(index)
	if sub, err := strconv.Atoi(object.Annotations[placementv1beta1.SubindexOfResourceSnapshotAnnotation]); err == nil {
		group.parts[sub] = object
		return
	}
	group.master = object
}

// groupAt returns the snapshot with an index, an empty one if there is none yet.
func (s *series) groupAt(index int) *snapshotGroup {
	group, ok := s.groups[index]
	if !ok {
		group = &snapshotGroup{index: index, parts: map[int]*metav1.PartialObjectMetadata{}}
		s.groups[index] = group
	}
	return group
}

// contentHash returns the hash of the content.
func (g *snapshotGroup) contentHash() string {
	return cmp.Or(g.content, g.master.Annotations[snapshot.PartOfAnnotation], g.statedHash())
}

// statedHash returns the hash of the content, as the master states it.
func (g *snapshotGroup) statedHash() string {
	return g.master.Annotations[placementv1beta1.ResourceGroupHashAnnotation]
}

// statedCount returns how many parts the snapshot has, as the master states it.
func (g *snapshotGroup) statedCount() (int, error) {
	return strconv.Atoi(g.master.Annotations[placementv1beta1.NumberOfResourceSnapshotsAnnotation])
}

// isComplete reports whether the snapshot can be read: the master is there and with it
// every part it counts, all with the same content in mind.
func (g *snapshotGroup) isComplete() bool {
	if g.master == nil {
		return false
	}
	count, err := g.statedCount()
	if err != nil {
		return false
	}
	for sub := 1; sub < count; sub++ {
		if !g.hasPart(sub, g.statedHash()) {
			return false
		}
	}
	return true
}

// hasPart reports whether a part is there and belongs to the content with this hash.
// Snapshots of KubeFleet do not say; they are believed.
func (g *snapshotGroup) hasPart(sub int, hash string) bool {
	part, ok := g.parts[sub]
	if !ok {
		return false
	}
	stated := part.Annotations[snapshot.PartOfAnnotation]
	return stated == "" || stated == hash
}

// latestGroup returns the newest snapshot, or nil: the one that says so; if several do, the
// complete one with the highest index; if none does, the same among all.
func (s *series) latestGroup() *snapshotGroup {
	groups := s.withMaster()
	if len(groups) == 0 {
		return nil
	}
	return slices.MaxFunc(groups, func(a, b *snapshotGroup) int {
		return cmp.Or(
			cmp.Compare(rankBool(a.isComplete()), rankBool(b.isComplete())),
			cmp.Compare(rankBool(rules.IsLatestSnapshot(a.master)), rankBool(rules.IsLatestSnapshot(b.master))),
			cmp.Compare(a.index, b.index),
		)
	})
}

func rankBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// withMaster returns the snapshots that have a master, by index.
func (s *series) withMaster() []*snapshotGroup {
	var groups []*snapshotGroup
	for _, group := range s.groups {
		if group.master != nil {
			groups = append(groups, group)
		}
	}
	slices.SortFunc(groups, func(a, b *snapshotGroup) int { return cmp.Compare(a.index, b.index) })
	return groups
}

// nextIndex returns the index of a new snapshot.
func (s *series) nextIndex() int {
	highest := s.disputed
	if groups := s.withMaster(); len(groups) > 0 {
		highest = max(highest, groups[len(groups)-1].index)
	}
	return highest + 1
}

// masterAndParts returns the objects of a snapshot in the order in which they are deleted:
// without the master the snapshot no longer exists, and the parts are leftovers.
func (g *snapshotGroup) masterAndParts() []*metav1.PartialObjectMetadata {
	objects := []*metav1.PartialObjectMetadata{g.master}
	for _, part := range g.parts {
		objects = append(objects, part)
	}
	return objects
}

// partsWithoutMaster are leftovers. Parts of a higher index than the latest may be those
// of an attempt under way.
func (s *series) partsWithoutMaster(latest int) []*metav1.PartialObjectMetadata {
	var leftovers []*metav1.PartialObjectMetadata
	for _, group := range s.groups {
		if group.master != nil || group.index >= latest {
			continue
		}
		for _, part := range group.parts {
			leftovers = append(leftovers, part)
		}
	}
	return leftovers
}
