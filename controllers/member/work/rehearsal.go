package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// Change is what Works of a placement would be on the cluster.
type Change struct {
	Strategy *placementv1beta1.ApplyStrategy
	Works    []ChangedWork
	// Removed are the names of Works that would be gone, with what was applied for them.
	Removed []string
	// KeepRemoved leaves on the cluster what the Works would not have any more.
	KeepRemoved bool
}

// ChangedWork is a Work as a change would leave it.
type ChangedWork struct {
	Name      string
	Manifests []placementv1beta1.Manifest
}

// Rehearser tells what a change would do on the cluster, and writes nothing.
type Rehearser struct {
	// Options are those by which it reads. The clients should let no write pass that is not a dry run.
	Options Options
}

// unknownUID stands for the UID of an AppliedWork that does not exist yet.
const unknownUID = types.UID("00000000-0000-0000-0000-000000000000")

// words of objects that could not be looked at.
const (
	outOfTime     = "there was no time to look at it before the deadline of the question"
	noAnswerByAPI = "the cluster's API server gave no answer"
)

// Rehearse returns what a change would do to each object, in the order in which they would be applied, and then to each that would be
// removed, which is said of nothing else. What could not be found out until ctx ends is unknown.
func (h *Rehearser) Rehearse(ctx context.Context, change Change) []fleetflowv1alpha1.RehearsedObject {
	p := h.newRehearsal(change)
	for _, work := range change.Works {
		p.rehearseWork(ctx, work)
	}
	p.countQuotas(ctx)
	out := make([]fleetflowv1alpha1.RehearsedObject, 0, len(p.seen))
	for _, s := range p.seen {
		out = append(out, s.RehearsedObject)
	}
	if !change.KeepRemoved && p.strategy.Type != placementv1beta1.ApplyStrategyTypeReportDiff { // which removes nothing
		for _, work := range change.Works {
			out = append(out, p.rehearseDropped(ctx, work.Name, endDropped)...)
		}
	}
	for _, name := range change.Removed {
		out = append(out, p.rehearseDropped(ctx, name, endDeleted)...)
	}
	return out
}

// rehearsal is one change that is looked at.
type rehearsal struct {
	departureFinder
	clock    clock.PassiveClock
	pruning  PruningOptions
	tries    apply.Rehearser
	strategy placementv1beta1.ApplyStrategy
	// wanted are the objects that the change has manifests of.
	wanted map[apply.Key]bool
	// definitions are those among them, by the kind that they define.
	definitions map[schema.GroupKind]*unstructured.Unstructured
	seen        []seenObject
	// failed are the Works of which a manifest would not be applied, which keeps what leaves them.
	failed map[string]bool
	// away is why the rest is not looked at.
	away string
}

// seenObject is a manifest and what it would do.
type seenObject struct {
	apply.Rehearsal
	work string
}

func (h *Rehearser) newRehearsal(change Change) *rehearsal {
	o := h.Options
	p := &rehearsal{
		clock: o.Clock, pruning: o.Pruning, strategy: rules.EffectiveApplyStrategy(change.Strategy), wanted: map[apply.Key]bool{}, failed: map[string]bool{},
		definitions: map[schema.GroupKind]*unstructured.Unstructured{},
	}
	keys := map[string][]apply.Key{}
	for _, name := range change.Removed {
		keys[name] = nil
	}
	for _, work := range change.Works {
		for _, m := range apply.Decode(work.Manifests) {
			key := apply.KeyOf(m.Identifier)
			keys[work.Name] = append(keys[work.Name], key)
			p.wanted[key] = true
			if m.Object != nil && key.GroupKind() == definitionKind {
				p.definitions[definedBy(m.Object)] = m.Object
			}
		}
	}
	rivals := &rivalFinder{hub: o.Hub, member: o.Member, namespace: o.Namespace, change: keys}
	p.departureFinder = departureFinder{
		engine: &apply.Engine{Client: o.Member, Mapper: o.Mapper, Rivals: rivals, Veto: o.Veto}, rivals: rivals,
		contents: &contentLister{discovery: o.Discovery, metadata: o.Metadata}, member: o.Member, mapper: o.Mapper, namespace: o.Namespace,
	}
	p.tries = apply.Rehearser{Engine: p.engine}
	return p
}

