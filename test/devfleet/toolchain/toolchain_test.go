package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/progress"
)

func TestPinnedVersion(t *testing.T) {
	const goMod = `module example.org/tools

go 1.26.0

require k8s.io/kubernetes v1.36.3

require (
	k8s.io/api v0.36.3 // indirect
	go.etcd.io/etcd/server/v3 v3.6.16
)

replace (
	k8s.io/client-go => k8s.io/client-go v0.36.3
)
`
	for name, tc := range map[string]struct {
		module, want string
		fails        bool
	}{
		"a require line of its own":            {module: "k8s.io/kubernetes", want: "v1.36.3"},
		"a line of a require block":            {module: "go.etcd.io/etcd/server/v3", want: "v3.6.16"},
		"a replaced module is not a pin":       {module: "k8s.io/client-go", fails: true},
		"a prefix of a module is not a module": {module: "go.etcd.io/etcd/server", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PinnedVersion(goMod, tc.module)
			assert.Equal(t, tc.fails, err != nil)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestReportsVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		output, want string
		matches      bool
	}{
		"an API server of the version":                   {"Kubernetes v1.36.3\n", "v1.36.3", true},
		"an API server of another patch":                 {"Kubernetes v1.36.1\n", "v1.36.3", false},
		"etcd names its version without v, then Go's":    {"etcd Version: 3.6.16\nGit SHA: x\nGo Version: go1.26.8\n", "v3.6.16", true},
		"the Go version does not count":                  {"etcd Version: 3.5.0\nGo Version: go3.6.16\n", "v3.6.16", false},
		"the server inside the Temporal CLI is not it":   {"temporal version 1.5.1 (Server 1.8.2, UI 2.1.0)", "v1.8.2", false},
		"a pre-release is another version":               {"kwok version v0.8.0-alpha.1 (go1.26.8)", "v0.8.0", false},
		"output without a version matches nothing":       {"usage: etcd", "v3.6.16", false},
		"kwok writes v and the platform behind":          {"kwok version v0.8.0 (go1.26.8, linux/amd64)", "v0.8.0", true},
		"a longer number is not the version it contains": {"Kubernetes v1.36.30", "v1.36.3", false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.matches, ReportsVersion(tc.output, tc.want))
		})
	}
}

func TestLinkerFlagsStampTheVersion(t *testing.T) {
	flags := kubernetesTool("kube-apiserver").LinkerFlags("v1.36.3")
	assert.Contains(t, flags, "-X k8s.io/component-base/version.gitVersion=v1.36.3")
	assert.Contains(t, flags, "-X k8s.io/component-base/version.gitMinor=36")
	assert.Equal(t, "-s -w", Tool{Binary: "etcd"}.LinkerFlags("v3.6.16"), "a tool that knows its version is not stamped")
}

func TestEveryToolIsPinnedByItsModule(t *testing.T) {
	root, err := FindRoot(mustGetwd(t))
	require.NoError(t, err)
	for _, tool := range Catalogue() {
		p, err := pin(root, "/cache", tool)
		require.NoError(t, err, tool.Binary)
		assert.Equal(t, filepath.Join("/cache", tool.Project+"-"+p.version, tool.Binary), p.cached)
	}
}

func TestAToolOnDemandIsBuiltForThoseWhoNameIt(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv(AssetsEnv, "")
	root, err := FindRoot(mustGetwd(t))
	require.NoError(t, err)
	provider := &Provider{root: root, cache: "/cache", catalogue: Catalogue(), programs: Auto}
	missing := func(only ...string) []string {
		paths, tools, err := provider.locateAll(t.Context(), only)
		require.NoError(t, err)
		assert.Regexp(t, `^/cache/prometheus-v[0-9.]+/prometheus$`, paths[Prometheus], "where it is once it is built")
		var names []string
		for _, tool := range tools {
			names = append(names, tool.Binary)
		}
		return names
	}
	assert.NotContains(t, missing(), Prometheus)
	assert.Contains(t, missing(), "etcd")
	assert.Equal(t, []string{Prometheus}, missing(Prometheus))
	t.Setenv(CacheEnv, t.TempDir())
	built, err := IsBuilt(t.Context(), root, Prometheus)
	require.NoError(t, err)
	assert.False(t, built)
	folder := filepath.Dir(missingPath(t, root))
	require.NoError(t, os.MkdirAll(folder, 0o755))
	copyFile(t, tinyProgram(t), filepath.Join(folder, Prometheus))
	built, err = IsBuilt(t.Context(), root, Prometheus)
	require.NoError(t, err)
	assert.True(t, built)
}

// missingPath is where Prometheus is to be built.
func missingPath(t *testing.T, root string) string {
	t.Helper()
	provider, err := New(root, Auto, nil)
	require.NoError(t, err)
	paths, _, err := provider.locateAll(t.Context(), []string{Prometheus})
	require.NoError(t, err)
	return paths[Prometheus]
}

