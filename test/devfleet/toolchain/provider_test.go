package toolchain

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fleetflow/fleetflow/test/devfleet/progress"
)

// workshop is a clone with two programs that build in a second, and a provider of them.
type workshop struct {
	*Provider
	host *publisherHost
	out  *syncBuffer
}

const (
	firstModule  = "example.org/kwok"
	secondModule = "example.org/etcd"
)

func newWorkshop(t *testing.T, programs Programs) *workshop {
	t.Helper()
	t.Setenv(AssetsEnv, "")
	w := &workshop{host: newPublisherHost(t)}
	d, out := newDownloader(w.host.transport(), patient)
	w.out = out
	w.Provider = &Provider{
		root: t.TempDir(), cache: filepath.Join(t.TempDir(), "tools"), programs: programs, downloader: d, display: progress.New(out), free: freeSpace,
		catalogue: []Tool{
			{Binary: "kwok", Project: "kwok", Folder: "kwok", Module: firstModule, Package: firstModule, VersionArgs: []string{"--version"}},
			{Binary: "etcd", Project: "etcd", Folder: "etcd", Module: secondModule, Package: secondModule, VersionArgs: []string{"--version"}},
		},
	}
	w.writeModule(t, "kwok", firstModule, tinySource)
	w.writeModule(t, "etcd", secondModule, tinySource)
	return w
}

// writeModule writes a tool module that pins v1.2.3 of a module with a main package.
func (w *workshop) writeModule(t *testing.T, folder, module, source string) {
	t.Helper()
	dir := filepath.Join(w.root, "test", "controlplane", folder)
	for name, content := range map[string]string{
		"go.mod":          "module tools\n\ngo 1.26.0\n\nrequire " + module + " v1.2.3\n\nreplace " + module + " => ./source\n",
		"source/go.mod":   "module " + module + "\n\ngo 1.26.0\n",
		"source/main.go":  source,
		"source/empty.go": "package main\n",
	} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
}

func (w *workshop) place(binary string) string {
	return filepath.Join(w.cache, binary+"-v1.2.3", binary)
}

func (w *workshop) publish(t *testing.T, binary string) {
	t.Helper()
	program, err := os.ReadFile(tinyProgram(t))
	require.NoError(t, err)
	w.host.publish(pinnedTool(t, "", binary), program)
}

func isDownloaded(place string) bool {
	_, err := os.Stat(place + stampSuffix)
	return err == nil
}

func TestAutoDownloadsWhatItCanAndBuildsTheRest(t *testing.T) {
	w := newWorkshop(t, Auto)
	w.publish(t, "kwok")
	paths, err := w.Ensure(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"kwok": w.place("kwok"), "etcd": w.place("etcd")}, paths)
	assert.Empty(t, objectTo(w.place("etcd")))
	assert.True(t, isDownloaded(w.place("kwok")))
	assert.False(t, isDownloaded(w.place("etcd")))
	assert.Contains(t, w.out.String(), "built instead of downloaded: etcd (https://github.com/etcd-io/etcd/releases/download/v1.2.3/SHA256SUMS answers 404 Not Found)\n")
	assert.Contains(t, w.out.String(), "Building 1 program into "+w.cache)
}

func TestWhatArrivesTooSlowlyIsBuilt(t *testing.T) {
	w := newWorkshop(t, Auto)
	w.publish(t, "kwok")
	w.downloader.publishers.limits.whole = 200 * time.Millisecond
	trickle := func(wr http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = wr.Write([]byte("x"))
			_ = http.NewResponseController(wr).Flush()
		}
	}
	w.host.odd["stored.example"] = trickle
	_, err := w.Ensure(t.Context(), "kwok")
	require.NoError(t, err)
	assert.False(t, isDownloaded(w.place("kwok")))
	assert.Contains(t, w.out.String(), "built instead of downloaded: kwok (")
	assert.Contains(t, w.out.String(), "not here after 200ms)\n")
}

