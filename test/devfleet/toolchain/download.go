package toolchain

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fleetflow/fleetflow/test/devfleet/progress"
)

// stampSuffix is what the name of a file ends with that says from where a program beside it was downloaded. Programs without
// one were built here.
const stampSuffix = ".downloaded"

// downloader brings programs into the cache as their publishers have released them.
type downloader struct {
	publishers *publishers
	platform   string
	display    *progress.Display
	// runs is held while a downloaded program is asked for its version. A program that starts keeps files open for an instant
	// that others are writing, and a file that is open for writing cannot be run.
	runs sync.Mutex
}

// failedDownload is why programs could not be downloaded.
type failedDownload struct {
	tools []pinned
	// host is what does not answer, for all its programs; empty for what is wrong with one.
	host  string
	cause error
}

// names lists the programs.
func (f failedDownload) names() string {
	var names []string
	for _, p := range f.tools {
		names = append(names, p.Binary)
	}
	slices.Sort(names)
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// downloadAll brings what it can, side by side, and returns why the rest could not be brought. It fails for what would keep a
// build from working, too: the end of the caller, a disk that takes nothing.
func (d *downloader) downloadAll(ctx context.Context, wanted []pinned) ([]failedDownload, error) {
	whole := d.display.Step("downloading %s", countPrograms(len(wanted)))
	var group sync.WaitGroup
	errs := make([]error, len(wanted))
	all := &meter{}
	whole.Remark(func() string { return fmt.Sprintf("%d of %s done, %s", all.files(), countPrograms(len(wanted)), all) })
	for i, p := range wanted {
		group.Go(func() {
			if errs[i] = d.download(ctx, p, whole, all); errs[i] == nil {
				all.finish()
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err == nil {
		return nil, whole.End(nil)
	}
	whole.Drop()
	return sortFailures(wanted, errs)
}

// sortFailures groups what failed by the host that does not answer, in the order of the programs.
func sortFailures(wanted []pinned, errs []error) ([]failedDownload, error) {
	var failed []failedDownload
	for i, err := range errs {
		if err == nil {
			continue
		}
		if unstored, is := errors.AsType[*storeError](err); is {
			return nil, unstored
		}
		if errors.Is(err, context.Canceled) {
			return nil, err
		}
		host := ""
		if unreachable, is := errors.AsType[*hostError](err); is {
			host = unreachable.host
		}
		at := slices.IndexFunc(failed, func(f failedDownload) bool { return host != "" && f.host == host })
		if at < 0 {
			failed = append(failed, failedDownload{host: host, cause: err})
			at = len(failed) - 1
		}
		failed[at].tools = append(failed[at].tools, wanted[i])
	}
	return failed, nil
}

// download brings one program: it is written aside, checked and renamed, so that what is interrupted leaves nothing half.
func (d *downloader) download(ctx context.Context, p pinned, whole *progress.Step, all *meter) error {
	r, found := p.releaseOf(d.platform)
	if !found {
		return fmt.Errorf("no release of it for %s is known", d.platform)
	}
	want, err := d.fetchSum(ctx, r)
	if err != nil {
		return err
	}
	response, err := d.publishers.get(ctx, r.file)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	step := whole.Part("downloading %s %s from %s", p.Binary, p.releaseVersion(), response.Request.URL.Host)
	arrived := &meter{}
	arrived.expect(response.ContentLength)
	all.expect(response.ContentLength)
	step.Remark(arrived.String)
	if err := d.store(ctx, p, r, want, io.TeeReader(response.Body, io.MultiWriter(arrived, all))); err != nil {
		step.Drop()
		return err
	}
	return step.End(nil)
}

func (d *downloader) fetchSum(ctx context.Context, r release) (string, error) {
	response, err := d.publishers.get(ctx, r.sums)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, d.publishers.limits.sums))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", r.sums, err)
	}
	return r.findSum(content)
}

// store keeps the program that is in a body, once the checksum has shown that the body is what was published.
func (d *downloader) store(ctx context.Context, p pinned, r release, want string, body io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(p.cached), 0o755); err != nil {
		return &storeError{err}
	}
	fresh := p.partial()
	defer func() { _ = os.Remove(fresh) }() // there is none after the rename
	file := fresh
	if r.member != "" {
		file = fresh + ".tar.gz"
		defer func() { _ = os.Remove(file) }()
	}
	sum, err := saveFile(file, body, d.publishers.limits.file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", r.file, err)
	}
	if sum != want {
		return fmt.Errorf("%s has the SHA-256 %s, not %s as %s says", r.file, sum, want, r.sums)
	}
	if r.member != "" {
		if err := unpackMember(file, r.member, fresh, d.publishers.limits.file); err != nil {
			return fmt.Errorf("unpacking %s: %w", r.file, err)
		}
	}
	if err := d.checkProgram(ctx, p, fresh); err != nil {
		return fmt.Errorf("%s %w", r.file, err)
	}
	// The stamp comes first: whatever happens in between, nothing that was downloaded counts as built.
	if err := os.WriteFile(p.cached+stampSuffix, fmt.Appendf(nil, "%s\nsha256:%s\n", r.file, sum), 0o644); err != nil {
		return &storeError{err}
	}
	if err := os.Rename(fresh, p.cached); err != nil {
		return &storeError{err}
	}
	return nil
}

// checkProgram refuses a program that does not run here, or is not the version that its publisher calls it.
func (d *downloader) checkProgram(ctx context.Context, p pinned, file string) error {
	if objection := objectTo(file); objection != "" {
		return errors.New(objection)
	}
	d.runs.Lock()
	defer d.runs.Unlock()
	if !p.accepts(ctx, file) {
		return fmt.Errorf("does not run here as %s", p.releaseVersion())
	}
	return nil
}

// saveFile writes a body of a limited size into an executable file and returns its SHA-256.
func saveFile(name string, body io.Reader, limit int64) (string, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return "", &storeError{err}
	}
	defer file.Close()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(hash, storing{file}), io.LimitReader(body, limit+1))
	if err != nil {
		return "", fmt.Errorf("after %d bytes: %w", size, err)
	}
	if size > limit {
		return "", fmt.Errorf("it has more than %d bytes", limit)
	}
	if err := file.Close(); err != nil {
		return "", &storeError{err}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// unpackMember writes a file that is in a .tar.gz.
func unpackMember(archive, member, into string, limit int64) error {
	file, err := os.Open(archive)
	if err != nil {
		return &storeError{err}
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for contents := tar.NewReader(unpacked); ; {
		header, err := contents.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("there is no %s in it", member)
		}
		if err != nil {
			return err
		}
		if path.Clean(header.Name) == member && header.Typeflag == tar.TypeReg {
			_, err := saveFile(into, contents, limit)
			return err
		}
	}
}

// storing marks errors of a file that is written, to tell them from those of what is read.
type storing struct{ file io.Writer }

func (s storing) Write(content []byte) (int, error) {
	n, err := s.file.Write(content)
	if err != nil {
		return n, &storeError{err}
	}
	return n, nil
}

// meter counts what has arrived, for the remark of a step.
type meter struct {
	mu sync.Mutex
	// total is how many bytes publishers have announced, count how many are here, done how many files are whole.
	total, count int64
	done         int
}

// expect adds the size of a file, unless its publisher does not say it.
func (m *meter) expect(size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += max(size, 0)
}

func (m *meter) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done++
}

func (m *meter) files() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

func (m *meter) Write(content []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count += int64(len(content))
	return len(content), nil
}

func (m *meter) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.count > m.total {
		return fmt.Sprintf("%d MB", m.count>>20)
	}
	return fmt.Sprintf("%d of %d MB", m.count>>20, m.total>>20)
}
