package work

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// pass walks once over a Work: apply what is due, remove what is no longer in it, report, and
// note down what was found. An error means that hub or member could not be reached; what is
// wrong with a manifest goes into the report.
func (r *Reconciler) pass(ctx context.Context, work *placementv1beta1.Work, mem *memory) error {
	strategy := strategyOf(work)
	manifests := apply.Decode(work.Spec.Workload.Manifests)
	now := way{strategy: strategy, mirrored: mirrors(work)}
	full := r.Clock.Since(mem.checked) >= resync || !now.is(mem.way)
	known := map[int]outcome{}
	if !full {
		known = mem.known(work.Generation, manifests)
	}
	steps, err := r.plan(manifests, known, r.memories.takeStirred(work.Name))
	if err != nil {
		return err
	}
	for _, s := range steps {
		s.mirrored = now.mirrored
	}
	carryOut := r.carryOut
	if strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff {
		carryOut = r.diff
	}
	if err := carryOut(ctx, work, mem, steps, known, strategy); err != nil {
		return err
	}
	mem.outcomes, mem.generation, mem.way = outcomesOf(steps), work.Generation, now
	mem.settled = settled(mem.outcomes)
	r.memories.await(work.Name, mem.outcomes)
	if full {
		mem.checked = r.Clock.Now()
	}
	return nil
}

// carryOut is the part of a pass over a Work that is to be applied.
func (r *Reconciler) carryOut(ctx context.Context, work *placementv1beta1.Work, mem *memory, steps []*step, known map[int]outcome, strategy placementv1beta1.ApplyStrategy) error {
	applied, err := r.ensureAppliedWork(ctx, work, mem)
	if err != nil {
		return err
	}
	if mem.owner != applied.UID {
		clear(known) // what was found of objects is not of ours: each must get its owner
		mem.owner = applied.UID
	}
	r.watch(work.Name, steps, applied, lacking(mem.outcomes)...)
	if err := r.announce(ctx, mem, steps); err != nil {
		return err
	}
	owner := apply.OwnerReference(mem.applied.Name, mem.applied.UID)
	if err := r.applyAll(ctx, steps, known, owner, strategy); err != nil {
		return err
	}
	left, pruneErr := r.prune(ctx, work, mem, steps, owner)

	if err := r.writeReport(ctx, work, mem, outcomesOf(steps), report); err != nil {
		return err
	}
	if pruneErr != nil {
		return pruneErr
	}
	if err := r.record(ctx, mem, steps, left); err != nil {
		return err
	}
	mem.leaving = len(left) > 0
	return nil
}

// writeReport sums up what became of the manifests, with what the objects say about themselves if
// that is wanted, and tells the hub.
func (r *Reconciler) writeReport(ctx context.Context, work *placementv1beta1.Work, mem *memory, outcomes []outcome,
	sum func(int64, []outcome, placementv1beta1.WorkStatus, metav1.Time) placementv1beta1.WorkStatus,
) error {
	previous := r.previous(work, mem)
	status := sum(work.Generation, outcomes, previous, r.now())
	if mirrors(work) {
		mem.mirroring.mirror(&status, outcomes, previous, r.now())
	}
	return r.writeStatus(ctx, work, mem, status)
}

// step is a manifest on its way through a pass.
type step struct {
	manifest apply.Manifest
	outcome  outcome
	// due is whether the manifest is to be applied: it could be read and is no duplicate.
	due bool
	// resting is whether it has failed and is not tried again yet.
	resting bool
	// mirrored is whether the object's own status is to be reported.
	mirrored bool
	// definition is the step that brings the kind of the manifest, if the cluster lacks it and
	// the same Work has it.
	definition *step
}

