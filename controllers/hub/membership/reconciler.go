// Package membership lets clusters join and leave the fleet. For every MemberCluster it keeps a namespace on the hub,
// the access to it and an InternalMemberCluster as a mailbox; it copies what the member's agent reports there to the
// MemberCluster, notices when reports stay away, and lets a cluster leave.
package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/fence"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// KeepsPlaced reports whether a member is to keep what was placed on it when it leaves.
func KeepsPlaced(member *clusterv1beta1.MemberCluster) bool {
	return member.Annotations[clusterv1beta1.KeepPlacedAnnotation] == clusterv1beta1.KeepPlacedValue
}

// Options of the reconciler.
type Options struct {
	// UnhealthyThreshold is how long reports may stay away before the hub no longer
	// knows whether a cluster is healthy; at least three heartbeats.
	UnhealthyThreshold time.Duration
	// ForceDeleteWaitTime is how long a leaving cluster's agent may take before the
	// cluster is removed without it.
	ForceDeleteWaitTime time.Duration
	// LocationLabels has the hub label members with where they report to be.
	LocationLabels bool
	// Outages knows when the hub's API server could not be reached: no member could report then. With nil it always could.
	Outages Outages
	// Leaves, if there is one, is called for a member that leaves before it is gone, and before it is let go without something that it was to
	// do, which without says. As long as it fails, the member stays.
	Leaves func(ctx context.Context, member *clusterv1beta1.MemberCluster, without string) error
}

// Outages says when the last outage of the hub's API server ended, and how long it took; one that goes on ends now.
type Outages interface {
	Last() (recovered time.Time, length time.Duration)
}

// Reconciler keeps members of the fleet.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	prepare preparer
	events  events.EventRecorder
	clock   clock.PassiveClock
	options Options

	mu    sync.Mutex
	beats map[string]heartbeat
	// told are the conditions of members, by type, as the last event about each had them.
	told map[string]map[string]metav1.Condition
}

// heartbeat is when the hub saw a report, by the hub's own clock: the one in the
// report is the member's, which may be wrong.
type heartbeat struct {
	reported metav1.Time
	seen     time.Time
	// heard is what the member's status says of it. Other than seen, a restart of the
	// hub does not make it later.
	heard metav1.Time
}

// NewReconciler makes a Reconciler; live reads past the cache.
func NewReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, clk clock.PassiveClock,
	options Options) *Reconciler {
	return &Reconciler{client: c, live: live, prepare: preparer{c, live}, events: recorder, clock: clk, options: options,
		beats: map[string]heartbeat{},
		told:  map[string]map[string]metav1.Condition{}}
}

