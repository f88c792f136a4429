package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

const (
	// maxRehearsedFields is how many fields of an object are told.
	maxRehearsedFields = 20
	// maxRehearsedValue is how many bytes of a value are told.
	maxRehearsedValue = 128
	// maxRehearsedWords is how many bytes of a message are told.
	maxRehearsedWords = 512
)

// trier is a client whose writes are dry runs. It keeps the object that was read last, and whether its deletion was tried.
type trier struct {
	client.Client
	of      types.NamespacedName
	live    *unstructured.Unstructured
	deleted bool
}

// Get reads an object.
func (t *trier) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := t.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	if live, ok := object.(*unstructured.Unstructured); ok && key == t.of && !t.deleted {
		t.live = live.DeepCopy()
	}
	return nil
}

// Create tries to create an object.
func (t *trier) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return t.Client.Create(ctx, object, append(slices.Clone(options), client.DryRunAll)...)
}

// Update tries to replace an object.
func (t *trier) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return t.Client.Update(ctx, object, append(slices.Clone(options), client.DryRunAll)...)
}

// Patch tries to change an object. What a server-side apply takes from this agent itself is no conflict: the write before it, which was
// only tried, would have moved those fields.
func (t *trier) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	options = append(slices.Clone(options), client.DryRunAll)
	before := object.DeepCopyObject()
	err := t.Client.Patch(ctx, object, patch, options...)
	if patch.Type() != types.ApplyPatchType || !isConflictWithUs(err) {
		return err
	}
	again, ok := before.(client.Object)
	if !ok {
		return err
	}
	if err := t.Client.Patch(ctx, again, patch, append(options, client.ForceOwnership)...); err != nil {
		return err
	}
	if into, ok := object.(*unstructured.Unstructured); ok {
		into.Object = again.(*unstructured.Unstructured).Object
	}
	return nil
}

// isConflictWithUs reports whether a server-side apply has only met fields of this agent.
func isConflictWithUs(err error) bool {
	return isFieldConflict(err) && !slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool {
		return managerIn(strings.TrimPrefix(cause.Message, "conflict with ")) != FieldManager
	})
}

// Delete tries to delete an object.
func (t *trier) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	t.deleted = true
	return t.Client.Delete(ctx, object, append(slices.Clone(options), client.DryRunAll)...)
}

// Rehearser tells what an Engine would do, and writes nothing.
type Rehearser struct{ Engine *Engine }

// trying returns the engine with a client that writes nothing.
func (e Rehearser) trying(id placementv1beta1.WorkResourceIdentifier) (*Engine, *trier) {
	t := &trier{Client: e.Engine.Client, of: types.NamespacedName{Namespace: id.Namespace, Name: id.Name}}
	trial := *e.Engine
	trial.Client = t
	return &trial, t
}

// Rehearsal is what a manifest would do on the cluster.
type Rehearsal struct {
	fleetflowv1alpha1.RehearsedObject
	// Live is the object as it was seen; nil if there is none.
	Live *unstructured.Unstructured
	// Invalid is whether the API server finds fault with the object itself, whatever the namespace has.
	Invalid bool
}

// Rehearse tells what Apply would do, or Diff if differences are only reported: it is the same code with a client that only tries.
// Before is the manifest of the object that was applied last, nil if that is not known. An error means that the cluster could not be
// reached.
func (e Rehearser) Rehearse(ctx context.Context, req Request, before *unstructured.Unstructured) (Rehearsal, error) {
	r := rehearsed{req: req, before: before, out: Rehearsal{RehearsedObject: fleetflowv1alpha1.RehearsedObject{Object: req.Manifest.Identifier}}}
	if req.Manifest.Problem != nil {
		r.collectSecrets()
		return r.failed(req.Manifest.Problem), nil
	}
	trial, seen := e.trying(req.Manifest.Identifier)
	resource, problem, err := trial.Resource(req.Manifest.Identifier)
	if err != nil {
		return r.out, err
	}
	r.out.Object.Resource = resource.Resource
	if problem == nil {
		tell := trial.Apply
		if req.Strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff {
			tell = trial.Diff
		}
		if r.result, problem, err = tell(ctx, req); err != nil {
			return r.out, err
		}
		r.out.Live = seen.live
	}
	if r.out.Live != nil {
		r.out.Generation = r.out.Live.GetGeneration()
	}
	r.collectSecrets()
	if problem != nil {
		return r.failed(e.withServedVersion(problem, req.Manifest)), nil
	}
	return r.succeeded(), nil
}

// withServedVersion tells a kind that the cluster lacks from one that it serves in other versions only.
func (e Rehearser) withServedVersion(problem *Problem, m Manifest) *Problem {
	if problem.Reason != placementv1beta1.ReasonDecodingErred || m.Object == nil {
		return problem
	}
	mapping, err := e.Engine.Mapper.RESTMapping(m.Kind())
	if err != nil || mapping.GroupVersionKind.Version == m.Identifier.Version {
		return problem
	}
	told := *problem
	told.Message = fmt.Sprintf("The cluster serves %s in version %s, and not in %s", m.Kind(), mapping.GroupVersionKind.Version, m.Identifier.Version)
	return &told
}

