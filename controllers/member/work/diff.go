package work

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// diff is the part of a pass over a Work whose differences are to be reported only. Nothing is
// written to the member, not even an AppliedWork: nothing is taken over, what left the Work stays,
// and what was taken over before stays ours.
func (r *Reconciler) diff(ctx context.Context, work *placementv1beta1.Work, mem *memory, steps []*step, known map[int]outcome, strategy placementv1beta1.ApplyStrategy) error {
	mem.applied, mem.leaving = nil, false
	r.watch(work.Name, steps, &placementv1beta1.AppliedWork{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentManifests)
	for _, s := range steps {
		before := known[s.outcome.id.Ordinal]
		switch {
		case !s.due || s.resting:
		case before.looked && r.unchanged(before):
			s.outcome = before
		default:
			group.Go(func() error { return r.diffOne(groupCtx, work.Name, s, before, strategy) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return r.writeReport(ctx, work, mem, outcomesOf(steps), reportDiffs)
}

func (r *Reconciler) diffOne(ctx context.Context, work string, s *step, before outcome, strategy placementv1beta1.ApplyStrategy) error {
	if s.outcome.problem != nil {
		s.outcome.tries = before.tries.another(r.Clock.Now())
		if s.outcome.problem.Reason == placementv1beta1.ReasonDecodingErred {
			// Where there is no such kind, there is no such object. It is looked for again.
			s.outcome.problem, s.outcome.findings = nil, apply.Findings{Report: compare.Absent()}
		}
		return nil
	}
	result, problem, err := r.engine.Diff(ctx, apply.Request{Manifest: s.manifest, Strategy: strategy})
	if err != nil {
		return err
	}
	if problem != nil {
		s.outcome.tries = before.tries.another(r.Clock.Now())
		s.outcome.problem, s.outcome.retry = problem, true
		return nil
	}
	s.outcome.findings = result.Findings
	s.outcome.saw(result.Object)
	if s.mirrored && wasApplied(result.Object, work) {
		if s.outcome.excerpt, err = excerpt(result.Object); err != nil {
			return err
		}
	}
	return nil
}

// wasApplied tells whether an object, if there is one, has been applied for a Work, before its
// differences were to be reported only. What others say about themselves is not for us to tell.
func wasApplied(live *unstructured.Unstructured, work string) bool {
	return live != nil && slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return apply.IsAppliedWork(ref) && ref.Name == work
	})
}

// reportDiffs makes the status of a Work whose differences are to be reported only. That there
// are some is no failure. It is pure.
func reportDiffs(generation int64, outcomes []outcome, previous placementv1beta1.WorkStatus, now metav1.Time) placementv1beta1.WorkStatus {
	before := earlier(previous)
	status := placementv1beta1.WorkStatus{}
	reported := 0
	for _, o := range outcomes {
		last, wanted := before(o.id), diffReported(o)
		if wanted.Status == metav1.ConditionTrue {
			reported++
		}
		status.ManifestConditions = append(status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier:  o.id,
			Conditions:  carryOver(last.Conditions, []metav1.Condition{wanted}, now),
			DiffDetails: diffDetails(o, last.DiffDetails, now),
		})
	}
	sum := metav1.Condition{
		Type: placementv1beta1.ConditionTypeDiffReported, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason:  placementv1beta1.ReasonAllManifestsDiffReported,
		Message: "All the specified manifests have been compared with the cluster",
	}
	if reported < len(outcomes) {
		sum.Status, sum.Reason = metav1.ConditionFalse, placementv1beta1.ReasonSomeManifestsHaveNotReportedDiff
		sum.Message = fmt.Sprintf("Failed to compare all manifests with the cluster (%d of %d manifests are compared)", reported, len(outcomes))
	}
	status.Conditions = carryOver(previous.Conditions, []metav1.Condition{sum}, now)
	return status
}

func diffReported(o outcome) metav1.Condition {
	c := metav1.Condition{Type: placementv1beta1.ConditionTypeDiffReported, Status: metav1.ConditionTrue, ObservedGeneration: o.generation}
	switch {
	case o.problem != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, placementv1beta1.ReasonFailedToReportDiff, o.problem.Message
	case o.findings.Empty():
		c.Reason, c.Message = placementv1beta1.ReasonNoDiffFound, "No configuration differences have been found"
	case o.seen == sighting{}:
		c.Reason, c.Message = placementv1beta1.ReasonFoundDiff, "The object does not exist on the cluster"
	default:
		c.Reason, c.Message = placementv1beta1.ReasonFoundDiff, "Configuration differences have been found"
		if o.findings.Degraded {
			c.Reason = placementv1beta1.ReasonFoundDiffInDegradedMode
			c.Message += "; the API server would refuse the manifest, so they are told without it"
		}
		if o.findings.Omitted > 0 {
			c.Message += fmt.Sprintf("; %d more fields differ than are listed", o.findings.Omitted)
		}
	}
	return c
}
