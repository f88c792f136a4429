package rehearsal

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rehearsals "github.com/fleetflow/fleetflow/activities/rehearsal"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// collect counts the answers that have come, and ends the rehearsal when all have, or when the time is over. Many answers that come
// at a time are one look and one write; only the last one is not kept waiting for others.
func (r *Reconciler) collect(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress) (ctrl.Result, error) {
	now := r.clock.Now()
	if wait := p.written.Add(statusInterval).Sub(now); wait > 0 && !p.isLastAnswer() {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	questions, err := r.questionsOf(ctx, rehearsal)
	if err != nil {
		return ctrl.Result{}, err
	}
	known := p.countFindings()
	deadline := deadlineOf(rehearsal, &p.status)
	isLate := !now.Before(deadline.Time)
	for i := range questions {
		question := &questions[i]
		cluster := clusterOf(question)
		p.asked[cluster] = true
		switch {
		case p.tally.Has(cluster):
		case rehearsals.IsAnswered(question):
			p.tally.Add(cluster, rehearsals.Read(question), known[cluster]...)
			p.answered++
		case isLate:
			p.tally.Add(cluster, rehearsals.UnknownAnswer(r.describeSilence(ctx, cluster, deadline.Time)), known[cluster]...)
		}
	}
	if isLate {
		p.countLost(rehearsal, known)
	}
	status := p.status.DeepCopy()
	status.Answered = p.answered
	status.Clusters = p.tally.Counts()
	status.Groups, status.OmittedGroups = p.tally.Groups()
	settled := status.Clusters.Total()
	if settled < int64(status.ClusterCount) {
		r.setCompleted(rehearsal, status, metav1.ConditionFalse, fleetflowv1alpha1.ReasonRehearsalWaiting,
			fmt.Sprintf("%d of %d clusters have answered", p.answered, status.ClusterCount))
		return ctrl.Result{RequeueAfter: max(deadline.Sub(now), statusInterval)}, r.write(ctx, rehearsal, p, status)
	}
	return ctrl.Result{RequeueAfter: keepQuestions}, r.complete(ctx, rehearsal, p, status, "")
}

// isLastAnswer reports, once, whether as many answers have come as clusters were asked. A member that answers over and over is why it
// does that once only.
func (p *progress) isLastAnswer() bool {
	if p.hurried || len(p.asked) == 0 || int(p.arrived.Load()) < len(p.asked) {
		return false
	}
	p.hurried = true
	return true
}

// countFindings counts the clusters that are asked nothing, and returns what is known of the others.
func (p *progress) countFindings() map[string][]rehearsals.Line {
	known := map[string][]rehearsals.Line{}
	notAsked := map[string]bool{}
	for _, found := range p.status.Findings {
		line := rehearsals.Line{Outcome: found.Outcome, By: "the hub agent", Message: found.Message}
		for _, cluster := range found.Clusters {
			known[cluster] = append(known[cluster], line)
			notAsked[cluster] = notAsked[cluster] || found.NotAsked
		}
	}
	for cluster, is := range notAsked {
		if is {
			p.tally.Add(cluster, rehearsals.Answer{Outcome: fleetflowv1alpha1.RehearsalSame}, known[cluster]...)
		}
	}
	return known
}

// countLost counts clusters as unknown whose questions are gone without an answer.
func (p *progress) countLost(rehearsal fleetflowv1alpha1.RehearsalObject, known map[string][]rehearsals.Line) {
	const why = "its question is gone without an answer: the cluster has left the fleet, or the question was deleted"
	for _, cluster := range rehearsal.GetRehearsalSpec().Clusters {
		p.asked[cluster] = true
	}
	for cluster := range p.asked {
		p.tally.Add(cluster, rehearsals.UnknownAnswer(why), known[cluster]...)
	}
	if lost := int64(p.status.ClusterCount) - new(p.tally.Counts()).Total(); lost > 0 {
		p.tally.AddLost(int(lost), why)
	}
}

// describeSilence says that a cluster has not answered, and why that may be.
func (r *Reconciler) describeSilence(ctx context.Context, cluster string, deadline time.Time) string {
	text := "no answer by " + deadline.UTC().Format(time.RFC3339)
	member := &clusterv1beta1.MemberCluster{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: cluster}, member, client.UnsafeDisableDeepCopy); err != nil {
		return text
	}
	if since, silent := clusterrules.SilentSince(member); silent {
		return text + ": its agent has not reported since " + since.UTC().Format(time.RFC3339)
	}
	if version := member.Status.Properties[clusterv1beta1.AgentVersionProperty].Value; version != "" {
		return text + ": its agent, of version " + version + ", reports, and may be too old to answer questions"
	}
	return text + ": its agent reports, and may be too old to answer questions"
}

// complete ends a rehearsal. Why says what has ended it before all were asked; empty if nothing has.
func (r *Reconciler) complete(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress,
	status *fleetflowv1alpha1.RehearsalStatus, why string) error {
	status.Digest = p.tally.Digest(rehearsal.GetRehearsalSpec().PlacementName, status.ResourceSnapshotIndex)
	status.CompletionTime = &metav1.Time{Time: r.clock.Now()}
	reason := fleetflowv1alpha1.ReasonRehearsalAllAnswered
	if status.Clusters.Unknown > 0 || status.Answered < status.ClusterCount {
		reason = fleetflowv1alpha1.ReasonRehearsalSomeUnknown
	}
	message := fmt.Sprintf("%d of %d clusters have answered about revision %s: %s", status.Answered, status.ClusterCount,
		status.ResourceSnapshotIndex, rehearsals.DescribeCounts(status.Clusters))
	if why != "" {
		message += "; it has ended early: " + why
	}
	r.setCompleted(rehearsal, status, metav1.ConditionTrue, reason, message)
	if err := r.write(ctx, rehearsal, p, status); err != nil {
		return err
	}
	kind := corev1.EventTypeNormal
	if bad := status.Clusters; bad.Refused+bad.Conflicts+bad.Unknown > 0 {
		kind = corev1.EventTypeWarning
	}
	r.events.Eventf(rehearsal, nil, kind, "RehearsalCompleted", "Rehearse", "%s", message)
	p.tally = nil // nothing is counted any more
	return r.prune(ctx, rehearsal)
}
