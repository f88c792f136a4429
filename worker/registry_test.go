package worker_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/fleetflow/fleetflow/worker"
)

// registry records registrations.
type registry struct {
	t     *testing.T
	names []string
	types map[string]reflect.Type
}

func (r *registry) add(name string, f any) {
	r.t.Helper()
	require.NotContains(r.t, r.names, name, "registered twice")
	require.NotEmpty(r.t, name)
	r.names = append(r.names, name)
	r.types[name] = reflect.TypeOf(f)
}

func (r *registry) RegisterActivity(any) { r.t.Error("every activity has a name of its own") }
func (r *registry) RegisterActivityWithOptions(f any, o activity.RegisterOptions) {
	r.add(o.Name, f)
}
func (r *registry) RegisterDynamicActivity(any, activity.DynamicRegisterOptions) {}
func (r *registry) RegisterWorkflow(any)                                         { r.t.Error("every workflow has a name of its own") }
func (r *registry) RegisterWorkflowWithOptions(f any, o workflow.RegisterOptions) {
	r.add(o.Name, f)
}
func (r *registry) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {}

func newRegistry(t *testing.T) *registry { return &registry{t: t, types: map[string]reflect.Type{}} }

// constants are the string constants of a package in this module.
func constants(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	require.NoError(t, err)
	out := map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					out[spec.Names[i].Name] = text
				}
			}
			return true
		})
	}
	return out
}

func TestEveryActivityOfTheContractIsRegisteredOnce(t *testing.T) {
	// The constant of an activity has the activity's name.
	var want []string
	for name, value := range constants(t, "workflows/contract") {
		if name == value {
			want = append(want, name)
		}
	}
	require.Greater(t, len(want), 10)
	all := newRegistry(t)
	worker.RegisterShort(all, worker.Activities{})
	short := len(all.names)
	worker.RegisterWaiting(all, worker.Activities{})
	waiting := slices.Sorted(slices.Values(all.names[short:]))
	worker.RegisterMeasuring(all, worker.Activities{})
	assert.Equal(t, []string{"AdvanceDeletion", "AdvancePlacement", "AdvanceStage"}, waiting, "those that wait have a queue of their own")
	assert.ElementsMatch(t, want, all.names)
	for name, f := range all.types {
		assert.Equal(t, 2, f.NumIn(), "%s takes a context and one request", name)
		assert.Equal(t, 2, f.NumOut(), "%s returns one result and an error", name)
	}
}

func TestEveryWorkflowOfTheContractIsRegistered(t *testing.T) {
	want := constants(t, "workflows/contract")
	maps.DeleteFunc(want, func(name, _ string) bool { return !strings.HasSuffix(name, "Workflow") })
	got := newRegistry(t)
	worker.RegisterWorkflows(got)
	assert.ElementsMatch(t, slices.Collect(maps.Values(want)), got.names)
}
