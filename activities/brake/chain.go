package brake

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// Start is a kind of change that begins on a cluster.
type Start = fleetflowv1alpha1.Start

// Subject is what a chain is made for: a placement, or a stage of an update run of it.
type Subject struct {
	// Namespace and Placement say which placement it is; Run is the update run, and empty for rolling updates and evictions.
	Namespace, Placement, Run string
	// UID is that of the run, or of the placement if there is none, and Created is when that was created.
	UID     types.UID
	Created metav1.Time
	// PlacementLabels are the labels of the placement, with those for its name and its namespace.
	PlacementLabels map[string]string
	// NamespaceLabels are those of the Namespace that the placement is in; none for a ClusterResourcePlacement.
	NamespaceLabels map[string]string
	// Stage is the name of the stage; empty for rolling updates, evictions, and the stage that clears clusters.
	Stage string
	// Windows are the names of windows that count for the stage because its strategy names them.
	Windows []string
	// Rollback says that the run takes back what another has done.
	Rollback bool
	// Exemptions are those of the subject.
	Exemptions Exemptions
}

// SubjectOf returns a placement, with its rolling updates and evictions.
func SubjectOf(placement placementv1beta1.PlacementObject) Subject {
	return Subject{
		Namespace: placement.GetNamespace(), Placement: placement.GetName(), UID: placement.GetUID(), Created: placement.GetCreationTimestamp(),
		PlacementLabels: fleetflowv1alpha1.GateLabels(placement),
	}
}

// SubjectOfRun returns a stage of a run; the stage that clears clusters has no name. The placement is nil where it is gone.
func SubjectOfRun(run placementv1beta1.UpdateRunObject, placement placementv1beta1.PlacementObject, stage string) Subject {
	of := Subject{
		Namespace: run.GetNamespace(), Run: run.GetName(), UID: run.GetUID(), Created: run.GetCreationTimestamp(),
		Stage: stage, Rollback: rules.RestoresWhatSucceeded(run),
	}
	if placement != nil {
		of.PlacementLabels = fleetflowv1alpha1.GateLabels(placement)
	}
	return of
}

// StartInRun returns which kind of start it is to give a cluster the resources of a run.
func StartInRun(binding placementv1beta1.BindingObject) Start {
	if binding == nil || binding.GetBindingSpec().ResourceSnapshotName == "" {
		return fleetflowv1alpha1.StartFirstPlacements
	}
	return fleetflowv1alpha1.StartUpdates
}

// Cluster is a member cluster, with the labels of its MemberCluster.
type Cluster struct {
	Name   string
	Labels map[string]string
}

// Source is one kind of objects that close clusters, as it concerns one subject.
type Source interface {
	// Closed says whether a cluster is closed for a kind of start at an instant, and what it waits for.
	Closed(cluster Cluster, start Start, now time.Time) (rollout.Wait, bool)
	// NextChange is when time alone may change an answer of Closed; zero if it never does.
	NextChange(now time.Time) time.Time
}

// Chain asks its sources in their order. A nil Chain is open.
type Chain struct{ sources []Source }

// NewChain makes a chain of the sources that are there; nil if there are none.
func NewChain(sources ...Source) *Chain {
	var c Chain
	for _, source := range sources {
		if source != nil {
			c.sources = append(c.sources, source)
		}
	}
	if len(c.sources) == 0 {
		return nil
	}
	return &c
}

// Closed reports whether a cluster is closed for a kind of start at an instant, and what it waits for: what the first source says
// that closes it.
func (c *Chain) Closed(cluster Cluster, start Start, now time.Time) (rollout.Wait, bool) {
	if c == nil {
		return rollout.Wait{}, false
	}
	for _, source := range c.sources {
		if wait, closed := source.Closed(cluster, start, now); closed {
			wait.Cluster = cluster.Name
			return wait, true
		}
	}
	return rollout.Wait{}, false
}

// NextChange returns when time alone may change an answer of Closed; zero if it never does.
func (c *Chain) NextChange(now time.Time) (next time.Time) {
	if c == nil {
		return next
	}
	for _, source := range c.sources {
		next = rollout.EarlierOf(next, source.NextChange(now))
	}
	return next
}
