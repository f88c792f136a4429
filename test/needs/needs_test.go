package needs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const repository = "../.."

// bare are the programs of a machine that has nothing else: the real ones.
var bare = []string{"bash", "cat", "dirname", "env", "grep", "tail", "wc"}

// machine has programs that are played, and no others than those that are bare.
type machine struct {
	*testing.T
	programs string
	// variables are those of the environment.
	variables []string
}

// newMachine has Go, and its user is root or not.
func newMachine(t *testing.T, root bool, variables ...string) *machine {
	t.Helper()
	m := &machine{T: t, programs: t.TempDir(), variables: append(variables, "DEBIAN_POSTGRESQL=/nowhere", "DEBIAN_SBIN=/nowhere", "DEBIAN_CNI=/nowhere")}
	for _, name := range bare {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(m.programs, name)))
	}
	m.has("go", `case $1 in env) echo gcc ;; list) printf 'one\n\ntwo\n' ;; esac`)
	m.has("id", map[bool]string{true: "echo 0", false: "echo 1000"}[root])
	return m
}

// has gives the machine a program.
func (m *machine) has(name, script string) {
	m.Helper()
	require.NoError(m, os.WriteFile(filepath.Join(m.programs, name), []byte("#!"+filepath.Join(m.programs, "bash")+"\n"+script+"\n"), 0o700)) //nolint:gosec // it is to be run
}

// hasPackages gives it an apt-get that notes how it is called and installs what it is asked for, in the end.
func (m *machine) hasPackages(refuses string) {
	m.Helper()
	m.has("apt-get", `echo "$*" >>`+m.programs+`/calls
case "$*" in `+refuses+`) echo "E: Unable to locate package"; exit 100 ;; esac
for name; do case $name in
chromium|curl|postgresql) program=$name; [ $name != postgresql ] || program=postgres; printf '#!`+m.programs+`/bash\n' >`+m.programs+`/$program; `+m.chmod()+` 700 `+m.programs+`/$program ;;
gcc) printf '#!`+m.programs+`/bash\n' >`+m.programs+`/gcc; `+m.chmod()+` 700 `+m.programs+`/gcc ;;
esac; done; exit 0`)
}

func (m *machine) chmod() string {
	path, err := exec.LookPath("chmod")
	require.NoError(m, err)
	return path
}

