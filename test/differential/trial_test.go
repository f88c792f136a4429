//go:build integration

package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/compare"
)

// step is one manifest and how it is applied.
type step struct {
	Changes []change
	Way     placementv1beta1.ApplyStrategyType
	When    placementv1beta1.WhenToApplyType
	// Restored is whether the API server does not know any more whose fields are whose when the step is made.
	Restored bool
	// Held is whether another client holds the annotation with the manifest as last applied when the step is made.
	Held bool
}

// trial is a series of manifests of one object. The first is the rich object of a kind with the changes of the first step, each
// further one has the changes of the next step besides.
type trial struct {
	Kind  int
	Prior string
	Steps []step
}

// What creates the object before the agent comes, with the first manifest.
const (
	byNobody  = "nobody"
	byKubectl = "kubectl apply"
	byHelm    = "a plain create"
	byFlux    = "server-side apply of another manager"
)

var priors = []string{byNobody, byNobody, byNobody, byNobody, byKubectl, byHelm, byFlux}

var ways = []placementv1beta1.ApplyStrategyType{placementv1beta1.ApplyStrategyTypeClientSideApply, placementv1beta1.ApplyStrategyTypeServerSideApply}

func (t trial) describe(kinds []map[string]any) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%v, created by %s", kinds[t.Kind]["kind"], t.Prior)
	for i, s := range t.Steps {
		fmt.Fprintf(&out, "\n  manifest %d by %s (%s%s): %v", i, s.Way, s.When, map[bool]string{true: ", its base held by another"}[s.Held], s.Changes)
	}
	return out.String()
}

// manifest is the manifest of a step.
func (t trial) manifest(kinds []map[string]any, upTo int, namespace, name string) map[string]any {
	rich := kinds[t.Kind]
	out := runtime.DeepCopyJSON(rich)
	for _, s := range t.Steps[:upTo+1] {
		for _, c := range s.Changes {
			c.applyTo(out, rich)
		}
	}
	put(out, namespace, name)
	if _, group, _ := strings.Cut(name, "."); rich["kind"] == definition && group != "" {
		if spec, ok := out["spec"].(map[string]any); ok && spec["group"] == rich["spec"].(map[string]any)["group"] {
			spec["group"] = group
		}
	}
	return out
}

// put gives a manifest its place.
func put(manifest map[string]any, namespace, name string) {
	metadata, ok := manifest["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		manifest["metadata"] = metadata
	}
	metadata["name"] = name
	if namespace != "" {
		metadata["namespace"] = namespace
	}
}

// recorder notes the writes that a client sends, and what the API server refuses of them and of dry runs.
type recorder struct {
	next     http.RoundTripper
	mu       sync.Mutex
	writes   []string
	refusals []refusal
}

// refusal is what the API server says of a request that it refuses.
type refusal struct {
	request string
	status  metav1.Status
}

func (r refusal) String() string {
	return fmt.Sprintf("%s: %d %s: %s", r.request, r.status.Code, r.status.Reason, r.status.Message)
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return r.next.RoundTrip(request)
	}
	body := ""
	if request.GetBody != nil {
		if reader, err := request.GetBody(); err == nil {
			data, _ := io.ReadAll(io.LimitReader(reader, 2000))
			body = string(data)
		}
	}
	sent := fmt.Sprintf("%s %s %s %s", request.Method, request.Header.Get("Content-Type"), request.URL, body)
	if request.URL.Query().Get("dryRun") == "" {
		r.mu.Lock()
		r.writes = append(r.writes, sent)
		r.mu.Unlock()
	}
	response, err := r.next.RoundTrip(request)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	data, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	said := refusal{request: sent}
	if json.Unmarshal(data, &said.status) != nil {
		said.status = metav1.Status{Code: int32(response.StatusCode), Message: string(data)}
	}
	r.mu.Lock()
	r.refusals = append(r.refusals, said)
	r.mu.Unlock()
	return response, err
}

// since returns the writes since a number of them.
func (r *recorder) since(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.writes[n:]...)
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.writes)
}

// takeRefusals returns the refusals since it was last asked.
func (r *recorder) takeRefusals() []refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.refusals
	r.refusals = nil
	return out
}

