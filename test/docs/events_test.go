package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const repository = "../.."

// emitters are the folders whose code runs in agents.
var emitters = []string{"activities", "apis", "cmd/agent", "cmd/hub-agent", "cmd/member-agent", "controllers", "worker", "workflows"}

// carried says where the reasons of conditions are that some functions emit as events, by folder: constants with a prefix.
var carried = map[string][]struct{ folder, prefix string }{
	"controllers/hub/membership": {
		{"controllers/hub/membership", "Reason"}, {"apis/cluster/v1beta1", "ReasonMemberCluster"}, {"apis/cluster/v1beta1", "ReasonHubToken"}, {"apis/cluster/v1beta1", "ReasonAgentRequest"}, {"apis/cluster/v1beta1", "ReasonBusy"}, {"controllers/member/propertyprovider", "Reason"},
	},
	"apis/placement/stagetask": {{"apis/placement/v1beta1", "ReasonPlan"}, {"apis/placement/v1beta1", "ReasonApproverNotAllowed"},
		{"apis/placement/stagetask", "eventVote"}, {"apis/placement/v1beta1", "ReasonVoteRejected"}, {"apis/placement/v1beta1", "ReasonVoteExpired"}, {"apis/placement/v1beta1", "ReasonCommentMissing"}},
	"controllers/hub/resourcewatch": {{"apis/fleetflow/v1alpha1", "ReasonPropagation"}, {"apis/fleetflow/v1alpha1", "ReasonKind"}},
	"controllers/hub/override":      {{"apis/placement/v1beta1", "ReasonOverrideConflict"}, {"apis/placement/v1beta1", "ReasonOverrideLimit"}, {"apis/placement/v1beta1", "ReasonOverridePlacementNotFound"}},
}

// callers are the folders that call what emits events in another folder, by the latter.
var callers = map[string][]string{"activities/stagedupdate": {"apis/placement/stagetask"}}

// places of the reason among the arguments of the recorder's method.
const (
	recorderMethod = "Eventf"
	reasonArgument = 3
)

func TestEveryEventIsExplained(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "deploy/docs/events.md"))
	require.NoError(t, err)
	explained := map[string]bool{}
	for line := range strings.SplitSeq(string(content), "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, name := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1) {
				explained[name[1]] = true
			}
		}
	}
	emitted := emittedReasons(t, repository, emitters)
	require.Greater(t, len(emitted), 40, "reasons found")
	for reason, where := range emitted {
		assert.True(t, explained[reason], "%s emits events with reason %s, of which deploy/docs/events.md says nothing", where, reason)
		delete(explained, reason)
	}
	for reason := range explained {
		assert.Fail(t, "deploy/docs/events.md explains an event that nothing emits", reason)
	}
}

func TestEventsAreFound(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "controllers")
	require.NoError(t, os.Mkdir(folder, 0o755))
	source := "package p\n" +
		"const named = \"Named\"\n" +
		"func (a *a) literal() { a.events.Eventf(x, nil, \"Normal\", \"Literal\", \"Act\", \"note\") }\n" +
		"func (a *a) constant() { a.events.Eventf(x, nil, \"Normal\", named, \"Act\", \"note\") }\n" +
		"func (a *a) chosen() { reason := \"One\"; if b { reason = \"Other\" }; a.Eventf(x, nil, \"Normal\", reason, \"Act\", \"note\") }\n" +
		"func (a *a) warn(x int, reason string) { a.Eventf(x, nil, \"Normal\", reason, \"Act\", \"note\") }\n" +
		"func (a *a) wrapped() { a.warn(1, \"Wrapped\") }\n" +
		"var w = wording{step: \"No\", eventReason: \"Field\"}\n" +
		"func (a *a) field() { a.Eventf(x, nil, \"Normal\", w.eventReason, \"Act\", \"note\") }\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a.go"), []byte(source), 0o600))
	var found []string
	for reason := range emittedReasons(t, root, []string{"controllers"}) {
		found = append(found, reason)
	}
	assert.ElementsMatch(t, []string{"Literal", "Named", "One", "Other", "Wrapped", "Field"}, found)
}

// sources is the code of agents, read only as far as events go.
type sources struct {
	*testing.T
	files map[string][]*ast.File // by folder, as seen from the repository
	// constants are the texts of constants, by folder and name.
	constants map[string]map[string]string
	found     map[string]string
}

