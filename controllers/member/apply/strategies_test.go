package apply

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	always     = placementv1beta1.WhenToApplyTypeAlways
	ifNot      = placementv1beta1.WhenToApplyTypeIfNotDrifted
	partial    = placementv1beta1.ComparisonOptionTypePartialComparison
	full       = placementv1beta1.ComparisonOptionTypeFullComparison
	clientSide = placementv1beta1.ApplyStrategyTypeClientSideApply
	serverSide = placementv1beta1.ApplyStrategyTypeServerSideApply
	reportDiff = placementv1beta1.ApplyStrategyTypeReportDiff
)

type detail = placementv1beta1.PatchDetail

// requestWith is a request with a strategy.
func requestWith(text string, strategy placementv1beta1.ApplyStrategy) Request {
	req := request(text)
	req.Strategy = strategy
	if req.Strategy.Type == "" {
		req.Strategy.Type = clientSide
	}
	return req
}

// mustApply applies a manifest and expects no problem.
func mustApply(t *testing.T, e *Engine, req Request) Result {
	t.Helper()
	result, problem, err := e.Apply(t.Context(), req)
	require.NoError(t, err)
	require.Nil(t, problem)
	return result
}

// editConfigMap changes the ConfigMap as a user of the cluster would.
func editConfigMap(t *testing.T, e *Engine, change func(*corev1.ConfigMap)) {
	t.Helper()
	object := storedConfigMap(t, e)
	change(object)
	require.NoError(t, e.Client.Update(t.Context(), object, client.FieldOwner("kubectl")))
}

func changeManagedKey(c *corev1.ConfigMap) { c.Data["x"] = "9" }
func addUnmanagedKey(c *corev1.ConfigMap)  { c.Data["extra"] = "9" }

// TestDriftsAreTreatedAsTheStrategySays is a summary of all options.
func TestDriftsAreTreatedAsTheStrategySays(t *testing.T) {
	var (
		changed = detail{Path: "/data/x", ValueInHub: "1", ValueInMember: "9"}
		added   = detail{Path: "/data/extra", ValueInMember: "9"}
	)
	tests := map[string]struct {
		when       placementv1beta1.WhenToApplyType
		comparison placementv1beta1.ComparisonOptionType
		edit       func(*corev1.ConfigMap)
		reason     string // of the problem; empty if the manifest is applied
		drifts     []detail
		x          string // what the managed field comes to
		writes     int
	}{
		"if not drifted, a managed field that is edited is an error and is told":      {ifNot, partial, changeManagedKey, "FoundDrifts", []detail{changed}, "9", 0},
		"if not drifted, an unmanaged field is ignored":                               {ifNot, partial, addUnmanagedKey, "", nil, "1", 0},
		"if not drifted, comparing fully, a managed field is an error and is told":    {ifNot, full, changeManagedKey, "FoundDrifts", []detail{changed}, "9", 0},
		"if not drifted, comparing fully, an unmanaged field is an error and is told": {ifNot, full, addUnmanagedKey, "FoundDrifts", []detail{added}, "1", 0},
		"always, a managed field is overwritten":                                      {always, partial, changeManagedKey, "", nil, "1", 1},
		"always, an unmanaged field is ignored":                                       {always, partial, addUnmanagedKey, "", nil, "1", 0},
		"always, comparing fully, a managed field is overwritten":                     {always, full, changeManagedKey, "", nil, "1", 1},
		"always, comparing fully, an unmanaged field is told and is no error":         {always, full, addUnmanagedKey, "", []detail{added}, "1", 0},
	}
	for name, tc := range tests {
		for _, kind := range []placementv1beta1.ApplyStrategyType{clientSide, serverSide} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				e, writes := newEngine(nil)
				req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{
					Type: kind, WhenToApply: tc.when, ComparisonOption: tc.comparison,
					ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true},
				})
				mustApply(t, e, req)
				editConfigMap(t, e, tc.edit)
				*writes = 0
				for range 2 {
					result, problem, err := e.Apply(t.Context(), req)
					require.NoError(t, err)
					require.NotNil(t, result.Object, "it stands at a version that can be watched")
					assert.Empty(t, cmp.Diff(tc.drifts, result.Findings.Details))
					if tc.reason == "" {
						assert.Nil(t, problem)
						continue
					}
					require.NotNil(t, problem)
					assert.Equal(t, tc.reason, problem.Reason)
					assert.True(t, problem.NoRetry, "trying again is no use")
					assert.Contains(t, problem.Message,
						"Failed to apply the manifest (error: cannot apply manifest: drifts are found between the manifest and the object from the member cluster)")
				}
				assert.Equal(t, tc.x, storedConfigMap(t, e).Data["x"])
				assert.Equal(t, tc.writes, *writes)
			})
		}
	}
}