// definedBy returns the kind that a CustomResourceDefinition defines.
func definedBy(definition *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// rehearseWork looks at the manifests of a Work, in the order in which they would be applied.
func (p *rehearsal) rehearseWork(ctx context.Context, work ChangedWork) {
	manifests := apply.Decode(work.Manifests)
	p.engine.Veto.MarkRefused(manifests)
	applied := p.readApplied(ctx, work.Name)
	before := p.manifestsBefore(ctx, work.Name)
	runs := map[apply.Key]jobRun{}
	for _, item := range applied.Status.AppliedResources {
		runs[apply.KeyOf(item.WorkResourceIdentifier)] = jobRun{of: item.RunOf, result: item.RunResult}
	}
	owner := apply.OwnerReference(work.Name, cmp.Or(applied.UID, unknownUID))
	for _, m := range slices.Concat(apply.Waves(manifests, apply.Manifest.Kind)...) {
		key := apply.KeyOf(m.Identifier)
		request := apply.Request{Manifest: m, Owner: owner, Strategy: p.strategy, Done: runs[key].isDone(m, p.clock.Now())}
		s := seenObject{Rehearsal: p.rehearseManifest(ctx, request, before[key]), work: work.Name}
		p.failed[work.Name] = p.failed[work.Name] || s.Outcome == fleetflowv1alpha1.RehearsalRefused
		p.seen = append(p.seen, s)
	}
}

// readApplied returns the AppliedWork of a Work; an empty one if there is none, or it cannot be read.
func (p *rehearsal) readApplied(ctx context.Context, name string) *placementv1beta1.AppliedWork {
	applied := &placementv1beta1.AppliedWork{}
	if p.isAway(ctx) {
		return applied
	}
	if err := p.member.Get(ctx, types.NamespacedName{Name: name}, applied); client.IgnoreNotFound(err) != nil {
		p.giveUp(ctx, fmt.Sprintf("AppliedWork %s of the cluster cannot be read: %v", name, err))
	}
	return applied
}

// manifestsBefore returns the manifests that a Work has now.
func (p *rehearsal) manifestsBefore(ctx context.Context, name string) map[apply.Key]*unstructured.Unstructured {
	out := map[apply.Key]*unstructured.Unstructured{}
	work, err := p.rivals.readWork(ctx, name)
	if work == nil || err != nil {
		return out // then drift is not told apart from change
	}
	for _, m := range apply.Decode(work.Spec.Workload.Manifests) {
		if m.Object != nil {
			out[apply.KeyOf(m.Identifier)] = m.Object
		}
	}
	return out
}

// isAway reports whether nothing more can be found out.
func (p *rehearsal) isAway(ctx context.Context) bool {
	if p.away == "" && ctx.Err() != nil {
		p.away = outOfTime
	}
	return p.away != ""
}

func (p *rehearsal) giveUp(ctx context.Context, why string) {
	if !p.isAway(ctx) {
		p.away = apply.OneLine(why)
	}
}

func (p *rehearsal) rehearseManifest(ctx context.Context, request apply.Request, before *unstructured.Unstructured) apply.Rehearsal {
	unknown := apply.Rehearsal{RehearsedObject: fleetflowv1alpha1.RehearsedObject{
		Object: request.Manifest.Identifier, Outcome: fleetflowv1alpha1.RehearsalUnknown,
	}}
	if p.isAway(ctx) {
		unknown.Message = p.away
		return unknown
	}
	found, err := p.tries.Rehearse(ctx, request, before)
	if err != nil {
		p.giveUp(ctx, noAnswerByAPI)
		unknown.Message = p.away
		return unknown
	}
	if found.Outcome != fleetflowv1alpha1.RehearsalRefused {
		return found
	}
	return p.softenRefusal(ctx, request, found)
}

// softenRefusal looks at what would have been applied before an object that is refused: what that brings may be what is missing.
func (p *rehearsal) softenRefusal(ctx context.Context, request apply.Request, found apply.Rehearsal) apply.Rehearsal {
	namespace := apply.Key{Kind: "Namespace", Name: found.Object.Namespace}
	if p.wanted[namespace] && lacksNamespace(found.RehearsedObject) {
		return p.rehearseElsewhere(ctx, request, found)
	}
	earlier := make([]fleetflowv1alpha1.RehearsedObject, 0, len(p.seen))
	for _, s := range p.seen {
		earlier = append(earlier, s.RehearsedObject)
	}
	return softened(found, p.definitions[apply.KindOf(found.Object)], earlier)
}

// trialNamespace is where an object is tried whose own Namespace comes with the same change. Every cluster has it.
const trialNamespace = metav1.NamespaceDefault

// rehearseElsewhere judges an object whose Namespace comes with the same change: what the API server finds wrong with the object itself
// is wrong everywhere. What it takes elsewhere would be created; what admission says of the Namespace itself is not known, and told.
func (p *rehearsal) rehearseElsewhere(ctx context.Context, request apply.Request, found apply.Rehearsal) apply.Rehearsal {
	elsewhere := request
	elsewhere.Manifest.Object = request.Manifest.Object.DeepCopy()
	elsewhere.Manifest.Object.SetNamespace(trialNamespace)
	elsewhere.Manifest.Identifier.Namespace = trialNamespace
	tried, err := p.tries.Rehearse(ctx, elsewhere, nil)
	if err == nil && tried.Outcome == fleetflowv1alpha1.RehearsalRefused && tried.Invalid && tried.Live == nil {
		found.By = tried.By
		found.Message = tried.Message
		return found
	}
	if err == nil && tried.Outcome == fleetflowv1alpha1.RehearsalCreates {
		found.Outcome = tried.Outcome
		found.By = ""
		found.Message = fmt.Sprintf("tried in Namespace %s, as Namespace %s comes with the same change", trialNamespace, found.Object.Namespace)
		return found
	}
	return comesAfter(found, "Namespace "+found.Object.Namespace)
}

// countQuotas finds objects that would be refused because those before them use up a quota: each alone would be taken.
func (p *rehearsal) countQuotas(ctx context.Context) {
	created := map[string][]int{}
	for i, s := range p.seen {
		if s.Outcome == fleetflowv1alpha1.RehearsalCreates && s.Object.Namespace != "" {
			created[s.Object.Namespace] = append(created[s.Object.Namespace], i)
		}
	}
	for namespace, indexes := range created {
		if len(indexes) < 2 || p.isAway(ctx) {
			continue
		}
		quotas := &corev1.ResourceQuotaList{}
		if err := p.member.List(ctx, quotas, client.InNamespace(namespace)); err != nil {
			continue // each alone was tried
		}
		ids := make([]placementv1beta1.WorkResourceIdentifier, 0, len(indexes))
		for _, i := range indexes {
			ids = append(ids, p.seen[i].Object)
		}
		for at, quota := range overQuota(quotas.Items, ids) {
			s := &p.seen[indexes[at]]
			s.Outcome = fleetflowv1alpha1.RehearsalRefused
			s.By = "ResourceQuota " + quota
			s.Message = "the objects of the change that come before it use the quota up"
			p.failed[s.work] = true
		}
	}
}

// rehearseDropped looks at what was applied for a Work and would leave it.
func (p *rehearsal) rehearseDropped(ctx context.Context, name string, because end) []fleetflowv1alpha1.RehearsedObject {
	applied := p.readApplied(ctx, name)
	if applied.UID == "" || applied.Spec.WorkNamespace != p.namespace {
		return nil
	}
	work, err := p.rivals.readWork(ctx, name)
	if work == nil || err != nil {
		work = &placementv1beta1.Work{}
	}
	why := ending{
		work: name, end: because, abandon: abandonsRemoved(work), dependents: p.pruning.of(work).Propagation,
		owner: apply.OwnerReference(applied.Name, applied.UID),
	}
	if because == endDeleted {
		why.abandon = abandonsObjects(work)
	}
	items := slices.DeleteFunc(slices.Clone(applied.Status.AppliedResources), func(item placementv1beta1.AppliedResourceMeta) bool {
		return p.wanted[apply.KeyOf(item.WorkResourceIdentifier)]
	})
	if len(items) == 0 {
		return nil
	}
	found, err := p.findClaimsOn(ctx, why, items)
	if err != nil {
		p.giveUp(ctx, "what other Works want cannot be found out: "+err.Error())
	}
	var out []fleetflowv1alpha1.RehearsedObject
	mine := uidsOf(items)
	kindOf := func(item placementv1beta1.AppliedResourceMeta) schema.GroupKind {
		return apply.KindOf(item.WorkResourceIdentifier)
	}
	for _, item := range slices.Concat(apply.ReversedWaves(items, kindOf)...) {
		if ended := p.rehearseEnd(ctx, why, item, found, mine); ended != nil {
			out = append(out, *ended)
		}
	}
	return out
}

// rehearseEnd describes an object that leaves a Work and would be removed; nil if it would not be.
func (p *rehearsal) rehearseEnd(ctx context.Context, why ending, item placementv1beta1.AppliedResourceMeta, found claims, mine map[types.UID]bool,
) *fleetflowv1alpha1.RehearsedObject {
	if p.isAway(ctx) {
		return unknownEnd(item, p.away)
	}
	out, err := p.tryEnd(ctx, why, item, found, mine)
	switch {
	case err != nil && ctx.Err() != nil:
		p.giveUp(ctx, outOfTime)
		return unknownEnd(item, p.away)
	case err != nil:
		return unknownEnd(item, err.Error())
	case out != nil && out.Outcome == fleetflowv1alpha1.RehearsalRemoves && why.end == endDropped && p.failed[why.work]:
		out.Message = apply.OneLine("it stays until all manifests of the same Work are applied. " + out.Message)
	}
	return out
}

func unknownEnd(item placementv1beta1.AppliedResourceMeta, why string) *fleetflowv1alpha1.RehearsedObject {
	return &fleetflowv1alpha1.RehearsedObject{
		Object: item.WorkResourceIdentifier, Outcome: fleetflowv1alpha1.RehearsalRemoves,
		Message: apply.OneLine("whether it can be removed is unknown: " + why),
	}
}

func (p *rehearsal) tryEnd(ctx context.Context, why ending, item placementv1beta1.AppliedResourceMeta, found claims, mine map[types.UID]bool,
) (*fleetflowv1alpha1.RehearsedObject, error) {
	id := item.WorkResourceIdentifier
	id.Ordinal = 0 // it is in no manifest
	d, _, err := p.findDeparture(ctx, why, item, found, mine)
	if err != nil {
		return nil, err
	}
	switch decideFate(d) {
	case fateHandOver, fateRelease:
		return nil, nil
	case fateHold:
		return &fleetflowv1alpha1.RehearsedObject{
			Object: id, Outcome: fleetflowv1alpha1.RehearsalRemoves, Message: apply.OneLine(heldMessage(apply.KeyOf(id), d.residents)),
		}, nil
	default:
		return p.tries.RehearseRemoval(ctx, id, why.owner, why.dependents)
	}
}

// lacksNamespace reports whether the API server refuses an object as its Namespace is not there.
func lacksNamespace(o fleetflowv1alpha1.RehearsedObject) bool {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, o.Object.Namespace)
	return o.Message == missing.Error()
}