// unfitTexts are in the words of API servers of objects that have a value of another type than their field, by the code of the answer. What
// they cannot read as a server-side apply, such as two items of a list with the same key, they call an error of their own.
var unfitTexts = map[int32][]string{
	http.StatusBadRequest:          {"cannot be handled as a"},
	http.StatusInternalServerError: {"failed to create typed", "failed to convert new object"},
}

// isUnfit reports whether the API server refuses an object for what it says: a value that fails validation or has another type, a field
// that must not change, or too much of it. Any other refusal, such as that of a patch that cannot be read, is of how the agent sends it.
func (r refusal) isUnfit() bool {
	switch r.status.Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge:
		return true
	case metav1.StatusReasonConflict: // the API server has written the status of the definition, and the agent tries again
		return strings.Contains(r.request, "/customresourcedefinitions/")
	}
	return slices.ContainsFunc(unfitTexts[r.status.Code], func(text string) bool { return strings.Contains(r.status.Message, text) })
}

// requireUnfit returns a refusal since it was last asked that is not for what the object says, if there is any.
func (w *worker) requireUnfit() string {
	for _, said := range w.writes.takeRefusals() {
		w.tally[fmt.Sprintf("refusals with the code %d", said.status.Code)]++
		if !said.isUnfit() {
			return "the API server refuses what it is sent, and not for what the manifest says: " + said.String()
		}
	}
	return ""
}

// worker makes one trial after another.
type worker struct {
	kinds  []map[string]any
	client client.Client
	writes *recorder
	engine *apply.Engine
	// tally counts what became of the steps.
	tally map[string]int
	// counts are of each kind what was drawn and what of it was judged.
	counts map[string]*count
	names  int
	id     int
}

func newWorker(id int, config *rest.Config, kinds []map[string]any) (*worker, error) {
	w := &worker{kinds: kinds, tally: map[string]int{}, counts: map[string]*count{}, id: id}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.writes = &recorder{next: next}
		return w.writes
	})
	var err error
	if w.client, err = client.New(config, client.Options{}); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	w.engine = &apply.Engine{Client: w.client, Mapper: w.client.RESTMapper(), Rivals: noRivals{}}
	return w, nil
}

// count is what became of the manifests of a kind.
type count struct {
	// drawn manifests, and those that are the one before, because the API server took no change that was drawn.
	drawn, unchanged int
	// applied manifests, and those of which the object was compared with what is right.
	applied, judged int
}

// of returns the counts of a kind.
func (w *worker) of(kind string) *count {
	if w.counts[kind] == nil {
		w.counts[kind] = &count{}
	}
	return w.counts[kind]
}

// noRivals knows no other placement.
type noRivals struct{}

func (noRivals) Find(context.Context, metav1.OwnerReference, apply.Key, []metav1.OwnerReference) ([]apply.Rival, error) {
	return nil, nil
}

// clusterScoped are the kinds without a namespace.
var clusterScoped = map[string]bool{
	"Namespace": true, "IngressClass": true, "ClusterRole": true, "ClusterRoleBinding": true, "PersistentVolume": true, "StorageClass": true,
	"CSIDriver": true, "PriorityClass": true, "RuntimeClass": true, "ValidatingWebhookConfiguration": true, "MutatingWebhookConfiguration": true,
	"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true, "FlowSchema": true, "DeviceClass": true, "CustomResourceDefinition": true,
}

// definition is a kind whose objects have names after their content.
const definition = "CustomResourceDefinition"

// where returns a place for a new object of a kind.
func (w *worker) where(kind string) (namespace, name string) {
	w.names++
	name = fmt.Sprintf("t-%d-%d", w.id, w.names)
	switch {
	case kind == definition:
		return "", fmt.Sprintf("drawns.%s.example.com", name)
	case clusterScoped[kind]:
		return "", name
	case kind == "LimitRange" || kind == "ResourceQuota":
		return limits, name
	}
	return trials, name
}

