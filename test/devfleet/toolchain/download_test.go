package toolchain

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/test/devfleet/progress"
)

// testPlatform is one that publishers have programs for; the programs of the test are for the machine it runs on.
const testPlatform = "linux/amd64"

// publisherHost plays the hosts of all publishers: every address leads to it.
type publisherHost struct {
	*testing.T
	server *httptest.Server
	// files are what is published, by its URL.
	files map[string][]byte
	// odd answer in their own way, by URL or by host.
	odd map[string]http.HandlerFunc

	mu    sync.Mutex
	asked map[string]int // requests by host
}

func newPublisherHost(t *testing.T) *publisherHost {
	h := &publisherHost{T: t, files: map[string][]byte{}, odd: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	h.server = httptest.NewTLSServer(h)
	t.Cleanup(h.server.Close)
	return h
}

func (h *publisherHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.asked[r.Host]++
	h.mu.Unlock()
	address := "https://" + r.Host + r.URL.Path
	for _, key := range []string{address, r.Host} {
		if odd, found := h.odd[key]; found {
			odd(w, r)
			return
		}
	}
	// Publishers redirect once, to where their files are stored.
	if stored, is := strings.CutPrefix(address, "https://stored.example/"); is {
		address = "https://" + stored
	} else if _, found := h.files[address]; found && r.Host != "api.github.com" {
		http.Redirect(w, r, "https://stored.example/"+strings.TrimPrefix(address, "https://"), http.StatusFound)
		return
	}
	content, found := h.files[address]
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content)
}

// publish puts a program, in the form its publisher has, and its checksum onto the host.
func (h *publisherHost) publish(p pinned, program []byte) {
	r, found := p.releaseOf(testPlatform)
	require.True(h, found, p.Binary)
	file := program
	if r.member != "" {
		file = packMember(h.T, r.member, program)
	}
	h.publishFile(r, file)
}

func (h *publisherHost) publishFile(r release, file []byte) {
	h.files[r.file] = file
	name := path.Base(r.file)
	raw := sha256.Sum256(file)
	sum := hex.EncodeToString(raw[:])
	switch r.sumsForm {
	case sumAlone:
		h.files[r.sums] = []byte(sum)
	case sumPerLine:
		h.files[r.sums] = fmt.Appendf(nil, "%s  other.tar.gz\n%s  %s\n", strings.Repeat("0", 64), sum, name)
	case gitHubDigest:
		h.files[r.sums] = fmt.Appendf(nil, `{"tag_name": "v1.2.3", "assets": [{"name": "other", "digest": null}, {"name": %q, "digest": "sha256:%s"}]}`, name, sum)
	}
}

// packMember writes a .tar.gz with another file, and the program unless it has no path.
func packMember(t *testing.T, member string, program []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	require.NoError(t, err)
	contents := tar.NewWriter(zipped)
	add := func(name string, content []byte) {
		require.NoError(t, contents.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err := contents.Write(content)
		require.NoError(t, err)
	}
	add("LICENSE", []byte("free"))
	if member != "" {
		add(member, program)
	}
	require.NoError(t, contents.Close())
	require.NoError(t, zipped.Close())
	return packed.Bytes()
}

// transport leads every address to the host.
func (h *publisherHost) transport() http.RoundTripper {
	trusted := x509.NewCertPool()
	trusted.AddCert(h.server.Certificate())
	return &http.Transport{
		DisableCompression: true,
		TLSClientConfig:    &tls.Config{RootCAs: trusted, ServerName: "example.com"},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", h.server.Listener.Addr().String())
		},
	}
}

// patient are limits that no test waits for.
var patient = limits{answer: time.Minute, silence: time.Minute, whole: time.Minute, sums: 1 << 20, file: 64 << 20}

func newDownloader(transport http.RoundTripper, l limits) (*downloader, *syncBuffer) {
	out := &syncBuffer{}
	return &downloader{publishers: newPublishers(transport, l), platform: testPlatform, display: progress.New(out)}, out
}

// allPinned pins every program of the catalogue to release 1.2.3, with its place in a cache.
func allPinned(cache string) []pinned {
	var tools []pinned
	for _, tool := range Catalogue() {
		p := pinned{Tool: tool, version: "v1.2.3", cached: filepath.Join(cache, tool.Project+"-v1.2.3", tool.Binary)}
		if tool.released != nil {
			p.version = "v0.102.3" // of Prometheus' module
		}
		tools = append(tools, p)
	}
	return tools
}

// allReleased are those that a publisher has.
func allReleased(cache string) []pinned {
	return slices.DeleteFunc(allPinned(cache), func(p pinned) bool {
		_, released := p.releaseOf(testPlatform)
		return !released
	})
}

