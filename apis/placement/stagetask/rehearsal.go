package stagetask

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// rehearsal asks the clusters of a stage what the run would do there, and waits until they have answered. Nothing is written for the
// stage if too many would refuse it, or are not known.
type rehearsal struct{}

// How long answers are valid and waited for if the strategy does not say, how long after the time of the clusters the hub agent may take
// to say so, for how much longer it may be away, as until another has the lease, and how many clusters a status names.
const (
	defaultValidFor = 15 * time.Minute
	defaultTimeout  = time.Minute
	countingTime    = 5 * time.Second
	awayTime        = time.Minute
	namedClusters   = 10
)

// Validate implements Type.
func (rehearsal) Validate(side Side, config placementv1beta1.StageTask) string {
	switch {
	case side != Before:
		return "a Rehearsal is for what has not started yet: it is a task before a stage"
	case config.WaitTime != nil:
		return "a Rehearsal has no waitTime"
	case config.Rehearsal == nil:
		return ""
	}
	for _, limit := range []struct {
		given       *metav1.Duration
		least, most time.Duration
		what        string
	}{
		{config.Rehearsal.ValidFor, time.Minute, 7 * 24 * time.Hour, "validFor must be 1m to 168h"},
		{config.Rehearsal.Timeout, time.Second, 30 * time.Minute, "timeout must be 1s to 30m"},
	} {
		if limit.given != nil && (limit.given.Duration < limit.least || limit.given.Duration > limit.most) {
			return limit.what
		}
	}
	if limitOf(config.Rehearsal.MaxRefused, 1) < 0 || limitOf(config.Rehearsal.MaxUnknown, 1) < 0 {
		return "maxRefused and maxUnknown must be at least 0"
	}
	return ""
}

// Freeze implements Type.
func (rehearsal) Freeze(names Names, stage string, _ Side) placementv1beta1.StageTaskStatus {
	return placementv1beta1.StageTaskStatus{
		Type:      placementv1beta1.StageTaskTypeRehearsal,
		Rehearsal: &placementv1beta1.StageRehearsal{Name: nameOfAttempt(names.Run, stage, 1), Attempt: 1},
	}
}

func nameOfAttempt(run, stage string, attempt int64) string {
	return fleetflowv1alpha1.RehearsalName(run, stage, strconv.FormatInt(attempt, 10))
}

// Describe implements Type.
func (rehearsal) Describe(task Task) State {
	state := State{Title: "rehearsal", RunPhase: "Rehearsing"}
	if task.Status.Rehearsal != nil {
		state.Subject = task.Status.Rehearsal.Name
	}
	state.readDone(task.Status, placementv1beta1.ConditionTypeRehearsed)
	said := meta.FindStatusCondition(task.Status.Conditions, placementv1beta1.ConditionTypeRehearsed)
	switch {
	case said == nil:
	case said.Status == metav1.ConditionUnknown:
		state.Begun = said.LastTransitionTime.Time
	case said.Status == metav1.ConditionFalse && said.Reason != placementv1beta1.ReasonStageTaskRehearsalStopped:
		state.Failed = true
		state.Message = said.Message
	}
	return state
}

// Check implements Type. An attempt that has not passed is acted upon once, and after the user has resumed the run there is another:
// that the run's generation has changed since the condition was recorded says so.
func (r rehearsal) Check(ctx context.Context, check Check) (Outcome, error) {
	said := meta.FindStatusCondition(check.Status.Conditions, placementv1beta1.ConditionTypeRehearsed)
	if said != nil && said.Status == metav1.ConditionTrue {
		return Outcome{}, nil
	}
	asked := r.attemptOf(check)
	reason := placementv1beta1.ReasonStageTaskRehearsalStarted
	if isResumedAfter(said, check.Run) {
		asked = r.nextAttempt(check, asked, false)
		said = nil
	}
	if said != nil && said.Status == metav1.ConditionUnknown {
		reason = said.Reason
	}
	return r.ask(ctx, check, asked, reason, said == nil)
}

