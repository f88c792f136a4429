// Package plan works out what a staged update run would do: its stages, the clusters of each in their order and in waves,
// its tasks, what would keep it from starting, and what changes on each cluster. It is pure, and asks the same pure
// functions as the hub: for stages activities/planning, for what a cluster gets activities/override and
// activities/workmodel.
package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/planning"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/planhash"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Facts are what a plan is made from.
type Facts struct {
	// Run is the name of the run, for the names of its approval requests.
	Run       string
	Placement hub.Placement
	// StrategyName and Strategy are the stages; nil if there is no such strategy.
	StrategyName string
	Strategy     *placementv1beta1.UpdateStrategySpec
	// Target is the index of the snapshot to roll out, Latest that of the latest; -1 if there is none.
	Target, Latest int
	// Frozen is the status of a run that the hub has planned already.
	Frozen *placementv1beta1.UpdateRunStatus
	// RollbackOf is the run to take back.
	RollbackOf string
	// Parts of resource snapshots by index: the target's, and of every snapshot a cluster has now.
	Parts map[int][]hub.ResourceSnapshot
	// Content says that what is in the parts was read, so that what changes is known.
	Content bool
	// Rules are what the hub lets envelopes hold.
	Rules envelope.Rules
	// Names of master snapshots by index.
	Indexes  map[string]int
	Policy   *hub.PolicySnapshot
	Bindings []hub.Binding
	Members  []clusterv1beta1.MemberCluster
	Runs     []hub.Run
	// Overrides that are in force, and those that bindings name, by their short form.
	Overrides override.Snapshots
	Named     map[string]override.Snapshots
}

// Plan is what a run would do.
type Plan struct {
	Placement string `json:"placement"`
	Strategy  string `json:"strategy"`
	// Snapshot is the index of the resource snapshot to roll out.
	Snapshot int `json:"snapshot"`
	Latest   int `json:"latestSnapshot"`
	// RollbackOf is the run that is taken back: every cluster gets a snapshot of its own.
	RollbackOf string `json:"rollbackOf,omitempty"`
	// Problems would keep the run from starting.
	Problems []string `json:"problems,omitempty"`
	// PlanHash sums the plan up, as the run will have it in status.planHash if nothing changes; empty if that is not known. Outline is what
	// tells what has changed by then.
	PlanHash string            `json:"planHash,omitempty"`
	Outline  *planhash.Outline `json:"outline,omitempty"`
	// status is what the run would freeze of its stages.
	status *placementv1beta1.UpdateRunStatus
	// refusals are those of the problems that do not go by themselves.
	refusals []string
	Notes    []string `json:"notes,omitempty"`
	Stages   []Stage  `json:"stages,omitempty"`
	// EarliestEnd is when the run ends at the earliest, by openings and soak times alone; nil if nothing keeps it from beginning.
	EarliestEnd *time.Time `json:"earliestEnd,omitempty"`
	// Unassigned clusters are picked and in no stage.
	Unassigned []string `json:"unassigned,omitempty"`
	// Removed clusters are no longer picked: after the last stage, what they have of the placement is removed.
	Removed []string `json:"removed,omitempty"`
	// RemovedStay says that it stays there instead, and belongs to the fleet no more.
	RemovedStay bool `json:"removedStay,omitempty"`
	// Replicas are the shares of the clusters in divided workloads. They are in force with or without the run.
	Replicas []hub.ReplicaShare `json:"replicas,omitempty"`
	// Changes are what changes on the clusters, those with the same changes together.
	Changes []Group `json:"changes,omitempty"`
}

// Stage is a stage of a plan.
type Stage struct {
	Name string `json:"name"`
	// Before and After are its gates, in words, and During what watches it.
	Before []string `json:"before,omitempty"`
	During []string `json:"during,omitempty"`
	After  []string `json:"after,omitempty"`
	// AtOnce is how many clusters are under way at the same time.
	AtOnce int `json:"atOnce"`
	// Waves are the clusters in their order. A cluster starts when one before it is done, so waves are how it goes if
	// all take the same time.
	Waves [][]Cluster `json:"waves,omitempty"`
	// Windows are names of rollout windows that count for the stage because its strategy names them.
	Windows []string `json:"windows,omitempty"`
	// SkipsHeld says that clusters take the turn of those before them that are held.
	SkipsHeld bool `json:"skipsHeld,omitempty"`
	// Openings are those of waves that holds or windows keep from beginning at once.
	Openings []Opening `json:"openings,omitempty"`
	// Failures says what becomes of the run if clusters fail.
	Failures string `json:"failures,omitempty"`
	// Earliest is how the stage goes at the earliest, by openings and soak times alone; empty for a stage that is over, and where time
	// alone does not tell.
	Earliest Earliest `json:"-"`
	// soak is how long it waits at least, by its tasks that have not begun; soaks is when the last of those ends that have.
	soak  time.Duration
	soaks time.Time
	// over says that the run is done with the stage.
	over bool
}

