// Package release checks what make does with docker, helm and cosign when images and charts are released. The programs are
// played: no registry is needed.
package release

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	repository = "../.."
	base       = "sha256:ba5e000000000000000000000000000000000000000000000000000000000000"
	image      = "sha256:1111000000000000000000000000000000000000000000000000000000000000"
	chart      = "sha256:c4a7000000000000000000000000000000000000000000000000000000000000"
)

// played are programs that note how they are called and answer as the real ones do.
var played = map[string]string{
	"docker": `case "$*" in
*"imagetools inspect"*) echo ` + base + ` ;;
*) while [ $# -gt 0 ]; do [ "$1" = --metadata-file ] && printf '{\n  "containerimage.config.digest": "sha256:0",\n  "containerimage.digest": "` + image + `"\n}\n' >"$2"; shift; done ;;
esac`,
	"helm": `case "$1" in
package) name=$(basename "$2"); cp "$2/values.yaml" "bin/charts/$name.values"; : >"bin/charts/$name-1.2.3.tgz" ;;
push) echo "Pushed: x"; echo "Digest: ` + chart + `" ;;
esac`,
	"cosign": ":",
	"git": `case "$1" in
log) case "$*" in *%ct*) echo 1700000000 ;; *) echo "- Rollouts are faster (abc1234)" ;; esac ;;
describe) echo v1.2.2 ;;
esac`,
}

// playedGo writes what it is to build, and leaves a bill of materials beside what it is to describe.
const playedGo = `case "$1" in
build) while [ $# -gt 0 ]; do [ "$1" = -o ] && { mkdir -p "$(dirname "$2")"; echo "$GOOS/$GOARCH $(basename "$2")" >"$2"; }; shift; done ;;
run) for last in "$@"; do :; done; echo '{"bomFormat":"CycloneDX"}' >"$last.cdx.json" ;;
esac`

// release runs targets of the Makefile in a copy of what they read, and returns how programs were called.
func release(t *testing.T, dir string, targets ...string) (calls, output string, err error) {
	t.Helper()
	programs := filepath.Join(dir, "programs")
	log := filepath.Join(dir, "calls")
	require.NoError(t, os.MkdirAll(programs, 0o700))
	for name, answer := range played {
		script := "#!/bin/bash\necho \"" + name + " $*\" >>" + log + "\n" + answer + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte(script), 0o700)) //nolint:gosec // it is to be run
	}
	if !slices.ContainsFunc(targets, func(target string) bool { return strings.HasPrefix(target, "VERSION=") }) {
		targets = append(targets, "TAG=v1.2.3")
	}
	command := exec.CommandContext(t.Context(), "make", append(targets, "REGISTRY=registry.example.com/fleet")...)
	command.Dir = dir
	command.Env = append(os.Environ(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"), "MAKEFLAGS=", "MAKELEVEL=")
	out, err := command.CombinedOutput()
	made, readErr := os.ReadFile(log)
	if readErr != nil {
		require.ErrorIs(t, readErr, os.ErrNotExist)
	}
	return string(made), string(out), err
}

// folder has what the targets read.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Makefile"), makefile, 0o600))
	script, err := os.ReadFile(filepath.Join(repository, ".ci", "release-all"))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".ci"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".ci", "release-all"), script, 0o700)) //nolint:gosec // it is to be run
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "test", "controlplane"), 0o700))        // the module of the bundled Temporal
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Apache\n"), 0o600))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "deploy", "charts"), os.DirFS(filepath.Join(repository, "deploy", "charts"))))
	return dir
}

