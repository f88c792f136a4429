package work

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// runPass goes once over a Work: it applies what is due, removes objects that left the Work,
// reports, and remembers the outcomes. An error means that the hub or the member could not be
// reached; problems of a manifest go into the report.
func (r *Reconciler) runPass(ctx context.Context, work *placementv1beta1.Work, mem *memory) error {
	strategy := rules.EffectiveApplyStrategy(work.Spec.ApplyStrategy)
	manifests := apply.Decode(work.Spec.Workload.Manifests)
	r.engine.Veto.MarkRefused(manifests)
	settings := applySettings{strategy: strategy, mirrorStatus: mirrorsStatus(work), statePaths: work.Spec.ReportState}
	full := r.Clock.Since(mem.checked) >= resyncPeriod || !settings.isEqual(mem.settings)
	last := map[int]outcome{}
	if !full {
		last = mem.lastOutcomes(work.Generation, manifests)
	}
	mem.struggles.recall(work.Generation, manifests, last)
	steps, err := r.applier().planSteps(manifests, last, r.memories.takeChangedObjects(work.Name))
	if err != nil {
		return err
	}
	for _, s := range steps {
		s.mirrorStatus = settings.mirrorStatus
		s.statePaths = settings.statePaths
	}
	countPodsOf(work, steps, mem.outcomes)
	applyOrDiff := r.applyAndReport
	if strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff {
		applyOrDiff = r.diffAndReport
	}
	if err := applyOrDiff(ctx, work, mem, steps, last, strategy); err != nil {
		return err
	}
	mem.outcomes = collectOutcomes(steps)
	mem.generation = work.Generation
	mem.settings = settings
	mem.complete = noneToRetry(mem.outcomes)
	r.memories.recordUnapplied(work.Name, mem.outcomes)
	if full {
		mem.checked = r.Clock.Now()
	}
	return nil
}

// applyAndReport is the part of a pass over a Work that is to be applied.
func (r *Reconciler) applyAndReport(
	ctx context.Context, work *placementv1beta1.Work, mem *memory, steps []*step, last map[int]outcome,
	strategy placementv1beta1.ApplyStrategy,
) error {
	listed := inventory{member: r.Member, watcher: r.watcher}
	applied, err := listed.ensureAppliedWork(ctx, work, mem)
	if err != nil {
		return err
	}
	if mem.ownerUID != applied.UID {
		clear(last) // the objects belong to another AppliedWork: each needs the new owner
		mem.ownerUID = applied.UID
	}
	r.watcher.watchObjects(work.Name, steps, applied, namespacesOfFailed(mem.outcomes)...)
	if err := listed.addToInventory(ctx, mem, steps); err != nil {
		return err
	}
	owner := apply.OwnerReference(mem.applied.Name, mem.applied.UID)
	recallRuns(mem.applied.Status.AppliedResources, last, steps)
	err = r.applier().applyManifests(ctx, steps, last, owner, strategy)
	mem.struggles.keep(work.Generation, steps)
	if err != nil {
		return err
	}
	if err := listed.recordRuns(ctx, mem, steps); err != nil {
		return err
	}
	if mem.status == nil && r.Causes != nil {
		recallCauses(steps, work.Status)
	}
	findCauses(r.Causes, work.Name, steps, r.Clock.Now())
	r.Metrics.replaceFailing(work.Name, countReasons(steps))
	left, pruneErr := r.pruneStale(ctx, work, mem, steps, owner)
	r.reporter().noteRemnants(ctx, work, mem, left)

	if err := r.reporter().writeReport(ctx, work, mem, collectOutcomes(steps), buildApplyStatus); err != nil {
		return err
	}
	if pruneErr != nil {
		return pruneErr
	}
	if err := listed.recordApplied(ctx, mem, steps, itemsOf(left)); err != nil {
		return err
	}
	mem.hasStaleObjects = len(left) > 0
	return nil
}