// rehearsed is what is known of a manifest that was tried.
type rehearsed struct {
	req    Request
	before *unstructured.Unstructured
	result Result
	out    Rehearsal
	mask   masker
}

// failed describes a manifest that would not be applied.
func (r *rehearsed) failed(problem *Problem) Rehearsal {
	r.out.Outcome = fleetflowv1alpha1.RehearsalRefused
	r.out.By = problem.by
	words := problem.Message
	switch problem.Reason {
	case placementv1beta1.ReasonNotTakenOver, placementv1beta1.ReasonApplyConflictBetweenPlacements,
		placementv1beta1.ReasonApplyConflictWithOtherApplier:
		r.out.Outcome = fleetflowv1alpha1.RehearsalConflicts
	case placementv1beta1.ReasonFailedToTakeOver:
		if problem.cause == nil {
			r.out.Outcome = fleetflowv1alpha1.RehearsalConflicts
			r.tellFields(r.result.Findings.Report)
		}
	case placementv1beta1.ReasonFoundDrifts, placementv1beta1.ReasonFoundDriftsInDegradedMode:
		r.out.Outcome = fleetflowv1alpha1.RehearsalConflicts
		for _, detail := range r.result.Findings.Details {
			r.addDrifted(detail.Path)
		}
		r.out.By = r.holders()
	}
	if problem.cause != nil {
		r.out.Outcome, r.out.By, words = judgeRefusal(problem.cause)
		r.out.Invalid = r.out.By == byAPIServer && (apierrors.IsInvalid(problem.cause) || apierrors.IsBadRequest(problem.cause))
		if fields, _ := fixedFields(problem.cause); len(fields) > 0 {
			words = problem.Message
		}
	}
	r.out.By = cmp.Or(r.out.By, byAPIServer)
	r.say(words)
	return r.out
}

// holders names who holds the fields that have drifted.
func (r *rehearsed) holders() string {
	var all []string
	if r.out.Live == nil {
		return ""
	}
	for _, path := range r.out.Drifted {
		for _, manager := range holdersOf(r.out.Live, path) {
			if !slices.Contains(all, manager) {
				all = append(all, manager)
			}
		}
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(all, ", "), theCluster)
}

// onlyReported follows what differs if nothing would be written.
const onlyReported = "differences are only reported (ReportDiff): nothing is written"

// succeeded describes a manifest that would be applied, or compared.
func (r *rehearsed) succeeded() Rehearsal {
	r.out.Outcome = fleetflowv1alpha1.RehearsalSame
	onlyReports := r.req.Strategy.Type == placementv1beta1.ApplyStrategyTypeReportDiff
	switch {
	case onlyReports && r.out.Live == nil:
		r.out.Outcome = fleetflowv1alpha1.RehearsalChanges
		r.tellFields(compare.Absent())
		r.say("the cluster does not have the object; " + onlyReported)
	case onlyReports:
		r.tellChanges(r.result.Findings.Report)
		r.say(onlyReported)
	case r.result.Object == nil:
		r.say("the Job has run, and the cluster has removed it: it is not created again")
	case r.out.Live == nil:
		r.out.Outcome = fleetflowv1alpha1.RehearsalCreates
		r.say(r.result.Differences.Message)
	default:
		r.tellChanges(compare.Changes(r.mask.masked(r.result.Object), r.mask.masked(r.out.Live)))
		r.say(r.result.Differences.Message)
		if owners := OwnersOf(r.out.Live.GetOwnerReferences(), r.req.Owner); !owners.Mine && len(owners.Former) == 0 && r.out.Message == "" {
			r.say("the object is there and is taken over")
		}
	}
	return r.out
}

// tellChanges sorts the fields in which an object would differ from what it is: what the new manifest says as the one before it did has
// drifted.
func (r *rehearsed) tellChanges(report compare.Report) {
	if r.before == nil || r.out.Live == nil || !r.wasLastApplied() {
		r.tellFields(report)
	} else {
		changed := compare.Report{Omitted: report.Omitted}
		for _, detail := range report.Details {
			if isSaidAlike(r.before.Object, r.req.Manifest.Object.Object, detail.Path) {
				r.addDrifted(detail.Path)
			} else {
				changed.Details = append(changed.Details, detail)
			}
		}
		r.tellFields(changed)
	}
	if len(r.out.Fields) > 0 {
		r.out.Outcome = fleetflowv1alpha1.RehearsalChanges
	}
}

// wasLastApplied reports whether the object is what the manifest before was applied to.
func (r *rehearsed) wasLastApplied() bool {
	m := Manifest{Object: r.before}
	hash, err := hashObject(r.before)
	if err != nil {
		return false
	}
	m.Hash = hash
	return isLastAppliedTo(r.out.Live, m)
}

