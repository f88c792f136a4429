package steer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetflow/fleetflow/activities/fence"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Skip lets a run go on without some of its clusters.
func Skip() Verb {
	return onRunClusters(Verb{
		Name: "skip", Asks: true,
		Short: "Let a run go on without some of its clusters",
		Long: `Let a staged update run go on without some of its clusters. One that waits for its turn is left as it is; one that is
being updated gives its place to another, and keeps what was written to it. The run says which were skipped.

kubectl fleet retry takes it back.`,
		Example: `  # member-3 is down for the week
  kubectl fleet skip web-17 member-3 --reason "its disk is being replaced"`,
	}, "Skip", "The run goes on without these clusters. What was written to them stays.", func() *Request {
		a := &clusterAction{action: placementv1beta1.ClusterActionSkip, done: "goes on without"}
		return &Request{Prepare: a.prepare, Fields: []Field{a.clustersField(), a.reason.keptOn("the run")}}
	})
}

// Retry writes to some clusters of a run once more.
func Retry() Verb {
	return onRunClusters(Verb{
		Name:  "retry",
		Short: "Write to some clusters of a run once more",
		Long: `Write to some clusters of a staged update run once more, and count their deadline from then. Clusters that were
skipped, or counted as failed, wait for a place in the stage first. There is nothing to retry for a cluster that is
updated, or whose stage is over or soaks. One that the run holds as PlanOutdated is updated from what it has now.`,
		Example: `  kubectl fleet retry web-17 member-3`,
	}, "Retry", "The run writes to these clusters once more, and counts their deadline from then.", func() *Request {
		a := &clusterAction{action: placementv1beta1.ClusterActionRetry, done: "retries"}
		return &Request{Prepare: a.prepare, Fields: []Field{a.clustersField()}}
	})
}

// onRunClusters returns a verb about some clusters of a run.
func onRunClusters(verb Verb, word, lead string, request func() *Request) Verb {
	verb.Takes = "RUN CLUSTER [CLUSTER ...]"
	verb.Group = GroupRollout
	verb.Kinds = []hub.Kind{hub.KindRun}
	verb.Completes = isUnderWay
	verb.CheckArguments = func(args []string) error {
		if len(args) < 2 {
			return fmt.Errorf("kubectl fleet %[1]s needs a run and at least one of its clusters, as in: kubectl fleet %[1]s web-17 member-3", verb.Name)
		}
		return nil
	}
	verb.New = request
	verb.Form = &Form{
		Kinds: verb.Kinds, Rights: patchesRun,
		Links: func(target hub.Found) []Link {
			if !isUnderWay(*target.Run) {
				return nil
			}
			return []Link{{Label: word + " clusters"}}
		},
		Page: func(view View) Page {
			page := Page{Title: word + " clusters of " + view.Target.Run.Name, Lead: lead, Button: word + " these clusters",
				Choices: choicesOf(*view.Target.Run)}
			if len(page.Choices) == 0 {
				page.Refusal = fmt.Sprintf("There is no cluster to %s: all are updated, or their stages are over.", verb.Name)
			}
			return page
		},
	}
	return verb
}

// choicesOf returns the clusters that a run can still act on; those that stand out are the first.
func choicesOf(run hub.Run) (choices []Choice) {
	state := updaterun.Read(run.Object)
	for _, phase := range []updaterun.Phase{updaterun.PhaseFailed, updaterun.PhaseSkipped, updaterun.PhaseRunning, updaterun.PhasePending} {
		for _, stage := range state.Stages {
			if stage.Deletion || stage.Passed() {
				continue
			}
			for _, cluster := range stage.Clusters {
				if cluster.Phase == phase {
					choices = append(choices, Choice{cluster.Name, strings.ToLower(string(phase))})
				}
			}
		}
	}
	return choices
}

// clusterAction is what a run is asked to do about some of its clusters.
type clusterAction struct {
	action   placementv1beta1.ClusterActionType
	done     string
	clusters []string
	reason   Reason
}

func (a *clusterAction) clustersField() Field {
	return Field{Name: "cluster", Argument: true, Into: &a.clusters, Complete: clustersOf, Label: "Clusters"}
}

