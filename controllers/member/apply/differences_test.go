package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// What test/differential has found, made small.

// TestDefaultsInAListThatIsReplacedAreWrittenOnce plays an API server that fills in what the item of a list lacks.
func TestDefaultsInAListThatIsReplacedAreWrittenOnce(t *testing.T) {
	for _, way := range []placementv1beta1.ApplyStrategyType{clientSide, serverSide} {
		t.Run(string(way), func(t *testing.T) {
			e, writes := newEngine(nil)
			withDefaults(e)
			req := requestWith(limitRange, placementv1beta1.ApplyStrategy{Type: way})
			result, problem, err := e.Apply(t.Context(), req)
			require.NoError(t, err)
			require.Nil(t, problem)
			assert.True(t, result.Differences.Empty(), result.Differences.Message)

			*writes = 0
			req.Answered = result.Answered
			_, problem, err = e.Apply(t.Context(), req)
			require.NoError(t, err)
			require.Nil(t, problem)
			assert.Zero(t, *writes)

			req.Answered = "" // the agent was restarted
			result, problem, err = e.Apply(t.Context(), req)
			require.NoError(t, err)
			require.Nil(t, problem)
			assert.Zero(t, *writes)
			assert.NotEmpty(t, result.Answered, "the API server is asked once")
		})
	}
}

const limitRange = `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a","namespace":"n"},"spec":{"limits":[{"type":"Container","max":{"cpu":"2"}}]}}`

// withDefaults makes the cluster of an engine fill in what the limits of a LimitRange lack.
func withDefaults(e *Engine) {
	e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			fillIn(o)
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, o, p, opts...)
			fillIn(o)
			return err
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			fillIn(o)
			return err
		},
	})
}

// TestWhatIsMergedInsteadOfAnInvalidServerSideApplyIsWrittenOnce plays a definition that refuses a null of the manifest as a
// server-side apply, and takes it with a patch.
func TestWhatIsMergedInsteadOfAnInvalidServerSideApplyIsWrittenOnce(t *testing.T) {
	e, writes := newEngine(nil)
	withDefaults(e)
	mustApply(t, e, requestWith(limitRange, placementv1beta1.ApplyStrategy{Type: clientSide}))
	e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if p.Type() == types.ApplyPatchType {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "LimitRange"}, "a", nil)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	req := requestWith(strings.Replace(limitRange, `"max"`, `"min":{"cpu":"1"},"max"`, 1), placementv1beta1.ApplyStrategy{Type: serverSide})
	require.True(t, mustApply(t, e, req).Wrote)

	*writes = 0
	result := mustApply(t, e, req) // the agent was restarted
	assert.Zero(t, *writes)
	assert.NotEmpty(t, result.Answered, "the API server is asked once")

	req.Strategy.WhenToApply = placementv1beta1.WhenToApplyTypeIfNotDrifted
	result = mustApply(t, e, req)
	assert.Empty(t, result.Findings.Details, "what the API server fills in is no drift")
	assert.Zero(t, *writes)
}

// fillIn gives the limits of a LimitRange a default.
func fillIn(object client.Object) {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	list, _, _ := unstructured.NestedSlice(content.Object, "spec", "limits")
	for _, item := range list {
		item.(map[string]any)["default"] = map[string]any{"cpu": "2"}
	}
	if len(list) > 0 {
		_ = unstructured.SetNestedSlice(content.Object, list, "spec", "limits")
	}
}

func TestANullThatTheAPIServerHasWrittenAsEmptyIsNoDifference(t *testing.T) {
	manifest := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","labels":{"l":null}},"data":{"x":null,"y":"1"}}`
	there := live(t, manifest, func(object map[string]any) {
		object["data"] = map[string]any{"x": "", "y": "1"}
		object["metadata"].(map[string]any)["labels"] = map[string]any{"l": ""}
	})
	patch, err := ThreeWay(there, desired(t, manifest))
	require.NoError(t, err)
	assert.True(t, patch.Empty(), "%s", patch.Data)

	before := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"1","y":"1"}}`
	patch, err = ThreeWay(live(t, before, nil), desired(t, manifest))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"x": "", "y": "1"}, patch.Result.Object["data"], "a text that becomes null is empty, as where the object is created")
}

// TestAServerSideApplyThatIsInvalidIsMergedInstead plays an API server that makes a null of a map that loses its last field.
func TestAServerSideApplyThatIsInvalidIsMergedInstead(t *testing.T) {
	e, _ := newEngine(nil)
	_, problem, err := e.Apply(t.Context(), requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: serverSide}))
	require.NoError(t, err)
	require.Nil(t, problem)
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil)
	alsoRefused := false
	e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if p.Type() == types.ApplyPatchType || alsoRefused {
				return refusal
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	empty := requestWith(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{}}`, placementv1beta1.ApplyStrategy{Type: serverSide})
	result, problem, err := e.Apply(t.Context(), empty)
	require.NoError(t, err)
	require.Nil(t, problem)
	assert.True(t, result.Wrote)
	stored := &corev1.ConfigMap{}
	require.NoError(t, e.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, stored))
	assert.Empty(t, stored.Data)
	assert.Equal(t, empty.Manifest.markOf(false), stored.Annotations[placementv1beta1.ManifestHashAnnotation])

	alsoRefused = true
	other := requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: serverSide})
	_, problem, err = e.Apply(t.Context(), other)
	require.NoError(t, err)
	require.NotNil(t, problem, "what no way can write is refused")
	data, err := json.Marshal(problem)
	require.NoError(t, err)
	assert.Contains(t, string(data), "invalid")
}

