package analysis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// What the evaluation of an expression may cost.
const (
	maxCost       = 1_000_000
	maxEvaluation = 50 * time.Millisecond
	// interruptEvery is after how many steps of a comprehension the time is looked at.
	interruptEvery = 100
)

// Variables of expressions.
const (
	variableResult     = "result"
	variableSamples    = "samples"
	variableBaseline   = "baseline"
	variableResponse   = "response"
	variableObject     = "object"
	variableConditions = "conditions"
	variableArgs       = "args"
	variableCluster    = "cluster"
)

// newEnvironment has the variables that the expressions of a metric may use. They see what its source has answered, or the one
// object that the metric names, and nothing else of the hub: no Secret can be asked for.
func newEnvironment(metric fleetflowv1alpha1.AnalysisMetric) (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.Variable(variableArgs, cel.MapType(cel.StringType, cel.StringType)),
		cel.OptionalTypes(), ext.Strings(), ext.Math(), ext.Lists(), ext.Sets(),
	}
	switch {
	case metric.Webhook != nil:
		options = append(options, cel.Variable(variableResponse, cel.DynType))
	case metric.Objects != nil:
		options = append(options, cel.Variable(variableObject, cel.DynType))
		if metric.Objects.From == fleetflowv1alpha1.ObjectsFromWorks {
			options = append(options, cel.Variable(variableConditions, cel.MapType(cel.StringType, cel.StringType)))
		}
	default:
		options = append(options, cel.Variable(variableResult, cel.DoubleType), cel.Variable(variableSamples, cel.ListType(cel.DoubleType)))
	}
	if metric.Prometheus != nil && metric.Prometheus.BaselineQuery != "" {
		options = append(options, cel.Variable(variableBaseline, cel.DoubleType))
	}
	if metric.PerCluster != nil {
		options = append(options, cel.Variable(variableCluster, cel.StringType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("preparing expressions: %w", err)
	}
	return env, nil
}

// expression is an expression that gives true or false; nil is none.
type expression struct {
	text    string
	program cel.Program
	// arguments are those it names.
	arguments []string
}

// compileExpression compiles an expression; problem says what is wrong with it.
func compileExpression(env *cel.Env, text string) (compiled *expression, problem string) {
	if text == "" {
		return nil, ""
	}
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Sprintf("the expression %q is not valid CEL: %s", text, oneLine(issues.Err().Error()))
	}
	if name := costlyCall(tree); name != "" {
		return nil, fmt.Sprintf("the expression %q calls %s, which may take any amount of memory before its cost is known: leave it out",
			text, name)
	}
	if tree.OutputType() != cel.BoolType {
		return nil, fmt.Sprintf("the expression %q gives %s, not bool", text, tree.OutputType())
	}
	program, err := env.Program(tree, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, fmt.Sprintf("the expression %q is not valid CEL: %s", text, oneLine(err.Error()))
	}
	return &expression{text: text, program: program, arguments: argumentsIn(text)}, ""
}

// costly are functions that make texts of any length in one step: the cost is looked at when they have.
var costly = []string{"replace", "join"}

// costlyCall names a costly function that an expression calls; empty if it calls none.
func costlyCall(tree *cel.Ast) (name string) {
	ast.PreOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind && slices.Contains(costly, e.AsCall().FunctionName()) {
			name = e.AsCall().FunctionName()
		}
	}))
	return name
}

// argumentsIn returns the arguments that an expression names.
func argumentsIn(text string) []string {
	var names []string
	for _, found := range argumentInExpression.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// isTrue evaluates an expression; problem says why that is not possible.
func (e *expression) isTrue(ctx context.Context, variables map[string]any) (holds bool, problem string) {
	ctx, cancel := context.WithTimeout(ctx, maxEvaluation)
	defer cancel()
	value, _, err := e.program.ContextEval(ctx, variables)
	if err != nil {
		return false, fmt.Sprintf("the expression %q gives an error: %s", e.text, oneLine(err.Error()))
	}
	is, ok := value.(types.Bool)
	if !ok {
		return false, fmt.Sprintf("the expression %q gives no bool", e.text)
	}
	return bool(is), ""
}

// oneLine shortens what the compiler draws over several lines.
func oneLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimPrefix(text, "ERROR: "), "\n")
	return line
}

// isNumber reports whether a sample is a number at all.
func isNumber(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