func TestAReleaseIsBuiltSignedAndInstalledByDigest(t *testing.T) {
	dir := folder(t)
	calls, output, err := release(t, dir, "images", "charts", "sign")
	require.NoError(t, err, output)
	for _, program := range []string{"hub-agent", "member-agent", "kubectl-fleet"} {
		assert.Contains(t, calls, "cosign sign --yes registry.example.com/fleet/"+program+"@"+image)
	}
	for line := range strings.Lines(calls) {
		if strings.HasPrefix(line, "docker buildx build") {
			assert.Contains(t, line, "--build-arg BUILD_IMAGE=golang@"+base+" --build-arg BASE_IMAGE=gcr.io/distroless/static-debian12@"+base)
			assert.Contains(t, line, "--sbom=true --provenance=true --push")
		}
		if strings.HasPrefix(line, "cosign") {
			assert.Contains(t, line, "@sha256:", "a tag may come to mean other bytes before it is signed")
		}
	}
	for _, name := range []string{"hub-agent", "member-agent"} {
		assert.Contains(t, calls, "helm push bin/charts/"+name+"-1.2.3.tgz oci://registry.example.com/fleet/charts")
		assert.Contains(t, calls, "cosign sign --yes registry.example.com/fleet/charts/"+name+"@"+chart)
		values, err := os.ReadFile(filepath.Join(dir, "bin", "charts", name+".values"))
		require.NoError(t, err)
		assert.Contains(t, string(values), "  repository: registry.example.com/fleet/"+name+"\n")
		assert.Contains(t, string(values), "  digest: "+image+"\n")
		assert.Equal(t, map[string]int{"hub-agent": 3, "member-agent": 1}[name], strings.Count(string(values), image), "the agent's, that of helm test, and that of the bundled Temporal")
		assert.NotContains(t, string(values), "ghcr.io/fleetflow")
		source, err := os.ReadFile(filepath.Join(dir, "deploy", "charts", name, "values.yaml"))
		require.NoError(t, err)
		assert.NotContains(t, string(source), image)
	}
}

func TestNothingIsPackagedOrSignedThatWasNotPushed(t *testing.T) {
	for target, want := range map[string]string{"charts": "run make images", "sign": "run make images charts"} {
		t.Run(target, func(t *testing.T) {
			calls, output, err := release(t, folder(t), target)
			require.Error(t, err)
			assert.Contains(t, output, want)
			assert.Empty(t, calls)
		})
	}
}

// unpack returns the files of an archive.
func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	files := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		files[header.Name] = string(content)
	}
}

// readFile returns the text of a file.
func readFile(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(content)
}

