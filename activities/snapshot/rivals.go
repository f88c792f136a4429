package snapshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Rival is one of the placements with a priority that may select the same objects.
type Rival struct {
	// Name as users write it: a, or team/a in a namespace.
	Name string
	rules.Rank
	// Selection is what it selects; nil if its selectors cannot be resolved, so that it gets nothing that it does not have.
	Selection *Selection
	// Has are the objects in its latest snapshot, without UID and version.
	Has map[Identity]bool
	// Written says that all its clusters have Works of that snapshot.
	Written bool
}

// namedLeftOut is how many objects a verdict names that are left out.
const namedLeftOut = 5

// LeftOut is what a placement leaves out because others have it.
type LeftOut struct {
	// Total is how many objects these are, Named the first of them with who has them, in words.
	Total int      `json:"total,omitempty"`
	Named []string `json:"named,omitempty"`
}

// Share splits what a placement has selected into what it gets and what it leaves to its rivals. Of several that select an object
// one has it:
//
//   - One that has it keeps it, unless a rival of a higher priority preempts. That takes it into its own snapshot
//     first; until all its clusters have a Work of that, the other keeps it, so that no cluster of both is ever without it.
//   - If none has it, the rank decides, in which the priority of a placement in a namespace counts as 0 at most against one of the
//     cluster; then the best match: by name before by label before by kind; then the lower name.
//   - If several have it that do not preempt each other, because they have selected it at the same time, the same order decides.
//
// namespaces are the labels of the namespaces of the items, as far as they are needed to know which rival selects an item.
func Share(me Rival, items []Item, namespaces map[string]labels.Set, rivals []Rival) (kept []Item, left LeftOut, err error) {
	for i := range items {
		item := &items[i]
		object, err := headOf(item)
		if err != nil {
			return nil, LeftOut{}, err
		}
		c := contest{id: Identity{GroupKind: item.GroupKind, Namespace: item.Namespace, Name: item.Name}, me: me, rivals: rivals}
		c.match = func(r *Rival) match { return r.Selection.matchOf(item.GroupKind, object, namespaces[item.Namespace]) }
		winner := c.lostTo()
		if winner == nil {
			kept = append(kept, *item)
			continue
		}
		if left.Total++; left.Total <= namedLeftOut {
			left.Named = append(left.Named, fmt.Sprintf("%s by %s (priority %d)", describeObject(c.id), winner.Name, winner.Priority))
		}
	}
	return kept, left, nil
}

// headOf returns the metadata of an item.
func headOf(item *Item) (*metav1.ObjectMeta, error) {
	head := &metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name}
	if item.Manifest == nil {
		return head, nil
	}
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(item.Manifest, &object); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", describeObject(item.Identity), err)
	}
	head.Labels = object.Labels
	return head, nil
}

// describeObject names an object for people, such as apps/Deployment web/front.
func describeObject(id Identity) string {
	kind := id.Kind
	if id.Group != "" {
		kind = id.Group + "/" + kind
	}
	return kind + " " + placementv1beta1.Scope{Namespace: id.Namespace}.String() + id.Name
}

// contest is about one object that several placements may select.
type contest struct {
	id     Identity
	me     Rival
	rivals []Rival
	match  func(*Rival) match
}

// lostTo returns the rival that has the object, or gets it; nil if the placement does.
func (c *contest) lostTo() *Rival {
	var winner *Rival
	for i := range c.rivals {
		rival := &c.rivals[i]
		if c.winsAgainst(rival) {
			continue
		}
		// Named is the one that has it, else the one that gets it.
		if winner == nil || rival.Has[c.id] && !winner.Has[c.id] || rival.Has[c.id] == winner.Has[c.id] && c.comesBefore(rival, winner) {
			winner = rival
		}
	}
	return winner
}

func (c *contest) winsAgainst(rival *Rival) bool {
	switch mine, theirs := c.me.Has[c.id], rival.Has[c.id]; {
	case mine && theirs && rival.TakesFrom(c.me.Rank):
		return !rival.Written
	case mine && theirs:
		return c.me.TakesFrom(rival.Rank) || c.comesBefore(&c.me, rival)
	case theirs:
		return c.me.TakesFrom(rival.Rank)
	case mine:
		return true
	}
	return c.match(rival) == matchNone || !c.canGet(rival) || c.comesBefore(&c.me, rival)
}

// canGet reports whether a rival that does not have the object takes it over from all that do.
func (c *contest) canGet(rival *Rival) bool {
	for i := range c.rivals {
		if holder := &c.rivals[i]; holder.Has[c.id] && !rival.TakesFrom(holder.Rank) {
			return false
		}
	}
	return true
}

// comesBefore reports whether a placement gets the object rather than another one, if none of them has it.
func (c *contest) comesBefore(a, b *Rival) bool {
	return cmp.Or(
		a.Compare(b.Rank),
		-cmp.Compare(c.match(a), c.match(b)),
		cmp.Compare(a.Name, b.Name),
	) < 0
}

// match is how closely a placement selects an object: the more so, the higher.
type match int

const (
	matchNone match = iota
	matchKind       // all of the kind, or all that is in the namespace
	matchLabel
	matchName
)

