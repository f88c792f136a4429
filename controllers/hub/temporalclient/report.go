package temporalclient

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

const (
	// reportEvery is how often Temporal is asked, and what it answers is noted.
	reportEvery = 10 * time.Second
	// reportHolds is how long a note counts: after that nothing is known.
	reportHolds = 30 * time.Second
	// askTimeout bounds one question to Temporal.
	askTimeout = 5 * time.Second
	// maxReported bounds the error that is noted, in bytes.
	maxReported = 500
)

// Reporter notes on a Lease whether the hub agent reaches Temporal, whether or not anything waits for it. The Lease is renewed with each
// note; that Temporal does not answer is in an annotation of it, and likewise that it answers, but not so that approvals through it count.
type Reporter struct {
	// Ask asks Temporal for an answer; the error says why there is none.
	Ask func(ctx context.Context) error
	// AskApprovals, if set, finds out why no approval through Temporal is taken; empty if they are. It is asked until it knows, and again
	// after Temporal was away.
	AskApprovals func(ctx context.Context) (problem string, err error)
	// Live reads past the cache, Writer writes.
	Live   client.Reader
	Writer client.Writer
	// Lease is the one that is written, Holder who writes it.
	Lease  types.NamespacedName
	Holder string
	// Mode is noted, too.
	Mode clusterv1beta1.TemporalMode
	// Patience is how long an answer may be missing; without one after that, Start ends. 0 is for ever.
	Patience time.Duration
	Clock    clock.WithTicker
	Log      logr.Logger

	// approvals is what AskApprovals has found out; nil if nothing yet.
	approvals *string
	// answered is when Temporal answered last, or when the first question was asked.
	answered time.Time
}

// NeedLeaderElection reports whether only the agent that leads reports: it is the one that decides.
func (r *Reporter) NeedLeaderElection() bool { return true }

// Start reports until the context ends. It returns an error, which ends the agent, if Temporal does not answer for longer than the
// patience.
func (r *Reporter) Start(ctx context.Context) error {
	r.answered = r.Clock.Now()
	ticker := r.Clock.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		if err := r.Report(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error(err, "Reporting whether Temporal can be reached")
		}
		if silent := r.Clock.Since(r.answered); r.Patience > 0 && silent >= r.Patience {
			return fmt.Errorf("the bundled Temporal has not answered for %s: this agent leaves the lease to another", silent.Round(time.Second))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Report asks Temporal once and notes the answer.
func (r *Reporter) Report(ctx context.Context) error {
	problem := ""
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := r.Ask(asked); err != nil {
		problem = clusterv1beta1.CutText(err.Error(), maxReported)
		r.approvals = nil // another Temporal may answer next
	} else {
		r.answered = r.Clock.Now()
		r.findOutApprovals(asked)
	}
	if ctx.Err() != nil {
		return nil // the agent ends, which says nothing of Temporal
	}
	lease := &coordinationv1.Lease{}
	err := r.Live.Get(ctx, r.Lease, lease)
	switch {
	case apierrors.IsNotFound(err):
		lease.Namespace = r.Lease.Namespace
		lease.Name = r.Lease.Name
		r.note(lease, problem)
		err = r.Writer.Create(ctx, lease)
	case err == nil:
		r.note(lease, problem)
		err = r.Writer.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("writing lease %s: %w", r.Lease, err)
	}
	return nil
}

// findOutApprovals asks whether approvals through Temporal are taken, unless that is known. An error is no news: it is asked again.
func (r *Reporter) findOutApprovals(ctx context.Context) {
	if r.AskApprovals == nil || r.approvals != nil {
		return
	}
	problem, err := r.AskApprovals(ctx)
	if err != nil {
		r.Log.V(1).Info("Whether approvals through Temporal are taken is not known yet", "cause", err.Error())
		return
	}
	problem = clusterv1beta1.CutText(problem, maxReported)
	r.approvals = &problem
}

// noteApprovals writes what is known of approvals. While nothing is known, it is as it was.
func (r *Reporter) noteApprovals(lease *coordinationv1.Lease) {
	switch {
	case r.AskApprovals == nil, r.approvals != nil && *r.approvals == "":
		delete(lease.Annotations, clusterv1beta1.ApprovalsProblemAnnotation)
	case r.approvals != nil:
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, clusterv1beta1.ApprovalsProblemAnnotation, *r.approvals)
	}
}

// note writes an answer of Temporal, or what is wrong with it, into the lease. The time at which the lease was acquired is since when it is
// so.
func (r *Reporter) note(lease *coordinationv1.Lease, problem string) {
	now := metav1.NewMicroTime(r.Clock.Now())
	before, failed := lease.Annotations[clusterv1beta1.TemporalProblemAnnotation]
	if lease.Spec.AcquireTime == nil || failed != (problem != "") {
		lease.Spec.AcquireTime = &now
	}
	switch {
	case problem == "":
		delete(lease.Annotations, clusterv1beta1.TemporalProblemAnnotation)
	case problem != before:
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, clusterv1beta1.TemporalProblemAnnotation, problem)
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, clusterv1beta1.TemporalModeAnnotation, string(r.Mode))
	r.noteApprovals(lease)
	lease.Spec.HolderIdentity = &r.Holder
	lease.Spec.RenewTime = &now
	lease.Spec.LeaseDurationSeconds = new(int32(reportHolds / time.Second))
}