// calls returns how apt-get was called, a line for each.
func (m *machine) calls() []string {
	m.Helper()
	content, err := os.ReadFile(filepath.Join(m.programs, "calls"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(m, err)
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// needs runs the script.
func (m *machine) needs(args ...string) (output string, code int) {
	m.Helper()
	command := exec.CommandContext(m.Context(), filepath.Join(repository, ".ci", "needs"), args...)
	command.Env = append([]string{"PATH=" + m.programs}, m.variables...)
	out, err := command.CombinedOutput()
	exit := &exec.ExitError{}
	if err != nil && !errors.As(err, &exit) {
		require.NoError(m, err)
	}
	return string(out), command.ProcessState.ExitCode()
}

const (
	noBrowser  = "there is no Chromium: apt-get install --no-install-recommends chromium, or name one in the variable CHROMIUM"
	noCompiler = "there is no C compiler with headers: apt-get install --no-install-recommends gcc libc6-dev, or give make RACE= to do without the race detector"
	noCurl     = "there is no curl: apt-get install --no-install-recommends curl"
	noPods     = "only root can run Pods, with packages: apt-get install --no-install-recommends containerd runc containernetworking-plugins iptables conntrack iproute2"
	noDatabase = "there is no PostgreSQL: apt-get install --no-install-recommends postgresql, or put its folder of programs on PATH"
)

func TestWhatIsThereIsFoundAndNothingIsInstalled(t *testing.T) {
	m := newMachine(t, true, "CI=true")
	m.hasPackages("nothing")
	for name, program := range map[string]string{"browser": "google-chrome", "compiler": "gcc", "curl": "curl", "postgresql": "postgres"} {
		m.has(program, "exit 0")
		out, code := m.needs("find", name)
		assert.Zero(t, code)
		assert.Equal(t, filepath.Join(m.programs, program)+"\n", out)
	}
	for _, verb := range []string{"bring", "left-out"} {
		out, code := m.needs(verb, "browser", "compiler", "curl", "postgresql")
		assert.Zero(t, code)
		assert.Empty(t, out)
	}
	assert.Empty(t, m.calls())
}

func TestWhatIsMissingIsNamedWithTheWayToGetIt(t *testing.T) {
	for name, advice := range map[string]string{"browser": noBrowser, "compiler": noCompiler, "curl": noCurl, "postgresql": noDatabase} {
		out, code := newMachine(t, true).needs("find", name)
		assert.Equal(t, mayBeLeftOut, code)
		assert.Equal(t, advice+"\n", out)
		for _, ci := range []string{"true", "1", "yes"} {
			_, code = newMachine(t, true, "CI="+ci).needs("find", name)
			assert.Equal(t, 1, code, "CI=%s", ci)
		}
		for _, ci := range []string{"", "0", "false"} {
			_, code = newMachine(t, true, "CI="+ci).needs("find", name)
			assert.Equal(t, mayBeLeftOut, code, "CI=%s", ci)
		}
	}
}

func TestPodsNeedRootProgramsAndPlugIns(t *testing.T) {
	plugins := t.TempDir()
	m := newMachine(t, true, "CI=true", "DEBIAN_CNI="+plugins)
	m.variables = slices.DeleteFunc(m.variables, func(v string) bool { return v == "DEBIAN_CNI=/nowhere" })
	for _, program := range []string{"containerd", "runc", "iptables", "conntrack", "ip"} {
		m.has(program, "exit 0")
	}
	_, code := m.needs("find", "pods")
	assert.Equal(t, mayBeLeftOut, code, "there are no plug-ins; they may be left out under CI, too")
	require.NoError(t, os.WriteFile(filepath.Join(plugins, "bridge"), nil, 0o700)) //nolint:gosec // it stands for a program
	out, code := m.needs("find", "pods")
	assert.Zero(t, code, out)
	m.has("id", "echo 1000")
	out, code = m.needs("find", "pods")
	assert.Equal(t, mayBeLeftOut, code)
	assert.Equal(t, noPods+"\n", out)
	realnode, err := os.ReadFile(filepath.Join(repository, "test", "devfleet", "realnode", "needs.go"))
	require.NoError(t, err)
	_, packages, _ := strings.Cut(noPods, "recommends ")
	for name := range strings.FieldsSeq(packages) {
		assert.Contains(t, string(realnode), `"`+name+`"`, "both name the same packages")
	}
}

func TestAProgramThatDoesNotStartIsNotThere(t *testing.T) {
	m := newMachine(t, false)
	m.has("chromium", "echo 'this is a snap' >&2; exit 1")
	m.has("gcc", "echo 'stdlib.h: No such file or directory' >&2; exit 1")
	for _, name := range []string{"browser", "compiler"} {
		_, code := m.needs("find", name)
		assert.Equal(t, mayBeLeftOut, code, name)
	}
	m.has("chromium-browser", "exit 0")
	out, code := m.needs("find", "browser")
	assert.Zero(t, code)
	assert.Contains(t, out, "chromium-browser")
}

func TestRootGetsWhatIsMissingFromThePackages(t *testing.T) {
	for what, test := range map[string]struct {
		refuses string
		want    []string
	}{
		"of the lists that are there": {"nothing", []string{"install"}},
		"of new lists":                {`*install*) [ "$(wc -l <calls)" -lt 3 ] && exit 100 ;; never`, []string{"install", "update", "install"}},
	} {
		t.Run(what, func(t *testing.T) {
			m := newMachine(t, true, "CI=true")
			m.hasPackages(strings.ReplaceAll(test.refuses, "calls", m.programs+"/calls"))
			out, code := m.needs("bring", "browser", "curl", "postgresql", "compiler")
			require.Zero(t, code, out)
			assert.Equal(t, "== installing what tests need: chromium curl postgresql gcc libc6-dev\n", out)
			calls := m.calls()
			require.Len(t, calls, len(test.want))
			for i, verb := range test.want {
				assert.Contains(t, calls[i], verb)
			}
			assert.Contains(t, calls[len(calls)-1], "install -y --no-install-recommends chromium curl postgresql gcc libc6-dev")
		})
	}
}

// left is what is said to be left out, in the order of the names.
var left = map[string]string{
	"browser":    `\d\d tests of test/web and a spec of test/integration, all in a browser, as ` + noBrowser,
	"compiler":   `the race detector in 2 packages, as ` + noCompiler,
	"curl":       `[1-9]\d* guides whose commands call curl, as ` + noCurl,
	"pods":       `the specs on real Pods in test/pods, as ` + noPods,
	"postgresql": `the walk through the production page in test/charts, as ` + noDatabase,
}

func TestWhatCannotBeInstalledIsLeftOutAndCounted(t *testing.T) {
	for who, m := range map[string]*machine{
		"another user":         newMachine(t, false),
		"root without apt-get": newMachine(t, true),
		"root without network": newMachine(t, true),
	} {
		t.Run(who, func(t *testing.T) {
			if who != "root without apt-get" {
				m.hasPackages("*")
			}
			for name, line := range left {
				out, code := m.needs("bring", name)
				assert.Zero(t, code)
				assert.Regexp(t, "(?m)^left out: "+line+"$", out)
				if who == "root without network" {
					assert.Contains(t, out, "E: Unable to locate package")
				}
				out, code = m.needs("left-out", name)
				assert.Zero(t, code)
				assert.Regexp(t, "^NOT RUN: "+line+"\n$", out)
			}
			assert.Equal(t, who == "root without network", m.calls() != nil, "apt-get was called")
		})
	}
}

func TestNothingIsLeftOutUnderCI(t *testing.T) {
	m := newMachine(t, false, "CI=true")
	m.has("curl", "exit 0")
	out, code := m.needs("bring", "browser", "curl", "compiler")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "CI=true and "+noBrowser+"; nothing may be left out there")
	assert.Contains(t, out, "CI=true and "+noCompiler+"; nothing may be left out there")
	assert.NotContains(t, out, noCurl)
}

func TestWhatTheUserHasSetIsNotInstalledOver(t *testing.T) {
	m := newMachine(t, true, "CHROMIUM=/opt/my chromium")
	m.hasPackages("nothing")
	m.has("chromium", "exit 0")
	m.has("gcc", "exit 0")
	out, code := m.needs("bring", "browser", "compiler")
	assert.Zero(t, code)
	assert.Contains(t, out, "CHROMIUM is '/opt/my chromium', which does not start: name the program of a Chromium, or unset CHROMIUM\n")
	assert.Empty(t, m.calls())

	own := filepath.Join(t.TempDir(), "my chromium")
	require.NoError(t, os.Symlink(filepath.Join(m.programs, "chromium"), own))
	m.variables = []string{"CHROMIUM=" + own}
	out, code = m.needs("find", "browser")
	assert.Zero(t, code)
	assert.Equal(t, own+"\n", out)
}

func TestCallsThatMeanNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"get", "curl"}, {"find"}, {"find", "less"}, {"bring", "curl", "less"}} {
		out, code := newMachine(t, true).needs(args...)
		assert.NotZero(t, code, args)
		assert.NotEqual(t, mayBeLeftOut, code, args)
		assert.NotEmpty(t, out)
	}
}

