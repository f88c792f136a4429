package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fleetflow/fleetflow/activities/brake"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// newDescriber returns what says of a cluster what it has now and how it is.
func newDescriber(facts Facts) func(name string) Cluster {
	byCluster := map[string]hub.Binding{}
	for _, binding := range facts.Bindings {
		byCluster[binding.Spec.TargetCluster] = binding
	}
	health := map[string]string{}
	for i := range facts.Members {
		health[facts.Members[i].Name] = healthOf(&facts.Members[i])
	}
	targets := facts.targetSnapshots()
	return func(name string) Cluster {
		cluster := Cluster{Name: name, To: strconv.Itoa(facts.Target), Health: "not a member"}
		if own, has := targets[name]; has {
			cluster.To = strconv.Itoa(own)
		}
		if said, known := health[name]; known {
			cluster.Health = said
		}
		if rules.IsSuspended(facts.Placement.Object, name) {
			cluster.Health = strings.TrimPrefix(cluster.Health+", suspended", ", ")
		}
		if wait := waitBeforeUpdate(facts, byCluster[name]); wait != nil {
			cluster.Health = strings.TrimPrefix(cluster.Health+", "+brake.HookText(wait), ", ")
		}
		if present, ok := presentOf(byCluster[name], facts.Indexes); ok {
			cluster.From = strconv.Itoa(present)
		}
		return cluster
	}
}

// waitBeforeUpdate returns what a lifecycle hook will have a cluster wait for before its resources change; nil if none holds it.
func waitBeforeUpdate(facts Facts, binding hub.Binding) *rules.HookWait {
	if binding.Object == nil || binding.Spec.ResourceSnapshotName == "" {
		return nil // what a cluster gets for the first time is not held
	}
	return rules.HoldsUpdate(rules.LifecycleOf(facts.Placement.Object), binding.Object, time.Time{}) // no grace period has begun
}

func healthOf(member *clusterv1beta1.MemberCluster) string {
	switch {
	case !member.DeletionTimestamp.IsZero():
		return "leaving"
	case !meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionTypeJoined):
		return "not joined"
	case meta.IsStatusConditionFalse(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy):
		return "unhealthy"
	case clusterrules.IsSilent(member):
		return "silent"
	default:
		return ""
	}
}

// presentOf returns the index of the snapshot a cluster is to have by now.
func presentOf(binding hub.Binding, indexes map[string]int) (int, bool) {
	if binding.Spec == nil || binding.Spec.State != placementv1beta1.BindingStateBound || binding.Spec.ResourceSnapshotName == "" {
		return 0, false
	}
	index, ok := indexes[binding.Spec.ResourceSnapshotName]
	return index, ok
}

func newStage(frozen *placementv1beta1.StageUpdatingStatus, config placementv1beta1.StageConfig, describe func(string) Cluster) Stage {
	clusters := frozen.Clusters
	stage := Stage{Name: config.Name, AtOnce: 1, Failures: describeFailures(config), Windows: config.Windows, over: updaterun.StageOver(frozen)}
	if config.MaxConcurrency != nil {
		if atOnce, err := rollout.Concurrency(config.MaxConcurrency.String(), len(clusters)); err == nil {
			stage.AtOnce = atOnce
		}
	}
	for wave := range slices.Chunk(clusters, stage.AtOnce) {
		described := make([]Cluster, 0, len(wave))
		for i := range wave {
			cluster := describe(wave[i].ClusterName)
			cluster.begun = updaterun.WasStarted(&wave[i])
			described = append(described, cluster)
		}
		stage.Waves = append(stage.Waves, described)
	}
	if len(clusters) == 0 {
		return stage // it is skipped with its gates
	}
	for _, task := range stagetask.List(frozen, &config, stagetask.Before, time.Time{}) {
		stage.Before = append(stage.Before, describeTask(task.Describe()))
	}
	for _, task := range stagetask.List(frozen, &config, stagetask.During, time.Time{}) {
		stage.During = append(stage.During, describeTask(task.Describe()))
	}
	var soaks []time.Duration
	for _, task := range stagetask.List(frozen, &config, stagetask.After, updaterun.WaitsSince(frozen, config, stagetask.After)) {
		state := task.Describe()
		stage.After = append(stage.After, describeTask(state))
		switch {
		case state.Done():
		case state.Timed && !state.Due.IsZero():
			if state.Due.After(stage.soaks) {
				stage.soaks = state.Due
			}
		default:
			soaks = append(soaks, state.Duration)
		}
	}
	stage.soak = longestSoak(soaks)
	return stage
}

// describeTask returns what a run will wait for.
func describeTask(task stagetask.State) string {
	text := task.Title
	switch {
	case task.Timed:
		text += " of " + tree.Wait(task.Duration)
	case task.Subject != "":
		text += " of " + task.Subject
	}
	for i, other := range task.StartsAfter {
		text += []string{", once done: ", ", "}[min(i, 1)] + string(other)
	}
	return text
}

// describeFailures says in words what a stage does when clusters fail.
func describeFailures(config placementv1beta1.StageConfig) string {
	var parts []string
	if seconds := config.ClusterDeadlineSeconds; seconds != nil {
		parts = append(parts, "a cluster may take "+(time.Duration(*seconds)*time.Second).String())
	}
	if ready := config.MinReady(); ready > 0 {
		parts = append(parts, "it has to be available for "+ready.String())
	}
	if budget := config.FailureBudget; budget != nil {
		most := "0"
		if budget.MaxFailures != nil {
			most = budget.MaxFailures.String()
		}
		action := budget.OnExceeded
		if action == "" {
			action = placementv1beta1.FailureBudgetWait
		}
		parts = append(parts, fmt.Sprintf("%s may fail, beyond that: %s", most, action))
		if rules.FailsOn(budget, placementv1beta1.ClusterFailureStalled) {
			parts = append(parts, "a cluster that stalls fails at once")
		}
	}
	return strings.Join(parts, "; ")
}
