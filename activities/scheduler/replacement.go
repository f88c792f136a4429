package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// notReplaced begins what is said of a cluster that stays though a user wants it replaced.
const notReplaced = "it is not replaced by"

// Replacing is what counts where a cluster that a placement has is to go to the one that replaces it.
type Replacing struct {
	// Immovable says why the placement does not move; empty if it does. NoRoom says that no copy may be added before another has gone.
	Immovable string
	NoRoom    bool
	// yields says of clusters why each is to go, and only has which others may be picked then; nil in any other decision.
	yields map[string]string
	only   map[string]bool
}

// swap decides what goes to clusters that replace others, after everything else.
type swap struct {
	facts    Facts
	cycle    *cycle
	decision Decision
}

// begin picks clusters. A move that was decided before, and of which only the new binding was written, is taken up again as if the old one
// had been written too: that a policy wants fewer clusters, or is another one by now, must not take the new copy away, nor the old one before
// the new is available.
func (s *swap) begin() {
	dropped := s.dropUnwanted()
	defer s.returnDropped(dropped)
	moves := s.listBegun()
	if len(moves) > 0 {
		moved := s.move(moves)
		c, decision := runRounds(moved)
		if decision.hasMoved(moves) {
			for i := range moved.Bindings {
				if b := &moved.Bindings[i]; s.facts.Bindings[i].holdsCluster() && !b.holdsCluster() {
					decision.replaceBinding(b.Name, b.ReplacedBy)
					decision.addUnscheduled(b.Name)
				}
			}
			*s = swap{moved, c, decision}
			return
		}
	}
	s.cycle, s.decision = runRounds(s.facts)
}

// dropUnwanted has the new bindings go of moves that a user has given up before anything else of them was written, and returns their names:
// which of the two copies goes must not depend on what they cost, or where they are, as the new one has nothing.
func (s *swap) dropUnwanted() (dropped []string) {
	if !s.mayMove() || !slices.ContainsFunc(s.facts.Bindings, Binding.isNewInPlace) {
		return nil
	}
	held := map[string]bool{}
	for i := range s.facts.Bindings {
		if b := &s.facts.Bindings[i]; b.holdsCluster() && !b.Disputed {
			held[b.Cluster] = true
		}
	}
	wants := map[string]string{}
	for _, cluster := range toReplace(s.facts.Clusters) {
		wants[cluster.Name] = clusterrules.ReplacedBy(cluster)
	}
	for i := range s.facts.Bindings {
		b := s.facts.Bindings[i]
		if len(held) <= int(*s.facts.Policy.NumberOfClusters) || !b.isNewInPlace() || !held[b.Cluster] || !held[b.TakesPlaceOf] || wants[b.TakesPlaceOf] == b.Cluster {
			continue
		}
		if len(dropped) == 0 {
			s.facts.Bindings = slices.Clone(s.facts.Bindings)
		}
		b.Previous = b.State
		b.State = placementv1beta1.BindingStateUnscheduled
		s.facts.Bindings[i] = b
		delete(held, b.Cluster)
		dropped = append(dropped, b.Name)
	}
	return dropped
}

// isNewInPlace reports whether a binding was made in the place of a cluster, and nothing has been rolled out to it.
func (b Binding) isNewInPlace() bool {
	return b.TakesPlaceOf != "" && !b.Placed && b.State == placementv1beta1.BindingStateScheduled
}

// returnDropped notes which bindings dropUnwanted has let go, unless their clusters are picked for themselves.
func (s *swap) returnDropped(names []string) {
	for i := range s.facts.Bindings {
		b := &s.facts.Bindings[i]
		if !slices.Contains(names, b.Name) || s.decision.selects(b.Cluster) {
			continue
		}
		s.decision.Returned = append(s.decision.Returned, b.Name)
		s.decision.Withdrawn = slices.Compact(slices.Sorted(slices.Values(append(s.decision.Withdrawn, b.Name))))
		s.decision.addUnscheduled(b.Name)
	}
}

// mayMove reports whether it is the scheduler that decides where a PickN placement is, and whether that may move.
func (s *swap) mayMove() bool {
	facts := &s.facts
	return typeOf(facts.Policy) == placementv1beta1.PickNPlacementType && facts.Policy.NumberOfClusters != nil && facts.Policy.SchedulerName == "" &&
		facts.Undecided == "" && facts.Replacing.Immovable == ""
}