// step is a manifest in a pass.
type step struct {
	manifest apply.Manifest
	outcome  outcome
	// due is whether the manifest is to be applied: it can be read, is no duplicate, and the cluster
	// lets the fleet place it.
	due bool
	// backingOff is whether the manifest has failed and is not tried again yet.
	backingOff bool
	// mirrorStatus is whether the object's own status is to be reported.
	mirrorStatus bool
	// statePaths are the JSONPaths below the object's own status whose values are to be reported.
	statePaths []string
	// countPods is whether the pods of the object are to be counted, countedBefore what the last pass found of the object.
	countPods     bool
	countedBefore outcome
	// runBefore is the run of a Job as it was known before the pass.
	runBefore jobRun
	// definition is the step with the definition of the manifest's kind, if the cluster lacks the
	// kind and the same Work defines it.
	definition *step
}

// applier applies the manifests of a Work on the member.
type applier struct {
	engine      *apply.Engine
	member      client.Reader
	watcher     *Watcher
	clock       clock.PassiveClock
	metrics     *Metrics
	kindTimeout time.Duration
}

func (r *Reconciler) applier() applier {
	return applier{engine: r.engine, member: r.Member, watcher: r.watcher, clock: r.Clock, metrics: r.Metrics, kindTimeout: r.kindTimeout}
}

