package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	rehearsals "github.com/fleetflow/fleetflow/activities/rehearsal"
	"github.com/fleetflow/fleetflow/activities/worksync"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// defaultAtOnce is how many clusters pull at the same time if a rehearsal does not say.
	defaultAtOnce = 10
	// shortestPull is the least time that a cluster is given: with less it is not asked any more.
	shortestPull = 5 * time.Second
	// firstRetry is after how long a cluster is tried again that could not be asked: twice as long each time, up to lastRetry.
	firstRetry  = time.Second
	lastRetry   = 30 * time.Second
	mostDoubled = 5
	// tooLate is why a cluster is not asked any more.
	tooLate = "the time was over before its turn"
)

// pulling is what of a rehearsal that pulls images is not in its status: the change is resolved once, and not for each cluster.
type pulling struct {
	change change
	// next is the first of its clusters that was not looked at.
	next int
	// deadlines are until when clusters that were asked may answer.
	deadlines map[string]time.Time
	// failed are the clusters that could not be asked yet.
	failed map[string]*failure
}

// pull has the next clusters pull their images, as many at a time as the rehearsal says, and counts the answers of the others. A cluster
// that has left, is silent or cannot pull is unknown, and keeps no other from its turn.
func (r *Reconciler) pull(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress) (ctrl.Result, error) {
	if p.pulling == nil {
		after, err := r.beginPull(ctx, rehearsal, p)
		if err != nil || p.pulling == nil {
			return ctrl.Result{RequeueAfter: after}, err
		}
	}
	now := r.clock.Now()
	if wait := p.written.Add(statusInterval).Sub(now); wait > 0 && len(p.asked) > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	questions, err := r.questionsOf(ctx, rehearsal)
	if err != nil {
		return ctrl.Result{}, err
	}
	p.countPulled(questions, now)
	ended, err := whyRunEnded(ctx, r.client, r.live, rehearsal)
	if err != nil {
		return ctrl.Result{}, err
	}
	if ended != "" && p.isPulling() {
		return r.endPull(ctx, rehearsal, p, questions, ended)
	}
	a := &asker{client: r.client, works: r.works, clock: r.clock, rehearsal: rehearsal, asked: p.asked}
	if err := a.askNext(ctx, r.client, p, now); err != nil {
		return ctrl.Result{}, err
	}
	status := p.status.DeepCopy()
	status.Answered = p.answered
	status.Clusters = p.tally.Counts()
	status.Groups, status.OmittedGroups = p.tally.Groups()
	if p.isPulling() {
		r.setCompleted(rehearsal, status, metav1.ConditionFalse, fleetflowv1alpha1.ReasonRehearsalAsking,
			fmt.Sprintf("%d of %d clusters have answered", p.answered, status.ClusterCount))
		return ctrl.Result{RequeueAfter: max(p.nextTurn(a.atOnce()).Sub(now), statusInterval)}, r.write(ctx, rehearsal, p, status)
	}
	p.pulling = nil
	return ctrl.Result{RequeueAfter: keepQuestions}, r.complete(ctx, rehearsal, p, status, "")
}

// endPull ends a pull that nothing waits for any more: clusters that have not answered are unknown, and their questions are deleted, so that
// they are not taken up.
func (r *Reconciler) endPull(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress,
	questions []fleetflowv1alpha1.MemberQuestion, why string) (ctrl.Result, error) {
	open := slices.DeleteFunc(slices.Clone(questions), func(question fleetflowv1alpha1.MemberQuestion) bool {
		return rehearsals.IsAnswered(&question)
	})
	if err := r.deleteAll(ctx, open); err != nil {
		return ctrl.Result{}, err
	}
	for _, one := range p.pulling.change.clusters {
		p.tally.Add(one.name, rehearsals.UnknownAnswer(why))
	}
	status := p.status.DeepCopy()
	status.Answered = p.answered
	status.Clusters = p.tally.Counts()
	status.Groups, status.OmittedGroups = p.tally.Groups()
	p.pulling = nil
	return ctrl.Result{RequeueAfter: keepQuestions}, r.complete(ctx, rehearsal, p, status, why)
}

