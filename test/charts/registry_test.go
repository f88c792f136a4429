package charts

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmcmd "helm.sh/helm/v4/pkg/cmd"
)

// actAsHelm has the program of the tests be Helm: so commands run with Helm's own, and nothing else has to be built.
const actAsHelm = "FLEETFLOW_TESTS_ACT_AS_HELM"

func init() {
	if os.Getenv(actAsHelm) == "" {
		return
	}
	helm, err := helmcmd.NewRootCmd(os.Stdout, os.Args[1:], helmcmd.SetupLogging)
	if err != nil || helm.Execute() != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// shell has Helm on its path, and folders of its own for what Helm keeps.
type shell struct {
	t   *testing.T
	dir string
	env []string
}

func newShell(t *testing.T, dir string) *shell {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	home := t.TempDir()
	// The registry here has no certificate, and a cluster to ask for its version there is none.
	script := "#!/bin/bash\n[[ $* == *oci://* ]] && set -- \"$@\" --plain-http\n[[ $1 == template ]] && set -- \"$@\" --kube-version 1.36.0\n" +
		actAsHelm + "=yes exec " + self + " \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(home, "helm"), []byte(script), 0o700)) //nolint:gosec // it is to be run
	return &shell{t, dir, append(os.Environ(), "PATH="+home+string(os.PathListSeparator)+os.Getenv("PATH"), "MAKEFLAGS=", "MAKELEVEL=",
		"HOME="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG=/nonexistent")}
}

func (s *shell) run(line string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), "bash", "-ec", line)
	command.Dir = s.dir
	command.Env = s.env
	printed, err := command.CombinedOutput()
	require.NoError(s.t, err, "%s\n%s", line, printed)
	return string(printed)
}

// images are those of the containers that were rendered.
func images(rendered string) (found []string) {
	for _, match := range regexp.MustCompile(`(?m)^ +image: "?([^"\s]+)`).FindAllStringSubmatch(rendered, -1) {
		found = append(found, match[1])
	}
	return found
}

// What a release makes of the charts is pushed to a registry by the target that pushes it, and comes back from there as a user gets it.
func TestReleasedChartsComeFromARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://") + "/fleet"
	dir := t.TempDir()
	source, err := filepath.Abs(root)
	require.NoError(t, err)
	s := newShell(t, dir)
	digest := "sha256:" + strings.Repeat("1", 64)
	s.run(`cp ` + source + `/Makefile . && mkdir -p bin deploy && cp -r ` + source + `/deploy/charts deploy/
for program in hub-agent member-agent fleet-dashboard kubectl-fleet bundled-temporal; do echo "$program ` + address + `/$program@` + digest + `"; done >bin/released.txt
make charts TAG=v1.2.3 REGISTRY=` + address)
	released := s.run("cat bin/released.txt")
	for chart, values := range map[string]string{
		"hub-agent":       "--set temporal.address=temporal-frontend.temporal:7233",
		"member-agent":    "--set config.hubURL=https://hub.example.com:6443 --set config.memberClusterName=member-1 --set config.hubTokenSecret=hub-token",
		"fleet-dashboard": "--set url=https://fleet.example.com --set tokens.enabled=true",
	} {
		t.Run(chart, func(t *testing.T) {
			s := newShell(t, t.TempDir())
			from := "oci://" + address + "/charts/" + chart
			assert.Regexp(t, "(?m)^version: 1.2.3$", s.run("helm show chart "+from+" --version 1.2.3"))
			assert.Regexp(t, "(?m)^appVersion: v1.2.3$", s.run("helm show chart "+from+" --version 1.2.3"))
			own := address + "/" + chart + "@" + digest
			want := []string{own, own} // the second is of helm test
			if chart == "hub-agent" {
				want = []string{own, address + "/kubectl-fleet@" + digest, own} // of helm test, and of the Job that looks for pods
			}
			assert.Equal(t, want, images(s.run("helm template "+chart+" "+from+" --version 1.2.3 -n fleet-system "+values)), "images are those of the release, by their digests")
			pinned := regexp.MustCompile(`chart-` + chart + ` \S+@(sha256:[0-9a-f]{64})`).FindStringSubmatch(released)
			require.NotNil(t, pinned, released)
			assert.Contains(t, s.run("helm pull "+from+"@"+pinned[1]+" && ls"), chart, "it is signed and installed by this digest")
		})
	}
}

