package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// foreign are programs of others, which printed commands call: what is printed of them is read as a shell reads it.
var foreign = []string{
	"kubectl", "helm", "temporal", "temporal-sql-tool", "temporal-server", "cosign", "crane", "docker", "kind", "curl", "git", "jq", "sudo", "apt-get",
	"[", "awk", "cat", "cd", "cut", "date", "echo", "false", "grep", "head", "kill", "mktemp", "read", "rm", "sed", "sleep", "tail", "tr", "true", "uname", "wait",
	"deploy/charts/hub-agent/examples/temporal-credentials.sh",
	"deploy/join/join-member-cluster.sh", "deploy/join/leave-member-cluster.sh", "deploy/samples/lifecycle-hooks/drain.sh",
}

// printed is all that is printed.
var printed = sync.OnceValues(func() ([]Printed, error) { return AllPrinted(repository) })

// calls returns all printed calls of a program.
func calls(t *testing.T, program string) []Call {
	t.Helper()
	all, err := printed()
	require.NoError(t, err)
	var found []Call
	for _, p := range all {
		made, err := p.Calls()
		require.NoError(t, err)
		for _, call := range made {
			if call.Program == program {
				found = append(found, call)
			}
		}
	}
	return found
}

func TestAShellReadsEveryPrintedCommand(t *testing.T) {
	all, err := printed()
	require.NoError(t, err)
	require.Greater(t, len(all), 1000, "commands are found")
	checked := map[string]int{}
	for _, p := range all {
		made, err := p.Calls()
		assert.NoError(t, err)
		for _, call := range made {
			if Checks[call.Program] != "" {
				checked[call.Program]++
				continue
			}
			assert.Contains(t, foreign, call.Program, "%s: no test knows what %q is, in %q", call.Where, call.Program, call.Text)
		}
	}
	for program := range Checks {
		assert.Greater(t, checked[program], 5, "commands of %s are found", program)
	}
}

func TestMakeKnowsEveryPrintedTargetAndVariable(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, call := range calls(t, "make") {
		key := strings.Join(call.Words, "\x00")
		if seen[key] {
			continue
		}
		seen[key] = true
		t.Run(strings.Join(call.Words, " "), func(t *testing.T) {
			t.Parallel()
			for _, problem := range problemsOfMake(t, string(makefile), call) {
				assert.Fail(t, call.Where+": "+problem)
			}
		})
	}
	assert.Greater(t, len(seen), 60)
}

// problemsOfMake are what is wrong with a call of make: what make, a shell, or go would say of it.
func problemsOfMake(t *testing.T, makefile string, call Call) (problems []string) {
	t.Helper()
	for _, word := range call.Words {
		name, _, assigns := strings.Cut(word, "=")
		// What is no variable of make is one of the environment, and make hands it on.
		if assigns && !strings.HasPrefix(name, "FLEETFLOW_") && !strings.Contains(makefile, "$("+name+")") {
			problems = append(problems, "make does nothing with "+name)
		}
	}
	made, err := call.Made(t.Context(), repository)
	if err != nil {
		return append(problems, err.Error())
	}
	shell := exec.CommandContext(t.Context(), "bash", "-n")
	shell.Stdin = strings.NewReader(made.Text)
	if said, err := shell.CombinedOutput(); err != nil {
		problems = append(problems, fmt.Sprintf("bash cannot read what make would run: %v: %s", err, said))
	}
	run, err := made.Calls()
	if err != nil {
		return append(problems, err.Error())
	}
	for _, called := range run {
		if called.Program == "go" {
			problems = append(problems, problemsOfGo(called)...)
		}
	}
	return problems
}

func TestGoKnowsEveryPrintedVerbAndTest(t *testing.T) {
	for _, call := range calls(t, "go") {
		for _, problem := range problemsOfGo(call) {
			assert.Fail(t, call.Where+": "+problem)
		}
	}
}