// whyRunEnded returns why the run that has its clusters pull does not wait for that any more; nothing if it does, or no run has made the
// rehearsal. That a run is gone is read live.
func whyRunEnded(ctx context.Context, cached, live client.Reader, rehearsal fleetflowv1alpha1.RehearsalObject) (string, error) {
	scope := placementv1beta1.ScopeOf(rehearsal)
	kind := scope.UpdateRunKind().Kind
	owner := metav1.GetControllerOf(rehearsal)
	if owner == nil || owner.Kind != kind {
		return "", nil
	}
	run := scope.NewUpdateRun(owner.Name)
	err := cached.Get(ctx, scope.Key(owner.Name), run, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && run.GetUID() != owner.UID {
		run, err = hubread.Existing(ctx, live, scope.NewUpdateRun(owner.Name), "update run")
	}
	if err != nil {
		return "", fmt.Errorf("looking whether the run of rehearsal %s waits: %w", rehearsal.GetName(), err)
	}
	if run == nil || run.GetUID() != owner.UID || rules.IsDeleting(run) {
		return fmt.Sprintf("%s %s%s was deleted", kind, scope, owner.Name), nil
	}
	if what := whatEndsPull(run, rehearsal.GetName()); what != "" {
		return fmt.Sprintf("%s %s%s %s", kind, scope, owner.Name, what), nil
	}
	return "", nil
}

// whatEndsPull says what of a run ends the rehearsal of a name; nothing if the run waits for it.
func whatEndsPull(run placementv1beta1.UpdateRunObject, name string) string {
	switch {
	case rules.IsRunOver(run):
		return "is over"
	case run.GetUpdateRunSpec().State == placementv1beta1.StateStop:
		return "is stopped"
	}
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		for j := range stages[i].BeforeStageTaskStatus {
			if asked := stages[i].BeforeStageTaskStatus[j].Rehearsal; asked != nil && asked.Name == name && asked.CompletionTime != nil {
				return "does not wait for it any more"
			}
		}
	}
	return ""
}

// beginPull finds out what is to be pulled. Without a change to pull for, the rehearsal has ended, or is looked at after the time that is
// returned.
func (r *Reconciler) beginPull(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress) (time.Duration, error) {
	if after, err := r.refuseIfMany(ctx, rehearsal, p); err != nil || after > 0 {
		return after, err
	}
	c, err := r.resolver.resolve(ctx, begun(rehearsal, &p.status))
	if nothing, is := errors.AsType[*invalidError](err); is {
		return keepQuestions, r.refuse(ctx, rehearsal, p, nothing.text)
	}
	if _, is := errors.AsType[*hubread.OverrideUnsettledError](err); is {
		return settle, nil
	}
	if err != nil {
		return 0, err
	}
	if p.status.StartTime == nil {
		status := p.status.DeepCopy()
		status.StartTime = &metav1.Time{Time: r.clock.Now().Truncate(time.Second)}
		status.ResourceSnapshotIndex = c.index
		status.ClusterCount = int32(len(c.clusters)) //nolint:gosec // at most 10,000
		r.setCompleted(rehearsal, status, metav1.ConditionFalse, fleetflowv1alpha1.ReasonRehearsalAsking,
			fmt.Sprintf("0 of %d clusters have answered", len(c.clusters)))
		if err := r.write(ctx, rehearsal, p, status); err != nil {
			return 0, err
		}
	}
	p.pulling = &pulling{change: c, deadlines: map[string]time.Time{}, failed: map[string]*failure{}}
	return 0, nil
}

// isPulling reports whether a cluster of the change is not counted yet. Others that have a question count for nothing.
func (p *progress) isPulling() bool {
	return slices.ContainsFunc(p.pulling.change.clusters, func(one cluster) bool { return !p.tally.Has(one.name) })
}

// countPulled counts the answers that have come, and the clusters whose time is over.
func (p *progress) countPulled(questions []fleetflowv1alpha1.MemberQuestion, now time.Time) {
	concerned := map[string]bool{}
	for _, one := range p.pulling.change.clusters {
		concerned[one.name] = true
	}
	there := map[string]bool{}
	for i := range questions {
		question := &questions[i]
		cluster := clusterOf(question)
		if !concerned[cluster] {
			continue
		}
		there[cluster] = true
		p.asked[cluster] = true
		p.pulling.deadlines[cluster] = question.Spec.Deadline.Time
		if !p.tally.Has(cluster) && rehearsals.IsAnswered(question) {
			p.tally.Add(cluster, rehearsals.Read(question))
			p.answered++
		}
	}
	for cluster, deadline := range p.pulling.deadlines {
		if p.tally.Has(cluster) || now.Before(deadline) {
			continue
		}
		why := "no answer by " + deadline.UTC().Format(time.RFC3339)
		if !there[cluster] {
			why = "its question is gone without an answer: the cluster has left the fleet, or the question was deleted"
		}
		p.tally.Add(cluster, rehearsals.UnknownAnswer(why))
	}
}