func TestANewRevisionIsAppliedOverADrift(t *testing.T) {
	e, _ := newEngine(nil)
	strategy := placementv1beta1.ApplyStrategy{WhenToApply: ifNot}
	mustApply(t, e, requestWith(manifestX1, strategy))
	editConfigMap(t, e, changeManagedKey)
	mustApply(t, e, requestWith(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"2"}}`, strategy))
	assert.Equal(t, "2", storedConfigMap(t, e).Data["x"])
}

func TestAnObjectThatIsDeletedIsNoDrift(t *testing.T) {
	e, _ := newEngine(nil)
	req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{WhenToApply: ifNot, ComparisonOption: full})
	mustApply(t, e, req)
	require.NoError(t, e.Client.Delete(t.Context(), storedConfigMap(t, e)))
	assert.True(t, mustApply(t, e, req).Wrote)
	assert.Equal(t, "1", storedConfigMap(t, e).Data["x"])
}

func TestTakeOver(t *testing.T) {
	tests := map[string]struct {
		when       placementv1beta1.WhenToTakeOverType
		comparison placementv1beta1.ComparisonOptionType
		object     *corev1.ConfigMap
		reason     string
		message    string
		diffs      []detail
	}{
		"never leaves the object alone": {
			placementv1beta1.WhenToTakeOverTypeNever, partial, configMap("1"), "NotTakenOver",
			"Failed to apply the manifest (error: no ownership of the object in the member cluster; takeover is needed)", nil,
		},
		"if it does not differ, it is taken over": {placementv1beta1.WhenToTakeOverTypeIfNoDiff, partial, configMap("1"), "", "", nil},
		"if it differs, the difference is told": {
			placementv1beta1.WhenToTakeOverTypeIfNoDiff, partial, configMap("9"), "FailedToTakeOver",
			"Failed to apply the manifest (error: cannot take over object: configuration differences are found between the manifest object and the corresponding object in the member cluster)",
			[]detail{{Path: "/data/x", ValueInHub: "1", ValueInMember: "9"}},
		},
		"a field that the hub does not set is in nobody's way": {placementv1beta1.WhenToTakeOverTypeIfNoDiff, partial, withExtra(), "", "", nil},
		"unless every field counts": {
			placementv1beta1.WhenToTakeOverTypeIfNoDiff, full, withExtra(), "FailedToTakeOver", "cannot take over object",
			[]detail{{Path: "/data/extra", ValueInMember: "9"}},
		},
		"always takes over what differs": {placementv1beta1.WhenToTakeOverTypeAlways, partial, configMap("9"), "", "", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e, writes := newEngine(nil, tc.object)
			req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{WhenToTakeOver: tc.when, ComparisonOption: tc.comparison})
			result, problem, err := e.Apply(t.Context(), req)
			require.NoError(t, err)
			assert.Empty(t, cmp.Diff(tc.diffs, result.Findings.Details))
			if tc.reason == "" {
				require.Nil(t, problem)
				assert.Equal(t, "1", storedConfigMap(t, e).Data["x"])
				assert.Equal(t, tc.object.Data["extra"], storedConfigMap(t, e).Data["extra"], "what the hub does not set is left untouched")
				assert.Equal(t, []metav1.OwnerReference{me}, storedConfigMap(t, e).OwnerReferences)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, tc.reason, problem.Reason)
			assert.Contains(t, problem.Message, tc.message)
			assert.True(t, problem.NoRetry)
			require.NotNil(t, result.Object)
			assert.Zero(t, *writes)
		})
	}
}

func withExtra() *corev1.ConfigMap {
	object := configMap("1")
	addUnmanagedKey(object)
	return object
}

func TestWhatWasTakenOverIsKept(t *testing.T) {
	e, _ := newEngine(nil, configMap("9"))
	req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeIfNoDiff})
	_, problem, err := e.Apply(t.Context(), req)
	require.NoError(t, err)
	require.NotNil(t, problem)
	editConfigMap(t, e, func(c *corev1.ConfigMap) { c.Data["x"] = "1" })
	mustApply(t, e, req)
	editConfigMap(t, e, changeManagedKey)
	req.Strategy.WhenToTakeOver = placementv1beta1.WhenToTakeOverTypeNever
	mustApply(t, e, req)
	assert.Equal(t, "1", storedConfigMap(t, e).Data["x"], "it is ours by now")
}

func TestReportDiffWritesNothing(t *testing.T) {
	changed := []detail{{Path: "/data/x", ValueInHub: "1", ValueInMember: "9"}}
	tests := map[string]struct {
		objects    []client.Object
		comparison placementv1beta1.ComparisonOptionType
		want       []detail
	}{
		"an object that is absent differs as a whole":     {nil, partial, []detail{{Path: "/", ValueInHub: "(the whole object)"}}},
		"an object that differs is told":                  {[]client.Object{configMap("9")}, partial, changed},
		"so is one that another placement owns":           {[]client.Object{configMap("9", other)}, partial, changed},
		"and one of somebody outside the fleet":           {[]client.Object{configMap("9", foreign)}, partial, changed},
		"an object that does not differ is no difference": {[]client.Object{configMap("1")}, partial, nil},
		"nor are fields the hub does not set":             {[]client.Object{withExtra()}, partial, nil},
		"unless every field counts":                       {[]client.Object{withExtra()}, full, []detail{{Path: "/data/extra", ValueInMember: "9"}}},
	}
	for name, tc := range tests {
		for _, when := range []placementv1beta1.WhenToTakeOverType{placementv1beta1.WhenToTakeOverTypeAlways, placementv1beta1.WhenToTakeOverTypeNever} {
			t.Run(name+", taking over "+string(when), func(t *testing.T) {
				e, writes := newEngine([]Rival{{Name: "other"}}, tc.objects...)
				result, problem, err := e.Diff(t.Context(), requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: reportDiff, ComparisonOption: tc.comparison, WhenToTakeOver: when}))
				require.NoError(t, err)
				require.Nil(t, problem)
				assert.Empty(t, cmp.Diff(tc.want, result.Findings.Details))
				assert.Equal(t, tc.objects == nil, result.Object == nil)
				assert.Zero(t, *writes)
			})
		}
	}
}

func TestReportDiffTellsWhatLeftTheManifest(t *testing.T) {
	for _, kind := range []placementv1beta1.ApplyStrategyType{clientSide, serverSide} {
		t.Run(string(kind), func(t *testing.T) {
			e, _ := newEngine(nil)
			mustApply(t, e, requestWith(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"1","y":"2"}}`, placementv1beta1.ApplyStrategy{Type: kind}))
			result, problem, err := e.Diff(t.Context(), requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: reportDiff}))
			require.NoError(t, err)
			require.Nil(t, problem)
			assert.Equal(t, []detail{{Path: "/data/y", ValueInMember: "2"}}, result.Findings.Details)
		})
	}
}