// goVerbs are the verbs of go that commands have here.
var goVerbs = []string{"build", "env", "generate", "get", "list", "mod", "run", "test", "tool", "vet"}

// valued are the flags of go test with a value, alone those without.
var (
	valued = []string{"-run", "-skip", "-tags", "-timeout", "-count", "-fuzz", "-fuzztime", "-fuzzminimizetime", "-vet"}
	alone  = []string{"-v", "-race"}
)

// problemsOfGo are what is wrong with a call of go: a verb or a flag that it does not have, a package or a test that is not there.
func problemsOfGo(call Call) (problems []string) {
	if len(call.Words) == 0 || !slices.Contains(goVerbs, call.Words[0]) {
		return []string{fmt.Sprintf("go has no verb of %q", call.Words)}
	}
	if call.Folder == "X" {
		return nil // the shell says where
	}
	verb := call.Words[0]
	words := call.Words[1:]
	switch verb {
	case "run":
		if len(words) > 0 && len(packages(call, words[0])) == 0 {
			problems = append(problems, "there is no package "+words[0])
		}
	case "test":
		problems = problemsOfGoTest(call, words)
	}
	return problems
}

func problemsOfGoTest(call Call, words []string) (problems []string) {
	var folders []string
	var patterns []string
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if word == "-args" {
			break // the rest is for the tests
		}
		flag, value, has := strings.Cut(word, "=")
		switch {
		case !strings.HasPrefix(word, "-"):
			found := packages(call, word)
			if len(found) == 0 {
				problems = append(problems, "there is no package "+word)
			}
			folders = append(folders, found...)
		case slices.Contains(alone, word):
		case !slices.Contains(valued, flag):
			problems = append(problems, "no test knows that go test has "+word)
		case !has && len(words) == 0:
			problems = append(problems, word+" has no value")
		default:
			if !has {
				value, words = words[0], words[1:]
			}
			if flag == "-run" || flag == "-skip" {
				patterns = append(patterns, value)
			}
		}
	}
	names := tests(folders)
	for _, pattern := range patterns {
		for _, missing := range unnamed(pattern, names) {
			problems = append(problems, fmt.Sprintf("no test is named by %q", missing))
		}
	}
	return problems
}

// packages are the folders of a pattern of packages, seen from where the call is made: the folder of the file, or the repository.
func packages(call Call, pattern string) []string {
	if pattern == "X" { // the shell says which
		pattern = "./..."
	}
	below, all := strings.CutSuffix(pattern, "/...")
	var found []string
	for _, from := range []string{call.Folder, "."} {
		folder := filepath.Join(repository, from, below)
		if all {
			_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error { // a folder that is not there has no packages
				if err == nil && entry.IsDir() {
					found = append(found, path)
				}
				return nil
			})
		} else if sources, _ := filepath.Glob(filepath.Join(folder, "*.go")); len(sources) > 0 { // the pattern is ours
			found = append(found, folder)
		}
	}
	return found
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)