// plan looks up what the cluster calls the kinds of the manifests. Those that failed and are not
// to be tried again yet stay as they are.
func (r *Reconciler) plan(manifests []apply.Manifest, known map[int]outcome, stirred map[object]bool) ([]*step, error) {
	steps := make([]*step, 0, len(manifests))
	for _, m := range manifests {
		s := &step{manifest: m, due: m.Problem == nil}
		s.outcome = outcome{id: m.Identifier, hash: m.Hash, problem: m.Problem}
		before, ok := known[m.Identifier.Ordinal]
		if ok {
			before = before.stirredBy(stirred)
			known[m.Identifier.Ordinal] = before
		}
		switch {
		case !s.due:
		case before.rests(r.Clock.Now()):
			s.outcome, s.resting = before, true
		default:
			if err := r.resolve(s); err != nil {
				return nil, err
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func (r *Reconciler) resolve(s *step) error {
	gvr, problem, err := r.engine.Resource(s.manifest.Identifier)
	if err != nil {
		return err
	}
	s.outcome.gvr, s.outcome.problem, s.outcome.retry = gvr, problem, problem != nil
	s.outcome.id.Resource = gvr.Resource
	return nil
}

// watch declares every object the pass is about, before any of them is touched, and further ones
// it depends on.
func (r *Reconciler) watch(work string, steps []*step, applied *placementv1beta1.AppliedWork, objects ...object) {
	for _, s := range steps {
		if s.due && s.outcome.gvr.Resource != "" {
			objects = append(objects, s.outcome.object())
		}
	}
	for _, listed := range applied.Status.AppliedResources {
		if gvr, ok := resourceOf(listed.WorkResourceIdentifier); ok {
			objects = append(objects, object{gvr: gvr, name: types.NamespacedName{Namespace: listed.Namespace, Name: listed.Name}})
		}
	}
	r.watcher.Want(work, objects)
}

func resourceOf(id placementv1beta1.WorkResourceIdentifier) (schema.GroupVersionResource, bool) {
	return schema.GroupVersionResource{Group: id.Group, Version: id.Version, Resource: id.Resource}, id.Resource != ""
}

// applyAll applies wave after wave, the manifests of a wave in parallel. A manifest that
// fails keeps no other from being applied.
func (r *Reconciler) applyAll(ctx context.Context, steps []*step, known map[int]outcome, owner metav1.OwnerReference, strategy placementv1beta1.ApplyStrategy) error {
	due := make([]*step, 0, len(steps))
	for _, s := range steps {
		if s.due {
			due = append(due, s)
		}
	}
	for _, wave := range apply.Waves(due, func(s *step) schema.GroupKind { return s.manifest.Kind() }) {
		if err := r.awaitKinds(ctx, wave, due); err != nil {
			return err
		}
		group, waveCtx := errgroup.WithContext(ctx)
		group.SetLimit(concurrentManifests)
		for _, s := range wave {
			if s.resting {
				continue
			}
			before := known[s.outcome.id.Ordinal]
			if before.looked && r.unchanged(before) {
				s.outcome = before
				continue
			}
			group.Go(func() error { return r.applyOne(waveCtx, s, before, owner, strategy) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) applyOne(ctx context.Context, s *step, before outcome, owner metav1.OwnerReference, strategy placementv1beta1.ApplyStrategy) error {
	now := r.Clock.Now()
	s.outcome.tries = before.tries.another(now) // unless it goes well
	if s.outcome.problem != nil {
		// Its kind was unknown; an earlier wave may have brought the definition.
		if err := r.resolve(s); err != nil {
			return err
		}
		if s.outcome.problem != nil {
			s.blame()
			return nil
		}
	}
	repairs := before.repairs
	hold := repairs.hold(now)
	result, problem, err := r.engine.Apply(ctx, apply.Request{Manifest: s.manifest, Owner: owner, Strategy: strategy, Hold: hold})
	if err != nil {
		return err
	}
	s.outcome.repairs, s.outcome.held = repairs, hold
	s.outcome.findings = result.Findings
	if problem != nil {
		s.outcome.refused(problem, result.Object)
		return nil
	}
	if result.Wrote {
		s.outcome.repairs = repairs.another(now)
	}
	s.outcome.tries = tries{}
	s.outcome.saw(result.Object)
	s.outcome.judge(result.Object)
	if s.mirrored {
		if s.outcome.excerpt, err = excerpt(result.Object); err != nil {
			return err
		}
	}
	return nil
}

// refused notes down why a manifest is not applied. It is tried again, unless the problem stands
// as long as the object does.
func (o *outcome) refused(problem *apply.Problem, live *unstructured.Unstructured) {
	o.problem, o.retry = problem, true
	if problem.Stands && live != nil {
		o.retry, o.tries = false, tries{}
		o.saw(live)
	}
}

// saw notes down at which version an object was seen; nil if it is absent.
func (o *outcome) saw(live *unstructured.Unstructured) {
	o.looked = true
	if live != nil {
		o.seen = sighting{uid: live.GetUID(), resourceVersion: live.GetResourceVersion()}
		o.generation = live.GetGeneration()
	}
}

// judge fills in whether an applied object is available.
func (o *outcome) judge(live *unstructured.Unstructured) {
	verdict, err := availability.Of(live)
	o.verdict = verdict
	if err != nil {
		o.failure = err.Error()
	}
}

func outcomesOf(steps []*step) []outcome {
	out := make([]outcome, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.outcome)
	}
	return out
}

func settled(outcomes []outcome) bool {
	for _, o := range outcomes {
		if o.retry {
			return false
		}
	}
	return true
}

func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Clock.Now()) }

// previous is the status as it stands on the hub: what this agent wrote last, which the cache
// may not have yet, or what an earlier agent wrote.
func (r *Reconciler) previous(work *placementv1beta1.Work, mem *memory) placementv1beta1.WorkStatus {
	if mem.status != nil {
		return *mem.status
	}
	return work.Status
}

// writeStatus writes a status, trimmed if it is too large, if it says anything new. The status is replaced as a whole and
// only on the Work it is about; there is no other writer, so no version is needed.
func (r *Reconciler) writeStatus(ctx context.Context, work *placementv1beta1.Work, mem *memory, status placementv1beta1.WorkStatus) error {
	room, err := roomFor(work)
	if err != nil {
		return err
	}
	previous := r.previous(work, mem)
	status = trim(status, previous, room, work.Generation, r.now())
	if equality.Semantic.DeepEqual(previous, status) {
		mem.status = &status
		return nil
	}
	content := map[string]any{"conditions": status.Conditions, "manifestConditions": status.ManifestConditions}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": work.UID}, "status": content})
	if err != nil {
		return fmt.Errorf("encoding the status of Work %s: %w", work.Name, err)
	}
	target := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	err = r.Hub.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, data), client.FieldOwner(apply.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Work %s: %w", work.Name, err)
	}
	log.FromContext(ctx).V(1).Info("Reported on the Work", "generation", work.Generation)
	mem.status = &status
	r.Metrics.reported(&status)
	return nil
}
