package gitops

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const samples = "../../deploy/samples/git"

// health is what Argo CD and Flux say of an object, and what the message of Argo CD contains.
type health struct{ argo, message, flux string }

// recorded are the objects in testdata and how they are.
var recorded = map[string]health{
	"member":                          {"Healthy", "successfully joined", "Current"},
	"placement-available":             {"Healthy", "are available now", "Current"},
	"placement-in-conflict":           {"Degraded", "Failed to apply resources to 1 cluster(s)", "Failed"},
	"placement-paused":                {"Healthy", "are available now", "Current"},
	"placement-reports-differences":   {"Healthy", "Diff reporting in 2 cluster(s) has been completed", "Current"},
	"placement-rolled-out-by-a-run":   {"Healthy", "are available now", "Current"},
	"placement-waits-for-a-run":       {"Suspended", "2 cluster(s) in the process of deciding", "InProgress"},
	"placement-with-too-few-clusters": {"Degraded", "could not find all clusters needed", "Failed"},
	"placement-with-wrong-selectors":  {"Degraded", "The resource selectors are invalid", "Failed"},
	"resourceplacement-in-conflict":   {"Degraded", "Failed to apply resources to 1 cluster(s)", "Failed"},
	"run-cannot-begin":                {"Degraded", "failed to initialize", "Failed"},
	"run-stopped":                     {"Suspended", "The state of the run is Stop", "InProgress"},
	"run-succeeded":                   {"Healthy", "All stages are completed successfully", "Current"},
	"run-waits-for-approval":          {"Suspended", "Stage all: Not all before-stage tasks are completed, waiting for approval", "InProgress"},
}

func TestHealthOfRecordedObjects(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, len(recorded))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) { requireHealth(t, read(t, file), recorded[name]) })
	}
}

// TestHealthOfOtherStates changes recorded objects to what would take long to record.
func TestHealthOfOtherStates(t *testing.T) {
	conditions := func(all ...map[string]any) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			list := make([]any, 0, len(all))
			for _, condition := range all {
				list = append(list, condition)
			}
			u.Object["status"] = map[string]any{"conditions": list}
		}
	}
	condition := func(kind, status, reason string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": "because", "observedGeneration": int64(1)}
	}
	for sentence, test := range map[string]struct {
		object string
		edit   func(*unstructured.Unstructured)
		want   health
	}{
		"a placement that was just created": {"placement-available", conditions(), health{"Progressing", "has not seen", "InProgress"}},
		"a placement that was just changed": {"placement-available", func(u *unstructured.Unstructured) { u.SetGeneration(2) },
			health{"Progressing", "has not seen", "InProgress"}},
		"a failed placement that was just changed": {"placement-in-conflict", func(u *unstructured.Unstructured) { u.SetGeneration(2) },
			health{"Progressing", "has not seen", "InProgress"}},
		"a placement that is being rolled out": {"placement-available", conditions(
			condition("ClusterResourcePlacementScheduled", "True", "SchedulingPolicyFulfilled"), condition("ClusterResourcePlacementRolloutStarted", "False", "RolloutNotStartedYet")),
			health{"Progressing", "because", "InProgress"}},
		"a placement whose rollout is paused": {"placement-available", conditions(
			condition("ClusterResourcePlacementScheduled", "True", "SchedulingPolicyFulfilled"), condition("ClusterResourcePlacementRolloutStarted", "False", "RolloutPaused")),
			health{"Suspended", "because", "InProgress"}},
		"a placement whose resources are not available yet": {"placement-available", conditions(
			condition("ClusterResourcePlacementApplied", "True", "ApplySucceeded"), condition("ClusterResourcePlacementAvailable", "False", "ResourceNotAvailableYet")),
			health{"Progressing", "because", "InProgress"}},
		"a placement whose removals are held": {"placement-available", conditions(
			condition("ClusterResourcePlacementAvailable", "True", "ResourceAvailable"), condition("RemovalsHeld", "True", "UnexplainedRemovals")),
			health{"Degraded", "because", "Failed"}},
		"a placement while Temporal is away": {"placement-available", conditions(condition("EngineReachable", "False", "TemporalUnreachable")),
			health{"Progressing", "because", "InProgress"}},
		"a member that does not report": {"member", conditions(condition("Joined", "True", "Joined"), condition("Healthy", "Unknown", "Silent")),
			health{"Degraded", "because", "InProgress"}},
		"a member that has not joined":     {"member", conditions(), health{"Progressing", "has not reported yet", "InProgress"}},
		"a run that has just been created": {"run-waits-for-approval", conditions(), health{"Progressing", "has not begun", "InProgress"}},
		"a run that has failed": {"run-succeeded", conditions(condition("Initialized", "True", "I"), condition("Succeeded", "False", "UpdateRunFailed")),
			health{"Degraded", "because", "Failed"}},
		"a run that is stuck": {"run-waits-for-approval", conditions(condition("Progressing", "False", "UpdateRunStuck")),
			health{"Degraded", "because", "InProgress"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := read(t, "testdata/"+test.object+".yaml")
			test.edit(object)
			requireHealth(t, object, test.want)
		})
	}
}