func TestPrometheusRelease(t *testing.T) {
	for version, want := range map[string]string{"v0.316.0": "v3.16.0", "v0.302.1": "v3.2.1", "v0.55.0": "v0.55.0", "v1": "v1"} {
		assert.Equal(t, want, prometheusRelease(version), version)
	}
	tool := Catalogue()[len(Catalogue())-1]
	assert.Equal(t, "-s -w -X github.com/prometheus/common/version.Version=3.16.0", tool.LinkerFlags("v0.316.0"))
	assert.True(t, ReportsVersion("prometheus, version 3.16.0 (branch: , revision: unknown)", tool.released("v0.316.0")))
}

func TestFindRootFromAFolderBelow(t *testing.T) {
	root, err := FindRoot(".")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(root, "test", "devfleet", "toolchain"), mustGetwd(t))
}

func TestFindRootOutsideOfTheRepositorySaysWhereToRun(t *testing.T) {
	_, err := FindRoot(t.TempDir())
	assert.ErrorContains(t, err, "inside a clone")
}

func TestInstallReplacesOnlyWhatDiffers(t *testing.T) {
	dir := t.TempDir()
	fresh := filepath.Join(dir, "fresh")
	target := filepath.Join(dir, "target")
	write := func(path, content string) {
		require.NoError(t, os.WriteFile(path+".out", []byte(content), 0o755))
		require.NoError(t, os.Rename(path+".out", path), "as the Go command replaces its output")
	}

	write(fresh, "one")
	changed, err := install(fresh, target)
	require.NoError(t, err)
	assert.True(t, changed, "a first install is a change")

	write(fresh, "one")
	changed, err = install(fresh, target)
	require.NoError(t, err)
	assert.False(t, changed, "the same content is not a change")

	write(fresh, "two")
	changed, err = install(fresh, target)
	require.NoError(t, err)
	assert.True(t, changed, "other content is a change")
}

func TestTheFirstToolOfEachModuleIsBuiltAloneBecauseTheOthersShareItsPackages(t *testing.T) {
	var tools []pinned
	for _, tool := range Catalogue() {
		tools = append(tools, pinned{Tool: tool})
	}
	var names [][]string
	for _, wave := range waves(tools) {
		var programs []string
		for _, p := range wave {
			programs = append(programs, p.Binary)
		}
		names = append(names, programs)
	}
	assert.Equal(t, [][]string{
		{"kube-apiserver"}, {"kubelet"}, {"prometheus"},
		{"kube-controller-manager", "kube-scheduler", "kubectl", "kube-proxy", "temporal", "temporal-server", "temporal-sql-tool", "etcd", "kwok"},
	}, names)
	assert.Empty(t, waves(nil))
}

func TestNodesAreOfTheVersionOfTheirControlPlanes(t *testing.T) {
	root, err := FindRoot(".")
	require.NoError(t, err)
	server, err := pin(root, t.TempDir(), kubernetesTool("kube-apiserver"))
	require.NoError(t, err)
	kubelet, err := pin(root, t.TempDir(), nodeTool(Kubelet))
	require.NoError(t, err)
	assert.Equal(t, server.version, kubelet.version, "test/controlplane/nodes/go.mod pins what test/controlplane/go.mod pins")
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	return dir
}

func TestOneProcessAtATimeBringsProgramsIntoTheCache(t *testing.T) {
	out := &syncBuffer{}
	provider := &Provider{cache: t.TempDir(), display: progress.New(out)}
	unlock, err := provider.awaitCache(t.Context())
	require.NoError(t, err)
	assert.Empty(t, out.String(), "a process that does not wait says nothing")
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err = provider.awaitCache(interrupted)
	require.ErrorIs(t, err, context.Canceled, "a process that waits can be interrupted")
	assert.Contains(t, out.String(), fmt.Sprintf("waiting for process %d, which brings programs into %s", os.Getpid(), provider.cache))
	next := make(chan error, 1)
	go func() {
		unlockNext, err := provider.awaitCache(t.Context())
		if err == nil {
			unlockNext()
		}
		next <- err
	}()
	require.Empty(t, next, "the lock is held")
	unlock()
	require.NoError(t, <-next)
}

func TestEverythingIsCompiledAlikeUnlessTheUserSaysHow(t *testing.T) {
	const flags = "GOFLAGS=-trimpath -buildvcs=false -gcflags=all=-dwarf=false"
	assert.Equal(t, []string{"HOME=/root", "GOGC=off", "GOMEMLIMIT=768MiB", "CGO_ENABLED=0", flags}, buildEnv([]string{"HOME=/root"}))
	assert.Equal(t, []string{"GOGC=50", "GOMEMLIMIT=1GiB", "CGO_ENABLED=1", "GOFLAGS=-v"}, buildEnv([]string{"GOGC=50", "GOMEMLIMIT=1GiB", "CGO_ENABLED=1", "GOFLAGS=-v"}))
	makefile, err := os.ReadFile("../../../Makefile")
	require.NoError(t, err)
	assert.Contains(t, string(makefile), "\nexport GOFLAGS ?= "+strings.TrimPrefix(flags, "GOFLAGS=")+"\nexport CGO_ENABLED := 0\n", "make compiles as devfleet does")
}