func TestAnEmptyNameOfAnItemIsTheSameAsNone(t *testing.T) {
	account := func(secrets string) string {
		return `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a","namespace":"n"},"secrets":` + secrets + `}`
	}
	there := live(t, account(`[{"name":""},{"name":"x"}]`), func(object map[string]any) {
		object["secrets"] = []any{map[string]any{}, map[string]any{"name": "x"}}
	})
	patch, err := ThreeWay(there, desired(t, account(`[{"name":""},{"name":"x"}]`)))
	require.NoError(t, err)
	assert.True(t, patch.Empty(), "%s", patch.Data)

	nameless := Marked(Decode(raw(account(`[{"name":null}]`)))[0], me)
	assert.Equal(t, []any{map[string]any{"name": ""}}, nameless.Object["secrets"], "a server-side apply takes no item without a name")
}

func TestTheOldNameOfAnAccountLeavesWithTheNewOne(t *testing.T) {
	deployment := func(account string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"},"spec":{"template":{"spec":{` + account +
			`"containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}}}`
	}
	spec := func(object map[string]any) map[string]any {
		found, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "template", "spec")
		return found.(map[string]any)
	}
	there := live(t, deployment(`"serviceAccountName":"x",`), func(object map[string]any) { spec(object)["serviceAccount"] = "x" })
	patch, err := ThreeWay(there, desired(t, deployment("")))
	require.NoError(t, err)
	assert.NotContains(t, spec(patch.Result.Object), "serviceAccountName")
	assert.NotContains(t, spec(patch.Result.Object), "serviceAccount", "the API server would take it for the other")

	patch, err = ThreeWay(there, desired(t, deployment(`"serviceAccountName":"x",`)))
	require.NoError(t, err)
	assert.True(t, patch.Empty(), "%s", patch.Data)
}

func TestAKeyThatWasNullIsRemovedWithItsEmptyText(t *testing.T) {
	service := func(labels string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"n","labels":` + labels + `},"spec":{"ports":[{"port":80}]}}`
	}
	there := live(t, service(`{"app":null}`), func(object map[string]any) {
		object["metadata"].(map[string]any)["labels"] = map[string]any{"app": ""}
	})
	patch, err := ThreeWay(there, desired(t, service(`{}`)))
	require.NoError(t, err)
	assert.Empty(t, patch.Result.GetLabels())

	patch, err = ThreeWay(there, desired(t, service(`{"app":null}`)))
	require.NoError(t, err)
	assert.True(t, patch.Empty(), "%s", patch.Data)
}

func TestPlainValuesOfASecretAreEncodedBesideANull(t *testing.T) {
	m := Decode(raw(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"n"},"data":null,"stringData":{"x":"1"}}`))[0]
	assert.Equal(t, map[string]any{"x": "MQ=="}, m.Object.Object["data"])
	assert.NotContains(t, m.Object.Object, "stringData", "what is written there could not be removed later")
}

// TestAnObjectThatIsAsWantedIsAppliedAlthoughAServerSideApplyIsInvalid plays a definition that needs a field which such an apply would
// take off.
func TestAnObjectThatIsAsWantedIsAppliedAlthoughAServerSideApplyIsInvalid(t *testing.T) {
	for name, refusal := range map[string]error{
		"the field is needed":          apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil),
		"an item of a list has no key": apierrors.NewInternalError(errors.New("associative list with keys has an element that omits all key fields")),
	} {
		t.Run(name, func(t *testing.T) {
			e, writes := newEngine(nil)
			mustApply(t, e, requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: clientSide}))
			e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					if p.Type() == types.ApplyPatchType {
						return refusal
					}
					return c.Patch(ctx, o, p, opts...)
				},
			})
			req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: serverSide})
			mustApply(t, e, req)
			*writes = 0
			mustApply(t, e, req)
			assert.Zero(t, *writes)
		})
	}
}

