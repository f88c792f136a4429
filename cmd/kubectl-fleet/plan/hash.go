package plan

import (
	"slices"
	"strconv"

	"github.com/fleetflow/fleetflow/activities/planning"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// setHash gives the plan the hash that the run would have. A plan that would be refused has none, nor one whose overrides were not read.
func (p *Plan) setHash(facts Facts, removed []string, c *comparer) {
	master := slices.IndexFunc(facts.Parts[facts.Target], hub.ResourceSnapshot.Master)
	if p.status == nil || len(p.Problems) > 0 || master < 0 {
		return
	}
	status := p.status
	index := strconv.Itoa(facts.Target)
	status.PolicySnapshotIndexUsed = facts.Policy.GetLabels()[placementv1beta1.PolicyIndexLabel]
	status.ResourceSnapshotIndexUsed = index
	status.ApplyStrategy = new(rules.EffectiveApplyStrategy(rules.StrategyOf(facts.Placement.Object).ApplyStrategy))
	status.DeletionStageStatus = &placementv1beta1.StageUpdatingStatus{Clusters: planning.ClusterStatuses(removed)}
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			c.noteOverrides(&status.StagesStatus[i].Clusters[j])
		}
	}
	bindings := make([]placementv1beta1.BindingObject, len(facts.Bindings))
	for i := range facts.Bindings {
		bindings[i] = facts.Bindings[i].Object
	}
	annotations := facts.Parts[facts.Target][master].Object.GetAnnotations()
	made := planhash.Make(status, planhash.Facts{
		Placement: facts.Placement.Object, Bases: planning.BasesOf(bindings),
		Resources: map[string]string{index: annotations[placementv1beta1.ResourceGroupHashAnnotation]},
	})
	p.PlanHash = made.Hash()
	p.Outline = new(made.Outline())
}

// noteOverrides notes which overrides apply to a cluster.
func (c *comparer) noteOverrides(cluster *placementv1beta1.ClusterUpdatingStatus) {
	if c.matcher == nil {
		return
	}
	applicable := c.matcher.Applicable(c.cluster(cluster.ClusterName))
	cluster.ClusterResourceOverrideSnapshots = applicable.ClusterResourceOverrideSnapshots
	cluster.ResourceOverrideSnapshots = applicable.ResourceOverrideSnapshots
}