// HoldsUntil implements Expiring.
func (rehearsal) HoldsUntil(task Task) time.Time {
	since := task.Describe().DoneAt
	if asked := task.Status.Rehearsal; asked != nil && asked.CompletionTime != nil {
		since = asked.CompletionTime.Time
	}
	return since.Add(durationOr(configOf(task).ValidFor, defaultValidFor))
}

// CheckStart implements Expiring: answers that are too old are asked for once more, and the run stops if those become too old, too.
func (r rehearsal) CheckStart(ctx context.Context, check Check) (Outcome, error) {
	asked := r.attemptOf(check)
	if !check.IsExpired(check.Now) {
		return Outcome{}, nil
	}
	validFor := durationOr(configOf(check.Task).ValidFor, defaultValidFor)
	age := (check.Now.Sub(r.HoldsUntil(check.Task)) + validFor).Round(time.Second)
	if asked.Renewed {
		why := fmt.Sprintf("the answers of the clusters of stage `%s` are %s old, older than validFor, for the second time",
			check.Stage.StageName, age)
		return Outcome{
			Conditions: []metav1.Condition{rehearsed(metav1.ConditionFalse, placementv1beta1.ReasonStageTaskRehearsalOutdated, why)},
			Rehearsal:  asked, Action: placementv1beta1.AnalysisPause, Because: why,
		}, nil
	}
	check.Hub.Report("RehearsalRenewed", fmt.Sprintf(
		"The clusters of stage %s are asked once more what the run would do there: their answers are %s old", check.Stage.StageName, age))
	return r.ask(ctx, check, r.nextAttempt(check, asked, true), placementv1beta1.ReasonStageTaskRehearsalRenewed, false)
}

// attemptOf returns the attempt that a task is at.
func (rehearsal) attemptOf(check Check) *placementv1beta1.StageRehearsal {
	if asked := check.Status.Rehearsal; asked != nil && asked.Attempt > 0 {
		return asked.DeepCopy()
	}
	return &placementv1beta1.StageRehearsal{Name: nameOfAttempt(check.Run.GetName(), check.Stage.StageName, 1), Attempt: 1}
}

func (rehearsal) nextAttempt(check Check, asked *placementv1beta1.StageRehearsal, renewed bool) *placementv1beta1.StageRehearsal {
	attempt := asked.Attempt + 1
	return &placementv1beta1.StageRehearsal{
		Name: nameOfAttempt(check.Run.GetName(), check.Stage.StageName, attempt), Attempt: attempt, Renewed: renewed,
	}
}

// ask reads the rehearsal of an attempt, makes it if it is missing, and says what follows from it.
func (r rehearsal) ask(ctx context.Context, check Check, asked *placementv1beta1.StageRehearsal, reason string,
	isNew bool) (Outcome, error) {
	found, err := r.ensure(ctx, check, asked.Name)
	kind := fleetflowv1alpha1.RehearsalKind(check.Run.GetNamespace()).Kind
	switch {
	case meta.IsNoMatchError(err):
		return Outcome{Refused: fmt.Sprintf("the hub does not serve the kind %s: apply the CustomResourceDefinitions of the hub agent's chart",
			kind)}, nil
	case err != nil:
		return Outcome{}, err
	case isNew:
		check.Hub.Report("RehearsalStarted", fmt.Sprintf("The clusters of stage %s are asked what the run would do there: %s %s",
			check.Stage.StageName, kind, asked.Name))
	}
	if fleetflowv1alpha1.IsRehearsalOver(found) {
		return r.concluded(check, asked, found), nil
	}
	due := askedSince(check, found).Add(durationOr(configOf(check.Task).Timeout, defaultTimeout) + countingTime)
	if end := due.Add(awayTime); !end.After(check.Now) {
		return r.unanswered(ctx, check, asked, found)
	}
	if !due.After(check.Now) {
		due = check.Now.Add(countingTime)
	}
	return Outcome{
		Conditions: []metav1.Condition{rehearsed(metav1.ConditionUnknown, reason, fmt.Sprintf("%s %s asks the clusters of the stage, attempt %d",
			kind, asked.Name, asked.Attempt))},
		Rehearsal: asked, CheckAgain: due,
	}, nil
}