func TestDownloadBuildsNothing(t *testing.T) {
	w := newWorkshop(t, Download)
	w.publish(t, "kwok")
	_, err := w.Ensure(t.Context())
	assert.ErrorContains(t, err, "programs could not be downloaded, and --programs=download builds none (--programs=auto does):\n  etcd: https://github.com/etcd-io/")
	assert.True(t, isDownloaded(w.place("kwok")), "what could be downloaded is kept")
	assert.NoFileExists(t, w.place("etcd"))
}

func TestBuildAsksNoHostAndTakesNothingThatWasDownloaded(t *testing.T) {
	w := newWorkshop(t, Auto)
	w.publish(t, "kwok")
	w.publish(t, "etcd")
	_, err := w.Ensure(t.Context(), "kwok")
	require.NoError(t, err)
	require.True(t, isDownloaded(w.place("kwok")))
	w.host.asked = map[string]int{}
	w.programs = Build
	_, err = w.Ensure(t.Context())
	require.NoError(t, err)
	assert.Empty(t, w.host.asked)
	assert.False(t, isDownloaded(w.place("kwok")))
	assert.Contains(t, w.out.String(), w.place("kwok")+" was downloaded, not built: it is brought anew.")
	built, err := os.Stat(w.place("kwok"))
	require.NoError(t, err)
	w.programs = Auto
	_, err = w.Ensure(t.Context())
	require.NoError(t, err)
	same, err := os.Stat(w.place("kwok"))
	require.NoError(t, err)
	assert.True(t, os.SameFile(built, same), "what was built is there for all")
}

func TestABuildGoesOnWhereOneWasInterrupted(t *testing.T) {
	w := newWorkshop(t, Build)
	w.writeModule(t, "etcd", secondModule, "package main\n\nfunc main() { undefined() }\n")
	_, err := w.Ensure(t.Context())
	require.ErrorContains(t, err, "building etcd v1.2.3: go build: exit status 1")
	require.ErrorContains(t, err, "undefined: undefined", "what the Go command says is shown")
	require.ErrorContains(t, err, "what is built and compiled is kept")
	if _, err := os.Stat(w.place("kwok")); errors.Is(err, os.ErrNotExist) {
		// The other lane was interrupted before it was done.
		_, err := w.Ensure(t.Context(), "kwok")
		require.NoError(t, err)
	}
	finished, err := os.Stat(w.place("kwok"))
	require.NoError(t, err)
	assert.Equal(t, []string{}, filesIn(t, filepath.Dir(w.place("etcd"))))

	left := []string{w.place("etcd") + partialInfix + "17", w.place("kwok") + partialInfix + "17.tar.gz"}
	for _, file := range left {
		require.NoError(t, os.WriteFile(file, []byte("half"), 0o755))
	}
	w.writeModule(t, "etcd", secondModule, tinySource)
	_, err = w.Ensure(t.Context())
	require.NoError(t, err)
	same, err := os.Stat(w.place("kwok"))
	require.NoError(t, err)
	assert.True(t, os.SameFile(finished, same), "what was finished is not built again")
	assert.FileExists(t, w.place("etcd"))
	for _, file := range left {
		assert.NoFileExists(t, file, "what an interrupted run has left is removed")
	}
	assert.Contains(t, loadCosts(w.cache), "kwok", "how long it took is known the next time")
}

// badPrograms are files that a cache may have instead of a program, by what is said of them.
var badPrograms = map[string]func(t *testing.T, file string){
	"is empty": func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 0)) },
	"is cut off after ": func(t *testing.T, file string) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		clear(content[0x28:0x30]) // e_shoff: a program whose sections are not described at its end
		clear(content[0x3c:0x40]) // e_shnum and e_shstrndx
		require.NoError(t, os.WriteFile(file, content[:len(content)/2], 0o755))
	},
	"is no whole program: EOF": func(t *testing.T, file string) {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(file, info.Size()/2))
	},
	"is no whole program: ": func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 40)) },
	"may not be executed":   func(t *testing.T, file string) { require.NoError(t, os.Chmod(file, 0o644)) },
	"is for another machine, EM_S390 instead of ": func(t *testing.T, file string) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		binary.LittleEndian.PutUint16(content[18:], uint16(elf.EM_S390)) // e_machine
		require.NoError(t, os.WriteFile(file, content, 0o755))
	},
	"cannot be read: ": func(t *testing.T, file string) {
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Symlink("nowhere", file))
	},
}