// failDryRuns makes dry runs fail.
func failDryRuns(e *Engine, err error) {
	e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			options := client.PatchOptions{}
			if options.ApplyOptions(opts); len(options.DryRun) > 0 {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

func TestAComparisonThatFails(t *testing.T) {
	gk := schema.GroupKind{Kind: "ConfigMap"}
	busy := apierrors.NewTooManyRequests("busy", 1)
	immutable := apierrors.NewInvalid(gk, "a", field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")})
	changed := []detail{{Path: "/data/x", ValueInHub: "1", ValueInMember: "9"}}
	tests := map[string]struct {
		strategy placementv1beta1.ApplyStrategy
		err      error
		owners   []metav1.OwnerReference
		reason   string
		diffs    []detail
		degraded bool
	}{
		"differences cannot be reported":  {placementv1beta1.ApplyStrategy{Type: reportDiff}, busy, nil, "FailedToReportDiff", nil, false},
		"drifts cannot be detected":       {placementv1beta1.ApplyStrategy{WhenToApply: ifNot}, busy, []metav1.OwnerReference{me}, "FailedToRunDriftDetection", nil, false},
		"the object cannot be taken over": {placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeIfNoDiff}, busy, nil, "FailedToTakeOver", nil, false},
		"what the API server would refuse is compared without it": {
			placementv1beta1.ApplyStrategy{Type: reportDiff}, immutable, nil, "", changed, true,
		},
		"a drift too": {placementv1beta1.ApplyStrategy{WhenToApply: ifNot}, immutable, []metav1.OwnerReference{me}, "FoundDriftsInDegradedMode", changed, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			req := requestWith(manifestX1, tc.strategy)
			object := configMap("9", tc.owners...)
			object.Annotations = map[string]string{placementv1beta1.ManifestHashAnnotation: req.Manifest.Hash}
			e, writes := newEngine(nil, object)
			failDryRuns(e, tc.err)
			do := e.Apply
			if req.Strategy.Type == reportDiff {
				do = e.Diff
			}
			result, problem, err := do(t.Context(), req)
			require.NoError(t, err)
			assert.Zero(t, *writes)
			assert.Equal(t, tc.diffs, result.Findings.Details)
			assert.Equal(t, tc.degraded, result.Findings.Degraded)
			if tc.reason == "" {
				require.Nil(t, problem)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, tc.reason, problem.Reason)
			if tc.diffs == nil {
				assert.False(t, problem.NoRetry, "it is tried again")
				assert.Contains(t, problem.Message, "busy", "the cause is told")
			}
		})
	}
}

func TestAMemberThatIsSilentIsNotCompared(t *testing.T) {
	e, _ := newEngine(nil, configMap("9"))
	silent := &url.Error{Op: "Patch", URL: "https://member", Err: errors.New("refused")}
	failDryRuns(e, silent)
	_, problem, err := e.Diff(t.Context(), requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: reportDiff}))
	require.ErrorIs(t, err, silent)
	assert.Nil(t, problem)
}