// askedSince returns since when the clusters have had time to answer: since they were asked, the task has waited for that, or the rehearsal
// was made, whichever came last.
func askedSince(check Check, found fleetflowv1alpha1.RehearsalObject) time.Time {
	since := found.GetCreationTimestamp().Time
	if said := meta.FindStatusCondition(check.Status.Conditions, placementv1beta1.ConditionTypeRehearsed); said != nil &&
		said.Status == metav1.ConditionUnknown && said.LastTransitionTime.After(since) {
		since = said.LastTransitionTime.Time
	}
	if start := found.GetRehearsalStatus().StartTime; start != nil && start.After(since) {
		since = start.Time
	}
	if since.IsZero() {
		return check.Now
	}
	return since
}

// unanswered ends a rehearsal that no hub agent has ended: nothing is known of any cluster.
func (r rehearsal) unanswered(ctx context.Context, check Check, asked *placementv1beta1.StageRehearsal,
	found fleetflowv1alpha1.RehearsalObject) (Outcome, error) {
	why := "the hub agent has begun to ask the clusters and has not said in time how it ended: none holds the lease, or it has too much to do"
	if found.GetRehearsalStatus().StartTime == nil {
		missing, err := missingKind(ctx, check)
		if err != nil {
			return Outcome{}, err
		}
		why = "no hub agent has begun to ask the clusters: none holds the lease, or the agents have started before the hub served the kinds of " +
			"rehearsals, and have to be restarted"
		if missing != "" {
			why = fmt.Sprintf("no hub agent has begun to ask the clusters, as the hub does not serve the kind %s: apply the "+
				"CustomResourceDefinitions of the hub agent's chart, then restart the hub agents", missing)
		}
	}
	clusters := clustersOf(check.Stage)
	count := int32(len(clusters)) //nolint:gosec // a stage has fewer
	ended := fleetflowv1alpha1.NewRehearsal(found.GetNamespace(), found.GetName())
	*ended.GetRehearsalStatus() = fleetflowv1alpha1.RehearsalStatus{
		CompletionTime: &metav1.Time{Time: check.Now}, Clusters: fleetflowv1alpha1.RehearsalCounts{Unknown: count},
		Groups: []fleetflowv1alpha1.RehearsalGroup{{
			Outcome: fleetflowv1alpha1.RehearsalUnknown, Message: why, ClusterCount: count, Clusters: clusters[:min(len(clusters), namedClusters)],
		}},
		Conditions: []metav1.Condition{{
			Type: fleetflowv1alpha1.ConditionTypeCompleted, Status: metav1.ConditionTrue, Reason: fleetflowv1alpha1.ReasonRehearsalSomeUnknown,
		}},
	}
	return r.concluded(check, asked, ended), nil
}

// missingKind returns a kind that rehearsals need and the hub does not serve; empty if it serves all.
func missingKind(ctx context.Context, check Check) (string, error) {
	const namespace, name = "default", "any"
	for _, needed := range []struct {
		kind   string
		object placementv1beta1.Object
	}{
		{"MemberQuestion", &fleetflowv1alpha1.MemberQuestion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}},
		{fleetflowv1alpha1.RehearsalKind("").Kind, fleetflowv1alpha1.NewRehearsal("", name)},
		{fleetflowv1alpha1.RehearsalKind(namespace).Kind, fleetflowv1alpha1.NewRehearsal(namespace, name)},
	} {
		err := check.Hub.Get(ctx, types.NamespacedName{Namespace: needed.object.GetNamespace(), Name: name}, needed.object)
		switch {
		case meta.IsNoMatchError(err):
			return needed.kind, nil
		case err != nil && !apierrors.IsNotFound(err):
			return "", fmt.Errorf("finding out whether the hub serves the kind %s: %w", needed.kind, err)
		}
	}
	return "", nil
}