// TestAnApplyThatIsRefusedEachTimeIsNotSentEachTime plays an API server that cannot read the object for a server-side apply, and so notes
// no client's fields of it.
func TestAnApplyThatIsRefusedEachTimeIsNotSentEachTime(t *testing.T) {
	for name, hasBase := range map[string]bool{"with a base": true, "too large for a base": false} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(nil)
			sent := 0
			e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, o, opts...)
					o.SetManagedFields(nil)
					if annotations := o.GetAnnotations(); !hasBase {
						delete(annotations, placementv1beta1.LastAppliedConfigAnnotation)
						o.SetAnnotations(annotations)
					}
					return err
				},
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					options := client.PatchOptions{}
					if options.ApplyOptions(opts); len(options.DryRun) == 0 {
						sent++
					}
					if p.Type() == types.ApplyPatchType {
						return apierrors.NewInternalError(errors.New("associative list with keys has an element that omits key field"))
					}
					return c.Patch(ctx, o, p, opts...)
				},
			})
			mustApply(t, e, requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: clientSide}))
			req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: serverSide})
			result := mustApply(t, e, req)
			sent = 0
			req.Answered = result.Answered
			mustApply(t, e, req)
			assert.Zero(t, sent)
			req.Answered = "" // the agent is restarted
			mustApply(t, e, req)
			assert.Zero(t, sent, "a dry run tells that it would bring nothing")
		})
	}
}

func TestWhatIsMergedInsteadOfAServerSideApplyIsTheBaseOfTheNextMerge(t *testing.T) {
	e, _ := newEngine(nil)
	data := func(keys string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{` + keys + `}}`
	}
	mustApply(t, e, requestWith(data(`"x":"1"`), placementv1beta1.ApplyStrategy{Type: clientSide}))
	e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if p.Type() == types.ApplyPatchType {
				return apierrors.NewInternalError(errors.New("duplicate entries for key"))
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	mustApply(t, e, requestWith(data(`"x":"1","y":"2"`), placementv1beta1.ApplyStrategy{Type: serverSide}))
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	require.NoError(t, e.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "a"}, stored))
	assert.Equal(t, map[string]any{"x": "1", "y": "2"}, lastApplied(stored)["data"])
	mustApply(t, e, requestWith(data(`"x":"1"`), placementv1beta1.ApplyStrategy{Type: clientSide}))
	assert.Equal(t, map[string]string{"x": "1"}, storedConfigMap(t, e).Data)
}

func TestLabelsThatAreNullAreNone(t *testing.T) {
	for kind, of := range map[string]string{"a built-in kind": `"v1","kind":"ConfigMap"`, "a custom resource": `"example.com/v1","kind":"Widget"`} {
		object := func(labels string) string {
			return `{"apiVersion":` + of + `,"metadata":{"name":"a","namespace":"n","labels":` + labels + `}}`
		}
		const none = `null`
		theirs := func(o map[string]any) {
			labels, _, _ := unstructured.NestedMap(o, "metadata", "labels")
			o["metadata"].(map[string]any)["labels"] = labels
			if labels == nil {
				o["metadata"].(map[string]any)["labels"] = map[string]any{}
			}
			_ = unstructured.SetNestedField(o, "1", "metadata", "labels", "theirs")
		}
		for name, before := range map[string]string{"there were some": object(`{"ours":"1"}`), "there were none": object(`{}`), "they were null": object(none)} {
			t.Run(kind+", "+name, func(t *testing.T) {
				patch, err := ThreeWay(live(t, before, theirs), desired(t, object(none)))
				require.NoError(t, err)
				assert.Equal(t, map[string]string{"theirs": "1"}, patch.Result.GetLabels(), "what others have set stays")
			})
		}
		t.Run(kind+", compared", func(t *testing.T) {
			patch, err := ThreeWay(live(t, object(none), theirs), Decode(raw(object(none)))[0].Object)
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"theirs": "1"}, patch.Result.GetLabels())
		})
		t.Run(kind+", sent server-side", func(t *testing.T) {
			assert.False(t, hasNull(Marked(Decode(raw(object(none)))[0], me).Object["metadata"]))
		})
	}
}

// TestANullIsComparedAsItIsApplied has a null in a field that another client sets later.
func TestANullIsComparedAsItIsApplied(t *testing.T) {
	const manifest = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"n"},"spec":{"maybe":null,"size":1}}`
	there := live(t, manifest, func(o map[string]any) { _ = unstructured.SetNestedField(o, "theirs", "spec", "maybe") })
	for _, kind := range []placementv1beta1.ApplyStrategyType{clientSide, reportDiff} {
		findings, err := (&Engine{}).compareObject(t.Context(), requestWith(manifest, placementv1beta1.ApplyStrategy{Type: kind}), there)
		require.NoError(t, err)
		assert.Empty(t, findings.Details, "the manifest leaves the field to the cluster")
	}
	patch, err := ThreeWay(there, desired(t, manifest))
	require.NoError(t, err)
	assert.True(t, patch.Empty(), "%s", patch.Data)
}