func pinnedTool(t *testing.T, cache, binary string) pinned {
	t.Helper()
	for _, p := range allPinned(cache) {
		if p.Binary == binary {
			return p
		}
	}
	require.Fail(t, "no such program", binary)
	return pinned{}
}

func TestEveryProgramIsDownloadedAsItsPublisherHasIt(t *testing.T) {
	program, err := os.ReadFile(tinyProgram(t))
	require.NoError(t, err)
	host := newPublisherHost(t)
	tools := allReleased(t.TempDir())
	for _, p := range tools {
		host.publish(p, program)
	}
	d, out := newDownloader(host.transport(), patient)
	failed, err := d.downloadAll(t.Context(), tools)
	require.NoError(t, err)
	assert.Empty(t, failed)
	for _, p := range tools {
		stored, err := os.ReadFile(p.cached)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(program, stored), p.Binary)
		assert.Empty(t, objectTo(p.cached))
		stamp, err := os.ReadFile(p.cached + stampSuffix)
		require.NoError(t, err)
		assert.Regexp(t, `^https://\S+\nsha256:[0-9a-f]{64}\n$`, string(stamp))
		for _, name := range filesIn(t, filepath.Dir(p.cached)) {
			assert.NotContains(t, name, partialInfix)
		}
		assert.Contains(t, out.String(), fmt.Sprintf("✓ downloading %s v1.2.3 from stored.example", p.Binary))
	}
	assert.Contains(t, out.String(), fmt.Sprintf("✓ downloading %d programs", len(tools)))
}

func TestReleasesLieWhereTheirPublishersPutThem(t *testing.T) {
	for binary, want := range map[string]release{
		"kube-apiserver": {
			file: "https://dl.k8s.io/release/v1.2.3/bin/linux/amd64/kube-apiserver",
			sums: "https://dl.k8s.io/release/v1.2.3/bin/linux/amd64/kube-apiserver.sha256",
		},
		"etcd": {
			file:   "https://github.com/etcd-io/etcd/releases/download/v1.2.3/etcd-v1.2.3-linux-amd64.tar.gz",
			member: "etcd-v1.2.3-linux-amd64/etcd",
			sums:   "https://github.com/etcd-io/etcd/releases/download/v1.2.3/SHA256SUMS", sumsForm: sumPerLine,
		},
		"kwok": {
			file: "https://github.com/kubernetes-sigs/kwok/releases/download/v1.2.3/kwok-linux-amd64",
			sums: "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v1.2.3", sumsForm: gitHubDigest,
		},
		"temporal": {
			file:   "https://github.com/temporalio/cli/releases/download/v1.2.3/temporal_cli_1.2.3_linux_amd64.tar.gz",
			member: "temporal",
			sums:   "https://github.com/temporalio/cli/releases/download/v1.2.3/checksums.txt", sumsForm: sumPerLine,
		},
		Prometheus: {
			file:   "https://github.com/prometheus/prometheus/releases/download/v1.2.3/prometheus-1.2.3.linux-amd64.tar.gz",
			member: "prometheus-1.2.3.linux-amd64/prometheus",
			sums:   "https://github.com/prometheus/prometheus/releases/download/v1.2.3/sha256sums.txt", sumsForm: sumPerLine,
		},
	} {
		got, found := pinnedTool(t, "", binary).releaseOf(testPlatform)
		assert.True(t, found)
		assert.Equal(t, want, got)
	}
	for _, p := range allPinned("") {
		_, found := p.releaseOf("linux/riscv64")
		assert.False(t, found, "a platform that its publisher has no %s for", p.Binary)
	}
}