// nextTurn returns until when the first of the clusters that pull may answer, or when the first that could not be asked is tried again,
// whichever comes first; nothing if there is neither. Who could not be asked has no turn while as many pull as may, or others have had none.
func (p *progress) nextTurn(atOnce int) (next time.Time) {
	pull := 0
	for cluster, deadline := range p.pulling.deadlines {
		if p.tally.Has(cluster) {
			continue
		}
		pull++
		if next.IsZero() || deadline.Before(next) {
			next = deadline
		}
	}
	if pull >= atOnce || p.pulling.next < len(p.pulling.change.clusters) {
		return next
	}
	for _, failed := range p.pulling.failed {
		if next.IsZero() || failed.again.Before(next) {
			next = failed.again
		}
	}
	return next
}

// turn is one look at the clusters that are to be asked.
type turn struct {
	now time.Time
	end metav1.Time
	// atOnce is how many clusters may pull at the same time, room how many more may.
	atOnce, room int
	// failures are how many clusters could not be asked: no more are tried than may pull at the same time.
	failures int
}

// atOnce returns how many clusters may pull at the same time.
func (a *asker) atOnce() int {
	return int(cmp.Or(a.rehearsal.GetRehearsalSpec().PullImages.ClustersAtOnce, defaultAtOnce))
}

// askNext asks the next clusters as far as there is room for more that pull. One that cannot be asked keeps no other from its turn:
// it is tried again once all others have had theirs.
func (a *asker) askNext(ctx context.Context, members client.Reader, p *progress, now time.Time) error {
	atOnce := a.atOnce()
	t := &turn{now: now, end: deadlineOf(a.rehearsal, &p.status), atOnce: atOnce, room: atOnce}
	for cluster := range p.asked {
		if !p.tally.Has(cluster) {
			t.room--
		}
	}
	clusters := p.pulling.change.clusters
	for ; p.pulling.next < len(clusters); p.pulling.next++ {
		if !a.askInTurn(ctx, members, p, t, clusters[p.pulling.next]) {
			return ctx.Err()
		}
	}
	for _, one := range p.pulling.due(now) {
		if !a.askInTurn(ctx, members, p, t, one) {
			break
		}
	}
	return ctx.Err()
}

// askInTurn asks one cluster, unless it is known already. It reports whether there was room for that.
func (a *asker) askInTurn(ctx context.Context, members client.Reader, p *progress, t *turn, one cluster) bool {
	if p.asked[one.name] || p.tally.Has(one.name) {
		delete(p.pulling.failed, one.name)
		return true
	}
	if why := whyNotAsked(ctx, members, one, t.end.Sub(t.now)); why != "" {
		if failed := p.pulling.failed[one.name]; failed != nil && why == tooLate {
			why = "it could not be asked: " + failed.err.Error()
		}
		delete(p.pulling.failed, one.name)
		p.tally.Add(one.name, rehearsals.UnknownAnswer(why))
		return true
	}
	if t.room <= 0 || t.failures >= t.atOnce || ctx.Err() != nil {
		return false
	}
	a.deadline = deadlineOfPull(t.now, t.end, len(p.pulling.change.clusters), t.atOnce)
	answer, err := a.askForImages(ctx, one)
	if err != nil {
		t.failures++
		p.pulling.noteFailure(one, t, err)
		return true
	}
	delete(p.pulling.failed, one.name)
	if answer == nil {
		p.asked[one.name] = true
		p.pulling.deadlines[one.name] = a.deadline.Time
		t.room--
		return true
	}
	p.tally.Add(one.name, *answer)
	if answer.Outcome == fleetflowv1alpha1.RehearsalPulled {
		p.answered++ // there is nothing to ask
	}
	return true
}

// failure is a cluster that could not be asked, why, and when it is tried again.
type failure struct {
	cluster cluster
	err     error
	tries   int
	again   time.Time
}

// noteFailure has a cluster that could not be asked tried again: the more often it was, the later, and before the time is over.
func (p *pulling) noteFailure(one cluster, t *turn, err error) {
	failed := p.failed[one.name]
	if failed == nil {
		failed = &failure{cluster: one}
		p.failed[one.name] = failed
	}
	failed.err = err
	failed.again = t.now.Add(min(firstRetry<<min(failed.tries, mostDoubled), lastRetry))
	failed.tries++
	if last := t.end.Add(-shortestPull + time.Second); last.Before(failed.again) {
		failed.again = last
	}
}

