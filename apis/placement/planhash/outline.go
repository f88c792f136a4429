package planhash

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Outline is as much of a plan as tells what differs from another one. A run that is to follow a plan that was reviewed has it in an
// annotation. It is for a message only: what decides is the hash.
type Outline struct {
	Version       int            `json:"v"`
	Placement     string         `json:"placement"`
	RollbackOf    string         `json:"rollbackOf,omitempty"`
	PolicyIndex   string         `json:"policyIndex"`
	ApplyStrategy string         `json:"applyStrategy"`
	Strategy      string         `json:"strategy"`
	Snapshot      string         `json:"snapshot"`
	Resources     string         `json:"resources"`
	Stages        []StageOutline `json:"stages"`
	Removed       int            `json:"removed"`
	Removal       string         `json:"removal"`
}

// StageOutline is that of a stage: how many clusters it has, which they are, what they have, and what they get.
type StageOutline struct {
	Name     string `json:"name"`
	Count    int    `json:"count"`
	Clusters string `json:"clusters"`
	From     string `json:"from"`
	To       string `json:"to"`
}

// Outline returns that of a plan.
func (p Plan) Outline() Outline {
	o := Outline{
		Version: p.Version, Placement: brief(p.Placement), RollbackOf: p.RollbackOf, PolicyIndex: p.PolicyIndex,
		ApplyStrategy: brief(p.ApplyStrategy), Strategy: brief(p.Strategy), Snapshot: p.Snapshot.Index, Resources: brief(p.Snapshot),
		Removed: len(p.Deletion), Removal: brief(p.Deletion),
	}
	for _, s := range p.Stages {
		names := make([]string, len(s.Clusters))
		from := make([]string, len(s.Clusters))
		to := slices.Clone(s.Clusters)
		for i := range s.Clusters {
			names[i] = s.Clusters[i].Name
			from[i] = s.Clusters[i].From
			to[i].From = ""
		}
		o.Stages = append(o.Stages, StageOutline{s.Name, len(s.Clusters), brief(names), brief(from), brief(to)})
	}
	return o
}

func brief(of any) string { return digest(of)[:12] }

// named matches what a name or an index in an outline can be. It is written into messages, and users write annotations.
var named = regexp.MustCompile(`^[A-Za-z0-9.-]{0,63}$`)

// ReadOutline reads one from the annotation of a run; nil if there is none.
func ReadOutline(text string) *Outline {
	o := &Outline{}
	if text == "" || json.Unmarshal([]byte(text), o) != nil {
		return nil
	}
	names := []string{o.RollbackOf, o.PolicyIndex, o.Snapshot}
	for _, s := range o.Stages {
		names = append(names, s.Name)
	}
	if slices.ContainsFunc(names, func(name string) bool { return !named.MatchString(name) }) {
		return nil
	}
	return o
}

// Differences returns in words what is different in the outline of the plan as it is now. What follows from another difference is not told.
func (o Outline) Differences(now Outline) []string {
	if o.Version != now.Version {
		return []string{fmt.Sprintf("it was reviewed with version %d of the hash, and this hub has version %d", o.Version, now.Version)}
	}
	var all []string
	differs := func(was, is, text string) {
		if was != is {
			all = append(all, text)
		}
	}
	differs(o.Placement, now.Placement, "it was made for another placement, or that was created again")
	differs(o.RollbackOf, now.RollbackOf, fmt.Sprintf("rollbackOf %q -> %q", o.RollbackOf, now.RollbackOf))
	if o.Snapshot != now.Snapshot {
		all = append(all, fmt.Sprintf("resource snapshot %s -> %s", o.Snapshot, now.Snapshot))
	} else {
		differs(o.Resources, now.Resources, fmt.Sprintf("resource snapshot %s has other resources", o.Snapshot))
	}
	differs(o.PolicyIndex, now.PolicyIndex, fmt.Sprintf("policy snapshot %s -> %s", o.PolicyIndex, now.PolicyIndex))
	differs(o.ApplyStrategy, now.ApplyStrategy, "the placement has another apply strategy")
	differs(o.Strategy, now.Strategy, "the strategy of the stages has changed")
	all = append(all, o.stageDifferences(now)...)
	if o.Removed != now.Removed {
		all = append(all, fmt.Sprintf("clusters to remove from: %d -> %d", o.Removed, now.Removed))
	} else {
		differs(o.Removal, now.Removal, "other clusters are removed from, or have something else")
	}
	return all
}

// stageDifferences returns which stages differ.
func (o Outline) stageDifferences(now Outline) []string {
	namesOf := func(o Outline) (names []string) {
		for _, s := range o.Stages {
			names = append(names, s.Name)
		}
		return names
	}
	if was, is := namesOf(o), namesOf(now); !slices.Equal(was, is) {
		return []string{fmt.Sprintf("other stages, or another order of stages: %d -> %d", len(was), len(is))}
	}
	var all []string
	for i, was := range o.Stages {
		switch is := now.Stages[i]; {
		case was.Count != is.Count:
			all = append(all, fmt.Sprintf("stage %s has %d clusters -> %d", was.Name, was.Count, is.Count))
		case was.Clusters != is.Clusters:
			all = append(all, fmt.Sprintf("stage %s has other clusters, or another order", was.Name))
		case was.From != is.From:
			all = append(all, fmt.Sprintf("clusters of stage %s have something else now", was.Name))
		case was.To != is.To && o.Snapshot == now.Snapshot && o.Resources == now.Resources:
			all = append(all, fmt.Sprintf("clusters of stage %s get something else, such as by other overrides", was.Name))
		}
	}
	return all
}