func TestWhatIsNotAsPublishedIsNotKept(t *testing.T) {
	program, err := os.ReadFile(tinyProgram(t))
	require.NoError(t, err)
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	for name, tc := range map[string]struct {
		binary string
		spoil  func(h *publisherHost, r release)
		want   string
	}{
		"another file than the checksum's": {"kube-apiserver", func(h *publisherHost, r release) { h.files[r.file] = append([]byte("x"), program...) }, "has the SHA-256 "},
		"a body that is cut off": {"kube-apiserver", func(h *publisherHost, r release) {
			h.odd[r.file] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(len(program)))
				_, _ = w.Write(program[:len(program)/2])
				panic(http.ErrAbortHandler)
			}
		}, "unexpected EOF"},
		"no such file":                   {"kube-apiserver", func(h *publisherHost, r release) { delete(h.files, r.file) }, "answers 404 Not Found"},
		"no checksum":                    {"etcd", func(h *publisherHost, r release) { delete(h.files, r.sums) }, "SHA256SUMS answers 404 Not Found"},
		"a publisher that is overloaded": {"kwok", func(h *publisherHost, r release) { h.odd[r.sums] = answer(http.StatusTooManyRequests) }, "answers 429"},
		"checksums of other files":       {"etcd", func(h *publisherHost, r release) { h.files[r.sums] = []byte(strings.Repeat("0", 64) + "  other.zip\n") }, "has no checksum of etcd-v1.2.3-linux-amd64.tar.gz"},
		"an empty checksum":              {"kubectl", func(h *publisherHost, r release) { h.files[r.sums] = []byte("\n") }, "has no checksum of kubectl"},
		"a page instead of a checksum":   {"kubectl", func(h *publisherHost, r release) { h.files[r.sums] = []byte("<html>log in</html>") }, "is no SHA-256"},
		"a page instead of an API":       {"kwok", func(h *publisherHost, r release) { h.files[r.sums] = []byte("<html>log in</html>") }, "has no checksum of kwok-linux-amd64"},
		"a file GitHub has no digest of": {"kwok", func(h *publisherHost, r release) {
			h.files[r.sums] = []byte(`{"assets": [{"name": "kwok-linux-amd64", "digest": null}]}`)
		}, "has no checksum of kwok-linux-amd64"},
		"an archive without the program":  {"etcd", func(h *publisherHost, r release) { h.publishFile(r, packMember(h.T, "", nil)) }, "there is no etcd-v1.2.3-linux-amd64/etcd in it"},
		"an archive that is none":         {"temporal", func(h *publisherHost, r release) { h.publishFile(r, program) }, "gzip: invalid header"},
		"a script instead of a program":   {"kwok", func(h *publisherHost, r release) { h.publishFile(r, []byte("#!/bin/sh\necho v1.2.3\n")) }, "is no whole program"},
		"half a program":                  {"kwok", func(h *publisherHost, r release) { h.publishFile(r, program[:len(program)-1]) }, "is no whole program"},
		"a redirect to plain http":        {"kube-scheduler", func(h *publisherHost, r release) { h.odd[r.file] = redirect("http://stored.example/x") }, "dl.k8s.io redirects to http://stored.example/x, which is not https"},
		"a redirect in a circle":          {"kube-scheduler", func(h *publisherHost, r release) { h.odd[r.file] = redirect(r.file) }, "redirects again after 5 times"},
		"a file that is larger than life": {"kubectl", func(h *publisherHost, r release) { h.publishFile(r, make([]byte, patient.file+1)) }, "it has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			host := newPublisherHost(t)
			p := pinnedTool(t, t.TempDir(), tc.binary)
			host.publish(p, program)
			r, _ := p.releaseOf(testPlatform)
			tc.spoil(host, r)
			d, out := newDownloader(host.transport(), patient)
			failed, err := d.downloadAll(t.Context(), []pinned{p})
			require.NoError(t, err)
			require.Len(t, failed, 1)
			assert.ErrorContains(t, failed[0].cause, tc.want)
			assert.Equal(t, tc.binary, failed[0].names())
			assert.Empty(t, failed[0].host, "the host answers")
			assert.Empty(t, filesIn(t, filepath.Dir(p.cached)), "nothing is left")
			assert.NotContains(t, out.String(), "✗", "why is said once, by the caller")
		})
	}
}

func TestAProgramOfAnotherVersionIsNotKept(t *testing.T) {
	program, err := os.ReadFile(tinyProgram(t))
	require.NoError(t, err)
	t.Setenv("TINY_VERSION", "v1.2.4")
	host := newPublisherHost(t)
	p := pinnedTool(t, t.TempDir(), "etcd")
	host.publish(p, program)
	d, _ := newDownloader(host.transport(), patient)
	failed, err := d.downloadAll(t.Context(), []pinned{p})
	require.NoError(t, err)
	require.Len(t, failed, 1)
	assert.ErrorContains(t, failed[0].cause, "does not run here as v1.2.3")
	assert.Empty(t, filesIn(t, filepath.Dir(p.cached)))
}

func TestAHostThatDoesNotAnswerIsAskedOnce(t *testing.T) {
	host := newPublisherHost(t)
	tools := allPinned(t.TempDir())
	wait := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, name := range []string{"dl.k8s.io", "github.com", "api.github.com"} {
		host.odd[name] = wait
	}
	impatient := patient
	impatient.answer = 100 * time.Millisecond
	d, _ := newDownloader(host.transport(), impatient)
	for range 2 {
		failed, err := d.downloadAll(t.Context(), tools)
		require.NoError(t, err)
		reasons := map[string]string{}
		for _, f := range failed {
			reasons[f.names()] = f.cause.Error()
		}
		assert.Equal(t, map[string]string{
			"kube-apiserver, kube-controller-manager, kube-proxy, kube-scheduler, kubectl and kubelet": "dl.k8s.io cannot be reached: no answer within 100ms",
			"etcd, prometheus and temporal": "github.com cannot be reached: no answer within 100ms",
			"kwok":                          "api.github.com cannot be reached: no answer within 100ms",
			"temporal-server":               "no release of it for linux/amd64 is known",
			"temporal-sql-tool":             "no release of it for linux/amd64 is known",
		}, reasons)
	}
	host.mu.Lock()
	defer host.mu.Unlock()
	for name, times := range host.asked {
		assert.LessOrEqual(t, times, 1, name)
	}
}

