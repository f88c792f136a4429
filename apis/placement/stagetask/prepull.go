package stagetask

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// prePull has the clusters of a stage pull the images of what the run would place. It waits until they have, for its waitTime at most: the
// stage goes on then, whatever was pulled.
type prePull struct{}

// How long images are waited for if the strategy does not say, within which bounds it may say so, how many clusters pull at the same time,
// and how many images a message names.
const (
	defaultPrePull = 10 * time.Minute
	leastPrePull   = 10 * time.Second
	mostPrePull    = 2 * time.Hour
	leastAtOnce    = 10
	mostAtOnce     = 100
	namedImages    = 10
)

// How soon clusters are asked once more if they could not be, and how much of the reason a message has.
const (
	askAgain   = 10 * time.Second
	mostReason = 1024
)

// Validate implements Type.
func (prePull) Validate(side Side, config placementv1beta1.StageTask) string {
	switch {
	case side != Before:
		return "a PrePull is for what has not started yet: it is a task before a stage"
	case config.WaitTime != nil && (config.WaitTime.Duration < leastPrePull || config.WaitTime.Duration > mostPrePull):
		return "waitTime of a PrePull must be 10s to 2h"
	}
	return ""
}

// Freeze implements Type.
func (prePull) Freeze(names Names, stage string, _ Side) placementv1beta1.StageTaskStatus {
	return placementv1beta1.StageTaskStatus{
		Type:      placementv1beta1.StageTaskTypePrePull,
		Rehearsal: &placementv1beta1.StageRehearsal{Name: fleetflowv1alpha1.PrePullName(names.Run, stage), Attempt: 1},
	}
}

// Describe implements Type.
func (prePull) Describe(task Task) State {
	state := State{Title: "pull of images", RunPhase: "PullingImages"}
	if task.Status.Rehearsal != nil {
		state.Subject = task.Status.Rehearsal.Name
	}
	state.readDone(task.Status, placementv1beta1.ConditionTypeImagesPulled)
	said := meta.FindStatusCondition(task.Status.Conditions, placementv1beta1.ConditionTypeImagesPulled)
	switch {
	case said == nil:
	case said.Status == metav1.ConditionUnknown:
		state.Begun = said.LastTransitionTime.Time
	case said.Reason == placementv1beta1.ReasonStageTaskPrePullIncomplete:
		state.Incomplete = true
	}
	return state
}

// Check implements Type. Nothing that goes wrong keeps the stage from going on once its time is over.
func (p prePull) Check(ctx context.Context, check Check) (Outcome, error) {
	said := meta.FindStatusCondition(check.Status.Conditions, placementv1beta1.ConditionTypeImagesPulled)
	if said != nil && said.Status == metav1.ConditionTrue {
		return Outcome{}, nil
	}
	limit := durationOr(check.Config.WaitTime, defaultPrePull)
	since := check.WaitsSince
	if since.IsZero() {
		since = check.Now
	}
	end := since.Add(limit)
	name := fleetflowv1alpha1.PrePullName(check.Run.GetName(), check.Stage.StageName)
	asked := &placementv1beta1.StageRehearsal{Name: name, Attempt: 1}
	found, err := ensureRehearsal(ctx, check, p.wanted(check, name, limit))
	kind := fleetflowv1alpha1.RehearsalKind(check.Run.GetNamespace()).Kind
	switch {
	case meta.IsNoMatchError(err):
		return p.ended(check, asked, fmt.Sprintf("the hub does not serve the kind %s: apply the CustomResourceDefinitions of the hub agent's chart",
			kind)), nil
	case ctx.Err() != nil:
		return Outcome{}, err
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), err != nil && !end.After(check.Now):
		return p.ended(check, asked, "they could not be asked: "+reasonOf(err)), nil
	case err != nil:
		return p.delayed(check, asked, end, err), nil
	case fleetflowv1alpha1.IsRehearsalOver(found):
		return p.concluded(check, asked, found, ""), nil
	case !end.After(check.Now):
		return p.concluded(check, asked, found, "the time is over"), nil
	case said == nil || said.Reason != placementv1beta1.ReasonStageTaskPrePullStarted:
		check.Hub.Report("ImagesPulling", fmt.Sprintf("The clusters of stage %s pull the images of what the run would place: %s %s",
			check.Stage.StageName, kind, name))
	}
	return Outcome{
		Conditions: []metav1.Condition{imagesPulled(metav1.ConditionUnknown, placementv1beta1.ReasonStageTaskPrePullStarted,
			fmt.Sprintf("%s %s has the clusters of the stage pull images, until %s at most", kind, name, end.UTC().Format(time.RFC3339)))},
		Rehearsal: asked, CheckAgain: end,
	}, nil
}

// delayed returns the outcome of a task whose clusters could not be asked yet. That the stage waits is recorded nevertheless: its time
// would never be over otherwise.
func (prePull) delayed(check Check, asked *placementv1beta1.StageRehearsal, end time.Time, err error) Outcome {
	again := check.Now.Add(askAgain)
	if end.Before(again) {
		again = end
	}
	return Outcome{
		Conditions: []metav1.Condition{imagesPulled(metav1.ConditionUnknown, placementv1beta1.ReasonStageTaskPrePullDelayed,
			fmt.Sprintf("the clusters of the stage could not be asked yet; it is tried again until %s: %s", end.UTC().Format(time.RFC3339),
				reasonOf(err)))},
		Rehearsal: asked, CheckAgain: again,
	}
}