// draw draws a trial. Changes that no API server takes are left out, and others are drawn in their place.
func (w *worker) draw(ctx context.Context, r *rand.Rand) (trial, error) {
	t := trial{Kind: w.drawKind(r), Prior: priors[r.IntN(len(priors))]}
	kind := w.kinds[t.Kind]["kind"].(string)
	namespace, name := w.where(kind)
	isOnlyCreated := false
	for i := range 3 {
		s := step{Way: ways[r.IntN(len(ways))], When: placementv1beta1.WhenToApplyTypeAlways}
		if r.IntN(4) == 0 {
			s.When = placementv1beta1.WhenToApplyTypeIfNotDrifted
		}
		s.Held = i > 0 && r.IntN(8) == 0
		t.Steps = append(t.Steps, s)
		if i > 0 && r.IntN(8) == 0 {
			w.tally["steps with the manifest of the step before"]++ // what a change of the way alone brings
			continue
		}
		w.of(kind).drawn++
		right, err := w.drawChanges(ctx, r, t, namespace, name)
		if err != nil {
			return t, err
		}
		if right != nil {
			isOnlyCreated = right.onlyCreated
		} else if i > 0 {
			w.of(kind).unchanged++
		}
		if isOnlyCreated && r.IntN(4) > 0 { // most of these would be refused as a server-side apply, and not be judged
			t.Steps[i].Way = placementv1beta1.ApplyStrategyTypeClientSideApply
		}
	}
	return t, nil
}

// spare is how many changes are drawn besides for a step of which the API server takes none.
const spare = 8

// drawChanges draws the changes of the last step of a trial: together those that the API server takes together, and otherwise those
// that it takes one after another. It returns what a fresh manager makes of the manifest; nil if the step has no change.
func (w *worker) drawChanges(ctx context.Context, r *rand.Rand, t trial, namespace, name string) (*fresh, error) {
	i := len(t.Steps) - 1
	n := 1 + r.IntN(4)
	keeps := i == 1 || i == 2 && r.IntN(4) > 0 // what the first change has had refused, the second would have, too
	var before map[string]any
	if i == 0 {
		n = r.IntN(8)
	} else {
		before = t.manifest(w.kinds, i-1, namespace, name)
	}
	var drawn []change
	for len(drawn) < n+spare {
		c := drawChange(r, keeps)
		if i == 0 && r.IntN(2) == 0 {
			c.What = "remove a field"
		}
		drawn = append(drawn, c)
	}
	try := func(changes []change) (*fresh, map[string]any, error) {
		t.Steps[i].Changes = changes
		manifest := t.manifest(w.kinds, i, namespace, name)
		if reflect.DeepEqual(manifest, before) {
			return nil, nil, nil
		}
		right, err := w.fresh(ctx, manifest)
		return right, manifest, err
	}
	if right, _, err := try(drawn[:n]); right != nil || err != nil {
		return right, err
	}
	w.tally["steps of which the API server does not take all changes"]++
	var taken []change
	var last *fresh
	for k, c := range drawn {
		if len(taken) > 0 && k >= n {
			break
		}
		changes := append(slices.Clip(taken), c)
		right, manifest, err := try(changes)
		if err != nil {
			return nil, err
		}
		if right == nil {
			w.tally["changes that no API server takes, or that change nothing"]++
			continue
		}
		taken = changes
		before = manifest
		last = right
	}
	t.Steps[i].Changes = taken
	return last, nil
}

// drawKind draws custom resources more often than others, and definitions of kinds seldom: each makes the API server work for long.
func (w *worker) drawKind(r *rand.Rand) int {
	for {
		i := r.IntN(len(w.kinds) + 8)
		if i >= len(w.kinds) {
			i = len(w.kinds) - 1 // the custom resource
		}
		if w.kinds[i]["kind"] == definition && r.IntN(16) > 0 {
			continue
		}
		return i
	}
}

// fresh is what a fresh manager makes of a manifest where there is no object.
type fresh struct {
	object *unstructured.Unstructured
	// onlyCreated is whether the API server refuses a server-side apply and takes a plain create.
	onlyCreated bool
	// stays are labels that the API server has set for an earlier manifest that had none: no way to apply a manifest removes them.
	stays map[string]any
}