// Reconcile looks at one member.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	member := &clusterv1beta1.MemberCluster{}
	if err := r.client.Get(ctx, request.NamespacedName, member); err != nil {
		r.forgetMember(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	box, err := r.readMailbox(ctx, member.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !member.DeletionTimestamp.IsZero() {
		return r.seeOffMember(ctx, member, box)
	}
	return r.admitMember(ctx, member, box)
}

// admitMember prepares the hub for the member and projects what its agent reports.
func (r *Reconciler) admitMember(ctx context.Context, member *clusterv1beta1.MemberCluster,
	box *clusterv1beta1.InternalMemberCluster) (ctrl.Result, error) {
	if err := r.addFinalizerAndLabel(ctx, member); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.noteTaints(ctx, member); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.labelLocation(ctx, member, box); err != nil {
		return ctrl.Result{}, err
	}
	obstacle, err := r.prepare.prepareNamespace(ctx, member, box)
	report := Report{Obstacle: obstacle, Mailbox: box, Now: metav1.NewTime(r.clock.Now())}
	if err != nil {
		report.Obstacle = err.Error()
	}
	var wait time.Duration
	report.Heard, report.HeartbeatsMissed, wait = r.checkHeartbeat(member, box)
	var untilOutOfReach time.Duration
	if report.OutOfReach, untilOutOfReach = r.checkReach(member, box); untilOutOfReach > 0 {
		wait = min(cmp.Or(wait, untilOutOfReach), untilOutOfReach)
	}
	replacement, replacementErr := replacements{r.client, r.live}.read(ctx, member)
	if replacementErr != nil { // what else is known of the member is stored all the same
		replacement = &Replacement{By: clusterrules.ReplacedBy(member), Unread: true}
	}
	report.Replacement = replacement
	status := Project(member, report)
	if statusErr := r.storeStatus(ctx, member, status); statusErr != nil {
		return ctrl.Result{}, statusErr
	}
	if rest := status.Busy.NextChange(report.Now.Time); rest > 0 {
		wait = min(cmp.Or(wait, rest), rest)
	}
	if err = errors.Join(err, replacementErr); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// addFinalizerAndLabel puts the finalizer and the label with its own name on a member.
func (r *Reconciler) addFinalizerAndLabel(ctx context.Context, member *clusterv1beta1.MemberCluster) error {
	if err := fence.AddFinalizer(ctx, r.client, member, clusterv1beta1.MemberClusterFinalizer); err != nil {
		return err
	}
	if member.Labels[clusterv1beta1.MemberNameLabel] == member.Name {
		return nil
	}
	base := member.DeepCopy()
	metav1.SetMetaDataLabel(&member.ObjectMeta, clusterv1beta1.MemberNameLabel, member.Name)
	if err := r.client.Patch(ctx, member.DeepCopy(), client.MergeFrom(base)); err != nil {
		return fmt.Errorf("labelling member cluster %s: %w", member.Name, err)
	}
	return nil
}

// noteTaints notes on a member since when it has the taints that do not tell.
func (r *Reconciler) noteTaints(ctx context.Context, member *clusterv1beta1.MemberCluster) error {
	noted := clusterrules.NoteTaints(member, r.clock.Now())
	if member.Annotations[clusterv1beta1.TaintsSinceAnnotation] == noted {
		return nil
	}
	base := member.DeepCopy()
	if metav1.SetMetaDataAnnotation(&member.ObjectMeta, clusterv1beta1.TaintsSinceAnnotation, noted); noted == "" {
		delete(member.Annotations, clusterv1beta1.TaintsSinceAnnotation)
	}
	if err := r.client.Patch(ctx, member.DeepCopy(), client.MergeFrom(base)); err != nil {
		return fmt.Errorf("noting since when member cluster %s has its taints: %w", member.Name, err)
	}
	return nil
}

// checkHeartbeat returns when the agent last reported, whether its reports have stayed away for too long, and if not, after how
// long they will have.
func (r *Reconciler) checkHeartbeat(member *clusterv1beta1.MemberCluster,
	box *clusterv1beta1.InternalMemberCluster) (heard metav1.Time, missed bool, wait time.Duration) {
	agent := memberAgent(box)
	if agent == nil || agent.LastReceivedHeartbeat.IsZero() {
		return metav1.Time{}, false, 0
	}
	now := r.clock.Now()
	r.mu.Lock()
	beat, known := r.beats[member.Name]
	switch {
	case !known:
		beat = resumeHeartbeat(member, agent.LastReceivedHeartbeat, now)
	case !beat.reported.Equal(&agent.LastReceivedHeartbeat):
		beat = heartbeat{reported: agent.LastReceivedHeartbeat, seen: now, heard: inSeconds(now)}
	}
	r.beats[member.Name] = beat
	r.mu.Unlock()

	rest := r.unhealthyAfter(member) - now.Sub(r.countedFrom(member, beat))
	if rest <= 0 {
		return beat.heard, true, 0
	}
	return beat.heard, false, rest
}

// checkReach reports whether the agent reports, and has not found its cluster healthy for too long, and if it only begins to, after how
// long that is so.
func (r *Reconciler) checkReach(member *clusterv1beta1.MemberCluster,
	box *clusterv1beta1.InternalMemberCluster) (outOfReach bool, wait time.Duration) {
	said := agentCondition(box, clusterv1beta1.ConditionTypeHealthy)
	if said == nil || said.Status != metav1.ConditionFalse {
		return false, 0
	}
	after := r.unhealthyAfter(member)
	noted := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
	if noted == nil || noted.Status != metav1.ConditionFalse {
		return false, after
	}
	rest := after - r.clock.Since(noted.LastTransitionTime.Time)
	return rest <= 0, max(rest, 0)
}

// countedFrom returns from when on the silence of a member counts: its last report, or the end of an outage of the hub, during
// which it could not report. A member that was silent before the outage stays so.
func (r *Reconciler) countedFrom(member *clusterv1beta1.MemberCluster, beat heartbeat) time.Time {
	if r.options.Outages == nil || clusterrules.IsSilent(member) {
		return beat.seen
	}
	if recovered, _ := r.options.Outages.Last(); recovered.After(beat.seen) {
		return recovered
	}
	return beat.seen
}

// resumeHeartbeat makes the first heartbeat after a start of the hub from what is stored. The member gets as much
// time as if it had reported just now, unless its reports had been missed before. The report's own time counts only
// if the hub's clock does not contradict it.
func resumeHeartbeat(member *clusterv1beta1.MemberCluster, reported metav1.Time, now time.Time) heartbeat {
	beat := heartbeat{reported: reported, seen: now, heard: inSeconds(now)}
	if agent := memberAgentOf(member.Status.AgentStatus); agent != nil {
		beat.heard = agent.LastReceivedHeartbeat
		if beat.heard.Before(&reported) && !reported.After(now) {
			beat.heard = reported
		}
	}
	if clusterrules.IsSilent(member) {
		beat.seen = beat.heard.Time
	}
	return beat
}

// inSeconds returns a time as objects store it.
func inSeconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// unhealthyAfter allows for three heartbeats in any case.
func (r *Reconciler) unhealthyAfter(member *clusterv1beta1.MemberCluster) time.Duration {
	return max(r.options.UnhealthyThreshold, 3*time.Duration(member.Spec.HeartbeatPeriodSeconds)*time.Second)
}

func (r *Reconciler) forgetMember(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.beats, name)
	delete(r.told, name)
}

// storeStatus writes the status if it has changed, and emits an event for every transition in it.
func (r *Reconciler) storeStatus(ctx context.Context, member *clusterv1beta1.MemberCluster,
	status clusterv1beta1.MemberClusterStatus) error {
	if apiequality.Semantic.DeepEqual(member.Status, status) {
		return nil
	}
	if err := fence.ReplaceStatus(ctx, r.client, member, status); err != nil {
		return err
	}
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		before := meta.FindStatusCondition(member.Status.Conditions, condition.Type)
		if before != nil && before.Status == condition.Status && before.Reason == condition.Reason {
			continue
		}
		if r.recordTold(member.Name, condition) {
			r.emitTransition(member, condition)
		}
	}
	member.Status = status
	return nil
}

// recordTold records that an event reports a condition, and reports whether none has: the copy of the member may be older than
// the last status that was written.
func (r *Reconciler) recordTold(member string, condition *metav1.Condition) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := r.told[member]
	if told == nil {
		told = map[string]metav1.Condition{}
		r.told[member] = told
	}
	last, known := told[condition.Type]
	told[condition.Type] = *condition
	return !known || last.Status != condition.Status || last.Reason != condition.Reason
}