// ensure reads a rehearsal, and makes it if it is missing. One that asks something else is replaced, whichever user has made it: that of an
// earlier run of the name, or one that a user has made to have the gate open.
func (rehearsal) ensure(ctx context.Context, check Check, name string) (fleetflowv1alpha1.RehearsalObject, error) {
	wanted := fleetflowv1alpha1.NewRehearsal(check.Run.GetNamespace(), name)
	*wanted.GetRehearsalSpec() = fleetflowv1alpha1.RehearsalSpec{
		PlacementName: check.Run.GetUpdateRunSpec().PlacementName, UpdateRunName: check.Run.GetName(), Clusters: clustersOf(check.Stage),
		Timeout: &metav1.Duration{Duration: durationOr(configOf(check.Task).Timeout, defaultTimeout)},
	}
	return ensureRehearsal(ctx, check, wanted)
}

// ensureRehearsal reads the rehearsal that a run wants, and makes it if it is missing, or another has its name.
func ensureRehearsal(ctx context.Context, check Check,
	wanted fleetflowv1alpha1.RehearsalObject) (fleetflowv1alpha1.RehearsalObject, error) {
	name := wanted.GetName()
	wanted.SetLabels(map[string]string{fleetflowv1alpha1.AnalysisRunLabel: check.Run.GetName()})
	wanted.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(check.Run, placementv1beta1.ScopeOf(check.Run).UpdateRunKind()),
	})
	found := fleetflowv1alpha1.NewRehearsal(check.Run.GetNamespace(), name)
	err := check.Hub.Get(ctx, types.NamespacedName{Namespace: check.Run.GetNamespace(), Name: name}, found)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("reading rehearsal %s: %w", name, err)
	case metav1.IsControlledBy(found, check.Run) && found.GetDeletionTimestamp().IsZero() &&
		equality.Semantic.DeepEqual(*found.GetRehearsalSpec(), *wanted.GetRehearsalSpec()):
		return found, nil
	default:
		if err := check.Hub.Delete(ctx, found); err != nil {
			return nil, fmt.Errorf("replacing rehearsal %s: %w", name, err)
		}
	}
	if err := check.Hub.Create(ctx, wanted); err != nil {
		return nil, fmt.Errorf("creating rehearsal %s: %w", name, err)
	}
	return wanted, nil
}

// clustersOf returns the clusters of a stage, sorted.
func clustersOf(stage *placementv1beta1.StageUpdatingStatus) []string {
	names := make([]string, 0, len(stage.Clusters))
	for i := range stage.Clusters {
		names = append(names, stage.Clusters[i].ClusterName)
	}
	slices.Sort(names)
	return names
}