// hasMoved reports whether the new clusters of moves are picked, and the old ones are not.
func (d *Decision) hasMoved(moves map[string]string) bool {
	for old, by := range moves {
		if !d.selects(by) || d.selects(old) {
			return false
		}
	}
	return true
}

// listBegun returns the moves, of old clusters to new ones, of which a PickN placement has both copies and therefore more than it wants: only
// the new binding was written. One that has no copy too many has picked the new cluster for itself.
func (s *swap) listBegun() map[string]string {
	facts := &s.facts
	asked := toReplace(facts.Clusters)
	if len(asked) == 0 || !s.mayMove() {
		return nil
	}
	held := map[string]bool{}
	for i := range facts.Bindings {
		if b := &facts.Bindings[i]; b.holdsCluster() && !b.Disputed {
			held[b.Cluster] = true
		}
	}
	moves := map[string]string{}
	for _, cluster := range asked {
		by := clusterrules.ReplacedBy(cluster)
		if len(held) > int(*facts.Policy.NumberOfClusters) && held[cluster.Name] && held[by] &&
			clusterrules.RefuseReplacement(cluster, by, facts.Clusters) == "" {
			moves[cluster.Name] = by
			delete(held, cluster.Name)
		}
	}
	return moves
}

// move returns the facts as they are once the bindings of clusters have gone to those that replace them.
func (s *swap) move(moves map[string]string) Facts {
	moved := s.facts
	moved.Bindings = slices.Clone(moved.Bindings)
	for i := range moved.Bindings {
		if b := &moved.Bindings[i]; moves[b.Cluster] != "" && b.holdsCluster() && !b.Disputed {
			b.Previous = b.State
			b.State = placementv1beta1.BindingStateUnscheduled
			b.ReplacedBy = moves[b.Cluster]
			b.Asked = b.ReplacedBy
		}
	}
	return moved
}

// replaceBinding has a binding go to a cluster.
func (d *Decision) replaceBinding(binding, by string) {
	if d.Replaced == nil {
		d.Replaced = map[string]string{}
	}
	d.Replaced[binding] = by
}

// replaceClusters has those of the picked clusters that a user wants replaced yield to the clusters that replace them: each only if everything
// else stays as it was picked. What such a cluster has goes once the new copy is available, which is not decided here. If the new cluster is
// not picked any more before that, or a user gives the replacement up, the old one is picked again in its place.
func (s *swap) replaceClusters() {
	returned := map[string]bool{}
	for i := range s.facts.Bindings {
		left := &s.facts.Bindings[i]
		if left.waitsForReplacement() && !s.decision.selects(left.Cluster) && (!s.decision.selects(left.ReplacedBy) || s.isGivenUp(left)) && s.returnTo(left) {
			returned[left.Cluster] = true
		}
	}
	for _, cluster := range toReplace(s.facts.Clusters) {
		if returned[cluster.Name] || !s.decision.selects(cluster.Name) {
			continue
		}
		by := clusterrules.ReplacedBy(cluster)
		reason := s.whyStays(cluster, by)
		if reason == "" {
			reason = s.yieldTo(cluster.Name, by)
		}
		if reason == "" {
			continue
		}
		if s.decision.Stays == nil {
			s.decision.Stays = map[string]string{}
		}
		s.decision.Stays[cluster.Name] = fmt.Sprintf("%s %s: %s", notReplaced, by, reason)
	}
	s.followUser()
	s.decision.pointOn(s.facts.Bindings)
	s.decision.Message += s.decision.describeStays()
}

// isGivenUp reports whether the user no longer wants the cluster of a binding replaced by the one for which it was left.
func (s *swap) isGivenUp(left *Binding) bool {
	member := s.cycle.fleet.findCluster(left.Cluster)
	return left.Asked != "" && member != nil && clusterrules.ReplacedBy(member) != left.Asked
}