func TestWhatIsNoWholeProgramIsBroughtAnew(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs have other headers here")
	}
	for said, spoil := range badPrograms {
		t.Run(said, func(t *testing.T) {
			w := newWorkshop(t, Download)
			w.publish(t, "kwok")
			copyFile(t, tinyProgram(t), w.place("kwok"))
			spoil(t, w.place("kwok"))
			_, err := w.Ensure(t.Context(), "kwok")
			require.NoError(t, err)
			assert.Contains(t, w.out.String(), w.place("kwok")+" "+said)
			assert.Contains(t, w.out.String(), ": it is brought anew.\n")
			assert.Empty(t, objectTo(w.place("kwok")))
		})
	}
}

func TestOnlyThePinnedVersionOnPATHIsTaken(t *testing.T) {
	for version, taken := range map[string]bool{"1.2.2": false, "v1.2.3": true, "v1.2.30": false} {
		t.Run(version, func(t *testing.T) {
			w := newWorkshop(t, Build)
			elsewhere := t.TempDir()
			copyFile(t, tinyProgram(t), filepath.Join(elsewhere, "kwok"))
			t.Setenv("TINY_VERSION", version)
			t.Setenv("PATH", elsewhere)
			paths, missing, err := w.locateAll(t.Context(), []string{"kwok"})
			require.NoError(t, err)
			assert.Equal(t, taken, len(missing) == 0)
			assert.Equal(t, taken, paths["kwok"] == filepath.Join(elsewhere, "kwok"))
			t.Setenv("PATH", "")
			t.Setenv(AssetsEnv, elsewhere)
			_, missing, err = w.locateAll(t.Context(), []string{"kwok"})
			require.NoError(t, err)
			assert.Equal(t, taken, len(missing) == 0, "the same holds for %s", AssetsEnv)
		})
	}
}

func TestACacheThatCannotBeWrittenIsNamedWithTheWayOut(t *testing.T) {
	w := newWorkshop(t, Build)
	require.NoError(t, os.WriteFile(w.cache, nil, 0o600))
	_, err := w.Ensure(t.Context())
	assert.ErrorContains(t, err, w.cache)
	assert.ErrorContains(t, err, "name another folder in "+CacheEnv)
}

func TestAnInterruptEndsTheGoCommandAndItsChildren(t *testing.T) {
	w := newWorkshop(t, Build)
	tools := t.TempDir()
	child := filepath.Join(t.TempDir(), "pid")
	// A Go command that has started a compiler, which would go on for long, and notes what it is ended by.
	compiler := `trap "touch ` + child + `.interrupted; exit" INT; echo $$ >` + child + `.new; mv ` + child + `.new ` + child + `; while :; do sleep 0.1; done`
	script := "#!/bin/sh\n[ \"$1\" = env ] && exit\nsh -c '" + compiler + "'\n"
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte(script), 0o755))
	t.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.Ensure(ctx, "kwok")
		ended <- err
	}()
	pid := 0
	await(t, func() bool {
		content, _ := os.ReadFile(child) // there is none yet
		pid, _ = strconv.Atoi(strings.TrimSpace(string(content)))
		return pid != 0
	})
	interrupt()
	assert.ErrorIs(t, <-ended, context.Canceled)
	await(t, func() bool { return !isRunning(pid) })
	assert.FileExists(t, child+".interrupted", "it was interrupted, not killed: it could remove its files")
	assert.Empty(t, filesIn(t, filepath.Dir(w.place("kwok"))))
	unlock, err := w.awaitCache(t.Context())
	require.NoError(t, err, "the cache is free again")
	unlock()
}