func TestEveryKindHasItsTwinsScript(t *testing.T) {
	scripts := argoScripts(t)
	expressions := fluxExpressions(t)
	for _, kind := range []string{"ResourcePlacement", "StagedUpdateRun"} {
		assert.NotEmpty(t, scripts["placement.kubernetes-fleet.io_"+kind], kind)
		assert.Equal(t, scripts["placement.kubernetes-fleet.io_Cluster"+kind], scripts["placement.kubernetes-fleet.io_"+kind])
		assert.Equal(t, expressions["Cluster"+kind], expressions[kind])
	}
	assert.ElementsMatch(t, []string{"ClusterResourcePlacement", "ResourcePlacement", "ClusterStagedUpdateRun", "StagedUpdateRun", "MemberCluster"}, slices.Collect(maps.Keys(expressions)))
}

func requireHealth(t *testing.T, object *unstructured.Unstructured, want health) {
	t.Helper()
	status, message := askArgo(t, object)
	assert.Equal(t, want.argo, status, message)
	assert.Contains(t, message, want.message)
	assert.Equal(t, want.flux, askFlux(t, object))
}

func read(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &object.Object))
	text, err = object.MarshalJSON()
	require.NoError(t, err)
	require.NoError(t, object.UnmarshalJSON(text)) // numbers become what they are in an object that a client has read
	return object
}

// argoScripts are the scripts that tell the health of objects, by group and kind as Argo CD writes them.
func argoScripts(t *testing.T) map[string]string {
	t.Helper()
	config := read(t, filepath.Join(samples, "argocd-cm.yaml"))
	data, _, err := unstructured.NestedStringMap(config.Object, "data")
	require.NoError(t, err)
	scripts := map[string]string{}
	for key, script := range data {
		if kind, ok := strings.CutPrefix(key, "resource.customizations.health."); ok {
			scripts[kind] = script
		}
	}
	return scripts
}

// askArgo runs the script of an object's kind as Argo CD does: the object is the global obj, and nothing of the machine can be
// reached.
func askArgo(t *testing.T, object *unstructured.Unstructured) (status, message string) {
	t.Helper()
	kind := object.GroupVersionKind()
	script := argoScripts(t)[kind.Group+"_"+kind.Kind]
	require.NotEmpty(t, script, kind)
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString} {
		require.NoError(t, state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	state.SetGlobal("obj", toLua(state, object.Object))
	require.NoError(t, state.DoString(script))
	result, ok := state.Get(-1).(*lua.LTable)
	require.True(t, ok, "the script returns a table")
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case nil:
		return lua.LNil
	case bool:
		return lua.LBool(value)
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		list := state.CreateTable(len(value), 0)
		for _, item := range value {
			list.Append(toLua(state, item))
		}
		return list
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	}
	panic(fmt.Sprintf("no value of an object: %T", value))
}

// fluxExpressions are the expressions of the Kustomization, by kind.
func fluxExpressions(t *testing.T) map[string]kustomize.HealthCheckExpressions {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samples, "flux-kustomization.yaml"))
	require.NoError(t, err)
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.UnmarshalStrict(dropUnknown(t, text), &kustomization))
	all := map[string]kustomize.HealthCheckExpressions{}
	for _, check := range kustomization.Spec.HealthCheckExprs {
		all[schema.FromAPIVersionAndKind(check.APIVersion, check.Kind).Kind] = check.HealthCheckExpressions
	}
	return all
}

// dropUnknown keeps the expressions only, so that a mistyped field in them is an error.
func dropUnknown(t *testing.T, text []byte) []byte {
	t.Helper()
	var whole struct {
		Spec struct {
			HealthCheckExprs any `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal(text, &whole))
	text, err := yaml.Marshal(map[string]any{"spec": map[string]any{"healthCheckExprs": whole.Spec.HealthCheckExprs}})
	require.NoError(t, err)
	return text
}

func askFlux(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	expressions := fluxExpressions(t)[object.GetKind()]
	evaluator, err := cel.NewStatusEvaluator(&expressions)
	require.NoError(t, err)
	result, err := evaluator.Evaluate(t.Context(), object)
	require.NoError(t, err)
	return string(result.Status)
}