// A release that is not pushed has charts in files, which its notes install.
func TestReleasedChartsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	source, err := filepath.Abs(root)
	require.NoError(t, err)
	s := newShell(t, dir)
	programs := filepath.Join(dir, "programs")
	require.NoError(t, os.Mkdir(programs, 0o700))
	s.env = append(s.env, "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.run(`cp ` + source + `/{Makefile,LICENSE} . && cp -r ` + source + `/.ci . && mkdir -p deploy test/controlplane && cp -r ` + source + `/deploy/charts deploy/
cat >programs/go <<'GO'
#!/bin/bash
case "$1" in
build) while [ $# -gt 0 ]; do [ "$1" = -o ] && { mkdir -p "$(dirname "$2")"; echo program >"$2"; }; shift; done ;;
run) for last in "$@"; do :; done; echo '{}' >"$last.cdx.json" ;;
esac
GO
chmod +x programs/go
make release-all VERSION=1.2.3 REGISTRY=registry.example.com/fleet`)
	notes := s.run("cat bin/release/v1.2.3/RELEASE_NOTES.md")
	installs := regexp.MustCompile(`(?m)^helm install (\S+ \S+\.tgz .*)$`).FindAllStringSubmatch(notes, -1)
	require.Len(t, installs, 1, notes)
	user := newShell(t, filepath.Join(dir, "bin", "release", "v1.2.3"))
	assert.Equal(t, []string{"registry.example.com/fleet/bundled-temporal:v1.2.3", "registry.example.com/fleet/hub-agent:v1.2.3", "registry.example.com/fleet/kubectl-fleet:v1.2.3", "registry.example.com/fleet/hub-agent:v1.2.3"}, images(user.run("helm template "+installs[0][1])))
	chart := regexp.MustCompile(`--chart (\S+\.tgz)`).FindStringSubmatch(notes)
	require.NotNil(t, chart, notes)
	assert.Equal(t, []string{"registry.example.com/fleet/member-agent:v1.2.3", "registry.example.com/fleet/member-agent:v1.2.3"},
		images(user.run("helm template member-agent "+chart[1]+" --set config.hubURL=https://hub.example.com:6443 --set config.memberClusterName=member-1")))

	var named []string
	for chart, given := range map[string]string{
		"hub-agent":    "",
		"member-agent": "--set config.hubURL=https://hub.example.com:6443 --set config.memberClusterName=member-1", "fleet-dashboard": "--set url=https://fleet.example.com --set tokens.enabled=true",
	} {
		named = append(named, images(user.run("helm template "+chart+" "+chart+"-1.2.3.tgz "+given))...)
	}
	slices.Sort(named)
	assert.ElementsMatch(t, slices.Compact(named), strings.Fields(user.run("cat images.txt")), "the list for those without a way to the internet has all of them, and no others")
}

// helmCommands are the commands of a document with which Helm installs one of our charts.
func helmCommands(document string) (commands []string) {
	joined := strings.ReplaceAll(document, "\\\n", " ")
	for _, found := range regexp.MustCompile(`(?m)^\$ (helm (?:install|upgrade) \S+ deploy/charts/.*)$`).FindAllStringSubmatch(joined, -1) {
		commands = append(commands, found[1])
	}
	return commands
}

// Documents cannot be run where there is no image. Their commands are, as far as the charts go: what Helm would install is rendered,
// with the values and in the namespace that are printed.
func TestPrintedInstallCommandsRender(t *testing.T) {
	count := 0
	for _, pattern := range []string{"README.md", "deploy/*.md", "deploy/docs/*.md", "deploy/charts/*/README.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, command := range helmCommands(string(content)) {
				count++
				t.Run(strings.TrimPrefix(path, root+"/"), func(t *testing.T) {
					s := newShell(t, root)
					words := regexp.MustCompile(`helm (?:install|upgrade)|--create-namespace|--reset-then-reuse-values`).ReplaceAllStringFunc(command, func(word string) string {
						switch word {
						case "--create-namespace":
							return ""
						case "--reset-then-reuse-values": // what was installed before says where Temporal, or the hub, is
							if strings.Contains(command, "deploy/charts/member-agent") {
								return "--set config.hubURL=https://hub.example.com:6443 --set config.memberClusterName=member-1"
							}
							return "--set temporal.address=temporal-frontend.temporal:7233"
						}
						return "helm template"
					})
					if strings.Contains(words, "values-production.yaml") { // where the user puts the digest of the image
						words += " --set image.digest=sha256:" + strings.Repeat("1", 64)
					}
					assert.NotEmpty(t, images(s.run(words)))
				})
			}
		}
	}
	assert.GreaterOrEqual(t, count, 6)
}