// isRunning says that a process lives; one that has ended and waits for its parent does not.
func isRunning(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(content), ") Z ")
}

func await(t *testing.T, condition func() bool) {
	t.Helper()
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return condition(), nil }))
}

func TestTheOutputOfAFailedBuildLeavesOutWhatWasDownloaded(t *testing.T) {
	output := &outputTail{}
	for _, line := range []string{"go: downloading k8s.io/api v0.36.3\n", "go: k8s.io/klog/v2@v2.140.0: dial tcp: connection refused\n"} {
		_, err := output.Write([]byte(line))
		require.NoError(t, err)
	}
	assert.Equal(t, "go: k8s.io/klog/v2@v2.140.0: dial tcp: connection refused", output.String())
}

func TestTheOutputOfAFailedBuildTellsEachCauseOnce(t *testing.T) {
	output := &outputTail{}
	for line := range 30 {
		_, err := fmt.Fprintf(output, "a/b.go:%d:2: example.org/m@v1.0.0: Get \"https://proxy\": connection refused\na/c.go:1:1: cause %d\n", line, line)
		require.NoError(t, err)
	}
	lines := strings.Split(output.String(), "\n")
	require.Len(t, lines, mostLines+1)
	assert.Equal(t, []string{`a/b.go:0:2: example.org/m@v1.0.0: Get "https://proxy": connection refused`, "a/c.go:1:1: cause 0", "a/c.go:1:1: cause 1"}, lines[:3])
	assert.Equal(t, "... and 11 lines more", lines[mostLines])
}

func TestAFullDiskIsNamed(t *testing.T) {
	free := func(folder string) (int64, error) {
		return map[string]int64{"/full": 3 << 20, "/empty": 1 << 40}[folder], nil
	}
	assert.Equal(t, "\nOnly 3 MB are free in /full: make room there.", describeSpace([]string{"/empty", "/full"}, free))
	left, err := freeSpace(t.TempDir())
	require.NoError(t, err)
	assert.Positive(t, left)
}

func TestNothingIsCompiledOnAFullDisk(t *testing.T) {
	w := newWorkshop(t, Build)
	w.free = func(folder string) (int64, error) {
		if folder == w.cache {
			return 3 << 20, nil
		}
		return 1 << 40, nil
	}
	_, err := w.Ensure(t.Context())
	require.EqualError(t, err, "there is no room to build 2 programs:\nOnly 3 MB are free in "+w.cache+": make room there.")
	assert.NotContains(t, w.out.String(), "building")

	w.writeModule(t, "kwok", firstModule, "package main\n\nfunc main() { nothing }\n")
	asked := 0
	w.free = func(folder string) (int64, error) {
		if folder == w.cache {
			asked++
			return map[bool]int64{true: 1 << 40, false: 5 << 20}[asked == 1], nil
		}
		return 1 << 40, nil
	}
	_, err = w.Ensure(t.Context())
	require.ErrorContains(t, err, "Only 5 MB are free in "+w.cache+": make room there.", "a disk that fills up while something is compiled")
}

func TestParsePrograms(t *testing.T) {
	for name, tc := range map[string]struct {
		flag, env string
		want      Programs
		fails     string
	}{
		"nothing said is auto":         {want: Auto},
		"the environment says it":      {env: "build", want: Build},
		"the flag wins":                {flag: "download", env: "build", want: Download},
		"a flag that is not known":     {flag: "fetch", fails: "--programs=fetch is not known: it is auto, build or download"},
		"a variable that is not known": {env: "Build", fails: "FLEETFLOW_PROGRAMS=Build is not known: it is auto, build or download"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(ProgramsEnv, tc.env)
			got, err := ParsePrograms(tc.flag)
			assert.Equal(t, tc.want, got)
			if tc.fails == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, tc.fails)
		})
	}
}
