// Package release checks what make does with docker, helm and cosign when images and charts are released. The programs are
// played: no registry is needed.
package release

import (
	"os"
	"os/exec"
	"path/filepath"
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
}

// release runs targets of the Makefile in a copy of what they read, and returns how programs were called.
func release(t *testing.T, dir string, targets ...string) (calls, output string, err error) {
	t.Helper()
	programs, log := filepath.Join(dir, "programs"), filepath.Join(dir, "calls")
	require.NoError(t, os.MkdirAll(programs, 0o700))
	for name, answer := range played {
		script := "#!/bin/bash\necho \"" + name + " $*\" >>" + log + "\n" + answer + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(programs, name), []byte(script), 0o700)) //nolint:gosec // it is to be run
	}
	command := exec.CommandContext(t.Context(), "make", append(targets, "TAG=v1.2.3", "REGISTRY=registry.example.com/fleet")...)
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
		assert.Equal(t, 1, strings.Count(string(values), image), "the image of Temporal is another one")
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
