package histories_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// excused is what no history has, and why.
var excused = map[string]string{}

// What happens to no execution that is recorded can be changed without anybody noticing that open executions do not replay.
func TestTheHistoriesHaveAllThatHappensToExecutions(t *testing.T) {
	has := map[string]bool{}
	for _, file := range recorded(t) {
		for _, feature := range featuresOf(read(t, file)) {
			has[feature] = true
		}
	}
	var lacking []string
	for _, feature := range wanted(t) {
		if _, without := excused[feature]; !has[feature] && !without {
			lacking = append(lacking, feature)
		}
		if has[feature] {
			require.NotContains(t, excused, feature, "it is recorded by now")
		}
	}
	require.Empty(t, lacking, "record a story of it: see README.md")
}

func recorded(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.json")
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(file, "bad-") })
}

func read(t *testing.T, file string) *history.History {
	t.Helper()
	content, err := os.Open(file)
	require.NoError(t, err)
	defer content.Close()
	recorded, err := client.HistoryFromJSON(content, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return recorded
}

// wanted lists what histories must have, as the code says.
func wanted(t *testing.T) []string {
	t.Helper()
	wanted := []string{
		"signal approve", "update approve", "update refused by the hub", "timer of a task",
		"activity tried again", "activity cancelled",
		"child started", "child completed", "child failed", "child canceled", "child terminated", "child not started",
	}
	for _, name := range activityNames() {
		wanted = append(wanted, "activity "+name)
	}
	for _, kind := range []string{wf.PlacementWorkflow, wf.UpdateRunWorkflow, wf.StageWorkflow} {
		for _, end := range []string{"completed", "failed", "canceled", "continued as new"} {
			wanted = append(wanted, kind+" "+end)
		}
		wanted = append(wanted, kind+" goes on")
	}
	for _, kind := range []string{wf.KindClusterResourcePlacement, wf.KindResourcePlacement, wf.KindClusterStagedUpdateRun, wf.KindStagedUpdateRun} {
		wanted = append(wanted, "kind "+kind)
	}
	for _, file := range sources(t, "../../workflows/contract") {
		for name, value := range stringConstants(t, file) {
			if strings.HasPrefix(name, "Cause") {
				wanted = append(wanted, "poke "+value)
			}
		}
	}
	for _, folder := range []string{"placement", "stagedupdate", "call"} {
		for _, file := range sources(t, "../../workflows/"+folder) {
			wanted = append(wanted, markersAndTimers(t, file)...)
		}
	}
	require.Greater(t, len(wanted), 60)
	slices.Sort(wanted)
	return slices.Compact(wanted)
}

func sources(t *testing.T, folder string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(folder + "/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	return files
}

func stringConstants(t *testing.T, file *ast.File) map[string]string {
	t.Helper()
	constants := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if text, ok := textOf(spec.Values[0]); ok {
				constants[spec.Names[0].Name] = text
			}
		}
		return true
	})
	return constants
}

func textOf(expression ast.Expr) (text string, ok bool) {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// markersAndTimers lists the versions that workflow code asks for, and the summaries of its timers.
func markersAndTimers(t *testing.T, file *ast.File) []string {
	t.Helper()
	var wanted []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			require.NotContains(t, []string{"SideEffect", "MutableSideEffect"}, called.Sel.Name, "histories need a story of it")
			if called.Sel.Name == "GetVersion" {
				change, ok := textOf(n.Args[1])
				require.True(t, ok, "the name of a change is a literal")
				wanted = append(wanted, "version of "+change)
			}
		case *ast.CompositeLit:
			if kind, ok := n.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "TimerOptions" {
				if summary, ok := textOf(n.Elts[0].(*ast.KeyValueExpr).Value); ok {
					wanted = append(wanted, "timer: "+summary)
				}
			}
		}
		return true
	})
	return wanted
}

// featuresOf lists what a history has of what is wanted.
func featuresOf(h *history.History) []string {
	features := map[string]bool{}
	kind := ""
	for _, event := range h.GetEvents() {
		if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
			kind = started.GetWorkflowType().GetName()
			features["kind "+kindOf(started.GetInput())] = true
			features[kind+" goes on"] = started.GetContinuedExecutionRunId() != ""
		}
		features[featureOf(kind, event)] = true
		if event.GetActivityTaskStartedEventAttributes().GetAttempt() > 1 {
			features["activity tried again"] = true
		}
	}
	maps.DeleteFunc(features, func(_ string, has bool) bool { return !has })
	return slices.Collect(maps.Keys(features))
}

func featureOf(kind string, event *history.HistoryEvent) string {
	switch event.GetEventType() {
	case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return "activity " + event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case enums.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
		return "activity cancelled"
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		return signalOf(event.GetWorkflowExecutionSignaledEventAttributes())
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		return "update " + event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName()
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		if event.GetWorkflowExecutionUpdateCompletedEventAttributes().GetOutcome().GetFailure() != nil {
			return "update refused by the hub"
		}
	case enums.EVENT_TYPE_MARKER_RECORDED:
		var change string
		marker := event.GetMarkerRecordedEventAttributes().GetDetails()["change-id"]
		_ = converter.GetDefaultDataConverter().FromPayloads(marker, &change)
		return "version of " + change
	case enums.EVENT_TYPE_TIMER_STARTED:
		var summary string
		_ = converter.GetDefaultDataConverter().FromPayload(event.GetUserMetadata().GetSummary(), &summary)
		if strings.Contains(summary, " until ") && strings.HasSuffix(summary, "Z") {
			return "timer of a task"
		}
		return "timer: " + summary
	}
	return endOf(kind, event.GetEventType())
}

// endOf returns how an execution of a kind, or a child of it, has ended, or begun.
func endOf(kind string, event enums.EventType) string {
	return map[enums.EventType]string{
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:          kind + " completed",
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:             kind + " failed",
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:           kind + " canceled",
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:   kind + " continued as new",
		enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:      "child started",
		enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:    "child completed",
		enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:       "child failed",
		enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:     "child canceled",
		enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:   "child terminated",
		enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED: "child not started",
	}[event]
}

func signalOf(signal *history.WorkflowExecutionSignaledEventAttributes) string {
	if signal.GetSignalName() != wf.PokeSignal {
		return "signal " + signal.GetSignalName()
	}
	var poke wf.Poke
	_ = converter.GetDefaultDataConverter().FromPayloads(signal.GetInput(), &poke)
	return "poke " + poke.Cause
}

// kindOf returns the kind of the object that an execution works for; a stage works for its run.
func kindOf(input *common.Payloads) string {
	var given struct {
		wf.Ref
		Run wf.Ref `json:"run"`
	}
	_ = converter.GetDefaultDataConverter().FromPayloads(input, &given)
	return fmt.Sprint(given.Kind, given.Run.Kind)
}

// activityNames returns the names of all activities.
func activityNames() []string {
	names := registered{}
	worker.RegisterShort(&names, worker.Activities{})
	worker.RegisterLong(&names, worker.Activities{})
	worker.RegisterWaiting(&names, worker.Activities{})
	worker.RegisterMeasuring(&names, worker.Activities{})
	slices.Sort(names.list)
	return slices.Compact(names.list)
}

type registered struct {
	sdkworker.ActivityRegistry
	list []string
}

func (r *registered) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) {
	r.list = append(r.list, o.Name)
}