// tests are the names of tests in folders, whatever their build tags.
func tests(folders []string) (names []string) {
	for _, folder := range folders {
		paths, _ := filepath.Glob(filepath.Join(folder, "*_test.go")) // the pattern is ours
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			for _, match := range testName.FindAllStringSubmatch(string(content), -1) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

// unnamed are the alternatives of a pattern of -run that name none of the tests.
func unnamed(pattern string, names []string) (missing []string) {
	for alternative := range strings.SplitSeq(pattern, "|") {
		first, _, _ := strings.Cut(alternative, "/")
		expression, err := regexp.Compile(first)
		if err != nil || !slices.ContainsFunc(names, expression.MatchString) {
			missing = append(missing, alternative)
		}
	}
	return missing
}

func TestPrintedCommandsAreFound(t *testing.T) {
	for what, test := range map[string]struct {
		read    func(string) ([]Printed, error)
		content string
		want    []string
	}{
		"sessions, blocks and spans": {inDocument, "`make demo` and `kubectl` and `a b`, `kubectl fleet get a\\|b`\n```sh\ngo test ./x\n```\n```console\n$ kubectl fleet \\\n  get\n```\n",
			[]string{"kubectl fleet \\\n  get", "make demo", "kubectl fleet get a|b", "go test ./x"}},
		"targets and what their texts say": {inMakefile, "# It is as in: make a V='b c'\na-b: c ## Does it. V='x y' more, as in N=1 M=2; seconds\n\t@go run ./x; echo 'run: make fmt'\n",
			[]string{"make a V='b c'", "make fmt", "make a-b", "make a-b V='x y'", "make a-b N=1 M=2"}},
		"what people are told": {func(content string) ([]Printed, error) { return inText(content, nil), nil },
			"\"see: kubectl fleet status %s --watch, or run make test-crash; it will make sense\"\n//\tcd test/soak && go run . replay x\nkubectl fleet is. A sentence\n`V=1 make x`\n",
			[]string{"kubectl fleet status X --watch", "make test-crash", "cd test/soak && go run . replay x", "kubectl fleet is", "V=1 make x"}},
	} {
		t.Run(what, func(t *testing.T) {
			found, err := test.read(test.content)
			require.NoError(t, err)
			var texts []string
			for _, printed := range found {
				texts = append(texts, printed.Text)
			}
			assert.Equal(t, test.want, texts)
		})
	}
}

func TestCommandsThatDoNotWorkAreFound(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	require.NoError(t, err)
	for text, want := range map[string]string{
		`make bench TESTFLAGS='-run "TestStagedOne$"'`:                     "",
		`make bench TESTFLAGS='-run "TestStagedOne$$"'`:                    `no test is named by "TestStagedOneX"`,
		`make bench TESTFLAGS='-run "TestStagedOne|TestNothing"'`:          `no test is named by "TestNothing"`,
		`make bench TESTFLAGS='-run "TestStagedOne'`:                       "bash cannot read what make would run",
		`make bench TESTFLAG=-v`:                                           "make does nothing with TESTFLAG",
		`make banch`:                                                       "No rule to make target",
		`make bench TESTFLAGS=--verbose`:                                   "no test knows that go test has --verbose",
		`go test ./test/nothing`:                                           "there is no package ./test/nothing",
		`go run ./cmd/nothing up`:                                          "there is no package ./cmd/nothing",
		`go testing ./test/docs`:                                           "go has no verb of",
		`go test -tags integration -run TestFigures -v ./test/integration`: "",
		`cd test/docs && go test -run TestParse .`:                         "",
	} {
		t.Run(text, func(t *testing.T) {
			made, err := Printed{Where: "here", Folder: ".", Text: text}.Calls()
			require.NoError(t, err)
			call := made[len(made)-1]
			problems := problemsOfGo(call)
			if call.Program == "make" {
				problems = problemsOfMake(t, string(makefile), call)
			}
			if want == "" {
				assert.Empty(t, problems)
				return
			}
			assert.Contains(t, strings.Join(problems, "\n"), want)
		})
	}
	_, err = Printed{Where: "here", Text: `kubectl get "`}.Calls()
	require.ErrorContains(t, err, "no shell reads")
}

// numberOfKinds is what `kubectl fleet check` prints of the definitions.
var numberOfKinds = regexp.MustCompile(`serves all (\d+) kinds of the fleet`)

// The output of check is not compared by a run, as what else happens on a fleet shows in it.
func TestThePrintedNumberOfKindsIsThatOfTheDefinitions(t *testing.T) {
	definitions, err := filepath.Glob(filepath.Join(repository, "deploy/charts/hub-agent/crds/*fleet*.yaml"))
	require.NoError(t, err)
	found := 0
	for _, path := range documents(t) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, number := range numberOfKinds.FindAllStringSubmatch(string(content), -1) {
			found++
			assert.Equal(t, strconv.Itoa(len(definitions)), number[1], path)
		}
	}
	assert.Positive(t, found, "numbers found")
}
