// Package framework is what the scheduler and its plug-ins agree on: the extension
// points, what a plug-in is told, and what it answers.
//
// A plug-in is made anew for every cycle, so it may keep in itself what it finds out
// in one extension point for the next. It decides by what it is told alone: no client,
// no clock, no chance.
package framework

import (
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Plugin is a part of the scheduler. It implements one extension point or more.
type Plugin interface {
	// Name of the plug-in, for explanations.
	Name() string
}

// PostBatchPlugin bounds how many clusters are picked before the others are looked at
// again.
type PostBatchPlugin interface {
	Plugin
	// PostBatch returns the bound; 0 if there is none.
	PostBatch(c *Cycle) int
}

// PreFilterPlugin looks at policy and fleet before any single cluster is filtered.
type PreFilterPlugin interface {
	Plugin
	// PreFilter says whether there is nothing to filter for. The error is the user's:
	// the policy cannot be followed.
	PreFilter(c *Cycle) (skip bool, err error)
}

// FilterPlugin keeps clusters out that cannot take the placement.
type FilterPlugin interface {
	Plugin
	// Filter says why the cluster is out of the question; empty if it is not.
	Filter(c *Cycle, cluster *clusterv1beta1.MemberCluster) (reason string)
}

// PreScorePlugin looks at policy and fleet before any single cluster is scored.
type PreScorePlugin interface {
	Plugin
	// PreScore says whether there is nothing to score by. The error is the user's: the
	// policy cannot be followed.
	PreScore(c *Cycle) (skip bool, err error)
}

// ScorePlugin ranks the clusters that passed all filters.
type ScorePlugin interface {
	Plugin
	// Score is what the plug-in adds to the score of a cluster.
	Score(c *Cycle, cluster *clusterv1beta1.MemberCluster) Score
}

// ChoosePlugin chooses, where all clusters that fit would be picked, those to pick. All other
// plug-ins look at one cluster at a time.
type ChoosePlugin interface {
	Plugin
	// Choose chooses among the clusters that have the placement and those that passed all filters.
	Choose(c *Cycle, candidates []Candidate) Choice
}

// Candidate is a cluster to choose or not.
type Candidate struct {
	Cluster *clusterv1beta1.MemberCluster
	Score   Score
	// Stays says that the cluster was picked by the latest policy: it is not let go.
	Stays bool
}

// Choice is what is chosen.
type Choice struct {
	// Out says why the candidates that are not chosen are not, by name.
	Out map[string]string
	// Unmet says why there is nothing to choose that the policy allows; empty if there is.
	Unmet string
}

// ReservePlugin is for plug-ins whose Filter and Score depend on what else is picked.
// They are asked again after every batch; all others are asked once per cluster and
// cycle. So that this does not cost a look at every cluster, they say which clusters
// they cannot tell apart, and are asked about classes of these. There may be as many
// classes as clusters: the answers must not cost a look at labels.
type ReservePlugin interface {
	Plugin
	// Class is the same number for clusters that Filter and Score always treat alike.
	Class(cluster *clusterv1beta1.MemberCluster) int
	// FilterClass and ScoreClass are what Filter and Score say now of the clusters of a class.
	FilterClass(c *Cycle, class int) string
	ScoreClass(c *Cycle, class int) Score
	// Reserve takes note that a cluster has been picked.
	Reserve(c *Cycle, cluster *clusterv1beta1.MemberCluster)
}

// DepartPlugin is for plug-ins that look at what remains once a cluster goes, where fewer are wanted.
type DepartPlugin interface {
	ReservePlugin
	// LossOf says what remains if a cluster of a class goes.
	LossOf(class int) Loss
	// Release takes note that a cluster goes.
	Release(cluster *clusterv1beta1.MemberCluster)
}

// WatchPlugin says which changes of clusters can turn a cluster that a policy could not
// take into one that it can.
type WatchPlugin interface {
	Plugin
	// Watches lists what the plug-in looks at for the policy of a cycle. Nothing else of the
	// cycle is known.
	Watches(c *Cycle) []Interest
}

// DetailPlugin explains a score to people.
type DetailPlugin interface {
	Plugin
	// Details says in words how the score of a cluster came about.
	Details(c *Cycle, cluster *clusterv1beta1.MemberCluster) []string
}