// planSteps looks up the resources of the manifests. The outcome of a manifest that is backing off
// stays as it is.
func (a applier) planSteps(manifests []apply.Manifest, last map[int]outcome, changed map[objectRef]bool) ([]*step, error) {
	steps := make([]*step, 0, len(manifests))
	for _, m := range manifests {
		s := &step{manifest: m, due: m.Problem == nil}
		s.outcome = outcome{id: m.Identifier, hash: m.Hash, problem: m.Problem}
		before, ok := last[m.Identifier.Ordinal]
		if ok {
			before = before.retrySoonerIfAffected(changed)
			last[m.Identifier.Ordinal] = before
		}
		switch {
		case !s.due:
		case before.isBackingOff(a.clock.Now()):
			s.outcome = before
			s.backingOff = true
		default:
			if err := s.resolveKind(a.engine); err != nil {
				return nil, err
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func (s *step) resolveKind(engine *apply.Engine) error {
	gvr, problem, err := engine.Resource(s.manifest.Identifier)
	if err != nil {
		return err
	}
	s.outcome.gvr = gvr
	s.outcome.problem = problem
	s.outcome.retry = problem != nil
	s.outcome.id.Resource = gvr.Resource
	return nil
}

func resourceOf(id placementv1beta1.WorkResourceIdentifier) (schema.GroupVersionResource, bool) {
	return schema.GroupVersionResource{Group: id.Group, Version: id.Version, Resource: id.Resource}, id.Resource != ""
}

// applyManifests applies wave after wave, the manifests of a wave in parallel. A manifest that
// fails prevents no other from being applied.
func (a applier) applyManifests(
	ctx context.Context, steps []*step, last map[int]outcome, owner metav1.OwnerReference, strategy placementv1beta1.ApplyStrategy,
) error {
	due := make([]*step, 0, len(steps))
	for _, s := range steps {
		if s.due {
			due = append(due, s)
		}
	}
	for _, wave := range apply.Waves(due, func(s *step) schema.GroupKind { return s.manifest.Kind() }) {
		if err := a.awaitKinds(ctx, wave, due); err != nil {
			return err
		}
		group, waveCtx := errgroup.WithContext(ctx)
		group.SetLimit(concurrentManifests)
		for _, s := range wave {
			if s.backingOff {
				continue
			}
			before := last[s.outcome.id.Ordinal]
			if before.observed && a.watcher.isOutcomeCurrent(before, a.clock.Now()) && s.countPods == (before.pods != nil) {
				s.outcome = before
				continue
			}
			group.Go(func() error { return a.applyManifest(waveCtx, s, before, owner, strategy) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (a applier) applyManifest(
	ctx context.Context, s *step, before outcome, owner metav1.OwnerReference, strategy placementv1beta1.ApplyStrategy,
) error {
	now := a.clock.Now()
	s.outcome.failedTries = before.failedTries.addFailure(now) // reset on success
	if s.outcome.problem != nil {
		// Its kind was unknown; an earlier wave may have brought the definition.
		if err := s.resolveKind(a.engine); err != nil {
			return err
		}
		if s.outcome.problem != nil {
			s.explainMissingKind()
			return nil
		}
	}
	repairs := before.struggle.repairs
	wait := repairs.mustWait(now)
	contested := repairs.addRepair(now).isContested(now)
	result, problem, err := a.engine.Apply(ctx, apply.Request{
		Manifest: s.manifest, Owner: owner, Strategy: strategy, KeepContent: wait, Contested: contested,
		Done: s.runBefore.isDone(s.manifest, now), Answered: before.answered,
	})
	if err != nil {
		return err
	}
	s.outcome.struggle.repairs = repairs
	s.outcome.struggle.held = wait
	s.outcome.findings = result.Findings
	s.outcome.differences = result.Differences
	s.outcome.answered = result.Answered
	if problem != nil {
		s.outcome.recordProblem(problem, result.Object)
		s.outcome.struggle.contest = before.struggle.contest
		return nil
	}
	if result.Wrote {
		s.outcome.struggle.repairs = repairs.addRepair(now)
		if contested {
			a.metrics.countContestedRepair(s.manifest.Identifier)
		}
	}
	s.outcome.failedTries = failedTries{}
	s.outcome.recordObserved(result.Object)
	s.outcome.tellContest(before.struggle.contest, result.Overwritten, now)
	s.outcome.run = runOf(result.Object, s.manifest, s.runBefore)
	if result.Object == nil {
		s.outcome.availability, s.outcome.failing.why = s.outcome.run.availabilityOfGone()
		return nil
	}
	s.outcome.assessAvailability(result.Object, before, now)
	if s.countPods {
		s.outcome.pods = podCounter{a.member, a.clock}.countPods(ctx, result.Object, s.podsBefore(result.Object.GetUID()))
	}
	s.outcome.stateValues = readStateValues(result.Object, s.statePaths)
	if s.mirrorStatus {
		if s.outcome.objectStatus, err = encodeObjectStatus(result.Object); err != nil {
			return err
		}
	}
	return nil
}

// recordProblem records why a manifest is not applied. It is tried again, unless the problem lasts
// until the object changes.
func (o *outcome) recordProblem(problem *apply.Problem, live *unstructured.Unstructured) {
	o.problem = problem
	o.retry = true
	if live == nil {
		return
	}
	o.generation = live.GetGeneration()
	if problem.NoRetry {
		o.retry = false
		o.failedTries = failedTries{}
		o.recordObserved(live)
	}
}

// recordObserved records the version of an object that was read; nil if the object is absent.
func (o *outcome) recordObserved(live *unstructured.Unstructured) {
	o.observed = true
	if live != nil {
		o.version = objectVersion{uid: live.GetUID(), resourceVersion: live.GetResourceVersion()}
		o.generation = live.GetGeneration()
	}
}

// assessAvailability records whether an applied object is available. An object that still makes no progress is said to do so in the words
// of before: a Work is not written for the sake of words.
func (o *outcome) assessAvailability(live *unstructured.Unstructured, before outcome, now time.Time) {
	status, err := availability.Of(live)
	o.availability = status
	o.failing = failingOf(live, status, before, now)
	o.failing.why = availability.Failure(live)
	if status == availability.NotYet && err == nil {
		o.failing.why = availability.Stall(live)
		isSame := before.availability == status && before.generation == o.generation && before.version.uid == o.version.uid
		if o.failing.why != "" && before.failing.why != "" && isSame {
			o.failing.why = before.failing.why
		}
	}
	if err != nil {
		o.availabilityError = err.Error()
	}
}

func collectOutcomes(steps []*step) []outcome {
	out := make([]outcome, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.outcome)
	}
	return out
}

func noneToRetry(outcomes []outcome) bool {
	for _, o := range outcomes {
		if o.retry {
			return false
		}
	}
	return true
}