func TestAConflictNamesTheFieldAndItsOwner(t *testing.T) {
	e, writes := newEngine(nil)
	req := requestWith(manifestX1, placementv1beta1.ApplyStrategy{Type: serverSide})
	mustApply(t, e, req)
	editConfigMap(t, e, changeManagedKey)
	*writes = 0
	result, problem, err := e.Apply(t.Context(), req)
	require.NoError(t, err)
	require.NotNil(t, problem)
	assert.Equal(t, "ApplyConflictWithOtherApplier", problem.Reason)
	assert.Contains(t, problem.Message, `.data.x is owned by "kubectl" using v1`)
	assert.True(t, problem.NoRetry)
	assert.NotNil(t, result.Object)
	assert.Equal(t, 1, *writes, "it is tried once")
	assert.Equal(t, "9", storedConfigMap(t, e).Data["x"])

	req.Strategy.ServerSideApplyConfig = &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}
	mustApply(t, e, req)
	assert.Equal(t, "1", storedConfigMap(t, e).Data["x"])
}

func TestALargeManifestOverwritesWhatOthersChangedAsASmallOneDoes(t *testing.T) {
	large := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"x":"1","y":"` + strings.Repeat("y", maxAnnotations) + `"}}`
	e, writes := newEngine(nil)
	req := requestWith(large, placementv1beta1.ApplyStrategy{})
	mustApply(t, e, req)
	assert.NotContains(t, storedConfigMap(t, e).Annotations, placementv1beta1.LastAppliedConfigAnnotation)
	editConfigMap(t, e, changeManagedKey)
	mustApply(t, e, req)
	assert.Equal(t, "1", storedConfigMap(t, e).Data["x"])
	*writes = 0
	mustApply(t, e, req)
	assert.Zero(t, *writes)
}

func TestNothingIsWrittenWhenNothingChanged(t *testing.T) {
	for name, strategy := range map[string]placementv1beta1.ApplyStrategy{
		"client-side":                 {Type: clientSide},
		"server-side":                 {Type: serverSide},
		"server-side by force":        {Type: serverSide, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}},
		"if not drifted":              {Type: clientSide, WhenToApply: ifNot},
		"server-side, if not drifted": {Type: serverSide, WhenToApply: ifNot},
		"comparing fully":             {Type: clientSide, ComparisonOption: full},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(nil)
			mustApply(t, e, requestWith(manifestX1, strategy))
			e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return errors.New("not even a rehearsal is needed")
				},
			})
			for range 2 {
				assert.False(t, mustApply(t, e, requestWith(manifestX1, strategy)).Wrote)
			}
		})
	}
}

func TestAMapThatLosesItsLastFieldServerSideStaysAnEmptyMap(t *testing.T) {
	class := func(rest string) string {
		return `{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"a"},"handler":"h"` + rest + `}`
	}
	strategy := placementv1beta1.ApplyStrategy{Type: serverSide}
	for name, rest := range map[string]string{
		"by an empty map": `,"overhead":{}`, "by a null": `,"overhead":{"podFixed":null}`, "by an empty map in it": `,"overhead":{"podFixed":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			e, writes := newEngine(nil)
			mustApply(t, e, requestWith(class(`,"overhead":{"podFixed":{"cpu":"1"}}`), strategy))
			result := mustApply(t, e, requestWith(class(rest), strategy))
			assert.True(t, result.Differences.Empty())
			live := &nodev1.RuntimeClass{}
			require.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Name: "a"}, live))
			require.NotNil(t, live.Overhead, "a RuntimeClass that is made of this manifest has it")
			assert.Empty(t, live.Overhead.PodFixed)
			*writes = 0
			assert.False(t, mustApply(t, e, requestWith(class(rest), strategy)).Wrote)
			assert.Zero(t, *writes)
		})
	}
}