// isSaidAlike reports whether two manifests say the same of a field, or of the last field above it that both have. It is pure.
func isSaidAlike(a, b any, pointer string) bool {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		x, inA := fieldAt(a, token)
		y, inB := fieldAt(b, token)
		if !inA && !inB {
			break
		}
		if !inA || !inB {
			return false
		}
		a = x
		b = y
	}
	return compare.Same(a, b)
}

// fieldAt returns what a token of a JSON pointer leads to.
func fieldAt(value any, token string) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		field, found := v[strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")]
		return field, found
	case []any:
		at := 0
		for _, digit := range token {
			if !unicode.IsDigit(digit) || at > len(v) {
				return nil, false
			}
			at = at*10 + int(digit-'0')
		}
		if at < len(v) {
			return v[at], true
		}
	}
	return nil, false
}

func (r *rehearsed) tellFields(report compare.Report) {
	told := min(len(report.Details), maxRehearsedFields)
	for _, detail := range report.Details[:told] {
		r.out.Fields = append(r.out.Fields, fleetflowv1alpha1.RehearsedField{
			Path: clusterv1beta1.CutText(detail.Path, maxRehearsedWords), From: r.valueToTell(detail.ValueInMember), To: r.valueToTell(detail.ValueInHub),
		})
	}
	r.out.OmittedFields = int32(min(len(report.Details)-told+report.Omitted, 1<<30)) //nolint:gosec // it is bounded
}

// valueToTell returns a value as it is told: not if it has a part of what is hidden.
func (r *rehearsed) valueToTell(value string) string {
	value = withoutMarks(value)
	if r.mask.hasPartIn(value) {
		return compare.Redacted
	}
	return clusterv1beta1.CutText(value, maxRehearsedValue)
}

// collectSecrets finds what must not be told.
func (r *rehearsed) collectSecrets() {
	for _, object := range []*unstructured.Unstructured{r.req.Manifest.Object, r.out.Live, r.before} {
		if object == nil {
			continue
		}
		r.mask.masked(object)
		if isSecret(object) {
			for _, value := range slices.Concat(scalarTexts(object.Object["data"]), scalarTexts(object.Object["stringData"])) {
				r.mask.values = append(r.mask.values, spellings(value)...)
			}
		}
	}
}

func (r *rehearsed) addDrifted(path string) {
	if len(r.out.Drifted) < maxRehearsedFields {
		r.out.Drifted = append(r.out.Drifted, clusterv1beta1.CutText(path, maxRehearsedWords))
	}
}

// say sets the message, without the values of Secrets and of what is named like one.
func (r *rehearsed) say(words string) {
	if words == "" {
		return
	}
	words = redactSecrets(words, r.req.Manifest.Object, r.out.Live, r.before)
	r.out.Message = OneLine(hideValues(words, r.mask.values))
}

// OneLine returns a text as it is told in an answer: without line breaks and other control characters, and cut off.
func OneLine(text string) string {
	clean := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	return clusterv1beta1.CutText(strings.Join(strings.Fields(clean), " "), maxRehearsedWords)
}

// RehearseRemoval tells what Remove would do with an object that was applied for the AppliedWork that owner points to. It returns nil if
// there is nothing of that, or the object stays: it has other owners, or the cluster does not let the fleet place it. That a removal is
// refused is said of it, and keeps nothing from being applied.
func (e Rehearser) RehearseRemoval(ctx context.Context, id placementv1beta1.WorkResourceIdentifier, owner metav1.OwnerReference,
	dependents metav1.DeletionPropagation) (*fleetflowv1alpha1.RehearsedObject, error) {
	trial, seen := e.trying(id)
	_, err := trial.Remove(ctx, id, owner, dependents)
	if err != nil && (isUnreachable(err) || seen.live == nil) {
		return nil, err
	}
	if seen.live == nil || !OwnersOf(seen.live.GetOwnerReferences(), owner).Mine {
		return nil, nil
	}
	out := &fleetflowv1alpha1.RehearsedObject{Object: id, Outcome: fleetflowv1alpha1.RehearsalRemoves, Generation: seen.live.GetGeneration()}
	switch {
	case err != nil:
		_, by, words := judgeRefusal(err)
		mask := masker{}
		mask.masked(seen.live)
		out.By = by
		out.Message = OneLine("the removal is refused: " + hideValues(redactSecrets(words, seen.live), mask.values))
	case seen.live.GetDeletionTimestamp() != nil:
		out.Message = OneLine("the object is being removed already" + describeFinalizers(seen.live))
	case seen.deleted:
		out.Message = OneLine(strings.TrimPrefix(describeFinalizers(seen.live), "; "))
	default:
		return nil, nil
	}
	return out, nil
}

// describeFinalizers says who has to let an object go.
func describeFinalizers(object *unstructured.Unstructured) string {
	if len(object.GetFinalizers()) == 0 {
		return ""
	}
	return "; it is gone once these finalizers are: " + strings.Join(object.GetFinalizers(), ", ")
}