// Earliest is when a stage is come to, when the last of its clusters may begin, and when it ends.
type Earliest struct{ Begins, Opened, Ends time.Time }

// Cluster is a cluster of a stage.
type Cluster struct {
	Name string `json:"name"`
	// From is the snapshot the cluster has now; empty if it has none.
	From string `json:"from,omitempty"`
	// To is the snapshot it gets.
	To string `json:"to"`
	// Health says what is wrong with it; empty if nothing is.
	Health string `json:"health,omitempty"`
	// begun says that the run has written to it, so that it waits for no opening.
	begun bool
}

// Make works a plan out.
func Make(facts Facts) (Plan, error) {
	p := Plan{Placement: facts.Placement.String(), Strategy: facts.StrategyName, Snapshot: facts.Target, Latest: facts.Latest,
		RollbackOf: facts.RollbackOf}
	bindings := make([]placementv1beta1.BindingObject, len(facts.Bindings))
	for i := range facts.Bindings {
		bindings[i] = facts.Bindings[i].Object
	}
	p.Replicas = hub.ReplicaShares(facts.Bindings, nil)
	selected, removed := planning.SplitClusters(bindings)
	p.Removed = removed
	p.RemovedStay = rules.AbandonsRemoved(facts.Placement.Object)
	switch {
	case facts.Frozen != nil:
		p.takeFrozenStages(facts)
	case facts.Strategy != nil:
		p.checkRefusals(facts)
		p.assignStages(facts, selected)
	default:
		p.checkRefusals(facts)
	}
	if !facts.Content || facts.Target < 0 || len(facts.Parts[facts.Target]) == 0 {
		return p, nil
	}
	c := newComparer(facts)
	if err := c.unpackSnapshot(facts.Target).Invalid(); err != nil {
		p.Notes = append(p.Notes, err.Error()+": the hub will not place it, and what an earlier version of it has brought stays")
	}
	if objects, err := objectsOf(c.unpackSnapshot(facts.Target)); err == nil { // else the changes say so
		p.Notes = append(p.Notes, noteUnserved(facts.Members, p.Clusters(), objects)...)
	}
	var err error
	p.Changes, err = c.groupChanges(p.Clusters())
	if err == nil {
		p.setHash(facts, removed, c)
	}
	return p, err
}

// Clusters returns those of all stages, in their order.
func (p *Plan) Clusters() []string {
	var names []string
	for _, stage := range p.Stages {
		for _, wave := range stage.Waves {
			for _, cluster := range wave {
				names = append(names, cluster.Name)
			}
		}
	}
	return names
}

// addProblem notes what would keep the run from starting.
func (p *Plan) addProblem(format string, args ...any) {
	p.Problems = append(p.Problems, fmt.Sprintf(format, args...))
}

// addRefusal notes what would keep the run from starting until a user changes something.
func (p *Plan) addRefusal(format string, args ...any) {
	p.addProblem(format, args...)
	p.refusals = append(p.refusals, p.Problems[len(p.Problems)-1])
}

// Refusals returns what would make the run fail whenever it starts, until a user changes something.
func (p *Plan) Refusals() []string { return p.refusals }

// checkRefusals looks for what would make the hub refuse the run.
func (p *Plan) checkRefusals(facts Facts) {
	if !facts.Placement.External() {
		p.addRefusal("%s is not rolled out by runs: set its spec.strategy.type to External", facts.Placement.Ref)
	}
	if allowed := rules.AllowedInsteadOf(rules.StrategyOf(facts.Placement.Object).External, facts.StrategyName); len(allowed) > 0 {
		p.addRefusal("%s does not allow runs with strategy %s: use one of %s, or have a user who may change the placement add it to "+
			"spec.strategy.external.allowedStrategies", facts.Placement.Ref, facts.StrategyName, strings.Join(allowed, ", "))
	}
	switch {
	case facts.Policy == nil:
		p.addProblem("%s has no policy snapshot yet: it is not scheduled", facts.Placement.Ref)
	case facts.Policy.Status.ObservedCRPGeneration < facts.Placement.Object.GetGeneration() ||
		!rules.FoundAllClusters(meta.FindStatusCondition(facts.Policy.Status.Conditions, placementv1beta1.ConditionTypeScheduled)):
		p.addProblem("%s is not fully scheduled: see kubectl fleet status %s", facts.Placement.Ref, facts.Placement.Flags())
	}
	if facts.Strategy == nil {
		p.addRefusal("there is no strategy %q", facts.StrategyName)
	}
	switch {
	case facts.Target < 0:
		p.addProblem("%s has no resource snapshot yet", facts.Placement.Ref)
	case len(facts.Parts[facts.Target]) == 0:
		p.addRefusal("%s has no resource snapshot %d: kubectl fleet history %s lists them", facts.Placement.Ref, facts.Target,
			facts.Placement.Flags())
	}
	for _, run := range facts.Runs {
		if run.Placement() != facts.Placement.Ref || run.Outcome() != "" || run.Name == facts.Run || !run.Object.GetDeletionTimestamp().IsZero() {
			continue
		}
		if run.Spec.StagedUpdateStrategyName != facts.StrategyName {
			p.addRefusal("%s of the same placement is not over and uses strategy %s: use that one, or wait for it to end", run.Ref,
				run.Spec.StagedUpdateStrategyName)
		} else {
			p.Notes = append(p.Notes, fmt.Sprintf("%s of the same placement is not over: the later run takes the clusters over that both come to", run.Ref))
		}
	}
}

