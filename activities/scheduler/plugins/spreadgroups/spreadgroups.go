// Package spreadgroups follows the spread constraints of a policy that picks all clusters: it chooses groups of
// clusters, by the values of a label, and how many clusters are picked in all. Where the placement is already comes
// first, as far as the constraints allow.
package spreadgroups

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// bounds are how many there may be.
type bounds struct{ least, most int }

func newBounds(spec *placementv1beta1.SpreadConstraint) bounds {
	b := bounds{least: int(ptr.Deref(spec.MinGroups, 1)), most: math.MaxInt}
	if spec.MaxGroups != nil {
		b.most = int(*spec.MaxGroups)
	}
	return b
}

type plugin struct {
	// key is the label that makes groups; empty if none does.
	key string
	// groups and clusters are how many of each are picked.
	groups, clusters bounds
}

// New returns the plug-in.
func New() framework.Plugin { return &plugin{} }

// Name of the plug-in.
func (*plugin) Name() string { return "SpreadConstraints" }

// PreFilter reads the constraints.
func (p *plugin) PreFilter(c *framework.Cycle) (bool, error) {
	p.groups = bounds{most: math.MaxInt}
	p.clusters = bounds{most: math.MaxInt}
	for i := range c.Policy.SpreadConstraints {
		switch spec := &c.Policy.SpreadConstraints[i]; spec.SpreadBy {
		case placementv1beta1.SpreadByCluster:
			p.clusters = newBounds(spec)
		case placementv1beta1.SpreadByLabel:
			p.key = spec.LabelKey
			p.groups = newBounds(spec)
		default:
			return true, fmt.Errorf("the scheduling policy's spreadConstraints[%d].spreadBy %q is neither Cluster nor Label", i, spec.SpreadBy)
		}
	}
	return p.key == "", nil
}

// Filter keeps clusters out that are in no group.
func (p *plugin) Filter(_ *framework.Cycle, cluster *clusterv1beta1.MemberCluster) string {
	if _, ok := cluster.Labels[p.key]; !ok {
		return fmt.Sprintf("cluster has no label %q, over whose values the placement is spread", p.key)
	}
	return ""
}

// Watches is interested in what makes the groups.
func (*plugin) Watches(c *framework.Cycle) []framework.Interest {
	var interests []framework.Interest
	for i := range c.Policy.SpreadConstraints {
		if key := c.Policy.SpreadConstraints[i].LabelKey; key != "" {
			interests = append(interests, framework.Group(key))
		}
	}
	return interests
}

// Choose chooses groups first, then clusters from them.
func (p *plugin) Choose(_ *framework.Cycle, candidates []framework.Candidate) framework.Choice {
	sorted := slices.Clone(candidates)
	slices.SortFunc(sorted, compareCandidates)
	choice := framework.Choice{Out: map[string]string{}}
	if p.key != "" {
		chosen, unmet := p.chooseGroups(sorted)
		if unmet != "" {
			return framework.Choice{Unmet: unmet}
		}
		sorted = slices.DeleteFunc(sorted, func(candidate framework.Candidate) bool {
			value := candidate.Cluster.Labels[p.key]
			if candidate.Stays || chosen[value] {
				return false
			}
			choice.Out[candidate.Cluster.Name] = fmt.Sprintf("other groups by label %q are chosen, of which there may be %s", p.key, p.limit())
			return true
		})
	}
	if len(sorted) < p.clusters.least {
		return framework.Choice{Unmet: fmt.Sprintf("the spread constraints cannot be met: there are %d clusters, and %d are needed", len(sorted),
			p.clusters.least)}
	}
	for _, candidate := range p.leaveOut(sorted) {
		choice.Out[candidate.Cluster.Name] = fmt.Sprintf("other clusters are chosen, of which there may be %d", p.clusters.most)
	}
	return choice
}

// limit returns how many groups there may be.
func (p *plugin) limit() string {
	if most := min(p.groups.most, p.clusters.most); most < math.MaxInt {
		return fmt.Sprint(most)
	}
	return "any number"
}

// leaveOut returns the clusters that are too many, of those in the order in which they are taken: the first of each group comes before
// all others, and what stays is never left out.
func (p *plugin) leaveOut(sorted []framework.Candidate) []framework.Candidate {
	var first, rest []framework.Candidate
	seen := map[string]bool{}
	for _, candidate := range sorted {
		value, ok := candidate.Cluster.Labels[p.key]
		if candidate.Stays || ok && !seen[value] {
			first = append(first, candidate)
		} else {
			rest = append(rest, candidate)
		}
		seen[value] = true
	}
	return rest[min(len(rest), max(0, p.clusters.most-len(first))):]
}

// compareCandidates ranks first what stays, then what the placement has from an earlier policy, then by score, then by name.
func compareCandidates(a, b framework.Candidate) int {
	switch {
	case a.Stays != b.Stays && a.Stays:
		return -1
	case a.Stays != b.Stays:
		return 1
	}
	return cmp.Or(cmp.Compare(b.Score.Placed, a.Score.Placed), a.Score.Compare(b.Score), cmp.Compare(a.Cluster.Name, b.Cluster.Name))
}

// chooseGroups chooses values of the label, or says why it cannot.
func (p *plugin) chooseGroups(candidates []framework.Candidate) (map[string]bool, string) {
	byValue := map[string]*group{}
	var all []*group
	for _, candidate := range candidates {
		value, ok := candidate.Cluster.Labels[p.key]
		if !ok {
			continue // it stays, but is in no group any more
		}
		g := byValue[value]
		if g == nil {
			g = &group{name: value}
			byValue[value] = g
			all = append(all, g)
		}
		g.addCandidate(candidate)
	}
	for _, g := range all {
		g.score = 1000*g.size + g.taints/g.size
	}
	wanted := wanted{groups: p.groups, size: p.clusters.least}
	if len(all) > p.clusters.most || p.groups.most < math.MaxInt {
		wanted.groups.most = min(p.groups.most, p.clusters.most)
		wanted.bounded = true
	}
	found := wanted.choose(all)
	if found == nil {
		return nil, p.unmet(all)
	}
	chosen := map[string]bool{}
	for _, g := range found {
		chosen[g.name] = true
	}
	return chosen, ""
}

// unmet returns why no groups can be chosen.
func (p *plugin) unmet(all []*group) string {
	const cannot = "the spread constraints cannot be met: "
	staying := 0
	size := 0
	for _, g := range all {
		size += g.size
		if g.stays > 0 {
			staying++
		}
	}
	switch {
	case len(all) < p.groups.least:
		return fmt.Sprintf("%sthere are %d groups by label %q, and %d are needed", cannot, len(all), p.key, p.groups.least)
	case staying > min(p.groups.most, p.clusters.most):
		return fmt.Sprintf("%swhat is placed is in %d groups by label %q, and there may be %s", cannot, staying, p.key, p.limit())
	}
	return fmt.Sprintf("%sthere are %d clusters in %d groups by label %q, and no %s of these have the %d that are needed", cannot, size,
		len(all), p.key, p.limit(), p.clusters.least)
}