// matchOf returns how closely an object of a kind is selected; namespace are the labels of its namespace, if it is in one.
func (s *Selection) matchOf(gk schema.GroupKind, object metav1.Object, namespace labels.Set) match {
	if s == nil {
		return matchNone
	}
	best := closestOf(s.Rules, gk, object)
	home := &metav1.ObjectMeta{Name: object.GetNamespace(), Labels: namespace}
	for _, rule := range s.Rules {
		if home.Name == "" || rule.Kind.GroupKind() != NamespaceKind || !rule.Matches(home) {
			continue
		}
		rules, all := s.Contents(rule)
		if all {
			best = max(best, matchKind)
		}
		best = max(best, closestOf(rules, gk, object))
	}
	return best
}

// SelectsNamespacesByLabel reports whether the labels of a namespace decide whether what is in it is selected.
func (s *Selection) SelectsNamespacesByLabel() bool {
	return s != nil && slices.ContainsFunc(s.Rules, func(rule Rule) bool {
		return rule.Kind.GroupKind() == NamespaceKind &&
			!rule.Labels.Empty()
	})
}

func closestOf(rules []Rule, gk schema.GroupKind, object metav1.Object) match {
	best := matchNone
	for _, rule := range rules {
		if rule.Kind.GroupKind() != gk || !rule.Matches(object) {
			continue
		}
		switch {
		case rule.Name != "":
			best = max(best, matchName)
		case !rule.Labels.Empty():
			best = max(best, matchLabel)
		default:
			best = max(best, matchKind)
		}
	}
	return best
}

// MayShare reports whether two placements have a priority and may select the same objects, as far as their selectors tell.
func MayShare(a, b placementv1beta1.PlacementObject) bool {
	_, ranked := rules.RankOf(a)
	_, also := rules.RankOf(b)
	if !ranked || !also || a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName() {
		return false
	}
	for _, one := range a.GetPlacementSpec().ResourceSelectors {
		for _, other := range b.GetPlacementSpec().ResourceSelectors {
			if termsMeet(a.GetNamespace(), &one, b.GetNamespace(), &other) {
				return true
			}
		}
	}
	return false
}

// termsMeet reports whether two selectors, each of a placement in a namespace or in none, may select the same object.
func termsMeet(in string, a *placementv1beta1.ResourceSelectorTerm, otherIn string, b *placementv1beta1.ResourceSelectorTerm) bool {
	meets := func(name, other string) bool { return name == "" || other == "" || name == other }
	switch {
	case in == otherIn:
		return a.Group == b.Group && a.Kind == b.Kind && meets(a.Name, b.Name)
	case in == "":
		return selectsInNamespace(a, otherIn)
	case otherIn == "":
		return selectsInNamespace(b, in)
	}
	return false
}

// selectsInNamespace reports whether a selector of no namespace may bring along what is in one.
func selectsInNamespace(term *placementv1beta1.ResourceSelectorTerm, namespace string) bool {
	return term.Group == NamespaceKind.Group && term.Kind == NamespaceKind.Kind && (term.Name == "" || term.Name == namespace) &&
		term.SelectionScope != placementv1beta1.NamespaceOnly
}

// IsWritten reports whether all clusters of a placement have Works of its latest snapshot.
func IsWritten(placement placementv1beta1.PlacementObject) bool {
	status := placement.GetPlacementStatus()
	verdict, err := DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	written := meta.FindStatusCondition(status.Conditions, placementv1beta1.ScopeOf(placement).PlacementConditionType(
		placementv1beta1.ConditionTypeWorkSynchronized))
	return err == nil && verdict.Snapshot != "" && status.ObservedResourceIndex == strconv.Itoa(verdict.Index) &&
		written != nil && written.Status == metav1.ConditionTrue && written.ObservedGeneration == placement.GetGeneration()
}

// FingerprintRivals tells apart what a placement has to know of its rivals to select; empty if it has none.
func FingerprintRivals(me placementv1beta1.PlacementObject, rivals []placementv1beta1.PlacementObject) string {
	if len(rivals) == 0 {
		return ""
	}
	mine, _ := rules.RankOf(me)
	lines := make([]string, 0, len(rivals))
	for _, rival := range rivals {
		rank, _ := rules.RankOf(rival)
		// A verdict that cannot be read counts as none.
		verdict, _ := DecodeVerdict(rival.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
		lines = append(lines, fmt.Sprintf("%s %d %d %t %s %t %t\n", rival.GetUID(), rival.GetGeneration(), rank.Priority, rank.Preempts,
			verdict.Objects, verdict.Error != "", rank.TakesFrom(mine) && IsWritten(rival)))
	}
	slices.Sort(lines)
	digest := sha256.New()
	for _, line := range lines {
		_, _ = io.WriteString(digest, line) // writing to a hash never fails
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}

// Objects tells sets of objects apart, whatever is in them.
func (c Content) Objects() string {
	digest := sha256.New()
	for _, manifest := range c.Manifests {
		var head metav1.PartialObjectMetadata
		if json.Unmarshal(manifest, &head) == nil { // always: the manifests were encoded here
			_, _ = io.WriteString(digest, head.GroupVersionKind().GroupKind().String()+" "+head.Namespace+"/"+head.Name+"\n")
		}
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}
