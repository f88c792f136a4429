package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// diffAndReport is the part of a pass over a Work whose differences are only reported. It writes
// nothing to the member, not even an AppliedWork: it takes no object over, objects that left the
// Work stay, and objects that were taken over before keep their owner.
func (r *Reconciler) diffAndReport(
	ctx context.Context, work *placementv1beta1.Work, mem *memory, steps []*step, last map[int]outcome,
	strategy placementv1beta1.ApplyStrategy,
) error {
	mem.applied = nil
	mem.hasStaleObjects = false
	r.reporter().noteRemnants(ctx, work, mem, nil)
	r.watcher.watchObjects(work.Name, steps, &placementv1beta1.AppliedWork{})
	forgetCauses(work.Name, r.Options)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentManifests)
	for _, s := range steps {
		before := last[s.outcome.id.Ordinal]
		switch {
		case !s.due || s.backingOff:
		case before.observed && r.watcher.isOutcomeCurrent(before, r.Clock.Now()):
			s.outcome = before
		default:
			group.Go(func() error { return s.diff(groupCtx, r.engine, work.Name, before, strategy, r.Clock.Now) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return r.reporter().writeReport(ctx, work, mem, collectOutcomes(steps), buildDiffStatus)
}

// diff compares the manifest with the object on the member.
func (s *step) diff(
	ctx context.Context, engine *apply.Engine, work string, before outcome, strategy placementv1beta1.ApplyStrategy, now func() time.Time,
) error {
	if s.outcome.problem != nil {
		s.outcome.failedTries = before.failedTries.addFailure(now())
		return nil
	}
	result, problem, err := engine.Diff(ctx, apply.Request{Manifest: s.manifest, Strategy: strategy})
	if err != nil {
		return err
	}
	if problem != nil {
		s.outcome.failedTries = before.failedTries.addFailure(now())
		s.outcome.recordProblem(problem, result.Object)
		return nil
	}
	s.outcome.findings = result.Findings
	s.outcome.recordObserved(result.Object)
	if s.mirrorStatus && wasApplied(result.Object, work) {
		if s.outcome.objectStatus, err = encodeObjectStatus(result.Object); err != nil {
			return err
		}
	}
	return nil
}

// wasApplied reports whether an object exists and was applied for a Work before only its differences
// were to be reported. The agent does not report the status of other owners' objects.
func wasApplied(live *unstructured.Unstructured, work string) bool {
	return live != nil && slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return apply.IsAppliedWork(ref) && ref.Name == work
	})
}

// buildDiffStatus makes the status of a Work whose differences are only reported. Differences are
// no failure. It is pure.
func buildDiffStatus(
	generation int64, outcomes []outcome, previous placementv1beta1.WorkStatus, now metav1.Time,
) placementv1beta1.WorkStatus {
	before := findPrevious(previous)
	status := placementv1beta1.WorkStatus{}
	reported := 0
	for _, o := range outcomes {
		last := before(o.id)
		wanted := diffReported(o)
		if wanted.Status == metav1.ConditionTrue {
			reported++
		}
		status.ManifestConditions = append(status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier:  o.id,
			Conditions:  placementv1beta1.KeepTransitionTimes(last.Conditions, []metav1.Condition{wanted}, now),
			DiffDetails: diffDetails(o, last.DiffDetails, now),
		})
	}
	summary := metav1.Condition{
		Type: placementv1beta1.ConditionTypeDiffReported, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason:  placementv1beta1.ReasonAllManifestsDiffReported,
		Message: "All the specified manifests have been compared with the cluster",
	}
	if reported < len(outcomes) {
		summary.Status = metav1.ConditionFalse
		summary.Reason = placementv1beta1.ReasonSomeManifestsHaveNotReportedDiff
		summary.Message = fmt.Sprintf("Failed to compare all manifests with the cluster (%d of %d manifests are compared)", reported,
			len(outcomes))
	}
	status.Conditions = placementv1beta1.KeepTransitionTimes(previous.Conditions, []metav1.Condition{summary}, now)
	return status
}

func diffReported(o outcome) metav1.Condition {
	c := metav1.Condition{Type: placementv1beta1.ConditionTypeDiffReported, Status: metav1.ConditionTrue, ObservedGeneration: o.generation}
	switch {
	case o.problem != nil:
		c.Status = metav1.ConditionFalse
		c.Reason = placementv1beta1.ReasonFailedToReportDiff
		c.Message = o.problem.Message
		if o.problem.Refused {
			c.Reason = o.problem.Reason
		}
	case o.findings.Empty():
		c.Reason = placementv1beta1.ReasonNoDiffFound
		c.Message = "No configuration differences have been found"
	case o.version == objectVersion{}:
		c.Reason = placementv1beta1.ReasonFoundDiff
		c.Message = "The object does not exist on the cluster"
	default:
		c.Reason = placementv1beta1.ReasonFoundDiff
		c.Message = "Configuration differences have been found"
		if o.findings.Degraded {
			c.Reason = placementv1beta1.ReasonFoundDiffInDegradedMode
			c.Message += "; the API server would refuse the manifest, so they are shown without it"
		}
		if o.findings.Omitted > 0 {
			c.Message += fmt.Sprintf("; %d more fields differ than are listed", o.findings.Omitted)
		}
	}
	return c
}