// asked notes what Require does with a test.
type asked struct {
	*testing.T
	skipped, failed []any
}

func (a *asked) Skip(args ...any)  { a.skipped = args }
func (a *asked) Fatal(args ...any) { a.failed = args }

func TestATestIsSkippedOrFailsWithTheAdvice(t *testing.T) {
	m := newMachine(t, false)
	t.Setenv("PATH", m.programs)
	t.Setenv("CI", "")
	a := &asked{T: t}
	Require(a, repository, Curl)
	require.Len(t, a.skipped, 1)
	assert.EqualError(t, a.skipped[0].(error), noCurl) //nolint:forcetypeassert // it fails otherwise
	assert.Empty(t, a.failed)

	t.Setenv("CI", "true")
	a = &asked{T: t}
	Require(a, repository, Curl)
	assert.Empty(t, a.skipped)
	assert.Len(t, a.failed, 1)

	m.has("curl", "exit 0")
	a = &asked{T: t}
	Require(a, repository, Curl)
	assert.Empty(t, a.skipped)
	assert.Empty(t, a.failed)

	_, err := Find(context.Background(), t.TempDir(), Curl)
	assert.ErrorContains(t, err, "looking for curl")
}

// make asks for what is needed before it tests, and says in the end what was left out.
func TestMakeBringsWhatTestsNeed(t *testing.T) {
	made := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "make", append([]string{"-n"}, args...)...)
		command.Dir = repository
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} // without the variables of a make that runs this
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	for target, want := range map[string]string{
		"test-web": "bring browser", "test-integration": "bring browser", "test-documents": "bring curl", "test-unit": "bring compiler",
		"test-install": "bring postgresql",
	} {
		assert.Contains(t, made(target), ".ci/needs "+want, target)
	}
	all := made("test")
	for _, name := range []string{"browser", "curl", "postgresql", "compiler"} {
		assert.Less(t, strings.Index(all, ".ci/needs bring "+name), strings.Index(all, "go test"), "it is known before any test is run")
	}
	assert.Contains(t, all, "left-out browser curl postgresql compiler pods")
	assert.NotContains(t, all, "bring pods", "what runs Pods is installed only by name")
	assert.Contains(t, made("needs-pods"), ".ci/needs bring pods")
	assert.NotContains(t, made("test", "RACE="), "bring compiler", "who does without the race detector needs none")
	script, err := os.ReadFile(filepath.Join(repository, ".ci", "run"))
	require.NoError(t, err)
	assert.NotContains(t, string(script), "apt-get", "it installs nothing that make test would not")
}