func TestAPortThatIsClosedCountsAsAHostThatDoesNotAnswer(t *testing.T) {
	host := newPublisherHost(t)
	tools := allReleased(t.TempDir())
	transport := host.transport()
	host.server.Close()
	d, _ := newDownloader(transport, patient)
	failed, err := d.downloadAll(t.Context(), tools)
	require.NoError(t, err)
	require.Len(t, failed, 3)
	for _, f := range failed {
		assert.ErrorContains(t, f.cause, f.host+" cannot be reached: dial tcp")
		assert.ErrorContains(t, f.cause, "connection refused")
	}
}

func TestAStoreThatDoesNotAnswerIsGivenUp(t *testing.T) {
	program, err := os.ReadFile(tinyProgram(t))
	require.NoError(t, err)
	host := newPublisherHost(t)
	p := pinnedTool(t, t.TempDir(), "etcd")
	host.publish(p, program)
	host.odd["stored.example"] = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	impatient := patient
	impatient.answer = 500 * time.Millisecond
	d, _ := newDownloader(host.transport(), impatient)
	failed, err := d.downloadAll(t.Context(), []pinned{p})
	require.NoError(t, err)
	require.Len(t, failed, 1)
	assert.ErrorContains(t, failed[0].cause, "cannot be reached: no answer within 500ms")
}

func TestABodyThatFallsSilentIsGivenUp(t *testing.T) {
	program, err := os.ReadFile(tinyProgram(t))
	require.NoError(t, err)
	for name, sent := range map[string]int{"from its first byte on": 0, "after a while": 100} {
		t.Run(name, func(t *testing.T) {
			host := newPublisherHost(t)
			p := pinnedTool(t, t.TempDir(), "kubectl")
			host.publish(p, program)
			r, _ := p.releaseOf(testPlatform)
			host.odd[r.file] = func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write(program[:sent])
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
			impatient := patient
			impatient.silence = 200 * time.Millisecond
			d, _ := newDownloader(host.transport(), impatient)
			failed, err := d.downloadAll(t.Context(), []pinned{p})
			require.NoError(t, err)
			require.Len(t, failed, 1)
			assert.ErrorContains(t, failed[0].cause, "sends nothing for 200ms")
			assert.Empty(t, filesIn(t, filepath.Dir(p.cached)))
		})
	}
}

func TestAnInterruptedDownloadLeavesNothing(t *testing.T) {
	program, err := os.ReadFile(tinyProgram(t))
	require.NoError(t, err)
	host := newPublisherHost(t)
	p := pinnedTool(t, t.TempDir(), "kubectl")
	host.publish(p, program)
	r, _ := p.releaseOf(testPlatform)
	ctx, interrupt := context.WithCancel(t.Context())
	host.odd[r.file] = func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(program[:100])
		_ = http.NewResponseController(w).Flush()
		interrupt()
		<-r.Context().Done()
	}
	d, _ := newDownloader(host.transport(), patient)
	_, err = d.downloadAll(ctx, []pinned{p})
	assert.ErrorIs(t, err, context.Canceled, "nothing is built instead")
	assert.Empty(t, filesIn(t, filepath.Dir(p.cached)))
}

func TestACacheThatTakesNothingIsNotThePublishersFault(t *testing.T) {
	program, err := os.ReadFile(tinyProgram(t))
	require.NoError(t, err)
	occupied := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(occupied, nil, 0o600))
	host := newPublisherHost(t)
	p := pinnedTool(t, occupied, "kubectl")
	host.publish(p, program)
	d, _ := newDownloader(host.transport(), patient)
	_, err = d.downloadAll(t.Context(), []pinned{p})
	assert.ErrorContains(t, err, CacheEnv)
	assert.ErrorContains(t, err, "storing programs")
	_, is := errors.AsType[*storeError](err)
	assert.True(t, is)
}

func TestNothingIsAskedOverPlainHTTP(t *testing.T) {
	_, err := newPublishers(http.DefaultTransport, patient).get(t.Context(), "http://dl.k8s.io/release")
	assert.ErrorContains(t, err, "is not https")
	for name, r := range releases {
		assert.True(t, strings.HasPrefix(r.file, "https://") && strings.HasPrefix(r.sums, "https://"), name)
	}
}