func TestARelease(t *testing.T) {
	t.Cleanup(func() { delete(played, "go") })
	played["go"] = playedGo
	dir := folder(t)
	calls, output, err := release(t, dir, "release-all", "VERSION=1.2.3")
	require.NoError(t, err, output)
	out := filepath.Join(dir, "bin", "release", "v1.2.3")

	t.Run("is built of one version for every platform", func(t *testing.T) {
		built := 0
		for line := range strings.Lines(calls) {
			if strings.HasPrefix(line, "go build") {
				built++
				assert.Equal(t, !strings.Contains(line, "temporalio"), strings.Contains(line, "version.number=v1.2.3"), "Temporal's program has a version of its own: %s", line)
			}
		}
		assert.Equal(t, 16, built, "two agents, the dashboard and the two programs of the bundled Temporal for two platforms, the plugin for six")
		assert.Equal(t, "windows/arm64 kubectl-fleet\n", unpack(t, filepath.Join(out, "kubectl-fleet_v1.2.3_windows_arm64.tar.gz"))["kubectl-fleet.exe"])
		assert.Contains(t, unpack(t, filepath.Join(out, "kubectl-fleet_v1.2.3_darwin_arm64.tar.gz")), "LICENSE")
		assert.Equal(t, "linux/arm64 hub-agent\n", unpack(t, filepath.Join(out, "hub-agent_v1.2.3_linux_arm64.tar.gz"))["hub-agent"])
		for _, name := range []string{"member-agent", "bundled-temporal"} {
			assert.FileExists(t, filepath.Join(out, name+"_v1.2.3_linux_amd64.cdx.json"))
		}
	})
	t.Run("has charts that take the images of that version", func(t *testing.T) {
		for _, name := range []string{"hub-agent", "member-agent"} {
			files := unpack(t, filepath.Join(out, name+"-1.2.3.tgz"))
			assert.Contains(t, files[name+"/Chart.yaml"], "\nversion: 1.2.3\nappVersion: \"v1.2.3\"\n")
			assert.Contains(t, files[name+"/values.yaml"], "  repository: registry.example.com/fleet/"+name+"\n")
			assert.Contains(t, files[name+"/values.yaml"], "  tag: \"\"\n", "the tag is the appVersion")
		}
	})
	t.Run("has checksums of all there is, and krew's manifest says the same", func(t *testing.T) {
		sums := readFile(t, out, "SHA256SUMS")
		files, err := os.ReadDir(out)
		require.NoError(t, err)
		assert.Equal(t, len(files)-1, strings.Count(sums, "\n"))
		krew := readFile(t, out, "fleetflow.yaml")
		assert.Contains(t, krew, "\n  name: fleetflow\n", "fleet is another plugin's")
		for line := range strings.Lines(sums) {
			sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
			content := readFile(t, out, file)
			assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(content))), sum, file)
			if strings.HasPrefix(file, "kubectl-fleet_") && strings.HasSuffix(file, ".tar.gz") {
				assert.Contains(t, krew, "/releases/download/v1.2.3/"+file+"\n    sha256: "+sum+"\n")
			}
		}
	})
	t.Run("is installed by the commands that its notes print", func(t *testing.T) {
		_, block, has := strings.Cut(readFile(t, out, "RELEASE_NOTES.md"), "```bash\n")
		require.True(t, has)
		commands, _, _ := strings.Cut(block, "```")
		home := t.TempDir()
		programs := t.TempDir()
		// helm and kubectl do nothing but insist that the files they are given are there.
		script := "#!/bin/bash\nfor word in \"$@\"; do case $word in *.tgz) [ -s \"$word\" ] || exit 1 ;; esac; done\necho \"$(basename \"$0\") $*\"\n"
		for _, name := range []string{"helm", "kubectl"} {
			require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte(script), 0o700)) //nolint:gosec // it is to be run
		}
		command := exec.CommandContext(t.Context(), "bash", "-euc", commands)
		command.Dir = out
		command.Env = []string{"HOME=" + home, "PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH")}
		printed, err := command.CombinedOutput()
		require.NoError(t, err, "%s", printed)
		assert.FileExists(t, filepath.Join(home, ".local", "bin", "kubectl-fleet"))
		assert.Contains(t, string(printed), "helm install hub-agent hub-agent-1.2.3.tgz --namespace fleet-system")
		assert.Contains(t, string(printed), "kubectl fleet join member-1 --member-context member-1 --chart member-agent-1.2.3.tgz")
		require.NoError(t, os.Remove(filepath.Join(out, "kubectl-fleet"))) // what tar has left there
	})
	t.Run("says what has changed, and what is left to do", func(t *testing.T) {
		notes := readFile(t, out, "RELEASE_NOTES.md")
		assert.Contains(t, notes, "## Changes since v1.2.2\n\n- Rollouts are faster (abc1234)\n")
		assert.Contains(t, notes, "registry.example.com/fleet/{hub-agent,member-agent,fleet-dashboard,kubectl-fleet,bundled-temporal}:v1.2.3")
		assert.Contains(t, output, "NOT DONE: images, as PUSH=yes was not given")
		assert.NotContains(t, calls, "docker")
		assert.NotContains(t, calls, "cosign")
	})
	t.Run("pushes images and charts by digest if it may", func(t *testing.T) {
		calls, output, err := release(t, dir, "release-all", "VERSION=v1.2.3", "PUSH=yes")
		require.NoError(t, err, output)
		assert.NotContains(t, output, "NOT DONE")
		assert.Contains(t, calls, "docker buildx build")
		assert.Contains(t, calls, "cosign sign --yes registry.example.com/fleet/charts/hub-agent@"+chart)
		assert.Contains(t, readFile(t, out, "images-and-charts.txt"), "hub-agent registry.example.com/fleet/hub-agent@"+image)
		assert.FileExists(t, filepath.Join(out, "hub-agent-1.2.3.tgz"))
	})
}

func TestAPluginThatHasGrownTooLargeIsNotReleased(t *testing.T) {
	t.Cleanup(func() { delete(played, "go") })
	played["go"] = playedGo
	t.Setenv("LARGEST", "5")
	_, output, err := release(t, folder(t), "release-all", "VERSION=1.2.3")
	require.Error(t, err)
	assert.Regexp(t, `bin/linux-amd64/kubectl-fleet has \d+ bytes, more than 5`, output)
}

func TestAVersionThatIsNoneIsRefusedBeforeAnythingIsBuilt(t *testing.T) {
	for _, version := range []string{"VERSION=", "VERSION=latest", "VERSION=1.2"} {
		calls, output, err := release(t, folder(t), "release-all", version)
		require.Error(t, err)
		assert.Contains(t, output, "is not a version such as 0.2.0")
		assert.Empty(t, calls)
	}
}