// emittedReasons are the reasons with which code emits events, and a place of each.
func emittedReasons(t *testing.T, root string, folders []string) map[string]string {
	t.Helper()
	s := &sources{T: t, files: map[string][]*ast.File{}, constants: map[string]map[string]string{}, found: map[string]string{}}
	for _, folder := range folders {
		s.read(root, folder)
	}
	for folder, files := range s.files {
		for _, file := range files {
			for _, declared := range file.Decls {
				if function, ok := declared.(*ast.FuncDecl); ok {
					s.calls(folder, function, recorderMethod, reasonArgument)
				}
			}
		}
	}
	return s.found
}

func (s *sources) read(root, folder string) {
	s.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		in, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		s.files[in] = append(s.files[in], file)
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					s.define(in, name.Name, spec.Values[i])
				}
			}
			return true
		})
		return nil
	})
	require.NoError(s, err)
}

func (s *sources) define(folder, name string, value ast.Expr) {
	if s.constants[folder] == nil {
		s.constants[folder] = map[string]string{}
	}
	if text, ok := literal(value); ok {
		s.constants[folder][name] = text
	}
}

func literal(value ast.Expr) (string, bool) {
	basic, ok := value.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// calls looks in a function for calls of a method that has a reason among its arguments.
func (s *sources) calls(folder string, function *ast.FuncDecl, method string, argument int) {
	ast.Inspect(function, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) <= argument {
			return true
		}
		if called, ok := call.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == method {
			s.reason(folder, function, call.Args[argument])
		}
		return true
	})
}

// reason finds out what the reason of one call can be.
func (s *sources) reason(folder string, function *ast.FuncDecl, value ast.Expr) {
	where := folder + ", " + function.Name.Name
	switch v := value.(type) {
	case *ast.BasicLit:
		text, _ := literal(v)
		s.found[text] = where
	case *ast.Ident:
		if text, ok := s.constants[folder][v.Name]; ok {
			s.found[text] = where
		} else if at := parameter(function, v.Name); at >= 0 {
			s.wrapped(folder, function.Name.Name, at)
		} else {
			s.assigned(folder, function, v.Name)
		}
	case *ast.SelectorExpr:
		s.selected(folder, where, v.Sel.Name)
	default:
		assert.Fail(s, "the reason of an event is neither a constant nor known to this test", where)
	}
}

// parameter is the place of a function's parameter, -1 if it is none.
func parameter(function *ast.FuncDecl, name string) int {
	at := 0
	for _, field := range function.Type.Params.List {
		for _, n := range field.Names {
			if n.Name == name {
				return at
			}
			at++
		}
	}
	return -1
}

func (s *sources) wrapped(folder, method string, argument int) {
	for _, caller := range append([]string{folder}, callers[folder]...) {
		for _, file := range s.files[caller] {
			for _, declared := range file.Decls {
				if function, ok := declared.(*ast.FuncDecl); ok {
					s.calls(caller, function, method, argument)
				}
			}
		}
	}
}

func (s *sources) assigned(folder string, function *ast.FuncDecl, name string) {
	ast.Inspect(function, func(node ast.Node) bool {
		assignment, ok := node.(*ast.AssignStmt)
		if !ok || len(assignment.Lhs) != len(assignment.Rhs) {
			return true
		}
		for i := range assignment.Lhs {
			if to, ok := assignment.Lhs[i].(*ast.Ident); ok && to.Name == name {
				s.reason(folder, function, assignment.Rhs[i])
			}
		}
		return true
	})
}

// selected is a constant of another package, a field of that name, or the reason of a condition.
func (s *sources) selected(folder, where, name string) {
	if name == "Reason" {
		require.Contains(s, carried, folder, "%s emits reasons of conditions: say in this test which", where)
		for _, from := range carried[folder] {
			for constant, text := range s.constants[from.folder] {
				if strings.HasPrefix(constant, from.prefix) {
					s.found[text] = where
				}
			}
		}
		return
	}
	known := false
	for _, constants := range s.constants {
		if text, ok := constants[name]; ok {
			s.found[text] = where
			known = true
		}
	}
	for _, text := range s.fields(folder, name) {
		s.found[text] = where
		known = true
	}
	assert.True(s, known, "%s: reason %s is not known to this test", where, name)
}

// fields are the texts given to fields of a name.
func (s *sources) fields(folder, name string) []string {
	var texts []string
	for _, file := range s.files[folder] {
		ast.Inspect(file, func(node ast.Node) bool {
			if pair, ok := node.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
					if text, ok := literal(pair.Value); ok {
						texts = append(texts, text)
					}
				}
			}
			return true
		})
	}
	return slices.Compact(texts)
}