// emitTransition emits an event for a condition that has changed, unless it is merely not known yet.
func (r *Reconciler) emitTransition(member *clusterv1beta1.MemberCluster, condition *metav1.Condition) {
	switch {
	case condition.Reason == clusterv1beta1.ReasonResolved: // there is nothing to tell any more
	case condition.Status == metav1.ConditionTrue, condition.Reason == clusterv1beta1.ReasonMemberClusterLeft,
		condition.Reason == clusterv1beta1.ReasonMemberClusterReplacing,
		!member.DeletionTimestamp.IsZero():
		r.events.Eventf(member, nil, "Normal", condition.Reason, condition.Type, "%s", condition.Message)
	case condition.Status == metav1.ConditionFalse, condition.Reason == clusterv1beta1.ReasonMemberClusterHeartbeatMissed:
		r.events.Eventf(member, nil, "Warning", condition.Reason, condition.Type, "%s", condition.Message)
	}
}

// readMailbox reads the InternalMemberCluster of a member; nil if there is none.
func (r *Reconciler) readMailbox(ctx context.Context, name string) (*clusterv1beta1.InternalMemberCluster, error) {
	box := &clusterv1beta1.InternalMemberCluster{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}, box)
	if apierrors.IsNotFound(err) {
		return nil, nil // a missing mailbox is an answer, not a failure
	}
	if err != nil {
		return nil, fmt.Errorf("reading internal member cluster %s: %w", name, err)
	}
	return box, nil
}