// due returns the clusters that could not be asked and are tried again now, by name.
func (p *pulling) due(now time.Time) []cluster {
	var due []cluster
	for _, name := range slices.Sorted(maps.Keys(p.failed)) {
		if failed := p.failed[name]; !now.Before(failed.again) {
			due = append(due, failed.cluster)
		}
	}
	return due
}

// deadlineOfPull returns until when a cluster may pull that is asked now: until the end if all are asked at once, else for half of the
// time that is left, so that those that say nothing keep no others from their turn.
func deadlineOfPull(now time.Time, end metav1.Time, clusters, atOnce int) metav1.Time {
	left := end.Sub(now)
	if clusters <= atOnce || left/2 < shortestPull {
		return end
	}
	return metav1.NewTime(now.Add(left / 2).Truncate(time.Second))
}

// whyNotAsked returns why a cluster is asked for no images although it could be; nothing if it is asked.
func whyNotAsked(ctx context.Context, members client.Reader, one cluster, left time.Duration) string {
	member := &clusterv1beta1.MemberCluster{}
	err := members.Get(ctx, types.NamespacedName{Name: one.name}, member, client.UnsafeDisableDeepCopy)
	since, silent := clusterrules.SilentSince(member)
	switch {
	case one.binding == nil || apierrors.IsNotFound(err) || !isStillPicked(ctx, members, one):
		return "it has left the fleet, or the placement does not pick it any more"
	case err != nil:
		return "" // it is asked nevertheless
	case silent:
		return "its agent has not reported since " + since.UTC().Format(time.RFC3339)
	case member.Status.Properties[clusterv1beta1.AgentPullsImagesProperty].Value == "":
		return "its owner does not let the fleet pull images before a change (pullImages in the values of the member agent's chart), or its " +
			"agent is too old for that"
	case left < shortestPull:
		return tooLate
	}
	return ""
}

// isStillPicked reports whether the binding of a cluster is what it was when the change was resolved: one that is not picked any more is not to
// pull. One that cannot be read is.
func isStillPicked(ctx context.Context, bindings client.Reader, one cluster) bool {
	now := placementv1beta1.ScopeOf(one.binding).NewBinding(one.binding.GetName())
	if err := bindings.Get(ctx, client.ObjectKeyFromObject(one.binding), now, client.UnsafeDisableDeepCopy); err != nil {
		return !apierrors.IsNotFound(err)
	}
	return now.GetUID() == one.binding.GetUID() && rules.IsLiveBinding(now)
}

// askForImages asks one cluster. It returns the answer of one that need not be asked, or cannot be.
func (a *asker) askForImages(ctx context.Context, c cluster) (*rehearsals.Answer, error) {
	composed, err := a.works.Compose(ctx, c.binding)
	if _, known := judgeComposition(err); known {
		return new(rehearsals.UnknownAnswer(err.Error())), nil
	}
	if err != nil {
		return nil, fmt.Errorf("composing the Works of cluster %s: %w", c.name, err)
	}
	asked := &fleetflowv1alpha1.PullImagesQuestion{Revision: c.revision}
	asked.Pods, asked.OmittedImages = rehearsals.ImagesOf(composed.Works)
	incomplete := whyIncomplete(composed)
	if len(asked.Pods) == 0 && asked.OmittedImages == 0 {
		if incomplete != "" {
			return new(rehearsals.UnknownAnswer(incomplete)), nil
		}
		return &rehearsals.Answer{Outcome: fleetflowv1alpha1.RehearsalPulled}, nil
	}
	why, err := a.create(ctx, c.name, rehearsals.NewImageQuestion(a.rehearsal, c.name, a.deadline, asked, incomplete))
	if why != "" {
		return new(rehearsals.UnknownAnswer(why)), nil
	}
	return nil, err
}

// whyIncomplete returns why the Works of a cluster do not have all that the change would place there; empty if they do.
func whyIncomplete(composed worksync.Composition) string {
	err := errors.Join(composed.HeldBack, composed.Invalid)
	if err == nil {
		return ""
	}
	return "the images of a part of the change are not known: " + strings.ReplaceAll(err.Error(), "\n", "; ")
}