// fresh asks what a fresh manager makes of a manifest; nil if the API server takes it in no way.
func (w *worker) fresh(ctx context.Context, manifest map[string]any) (*fresh, error) {
	out := decode(manifest)
	if out == nil {
		return nil, nil
	}
	data, err := json.Marshal(out.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding a manifest: %w", err)
	}
	w.writes.takeRefusals()
	err = w.client.Patch(ctx, out, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("fresh"), client.ForceOwnership, client.DryRunAll)
	if err == nil {
		return &fresh{object: out}, nil
	}
	// A server-side apply refuses fields that the API server does not know, some nulls, and items of a list with the same keys.
	out = decode(manifest)
	created := w.client.Create(ctx, out, client.FieldOwner("fresh"), client.DryRunAll)
	if fault := w.requireUnfit(); fault != "" {
		return nil, errors.New(fault)
	}
	switch {
	case created == nil:
		return &fresh{object: out, onlyCreated: true}, nil
	case apierrors.ReasonForError(created) == metav1.StatusReasonUnknown:
		return nil, fmt.Errorf("asking the API server: %w", created)
	}
	w.note("DRAWN %s: %v", manifest["kind"], created)
	return nil, nil
}

// decode reads a manifest as the agent does.
func decode(manifest map[string]any) *unstructured.Unstructured {
	data, err := json.Marshal(manifest)
	if err != nil {
		return nil
	}
	m := apply.Decode([]placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: data}}})[0]
	if m.Problem != nil {
		return nil
	}
	return m.Object
}

// create makes the object as another tool does.
func (w *worker) create(ctx context.Context, prior string, manifest map[string]any) error {
	object := decode(manifest)
	data, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encoding a manifest: %w", err)
	}
	switch prior {
	case byKubectl:
		if len(data) < 100_000 {
			annotations := object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["kubectl.kubernetes.io/last-applied-configuration"] = string(data)
			object.SetAnnotations(annotations)
		}
		return w.client.Create(ctx, object, client.FieldOwner("kubectl-client-side-apply"))
	case byHelm:
		return w.client.Create(ctx, object, client.FieldOwner("helm"))
	case byFlux:
		err := w.client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("kustomize-controller"), client.ForceOwnership)
		if err != nil { // it has what a server-side apply does not know
			return w.client.Create(ctx, decode(manifest), client.FieldOwner("kustomize-controller"))
		}
	}
	return nil
}

// owner is the AppliedWork of all trials.
var owner = apply.OwnerReference("trial", "trial")

// run makes a trial on a new object. It returns what is wrong, if anything.
func (w *worker) run(ctx context.Context, t trial) (fault string, err error) {
	namespace, name := w.where(w.kinds[t.Kind]["kind"].(string))
	manifests := make([]map[string]any, 0, len(t.Steps))
	for i := range t.Steps {
		manifests = append(manifests, t.manifest(w.kinds, i, namespace, name))
	}
	return w.runAll(ctx, t.Prior, t.Steps, manifests)
}

// runAll applies manifests of one object one after another, each as its step says.
func (w *worker) runAll(ctx context.Context, prior string, steps []step, manifests []map[string]any) (fault string, err error) {
	rights := make([]*fresh, 0, len(manifests))
	stays := map[string]any{}
	for _, manifest := range manifests {
		right, err := w.fresh(ctx, manifest)
		if err != nil {
			return "", err
		}
		if right == nil {
			return "", nil // nothing to compare with
		}
		rights = append(rights, right)
		right.stays = maps.Clone(stays)
		labels, _, _ := unstructured.NestedMap(manifest, "metadata", "labels")
		for key := range labels {
			delete(stays, key) // it is the manifest's from now on, and leaves with it
		}
		if len(labels) == 0 {
			for key, value := range right.object.GetLabels() {
				stays[key] = value
			}
		}
	}
	defer w.remove(ctx, rights[0].object)
	var others *unstructured.Unstructured
	if prior != byNobody {
		if err := w.create(ctx, prior, manifests[0]); err != nil {
			w.tally["not created by another tool"]++ // the API server takes it in one way and not in another
			w.note("NOT CREATED %s: %v", manifests[0]["kind"], err)
			if fault := w.requireUnfit(); fault != "" {
				return "", errors.New(fault)
			}
		} else {
			others = rights[0].object
		}
	}
	clean := true
	shared := false
	for i, s := range steps {
		if err := w.prepare(ctx, s, rights[0].object); err != nil {
			return "", err
		}
		data, err := json.Marshal(manifests[i])
		if err != nil {
			return "", fmt.Errorf("encoding a manifest: %w", err)
		}
		req := apply.Request{
			Manifest: apply.Decode([]placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: data}}})[0],
			Owner:    owner,
			Strategy: placementv1beta1.ApplyStrategy{
				Type: s.Way, WhenToApply: s.When, WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeAlways,
				ComparisonOption:      placementv1beta1.ComparisonOptionTypePartialComparison,
				AllowCoOwnership:      true,
				ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true},
			},
		}
		shared = shared || others != nil && s.Way == placementv1beta1.ApplyStrategyTypeServerSideApply
		fault, ok, err := w.applyStep(ctx, req, rights[i], others, clean, shared)
		if fault != "" || err != nil {
			return at(i, fault), err
		}
		clean = ok
	}
	return "", nil
}