// assignStages puts the clusters into stages, as the hub would.
func (p *Plan) assignStages(facts Facts, selected []string) {
	labelsOf := map[string]map[string]string{}
	for i := range facts.Members {
		labelsOf[facts.Members[i].Name] = facts.Members[i].Labels
	}
	assigned, err := planning.AssignClusters(*facts.Strategy, selected, labelsOf)
	p.Unassigned = assigned.Unassigned
	if invalid, is := errors.AsType[*planning.SelectorError](err); is {
		p.addRefusal("the labelSelector of stage %s is invalid: %v", invalid.Stage, invalid.Err)
		return
	}
	if err != nil {
		p.addRefusal("%v", err)
		return
	}
	status := &placementv1beta1.UpdateRunStatus{}
	assigned.Freeze(status, facts.requestNames())
	p.status = status
	p.showStages(facts, status)
	if len(p.Unassigned) == 0 {
		return
	}
	switch facts.Strategy.UnassignedClusters {
	case placementv1beta1.UnassignedClustersIgnore:
		p.Notes = append(p.Notes, fmt.Sprintf("in no stage, and left as they are (unassignedClusters: Ignore): %s",
			strings.Join(p.Unassigned, ", ")))
	case placementv1beta1.UnassignedClustersLast: // they have a stage of their own
	default:
		p.addRefusal("%d picked clusters are in no stage: %s; label them for one, or set unassignedClusters of strategy %s to Ignore or Last",
			len(p.Unassigned), strings.Join(p.Unassigned, ", "), facts.StrategyName)
	}
}

// requestNames returns those that the run will give to its approval requests: the hub agent's vocabulary is that of its latest run.
func (f Facts) requestNames() stagetask.Names {
	names := stagetask.Names{Run: f.Run}
	var latest placementv1beta1.UpdateRunObject
	for _, run := range f.Runs {
		if created := run.Object.GetCreationTimestamp(); latest == nil || latest.GetCreationTimestamp().Time.Before(created.Time) {
			latest = run.Object
			names.Vocabulary = placementv1beta1.VocabularyOf(latest)
		}
	}
	return names
}

// takeFrozenStages takes the stages and clusters that the hub has frozen for a run.
func (p *Plan) takeFrozenStages(facts Facts) {
	p.PlanHash = facts.Frozen.PlanHash
	p.Removed = nil
	if deletion := facts.Frozen.DeletionStageStatus; deletion != nil {
		p.Removed = updaterun.ClusterNames(deletion)
	}
	p.showStages(facts, facts.Frozen)
}

// showStages shows the stages that are frozen in the status of a run.
func (p *Plan) showStages(facts Facts, status *placementv1beta1.UpdateRunStatus) {
	describe := newDescriber(facts)
	for i := range status.StagesStatus {
		frozen := &status.StagesStatus[i]
		config := placementv1beta1.StageConfig{Name: frozen.StageName}
		if strategy := status.UpdateStrategySnapshot; strategy != nil && i < len(strategy.Stages) {
			config = strategy.Stages[i]
		}
		stage := newStage(frozen, config, describe)
		stage.SkipsHeld = status.UpdateStrategySnapshot != nil &&
			status.UpdateStrategySnapshot.HeldClusters == placementv1beta1.HeldClustersSkip
		p.Stages = append(p.Stages, stage)
	}
}

// targetSnapshots returns the snapshots of clusters that get one of their own.
func (f Facts) targetSnapshots() map[string]int {
	targets := map[string]int{}
	if f.Frozen == nil {
		return targets
	}
	for i := range f.Frozen.StagesStatus {
		for _, cluster := range f.Frozen.StagesStatus[i].Clusters {
			if index, err := strconv.Atoi(cluster.ResourceSnapshotIndex); err == nil {
				targets[cluster.ClusterName] = index
			}
		}
	}
	return targets
}

// clusterOf returns a cluster as overrides know it.
func clusterOf(facts Facts) func(name string) override.Cluster {
	known := map[string]override.Cluster{}
	for i := range facts.Members {
		known[facts.Members[i].Name] = override.ClusterOf(&facts.Members[i])
	}
	return func(name string) override.Cluster {
		if cluster, is := known[name]; is {
			return cluster
		}
		return override.Cluster{Name: name}
	}
}