func TestAVolumeWithoutASourceHasNoneOfAnotherManager(t *testing.T) {
	pods := func(volume string) string {
		return `{"template":{"spec":{"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"a","emptyDir":{}},{"name":"b"` + volume + `}]}}}`
	}
	manifest := func(apiVersion, kind, volume string) string {
		if kind == "CronJob" {
			return manifestOf(apiVersion, kind, `{"jobTemplate":{"spec":`+pods(volume)+`}}`)
		}
		return manifestOf(apiVersion, kind, pods(volume))
	}
	create := func(t *testing.T, c client.Client, object *unstructured.Unstructured) error {
		return c.Create(t.Context(), object, client.FieldOwner("kubectl-client-side-apply"))
	}
	apply := func(t *testing.T, c client.Client, object *unstructured.Unstructured) error {
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"))
	}
	force := placementv1beta1.ApplyStrategy{Type: serverSide, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}}
	volumes := func(t *testing.T, e *Engine, of *unstructured.Unstructured) []any {
		t.Helper()
		require.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(of), of))
		spec := of.Object["spec"].(map[string]any)
		if inner, _, _ := unstructured.NestedMap(spec, "jobTemplate", "spec"); inner != nil {
			spec = inner
		}
		list, _, _ := unstructured.NestedSlice(spec, "template", "spec", "volumes")
		return list
	}
	for tool, before := range map[string]func(*testing.T, client.Client, *unstructured.Unstructured) error{"kubectl apply": create, "kubectl apply --server-side": apply} {
		for kind, version := range map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "CronJob": "batch/v1"} {
			for source, said := range map[string]string{
				"projected": `{"sources":[{"secret":{"name":"s"}}]}`, "configMap": `{"name":"c"}`, "secret": `{"secretName":"s"}`, "persistentVolumeClaim": `{"claimName":"p"}`,
			} {
				t.Run(tool+", "+kind+", "+source, func(t *testing.T) {
					with := manifest(version, kind, `,"`+source+`":`+said)
					e, writes := newEngine(nil)
					require.NoError(t, before(t, e.Client, Decode(raw(with))[0].Object))
					mustApply(t, e, requestWith(with, force))
					last := requestWith(manifest(version, kind, ""), force)
					result := mustApply(t, e, last)
					assert.True(t, result.Differences.Empty(), result.Differences.Message)
					assert.Equal(t, []any{map[string]any{"name": "a", "emptyDir": map[string]any{}}, map[string]any{"name": "b"}}, volumes(t, e, last.Manifest.Object.DeepCopy()))
					*writes = 0
					mustApply(t, e, last)
					assert.Zero(t, *writes)
					mustApply(t, e, requestWith(with, force))
					assert.Contains(t, volumes(t, e, last.Manifest.Object.DeepCopy())[1], source)
				})
			}
			t.Run(tool+", "+kind+", when it is taken over", func(t *testing.T) {
				e, writes := newEngine(nil)
				require.NoError(t, before(t, e.Client, Decode(raw(manifest(version, kind, `,"secret":{"secretName":"s"}`)))[0].Object))
				last := requestWith(manifest(version, kind, ""), force)
				assert.True(t, mustApply(t, e, last).Differences.Empty())
				assert.NotContains(t, volumes(t, e, last.Manifest.Object.DeepCopy())[1], "secret")
				*writes = 0
				mustApply(t, e, last) // the agent was restarted
				assert.Zero(t, *writes)
			})
			t.Run(tool+", "+kind+", without force", func(t *testing.T) {
				e, writes := newEngine(nil)
				require.NoError(t, before(t, e.Client, Decode(raw(manifest(version, kind, `,"secret":{"secretName":"s"}`)))[0].Object))
				last := requestWith(manifest(version, kind, ""), placementv1beta1.ApplyStrategy{Type: serverSide})
				result := mustApply(t, e, last)
				require.Len(t, result.Differences.Details, 1)
				assert.True(t, strings.HasSuffix(result.Differences.Details[0].Path, "/template/spec/volumes/1/secret"), result.Differences.Details[0].Path)
				assert.Contains(t, result.Differences.Message, "held by kubectl")
				*writes = 0
				last.Answered = result.Answered
				assert.Len(t, mustApply(t, e, last).Differences.Details, 1)
				assert.Zero(t, *writes)
			})
		}
	}
}