// prepare makes what happens to the object before a step.
func (w *worker) prepare(ctx context.Context, s step, object *unstructured.Unstructured) error {
	if s.Restored {
		forget := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`))
		if err := w.client.Patch(ctx, object.DeepCopy(), forget); err != nil {
			return fmt.Errorf("having the API server forget whose fields are whose: %w", err)
		}
	}
	if !s.Held {
		return nil
	}
	live := object.DeepCopy()
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	base, found := live.GetAnnotations()[placementv1beta1.LastAppliedConfigAnnotation]
	if !found {
		return nil
	}
	held := &unstructured.Unstructured{}
	held.SetGroupVersionKind(object.GroupVersionKind())
	held.SetNamespace(object.GetNamespace())
	held.SetName(object.GetName())
	held.SetAnnotations(map[string]string{placementv1beta1.LastAppliedConfigAnnotation: base})
	data, err := json.Marshal(held.Object)
	if err != nil {
		return fmt.Errorf("encoding what another client holds: %w", err)
	}
	if err := w.client.Patch(ctx, held, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("exporter"), client.ForceOwnership); err != nil {
		w.tally["not held by another client"]++ // a server-side apply to this object is refused, whoever sends it
		if fault := w.requireUnfit(); fault != "" {
			return errors.New(fault)
		}
	}
	return nil
}

func at(i int, fault string) string {
	if fault == "" {
		return ""
	}
	return fmt.Sprintf("manifest %d: %s", i, fault)
}

// applyStep applies a manifest and judges the object. It returns whether the object is what the manifest says.
func (w *worker) applyStep(ctx context.Context, req apply.Request, wanted *fresh, others *unstructured.Unstructured, clean, shared bool) (string, bool, error) {
	right := wanted.object
	w.of(right.GetKind()).applied++
	before := w.writes.count()
	w.writes.takeRefusals()
	result, problem, err := w.engine.Apply(ctx, req)
	if err != nil {
		return "", false, fmt.Errorf("applying: %w", err)
	}
	if fault := w.requireUnfit(); fault != "" {
		return fault, false, nil
	}
	if problem != nil {
		w.note("REFUSED %s, %s: %s", right.GetKind(), req.Strategy.Type, problem.Message)
	}
	refused := problem != nil && problem.Reason != placementv1beta1.ReasonFoundDrifts
	if refused && wanted.onlyCreated {
		w.tally["refused, as a server-side apply by a fresh manager is"]++
		return "", false, nil
	}
	if problem != nil && shared { // an item of another's list is no drift to a server-side apply, and is one to the other way
		w.tally["refused together with what another manager holds"]++
		return "", false, nil
	}
	if refused && req.Strategy.Type == placementv1beta1.ApplyStrategyTypeServerSideApply && !w.takesServerSide(ctx, req.Manifest.Object) {
		w.tally["refused, as a server-side apply to this object by a fresh manager is"]++
		return "", false, nil
	}
	if problem != nil {
		fault, err := w.judgeRefusal(ctx, problem, req.Manifest.Object, right, clean)
		return fault, false, err
	}
	live := right.DeepCopy()
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(right), live); err != nil {
		return "", false, fmt.Errorf("reading the object: %w", err)
	}
	w.of(right.GetKind()).judged++
	v := verdict{}
	manifest := req.Manifest.Object
	theirs := map[string]any{}
	if others != nil {
		theirs = plain(others, manifest)
	}
	for key, value := range wanted.stays {
		_ = unstructured.SetNestedField(theirs, value, "metadata", "labels", key)
	}
	v.compare("", map[string]any(manifest.Object), plain(right, manifest), plain(live, manifest), theirs)
	if len(v.breaches) > 0 && w.isOfDefaults(ctx, manifest, live, theirs) {
		w.tally["applied, with the defaults of the definition in place of a null"]++
		v = verdict{}
	}
	if len(v.breaches) > 0 && w.isOfBoth(ctx, manifest, live, theirs) {
		w.tally["applied, with the defaults of what another tool has set besides"]++
		v = verdict{}
	}
	told := !result.Differences.Empty()
	switch {
	case len(v.breaches) > 0 && !told:
		return "the object is not what its manifest says, and Applied is True:\n    " + strings.Join(v.breaches, "\n    ") + "\n  writes: " + strings.Join(w.writes.since(before), "\n    "), false, nil
	case len(v.breaches) > 0:
		w.tally["applied with a difference that is told: "+manifest.GetKind()]++
		w.note("TOLD %s: %s; found %v", manifest.GetKind(), result.Differences.Message, v.breaches)
	case told:
		w.tally["applied as by a fresh manager, with a difference that is told: "+manifest.GetKind()]++
		w.note("ALSO %s: %s", manifest.GetKind(), result.Differences.Message)
	default:
		w.tally["applied"]++
	}
	req.Answered = result.Answered
	if told { // it is tried once more
		if result, _, err = w.engine.Apply(ctx, req); err != nil {
			return "", false, fmt.Errorf("applying once more: %w", err)
		}
		req.Answered = result.Answered
	}
	before = w.writes.count()
	again, problem, err := w.engine.Apply(ctx, req)
	if err != nil {
		return "", false, fmt.Errorf("applying again: %w", err)
	}
	if problem != nil {
		if told {
			return "", false, nil // a difference counts as a drift
		}
		return "what was applied is refused the next time: " + problem.Message + fmt.Sprint(again.Findings.Details), false, nil
	}
	if writes := w.writes.since(before); len(writes) > 0 || again.Wrote {
		return fmt.Sprintf("the same manifest is written again: %v", writes), false, nil
	}
	if told {
		return "", false, nil
	}
	req.Answered = "" // the agent is restarted
	if again, problem, err = w.engine.Apply(ctx, req); err != nil {
		return "", false, fmt.Errorf("applying after a restart: %w", err)
	}
	if problem != nil {
		return "what was applied is refused after a restart: " + problem.Message, false, nil
	}
	if writes := w.writes.since(before); len(writes) > 0 || again.Wrote {
		return fmt.Sprintf("the same manifest is written again after a restart: %v", writes), false, nil
	}
	req.Strategy.Type = placementv1beta1.ApplyStrategyTypeReportDiff
	diff, problem, err := w.engine.Diff(ctx, req)
	if err != nil {
		return "", false, fmt.Errorf("comparing: %w", err)
	}
	if problem != nil {
		w.tally["applied, and not compared, which is told"]++
		w.note("NOT COMPARED %s: %s", manifest.GetKind(), problem.Message)
	}
	if !diff.Findings.Empty() && !diff.Findings.Degraded {
		return fmt.Sprintf("a difference is reported that is none: %v", diff.Findings.Details), false, nil
	}
	return "", true, nil
}

// isOfDefaults tells whether an object is what its manifest says with empty maps in place of nulls: a map that an earlier manifest has
// filled in stays with the defaults of the definition when it is null. No manager has those, so that no server-side apply takes them off,
// and a null says that the manifest leaves the field to the cluster.
func (w *worker) isOfDefaults(ctx context.Context, manifest, live *unstructured.Unstructured, others map[string]any) bool {
	filled := manifest.DeepCopy()
	return manifest.GetKind() == "Widget" && emptyNulls(filled.Object, live.Object) && w.isAsFresh(ctx, filled, live, others)
}

// isOfBoth tells whether an object is what a fresh manager makes of its manifest together with what another tool has set and the manifest
// does not set, which may stay: what the API server fills in may depend on it. A Job of another tool with a parallelism gets no completions.
func (w *worker) isOfBoth(ctx context.Context, manifest, live *unstructured.Unstructured, others map[string]any) bool {
	filled := manifest.DeepCopy()
	return addOthers(filled.Object, live.Object, others) && w.isAsFresh(ctx, filled, live, others)
}

// addOthers adds to an object what another tool has set and still is there, except in items of lists, and tells whether that is anything.
func addOthers(object, live, others map[string]any) bool {
	found := false
	for key, value := range others {
		there, isThere := live[key]
		inner, isMap := object[key].(map[string]any)
		switch {
		case isMap:
			found = addOthers(inner, asMap(there), asMap(value)) || found
		case isThere && object[key] == nil && compare.Same(there, value):
			object[key] = runtime.DeepCopyJSONValue(value)
			found = true
		}
	}
	return found
}

// isAsFresh tells whether an object is what a fresh manager makes of a manifest under another name, where it is filled in.
func (w *worker) isAsFresh(ctx context.Context, filled, live *unstructured.Unstructured, others map[string]any) bool {
	name := filled.GetName()
	filled.SetName(name + "-anew")
	right, err := w.fresh(ctx, filled.Object)
	if err != nil || right == nil || right.onlyCreated {
		return false
	}
	for _, object := range []*unstructured.Unstructured{filled, right.object} {
		object.SetName(name)
	}
	v := verdict{}
	v.compare("", filled.Object, plain(right.object, filled), plain(live, filled), others)
	return len(v.breaches) == 0
}

// emptyNulls puts empty maps in place of the nulls where another object has maps, and tells whether there are any.
func emptyNulls(object, other map[string]any) bool {
	found := false
	for key, value := range object {
		there, isMap := other[key].(map[string]any)
		inner, wasMap := value.(map[string]any)
		switch {
		case isMap && value == nil:
			object[key] = map[string]any{}
			found = true
		case isMap && wasMap:
			found = emptyNulls(inner, there) || found
		}
	}
	return found
}

// takesServerSide tells whether the API server takes a server-side apply of a manifest to the object that exists by a fresh manager. It
// takes none to an object that it cannot read with such an apply, however it came to be: a ServiceAccount with a secret without a
// name, which is refused until the object is made anew or its strategy is ClientSideApply.
func (w *worker) takesServerSide(ctx context.Context, manifest *unstructured.Unstructured) bool {
	object := manifest.DeepCopy()
	data, err := json.Marshal(object.Object)
	return err == nil &&
		w.client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner("fresh"), client.ForceOwnership, client.DryRunAll) == nil
}

// takesCreate tells whether the API server takes a manifest as a plain create. Of a number that is too large for its field, such as
// the value of a PriorityClass, a server-side apply takes the digits that fit, and a create is refused, which is right.
func (w *worker) takesCreate(ctx context.Context, manifest *unstructured.Unstructured) bool {
	return w.client.Create(ctx, manifest.DeepCopy(), client.FieldOwner("fresh"), client.DryRunAll) == nil
}

// judgeRefusal tells whether the API server would have taken the right object.
func (w *worker) judgeRefusal(
	ctx context.Context, problem *apply.Problem, manifest, right *unstructured.Unstructured, clean bool,
) (string, error) {
	live := right.DeepCopy()
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(right), live); err != nil {
		if apierrors.IsNotFound(err) && !w.takesCreate(ctx, manifest) {
			w.tally["refused, as a plain create by a fresh manager is"]++
			return w.requireUnfit(), nil
		}
		if apierrors.IsNotFound(err) {
			return "the object is refused, and a fresh manager may create it: " + problem.Message, nil
		}
		return "", fmt.Errorf("reading the object: %w", err)
	}
	if problem.Reason == placementv1beta1.ReasonFoundDrifts && !clean {
		w.tally["not applied, as it differed before"]++
		return "", nil
	}
	if strings.Contains(problem.Message, "dual-stack") { // the API server's own default of a headless Service without selector
		w.tally["refused, as the API server does not take its own default"]++
		return "", nil
	}
	wanted := right.DeepCopy()
	wanted.SetResourceVersion(live.GetResourceVersion())
	wanted.SetUID(live.GetUID())
	wanted.SetManagedFields(nil)
	if err := w.client.Update(ctx, wanted, client.DryRunAll, client.FieldOwner("fresh")); err == nil {
		return fmt.Sprintf("the manifest is refused, and the API server takes the right object: %s: %s", problem.Reason, problem.Message), nil
	}
	w.tally["refused by the API server in any way"]++
	return w.requireUnfit(), nil
}

func (w *worker) remove(ctx context.Context, object *unstructured.Unstructured) {
	_ = w.client.Delete(context.WithoutCancel(ctx), object.DeepCopy())
}

// note prints what helps to understand a run, if it is asked for.
func (w *worker) note(format string, args ...any) {
	if *verbose {
		fmt.Printf(format+"\n", args...)
	}
}
