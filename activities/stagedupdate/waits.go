package stagedupdate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetflow/fleetflow/activities/brake"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// brakesOf returns what brakes a cluster of the stage, as far as the call knows: the order is that in which the brakes count.
func (g *stageGate) brakesOf(name string) []rollout.Wait {
	o := g.observer
	waits := slices.Concat(
		brake.Suspension(o.placement, name), brake.Hook(name, o.seen[name].wait), newClusterWaits(name, o.seen[name]), o.refusalWaits(name),
	)
	if closure, closed := g.closed[name]; closed {
		waits = append(waits, closure)
	}
	return waits
}

// newClusterWaits returns what a cluster waits for that is replaced; nothing if its copy may go.
func newClusterWaits(name string, seen observation) []rollout.Wait {
	if seen.awaits == nil {
		return nil
	}
	return []rollout.Wait{{
		Cluster: name, Kind: rollout.BrakeNewCluster, Reason: placementv1beta1.ReasonWaitingForNewCluster, Object: seen.awaits.Cluster, Until: seen.awaits.Until,
		Why: "its copy stays until that of cluster " + seen.awaits.Cluster + ", which replaces it, is available",
	}}
}

// toldOf returns what the status says of why a cluster is not written to.
func toldOf(c *placementv1beta1.ClusterUpdatingStatus) rollout.Told {
	said := updaterun.NotWritten(c)
	if said == nil {
		return rollout.Told{}
	}
	return rollout.Told{Reason: said.Reason, Text: said.Message}
}

// clustersOf returns the clusters of waits.
func clustersOf(waits []rollout.Wait) (clusters []string) {
	for _, wait := range waits {
		clusters = append(clusters, wait.Cluster)
	}
	return clusters
}

// recordWaits records why clusters are not written to.
func recordWaits(r updaterun.Recorder, stage *placementv1beta1.StageUpdatingStatus, waits []rollout.Wait) {
	records := make([]updaterun.ClusterWait, len(waits))
	for i, wait := range waits {
		records[i] = updaterun.ClusterWait{Cluster: wait.Cluster, Reason: wait.Reason, Why: wait.Text(), Text: wait.StatusText()}
	}
	r.ClustersWait(stage, records)
}

// tellWaits reports clusters of a stage that are not written to.
func (s runStore) tellWaits(run placementv1beta1.UpdateRunObject, stage string, waits []rollout.Wait) {
	s.tellBrake(run, "ClusterSuspended", corev1.EventTypeNormal, stage, braked(waits, rollout.BrakeSuspension))
	s.tellBrake(run, placementv1beta1.ReasonWaitingForHook, corev1.EventTypeNormal, stage, braked(waits, rollout.BrakeHook))
	s.tellBrake(run, placementv1beta1.ReasonWaitingForNewCluster, corev1.EventTypeNormal, stage, braked(waits, rollout.BrakeNewCluster))
	s.tellBrake(run, eventWriteRefused, corev1.EventTypeWarning, stage, braked(waits, rollout.BrakeRefusal))
}

// braked returns those of some waits that a brake makes.
func braked(waits []rollout.Wait, brake string) (by []rollout.Wait) {
	for _, wait := range waits {
		if wait.Kind == brake {
			by = append(by, wait)
		}
	}
	return by
}

// tellBrake reports clusters that one brake keeps, the first few by name.
func (s runStore) tellBrake(run placementv1beta1.UpdateRunObject, reason, eventType, stage string, waits []rollout.Wait) {
	word := placementv1beta1.ScopeOf(run).Word
	for _, wait := range waits[:min(len(waits), updaterun.ShownNames)] {
		s.events.Eventf(run, clusterv1beta1.ReferTo(wait.Cluster), eventType, reason, "Rollout", "%s", word(wait.EventText(stage)))
	}
	if more := len(waits) - updaterun.ShownNames; more > 0 {
		s.events.Eventf(run, nil, eventType, reason, actionOf(stage), "%s", word(waits[0].EventTextOfMore(more, stage)))
	}
}