func (a *clusterAction) prepare(_ context.Context, call *Call, target hub.Found) (Deed, error) {
	run := *target.Run
	if err := errors.Join(checkUnderWay(run), checkInRun(run, a.clusters)); err != nil {
		return Deed{}, err
	}
	clusters, err := a.inTime(call, run)
	if err != nil {
		return Deed{}, err
	}
	deed := Deed{Do: func(ctx context.Context) (Result, error) {
		if err := call.keepReason(ctx, a.reason, run.Object); err != nil {
			return Result{}, err
		}
		actions := withActions(run.Spec.ClusterActions, clusters, a.action)
		return resultSaying("%s %s %s", run.Ref, a.done, strings.Join(clusters, ", ")),
			call.patchRun(ctx, run, fence.Add("/spec/clusterActions", actions))
	}}
	if a.action == placementv1beta1.ClusterActionSkip {
		deed.Question = fmt.Sprintf("Let %s go on without %s?", run.Ref, strings.Join(a.clusters, ", "))
	}
	return deed, nil
}

// checkInRun refuses clusters that are not in the plan of a run.
func checkInRun(run hub.Run, clusters []string) error {
	if len(run.Status.StagesStatus) == 0 {
		return nil
	}
	var planned []string
	for i := range run.Status.StagesStatus {
		planned = append(planned, updaterun.ClusterNames(&run.Status.StagesStatus[i])...)
	}
	for _, cluster := range clusters {
		if !slices.Contains(planned, cluster) {
			return fmt.Errorf("%s has no cluster %q; kubectl fleet status %s --all shows those it has", run.Ref, cluster, run.Flags())
		}
	}
	return nil
}

// inTime returns the clusters that a run still does something about, with a warning for each of the others; if there
// are only such, that is an error.
func (a *clusterAction) inTime(call *Call, run hub.Run) ([]string, error) {
	late := tooLate(run, a.clusters, a.action)
	var left []string
	var why []error
	for i, cluster := range a.clusters {
		reason := late[cluster]
		switch {
		case slices.Contains(a.clusters[:i], cluster): // named twice
		case reason != nil:
			why = append(why, reason)
		default:
			left = append(left, cluster)
		}
	}
	if len(left) == 0 {
		return nil, errors.Join(why...)
	}
	for _, reason := range why {
		call.Warn(reason.Error())
	}
	return left, nil
}

// tooLate says of clusters why a run does nothing about them any more, whatever it is asked for.
func tooLate(run hub.Run, clusters []string, action placementv1beta1.ClusterActionType) map[string]error {
	late := map[string]error{}
	for _, stage := range updaterun.Read(run.Object).Stages {
		for _, c := range stage.Clusters {
			if stage.Deletion || !slices.Contains(clusters, c.Name) {
				continue
			}
			another := "a new run takes it along, as with kubectl fleet run " + run.Placement().Flags()
			switch {
			case c.Phase == updaterun.PhaseSucceeded:
				late[c.Name] = fmt.Errorf("%s has updated %s already: there is nothing to %s", run.Ref, c.Name, strings.ToLower(string(action)))
			case stage.Passed() && c.Phase == updaterun.PhaseFailed:
				late[c.Name] = fmt.Errorf("%s has gone on without %s, as stage %s is over or soaks: what was written to the cluster stays, and %s",
					run.Ref, c.Name, stage.Name, another)
			case stage.Passed():
				late[c.Name] = fmt.Errorf("%s has gone on without %s, as stage %s is over or soaks: %s", run.Ref, c.Name, stage.Name, another)
			}
		}
	}
	return late
}

// withActions returns the actions of a run with one more for each of the clusters: another retry is the next attempt.
func withActions(actions []placementv1beta1.ClusterAction, clusters []string,
	action placementv1beta1.ClusterActionType) []placementv1beta1.ClusterAction {
	result := slices.Clone(actions)
	for _, cluster := range clusters {
		next := placementv1beta1.ClusterAction{Cluster: cluster, Action: action, Attempt: 1}
		at := slices.IndexFunc(result, func(a placementv1beta1.ClusterAction) bool { return a.Cluster == cluster })
		if at < 0 {
			result = append(result, next)
			continue
		}
		if action == placementv1beta1.ClusterActionRetry {
			next.Attempt = result[at].Attempt + 1
		}
		result[at] = next
	}
	return result
}