// followUser has what waits for a cluster that a user asked for before wait for the one that the user asks for by now, where all clusters are
// picked: the old one is not picked in its place again.
func (s *swap) followUser() {
	if typeOf(s.facts.Policy) != placementv1beta1.PickAllPlacementType {
		return
	}
	for i := range s.facts.Bindings {
		left := &s.facts.Bindings[i]
		if !left.waitsForReplacement() || s.decision.selects(left.Cluster) || !s.isGivenUp(left) {
			continue
		}
		member := s.cycle.fleet.findCluster(left.Cluster)
		if by := clusterrules.ReplacedBy(member); by != "" && s.decision.selects(by) && clusterrules.RefuseReplacement(member, by, s.facts.Clusters) == "" {
			s.decision.replaceBinding(left.Name, by)
			s.decision.AskedAnew = append(s.decision.AskedAnew, left.Name)
		}
	}
}

// toReplace returns the clusters, by name, that a user wants replaced.
func toReplace(fleet []clusterv1beta1.MemberCluster) (clusters []*clusterv1beta1.MemberCluster) {
	for i := range fleet {
		if cluster := &fleet[i]; clusterrules.ReplacedBy(cluster) != "" && cluster.DeletionTimestamp == nil {
			clusters = append(clusters, cluster)
		}
	}
	slices.SortFunc(clusters, func(a, b *clusterv1beta1.MemberCluster) int { return cmp.Compare(a.Name, b.Name) })
	return clusters
}

// waitsForReplacement reports whether what is on the cluster stays until the copy of another is available.
func (b *Binding) waitsForReplacement() bool {
	return b.ReplacedBy != "" && b.State == placementv1beta1.BindingStateUnscheduled && !b.Terminating && !b.Disputed
}

// selects reports whether a cluster is picked.
func (d *Decision) selects(cluster string) bool {
	_, found := slices.BinarySearchFunc(d.Selected, cluster, func(one placementv1beta1.ClusterDecision, name string) int {
		return cmp.Compare(one.ClusterName, name)
	})
	return found
}

// selected returns the names of the picked clusters.
func (d *Decision) selected() map[string]bool {
	names := make(map[string]bool, len(d.Selected))
	for i := range d.Selected {
		names[d.Selected[i].ClusterName] = true
	}
	return names
}

// whyStays returns why a placement does not even try to leave a cluster for the one that replaces it; empty if it does.
func (s *swap) whyStays(cluster *clusterv1beta1.MemberCluster, by string) string {
	facts := &s.facts
	kind := typeOf(facts.Policy)
	has := s.decision.selects(by)
	switch {
	case kind == placementv1beta1.PickFixedPlacementType && orEmpty(facts.Policy).SchedulerName != "":
		return fmt.Sprintf("scheduler %q picks the clusters", facts.Policy.SchedulerName)
	case kind == placementv1beta1.PickFixedPlacementType:
		return fmt.Sprintf("the placement names its clusters (PickFixed): put %s in the list in place of %s", by, cluster.Name)
	case orEmpty(facts.Policy).SchedulerName != "":
		return fmt.Sprintf("scheduler %q picks the clusters", facts.Policy.SchedulerName)
	case facts.Undecided != "":
		return facts.Undecided
	case facts.Replacing.Immovable != "":
		return facts.Replacing.Immovable
	}
	if refused := clusterrules.RefuseReplacement(cluster, by, facts.Clusters); refused != "" {
		return refused
	}
	switch {
	case kind == placementv1beta1.PickNPlacementType && has:
		return fmt.Sprintf("%s has a copy already, and the policy asks for %d cluster(s)", by, s.cycle.picks.wanted)
	case kind == placementv1beta1.PickNPlacementType && facts.Replacing.NoRoom:
		return fmt.Sprintf("rollingUpdate.maxSurge is 0, which leaves no room for a copy on %s beside that on %s", by, cluster.Name)
	case kind != placementv1beta1.PickNPlacementType && !has:
		return s.cycle.whyNotPicked(by)
	}
	return ""
}

// whyNotPicked returns what keeps the placement off a cluster that is not picked.
func (c *cycle) whyNotPicked(name string) string {
	member := c.fleet.findCluster(name)
	if member == nil {
		return "there is no member cluster " + name
	}
	if reason, out := c.picks.unchosen[name]; out {
		return reason
	}
	if c.picks.run != nil {
		if reason, _ := c.picks.run.filterCluster(member); reason != "" {
			return reason
		}
	}
	return fmt.Sprintf("%s cannot be picked without another cluster going as well", name)
}