// reasonOf returns what an error says, within bounds: a webhook may say much.
func reasonOf(err error) string {
	text := strings.ToValidUTF8(err.Error(), "")
	if len(text) <= mostReason {
		return text
	}
	return clusterv1beta1.FirstBytes(text, mostReason) + "…"
}

// wanted returns the rehearsal by which the clusters pull. It ends a little before the time of the task is over, so that it can still be
// said how.
func (prePull) wanted(check Check, name string, limit time.Duration) fleetflowv1alpha1.RehearsalObject {
	clusters := clustersOf(check.Stage)
	wanted := fleetflowv1alpha1.NewRehearsal(check.Run.GetNamespace(), name)
	*wanted.GetRehearsalSpec() = fleetflowv1alpha1.RehearsalSpec{
		PlacementName: check.Run.GetUpdateRunSpec().PlacementName, UpdateRunName: check.Run.GetName(), Clusters: clusters,
		PullImages: &fleetflowv1alpha1.ImagePull{ClustersAtOnce: atOnceOf(check, len(clusters))},
		Timeout:    &metav1.Duration{Duration: (limit - min(limit/4, countingTime)).Truncate(time.Second)},
	}
	return wanted
}

// atOnceOf returns how many clusters pull at the same time: as many as the stage updates, within bounds.
func atOnceOf(check Check, clusters int) int32 {
	updated := 0
	if strategy := check.Run.GetUpdateRunStatus().UpdateStrategySnapshot; strategy != nil {
		for i := range strategy.Stages {
			if stage := &strategy.Stages[i]; stage.Name == check.Stage.StageName {
				updated = limitOf(stage.MaxConcurrency, clusters)
			}
		}
	}
	return int32(min(max(updated, leastAtOnce), mostAtOnce)) //nolint:gosec // within bounds
}

// ended returns the outcome of a task whose clusters were not asked.
func (p prePull) ended(check Check, asked *placementv1beta1.StageRehearsal, why string) Outcome {
	return p.concluded(check, asked, fleetflowv1alpha1.NewRehearsal(check.Run.GetNamespace(), asked.Name), why)
}

// concluded returns the outcome of a task that has ended, by the counts of its rehearsal. What is not known to be pulled is unknown.
func (prePull) concluded(check Check, asked *placementv1beta1.StageRehearsal, found fleetflowv1alpha1.RehearsalObject, why string) Outcome {
	status := found.GetRehearsalStatus()
	total := int32(len(check.Stage.Clusters)) //nolint:gosec // a stage has fewer
	asked.CompletionTime = status.CompletionTime
	if asked.CompletionTime == nil {
		asked.CompletionTime = &metav1.Time{Time: check.Now}
	}
	asked.Refused = status.Clusters.Refused
	asked.Others = status.Clusters.Pulled
	asked.Unknown = max(total-asked.Refused-asked.Others, 0)
	asked.RefusedClusters = namesIn(status.Groups, fleetflowv1alpha1.RehearsalRefused)
	asked.UnknownClusters = namesIn(status.Groups, fleetflowv1alpha1.RehearsalUnknown)
	if completed := meta.FindStatusCondition(status.Conditions, fleetflowv1alpha1.ConditionTypeCompleted); completed != nil &&
		completed.Reason == fleetflowv1alpha1.ReasonRehearsalInvalid {
		why = "no cluster was asked: " + completed.Message
	}
	message := fmt.Sprintf("%d of %d clusters have the images of built-in kinds", asked.Others, total)
	if asked.Refused+asked.Unknown == 0 {
		check.Hub.Report("ImagesPulled", fmt.Sprintf("Stage %s: %s", check.Stage.StageName, message))
		return Outcome{
			Conditions: []metav1.Condition{imagesPulled(metav1.ConditionTrue, placementv1beta1.ReasonStageTaskPrePullPulled, message)},
			Rehearsal:  asked,
		}
	}
	message += fmt.Sprintf(", %d are refused some, %d are unknown", asked.Refused, asked.Unknown)
	if why != "" {
		message += "; " + why
	}
	if images := imagesIn(status.Groups); images != "" {
		message += "; not pulled: " + images
	}
	for _, outcome := range []fleetflowv1alpha1.RehearsalOutcome{fleetflowv1alpha1.RehearsalRefused, fleetflowv1alpha1.RehearsalUnknown} {
		if slices.ContainsFunc(status.Groups, func(g fleetflowv1alpha1.RehearsalGroup) bool { return g.Outcome == outcome }) {
			message += fmt.Sprintf("; %s: %s", outcome, describeFirst(status.Groups, outcome))
		}
	}
	check.Hub.ReportWarning("ImagesNotPulled", fmt.Sprintf("Stage %s goes on without all images: %s", check.Stage.StageName, message))
	return Outcome{
		Conditions: []metav1.Condition{imagesPulled(metav1.ConditionTrue, placementv1beta1.ReasonStageTaskPrePullIncomplete, message)},
		Rehearsal:  asked,
	}
}

// imagesIn names the first images, by name, that are refused, or not known to be pulled.
func imagesIn(groups []fleetflowv1alpha1.RehearsalGroup) string {
	var images []string
	for i := range groups {
		if groups[i].Object != "" && groups[i].Outcome != fleetflowv1alpha1.RehearsalPulled {
			images = append(images, groups[i].Object)
		}
	}
	slices.Sort(images)
	images = slices.Compact(images)
	named := strings.Join(images[:min(len(images), namedImages)], ", ")
	if more := len(images) - namedImages; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return named
}

func imagesPulled(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: placementv1beta1.ConditionTypeImagesPulled, Status: status, Reason: reason, Message: message}
}