// concluded returns what follows from a rehearsal that is over.
func (rehearsal) concluded(check Check, asked *placementv1beta1.StageRehearsal, found fleetflowv1alpha1.RehearsalObject) Outcome {
	status := found.GetRehearsalStatus()
	total := len(check.Stage.Clusters)
	counts := status.Clusters
	asked.CompletionTime = status.CompletionTime
	asked.Refused = counts.Refused + counts.Conflicts
	asked.Unknown = counts.Unknown
	asked.Others = counts.Removes + counts.Creates + counts.Changes + counts.Same
	asked.RefusedClusters = namesIn(status.Groups, fleetflowv1alpha1.RehearsalRefused, fleetflowv1alpha1.RehearsalConflicts)
	asked.UnknownClusters = namesIn(status.Groups, fleetflowv1alpha1.RehearsalUnknown)
	asked.RehearsalDigest = status.Digest
	completed := meta.FindStatusCondition(status.Conditions, fleetflowv1alpha1.ConditionTypeCompleted)
	if completed.Reason == fleetflowv1alpha1.ReasonRehearsalInvalid {
		asked.Unknown = int32(total) //nolint:gosec // a stage has fewer
	}
	maxRefused := limitOf(configOf(check.Task).MaxRefused, total)
	maxUnknown := limitOf(configOf(check.Task).MaxUnknown, total)
	outcome := Outcome{Rehearsal: asked}
	message := fmt.Sprintf("%d of %d clusters would refuse the change (maxRefused %d), %d are unknown (maxUnknown %d)",
		asked.Refused, total, maxRefused, asked.Unknown, maxUnknown)
	switch {
	case completed.Reason == fleetflowv1alpha1.ReasonRehearsalInvalid:
		message = "no cluster was asked: " + completed.Message
		outcome.Conditions = []metav1.Condition{rehearsed(metav1.ConditionFalse, placementv1beta1.ReasonStageTaskRehearsalUnknown, message)}
	case int(asked.Refused) > maxRefused:
		message += ": " + describeFirst(status.Groups, fleetflowv1alpha1.RehearsalRefused, fleetflowv1alpha1.RehearsalConflicts)
		outcome.Conditions = []metav1.Condition{rehearsed(metav1.ConditionFalse, placementv1beta1.ReasonStageTaskRehearsalRefused, message)}
	case int(asked.Unknown) > maxUnknown:
		message += ": " + describeFirst(status.Groups, fleetflowv1alpha1.RehearsalUnknown)
		outcome.Conditions = []metav1.Condition{rehearsed(metav1.ConditionFalse, placementv1beta1.ReasonStageTaskRehearsalUnknown, message)}
	default:
		outcome.Conditions = []metav1.Condition{rehearsed(metav1.ConditionTrue, placementv1beta1.ReasonStageTaskRehearsalPassed, message)}
		check.Hub.Report("RehearsalPassed", fmt.Sprintf("The rehearsal of stage %s, %s, has passed: %s", check.Stage.StageName, asked.Name,
			message))
		return outcome
	}
	before := meta.FindStatusCondition(check.Status.Conditions, placementv1beta1.ConditionTypeRehearsed)
	if before == nil || before.Status != metav1.ConditionFalse {
		check.Hub.ReportWarning("RehearsalRefused", fmt.Sprintf(
			"The rehearsal of stage %s, %s, has not passed, and nothing is written for the stage: %s", check.Stage.StageName, asked.Name, message))
	}
	outcome.Action = placementv1beta1.AnalysisPause
	outcome.Because = fmt.Sprintf("the rehearsal of stage `%s`, %s, has not passed: %s", check.Stage.StageName, asked.Name, message)
	return outcome
}

func rehearsed(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: placementv1beta1.ConditionTypeRehearsed, Status: status, Reason: reason, Message: message}
}

// namesIn returns the first clusters by name of the groups with some outcomes.
func namesIn(groups []fleetflowv1alpha1.RehearsalGroup, outcomes ...fleetflowv1alpha1.RehearsalOutcome) []string {
	var names []string
	for i := range groups {
		if slices.Contains(outcomes, groups[i].Outcome) {
			names = append(names, groups[i].Clusters...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), namedClusters)]
}

// describeFirst says what the first group with some outcomes is about, and names its clusters.
func describeFirst(groups []fleetflowv1alpha1.RehearsalGroup, outcomes ...fleetflowv1alpha1.RehearsalOutcome) string {
	for i := range groups {
		group := &groups[i]
		if !slices.Contains(outcomes, group.Outcome) {
			continue
		}
		text := group.Message
		if group.Object != "" {
			text = group.Object + ": " + text
		}
		return fmt.Sprintf("%s, on %v", text, group.Clusters)
	}
	return "see its status"
}

func configOf(task Task) placementv1beta1.RehearsalConfig {
	if task.Config.Rehearsal == nil {
		return placementv1beta1.RehearsalConfig{}
	}
	return *task.Config.Rehearsal
}

func durationOr(given *metav1.Duration, otherwise time.Duration) time.Duration {
	if given == nil || given.Duration <= 0 {
		return otherwise
	}
	return given.Duration
}

// limitOf returns how many of some clusters a limit lets pass; none if there is no limit, or one that cannot be read.
func limitOf(limit *intstr.IntOrString, total int) int {
	if limit == nil {
		return 0
	}
	allowed, err := intstr.GetScaledValueFromIntOrPercent(limit, total, false)
	if err != nil {
		return 0
	}
	return allowed
}