// yieldTo decides again, with a cluster going to the one that replaces it. It returns why not if anything else would move along.
func (s *swap) yieldTo(cluster, by string) string {
	before := s.decision
	facts := s.facts
	facts.Replacing.yields = maps.Clone(facts.Replacing.yields)
	if facts.Replacing.yields == nil {
		facts.Replacing.yields = map[string]string{}
	}
	facts.Replacing.yields[cluster] = "cluster is being replaced by " + by // as the filters say once it has gone
	facts.Replacing.only = before.selected()
	facts.Replacing.only[by] = true
	expected := before.selected()
	delete(expected, cluster)
	expected[by] = true
	c, after := runRounds(facts)
	if !maps.Equal(after.selected(), expected) {
		if typeOf(facts.Policy) == placementv1beta1.PickNPlacementType {
			return c.whyNotPicked(by)
		}
		return "other clusters would be picked, or left, along with it"
	}
	after.takeOver(&before)
	after.Stays = before.Stays
	told := map[string]bool{}
	after.Unselected = slices.DeleteFunc(slices.Concat(after.Unselected, before.Unselected), func(one placementv1beta1.ClusterDecision) bool {
		again := told[one.ClusterName]
		told[one.ClusterName] = true
		return again || after.selects(one.ClusterName)
	})
	after.Unselected = after.Unselected[:min(len(after.Unselected), MaxUnselected)]
	for _, binding := range facts.Bindings {
		if _, goes := slices.BinarySearch(after.Unschedule, binding.Name); goes && binding.Cluster == cluster {
			after.replaceBinding(binding.Name, by)
			delete(after.FailedOver, binding.Name)
			delete(after.Ill, binding.Name)
		}
	}
	*s = swap{facts, c, after}
	return ""
}

// returnTo decides again, with a cluster in its place again that was left for one that is not picked any more. It reports whether everything
// else that the placement has stays then.
func (s *swap) returnTo(left *Binding) bool {
	if left.Previous != placementv1beta1.BindingStateBound {
		return false
	}
	facts := s.facts
	facts.Bindings = slices.Clone(facts.Bindings)
	var released []string
	for i := range facts.Bindings {
		switch b := &facts.Bindings[i]; {
		case b.Name == left.Name:
			b.State = b.Previous
			b.ReplacedBy = ""
			b.Asked = ""
		case b.Cluster == left.ReplacedBy && b.holdsCluster() && !b.Disputed:
			b.Previous = b.State
			b.State = placementv1beta1.BindingStateUnscheduled
			b.ReplacedBy = left.Cluster
			released = append(released, b.Name)
		}
	}
	c, after := runRounds(facts)
	if !after.selects(left.Cluster) || after.selects(left.ReplacedBy) || slices.ContainsFunc(s.decision.Keep, func(kept Kept) bool {
		return kept.Decision.ClusterName != left.ReplacedBy && !after.selects(kept.Decision.ClusterName)
	}) {
		return false
	}
	after.takeOver(&s.decision)
	after.addUnscheduled(released...)
	after.Returned = slices.Concat(after.Returned, released)
	if c.fleet.findCluster(left.ReplacedBy) != nil {
		after.Withdrawn = slices.Concat(after.Withdrawn, released)
		for _, name := range released { // the old copy may have fallen ill meanwhile: the new one stays until it is well
			after.replaceBinding(name, left.Cluster)
		}
	}
	*s = swap{facts, c, after}
	return true
}

// takeOver keeps what a decision before this one has let go because clusters are replaced, or were picked again.
func (d *Decision) takeOver(before *Decision) {
	keeps := func(name string) bool {
		return slices.ContainsFunc(d.Keep, func(kept Kept) bool { return kept.Name == name })
	}
	for name, by := range before.Replaced {
		if !keeps(name) {
			d.replaceBinding(name, by)
			d.addUnscheduled(name)
		}
	}
	d.Returned = slices.DeleteFunc(slices.Clone(before.Returned), keeps)
	d.addUnscheduled(d.Returned...)
	d.Withdrawn = slices.Compact(slices.Sorted(slices.Values(slices.DeleteFunc(slices.Concat(before.Withdrawn, d.Withdrawn), keeps))))
}

// addUnscheduled adds bindings to those that are let go.
func (d *Decision) addUnscheduled(names ...string) {
	if len(names) > 0 {
		d.Unschedule = slices.Compact(slices.Sorted(slices.Values(slices.Concat(d.Unschedule, names))))
	}
}

// pointOn has what waits for a cluster that is not picked any more, and cannot be picked again itself, wait for one that is picked anew, now or
// by a decision before this of which only the new binding was written. If all clusters are there without one, it is as surplus as any other
// that is not picked.
func (d *Decision) pointOn(bindings []Binding) {
	anew := d.listAnew(bindings)
	for i := range bindings {
		left := &bindings[i]
		if !left.waitsForReplacement() || d.selects(left.ReplacedBy) || d.selects(left.Cluster) || slices.Contains(d.AskedAnew, left.Name) {
			continue
		}
		to := follow(bindings, left, d)
		if to == "" && len(anew) > 0 {
			to = anew[0]
			anew = anew[1:]
		}
		if to == "" && (!d.Satisfied || len(d.Create) > 0) {
			continue
		}
		d.replaceBinding(left.Name, to)
	}
}

// follow returns the picked cluster that is waited for where the cluster for which a binding waits is left itself; empty if there is none.
func follow(bindings []Binding, left *Binding, d *Decision) string {
	next := map[string]string{}
	for i := range bindings {
		if b := &bindings[i]; b.waitsForReplacement() {
			next[b.Cluster] = b.ReplacedBy
		}
	}
	to := left.ReplacedBy
	for range bindings {
		if to = next[to]; d.selects(to) {
			return to
		}
	}
	return ""
}

// listAnew returns the picked clusters to which nothing has been rolled out and for which nothing waits.
func (d *Decision) listAnew(bindings []Binding) (anew []string) {
	tied := map[string]bool{}
	for _, by := range d.Replaced {
		tied[by] = true
	}
	fresh := map[string]bool{}
	for i := range bindings {
		b := &bindings[i]
		fresh[b.Name] = b.State == placementv1beta1.BindingStateScheduled && !b.Placed
		if b.waitsForReplacement() {
			tied[b.ReplacedBy] = true
		}
	}
	for _, created := range d.Create {
		anew = append(anew, created.ClusterName)
	}
	for _, kept := range d.Keep {
		if fresh[kept.Name] {
			anew = append(anew, kept.Decision.ClusterName)
		}
	}
	return slices.DeleteFunc(anew, func(cluster string) bool { return tied[cluster] })
}

// Explains reports whether a binding goes because a user has its cluster replaced, or because a cluster is picked again whose place it took.
func (d *Decision) Explains(binding string) bool {
	return d.Replaced[binding] != "" || slices.Contains(d.Withdrawn, binding)
}

// describeStays returns what a message adds about clusters that are not replaced.
func (d *Decision) describeStays() string {
	told := make([]string, 0, len(d.Stays))
	for _, cluster := range slices.Sorted(maps.Keys(d.Stays)) {
		told = append(told, cluster+" stays ("+d.Stays[cluster]+")")
	}
	if len(told) == 0 {
		return ""
	}
	return "; " + strings.Join(told[:min(len(told), named)], ", ")
}

// agePattern matches how long, in a reason, a cluster has been out of reach or unhealthy.
var agePattern = regexp.MustCompile(`[0-9.]+ minutes ago`)

// WithoutAges returns what is said without the ages in it, which grow all the time.
func WithoutAges(said string) string {
	if !strings.Contains(said, "minutes ago") {
		return said
	}
	return agePattern.ReplaceAllLiteralString(said, "")
}

// TellsStays reports whether a message that was told before says of the same clusters, for the same reasons, that they are not replaced.
func (d *Decision) TellsStays(message string) bool {
	stays := WithoutAges(d.describeStays())
	return strings.Count(message, notReplaced) == strings.Count(stays, notReplaced) && strings.Contains(WithoutAges(message), stays)
}

// looksAnew reports whether a policy has to look anew at a cluster that was picked for it as it is, as the cluster is to go.
func (r *Replacing) looksAnew(policy *placementv1beta1.PlacementPolicy, cluster string) bool {
	return r.yields[cluster] != "" && typeOf(policy) != placementv1beta1.PickNPlacementType
}

// passesOver reports whether a cluster is not to be picked, as only some others are.
func (c *cycle) passesOver(cluster string) bool {
	_, obsolete := c.held.obsolete[cluster]
	only := c.facts.Replacing.only
	return only != nil && !only[cluster] && !obsolete
}
